//! Tests that the document is complete.

use super::*;
use std::collections::{BTreeSet, HashSet};

#[test]
fn every_row_of_the_table_is_documented_and_nothing_else() {
    let rows: BTreeSet<String> = routes().map(name).collect();
    let sections = sections();
    let documented: Vec<&str> = sections
        .iter()
        .flat_map(|section| section.docs.iter().map(|doc| doc.route))
        .collect();
    for row in &rows {
        let count = documented.iter().filter(|route| *route == row).count();
        assert_eq!(
            count, 1,
            "{row} needs one `Doc`, in the doc.rs beside its handler"
        );
    }
    for route in documented {
        assert!(
            rows.contains(route),
            "{route} is documented but missing from the route tables"
        );
    }
}

fn operations(document: &Json) -> Vec<(String, Json)> {
    let paths = document.get("paths").unwrap().fields();
    let operations = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.fields().iter();
        methods.map(move |(method, operation)| (format!("{method} {path}"), operation.clone()))
    });
    operations.collect()
}

#[test]
fn operations_are_complete() {
    let document = management();
    let mut ids = HashSet::new();
    for (name, operation) in operations(&document) {
        let id = operation
            .get("operationId")
            .and_then(Json::text)
            .unwrap()
            .to_owned();
        assert!(
            ids.insert(id.clone()),
            "{name}: {id} is the id of another operation"
        );
        assert!(
            operation
                .get("summary")
                .and_then(Json::text)
                .is_some_and(|text| !text.is_empty()),
            "{name}"
        );
        let parameters = operation.get("parameters").unwrap().items();
        let in_path = parameters
            .iter()
            .filter(|parameter| parameter.get("in").and_then(Json::text) == Some("path"));
        assert_eq!(
            in_path.count(),
            name.matches('{').count(),
            "{name}: each parameter of the path needs a `param`"
        );
        let responses = operation.get("responses").unwrap().fields();
        assert!(
            responses.iter().any(|(status, _)| status.starts_with('2')),
            "{name} gives nothing"
        );
        if let Some(body) = operation.get("requestBody") {
            exemplified(&format!("{name} takes"), body);
        }
        for (status, response) in responses {
            if response.get("$ref").is_none() {
                exemplified(&format!("{name} {status}"), response);
            }
        }
    }
}

/// Checks that each content has an example. If none can be derived from the schema, the missing part is named.
#[track_caller]
fn exemplified(what: &str, holder: &Json) {
    for (kind, media) in holder.get("content").unwrap().fields() {
        let schema = media.get("schema").unwrap();
        let why = || openapi::example::from_schema(&all_components(), schema).unwrap_err();
        assert!(media.get("example").is_some(), "{what} {kind}: {}", why());
    }
}

fn all_components() -> Components {
    let document = management();
    let mut components = Components::default();
    for (name, schema) in document
        .get("components")
        .unwrap()
        .get("schemas")
        .unwrap()
        .fields()
    {
        components.named(name, schema.clone());
    }
    components
}

#[test]
fn no_name_stands_for_two_schemas() {
    let (_, clashes) = build();
    assert!(clashes.is_empty(), "{clashes:?}");
}

#[test]
fn every_reference_leads_somewhere() {
    let document = management();
    let text = document.pretty();
    for reference in text.split("\"$ref\": \"").skip(1) {
        let place = reference.split('"').next().unwrap();
        let mut found = &document;
        for step in place.trim_start_matches("#/").split('/') {
            found = found.get(step).unwrap_or_else(|| panic!("{place} leads nowhere"));
        }
    }
}

#[test]
fn the_whole_document_is_the_same_each_time() {
    assert_eq!(management().pretty(), management().pretty());
}
