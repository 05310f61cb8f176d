//! Every variable in a deployment is a setting, and the settings of each deployment are accepted.

use crate::files::{all_below, path, text};
use settings::{Settings, load_from};
use std::collections::{BTreeMap, BTreeSet};

/// Endings of files that are not text.
const BINARY: [&str; 1] = [".tar"];

/// The names in a text that begin with `TOLLGATE_`.
fn names(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("TOLLGATE_").map(|(at, _)| &text[at..]);
    let name = |rest: &str| -> String {
        let end = rest
            .find(|letter: char| !letter.is_ascii_uppercase() && !letter.is_ascii_digit() && letter != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    starts.map(name).collect()
}

/// Every key of the configuration as a variable.
fn keys() -> BTreeSet<String> {
    let mut section = String::new();
    let mut found = BTreeSet::new();
    for line in text("config/tollgate.toml").lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_uppercase();
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            found.insert(format!("TOLLGATE_{section}__{}", key.to_uppercase()));
        }
    }
    found
}

#[test]
fn every_variable_in_a_deployment_is_a_setting() {
    let keys = keys();
    assert!(
        keys.len() > 50 && keys.contains("TOLLGATE_STORE__URL_FILE"),
        "{keys:?}"
    );
    let mut count = 0;
    let documents = [
        "docs/guides/deployment.md",
        "docs/guides/backup.md",
        "docs/guides/sizing.md",
        "docs/explanation/threat-model.md",
        "README.md",
    ];
    let files = all_below("deploy")
        .into_iter()
        .chain(documents.map(str::to_owned));
    for file in files.filter(|file| !BINARY.iter().any(|end| file.ends_with(end))) {
        for name in names(&text(&file)).into_iter().filter(|name| name.contains("__")) {
            // Scripts build names from parts (`TOLLGATE_${SECTION}__…`), which end in an underscore.
            assert!(
                keys.contains(&name) || name.ends_with('_'),
                "{file}: {name} is no setting"
            );
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

/// The settings that a server would start with, but with a test's files for secrets and tables.
#[track_caller]
pub fn accepted(variables: &BTreeMap<String, String>) -> Settings {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.url");
    std::fs::write(&file, "redis://tollgate-edge:secret@127.0.0.1:6379\n").unwrap();
    let local = |name: &str, value: &str| match name {
        "TOLLGATE_STORE__URL_FILE" => file.display().to_string(),
        "TOLLGATE_PLANS__FILE" => path("config/plans.toml").display().to_string(),
        "TOLLGATE_PRICES__FILE" => path("config/prices.toml").display().to_string(),
        _ => value.to_owned(),
    };
    let ours = variables.iter().filter(|(name, _)| name.starts_with("TOLLGATE_"));
    let ours = ours.map(|(name, value)| (name.clone(), local(name, value)));
    load_from(None, ours.collect::<Vec<_>>().into_iter())
        .unwrap_or_else(|error| panic!("{error}: {variables:?}"))
}
