//! As much of `kubectl kustomize` as our files use: resources, components, generated config maps, and patches in the
//! form of JSON Patch. Anything else is refused. (`kubectl kustomize` 5.5 was tried on the same files by hand.)

use crate::files::path;
use serde_json::{Value, json};
use std::path::Path;

/// Fields of a kustomization that this reader supports.
const KNOWN: [&str; 8] = [
    "apiVersion",
    "kind",
    "namespace",
    "resources",
    "components",
    "patches",
    "configMapGenerator",
    "generatorOptions",
];

/// The documents of a YAML file.
pub fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    documents_of(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn documents_of(text: &str) -> Result<Vec<Value>, serde_yaml::Error> {
    serde_yaml::Deserializer::from_str(text)
        .map(serde::Deserialize::deserialize)
        .collect()
}

/// The resources of a folder of the repository.
pub fn build(folder: &str) -> Vec<Value> {
    let mut resources = Vec::new();
    add(&path(folder), &mut resources);
    resources
}

/// The resources of a folder, with a component that none of our folders has.
pub fn build_with(folder: &str, component: &str) -> Vec<Value> {
    let mut resources = build(folder);
    add(&path(component), &mut resources);
    resources
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Adds the resources of a folder. The patches of a component change the resources before it.
fn add(folder: &Path, resources: &mut Vec<Value>) {
    let [kustomization]: [Value; 1] = documents(&folder.join("kustomization.yaml")).try_into().unwrap();
    for key in kustomization.as_object().unwrap().keys() {
        assert!(KNOWN.contains(&key.as_str()), "{}: {key}", folder.display());
    }
    for resource in list(&kustomization["resources"]) {
        let resource = folder.join(resource.as_str().unwrap());
        match resource.is_dir() {
            true => add(&resource, resources),
            false => resources.extend(documents(&resource)),
        }
    }
    for generator in list(&kustomization["configMapGenerator"]) {
        assert_eq!(kustomization["generatorOptions"]["disableNameSuffixHash"], true);
        resources.push(generated(folder, generator));
    }
    for component in list(&kustomization["components"]) {
        add(&folder.join(component.as_str().unwrap()), resources);
    }
    for patch in list(&kustomization["patches"]) {
        apply(patch, resources);
    }
    if let Some(namespace) = kustomization["namespace"].as_str() {
        for resource in resources
            .iter_mut()
            .filter(|resource| resource["kind"] != "Namespace")
        {
            resource["metadata"]["namespace"] = namespace.into();
        }
    }
}

fn generated(folder: &Path, generator: &Value) -> Value {
    let files = list(&generator["files"])
        .iter()
        .map(|file| file.as_str().unwrap());
    let data: serde_json::Map<String, Value> = files
        .map(|file| {
            (
                file.to_owned(),
                std::fs::read_to_string(folder.join(file)).unwrap().into(),
            )
        })
        .collect();
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": generator["name"] }, "data": data })
}

/// Returns true if the pattern is the name itself, or `begin(one|other)` with the name among its choices.
fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('(') {
        None => pattern == name,
        Some((begin, rest)) => {
            let ends = rest.strip_suffix(')').unwrap().split('|');
            let rest = name.strip_prefix(begin);
            ends.into_iter().any(|end| rest == Some(end))
        }
    }
}

fn apply(patch: &Value, resources: &mut Vec<Value>) {
    let (kind, name) = (
        &patch["target"]["kind"],
        patch["target"]["name"].as_str().unwrap(),
    );
    let [operations]: [Value; 1] = documents_of(patch["patch"].as_str().unwrap())
        .unwrap()
        .try_into()
        .unwrap();
    let targets = |resource: &Value| {
        resource["kind"] == *kind
            && matches_name(name, resource["metadata"]["name"].as_str().unwrap_or_default())
    };
    assert!(resources.iter().any(targets), "a patch of nothing: {patch}");
    if operations["$patch"] == "delete" {
        resources.retain(|resource| !targets(resource));
        return;
    }
    for resource in resources.iter_mut().filter(|resource| targets(resource)) {
        for operation in list(&operations) {
            change(resource, operation);
        }
    }
}

/// One operation of a JSON Patch.
fn change(resource: &mut Value, operation: &Value) {
    let (word, place) = (
        operation["op"].as_str().unwrap(),
        operation["path"].as_str().unwrap(),
    );
    match (word, place.strip_suffix("/-")) {
        ("replace", None) => {
            let slot = resource
                .pointer_mut(place)
                .unwrap_or_else(|| panic!("nothing at {place}"));
            *slot = operation["value"].clone();
        }
        ("add", None) => {
            let (parent, name) = place.rsplit_once('/').unwrap();
            let parent = resource.pointer_mut(parent).and_then(Value::as_object_mut);
            let before = parent
                .unwrap_or_else(|| panic!("nothing at {place}"))
                .insert(name.to_owned(), operation["value"].clone());
            assert!(before.is_none(), "{place} is there already");
        }
        ("add", Some(place)) => {
            let list = resource.pointer_mut(place).and_then(Value::as_array_mut);
            list.unwrap_or_else(|| panic!("no list at {place}"))
                .push(operation["value"].clone());
        }
        _ => panic!("{operation} is not known here"),
    }
}
