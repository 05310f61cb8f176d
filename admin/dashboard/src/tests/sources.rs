//! Tests that the dashboard's modules name what they use, and everything that the server writes.

use super::content;
use crate::assets::FILES;
use std::collections::BTreeSet;

#[test]
fn every_name_that_is_imported_is_used() {
    for (path, content) in FILES.iter().filter(|(path, _)| path.starts_with("js/")) {
        let text = std::str::from_utf8(content).unwrap();
        let words = |text: &str| -> Vec<String> {
            let parts = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
            parts.map(str::to_owned).collect()
        };
        let all = words(text);
        let lists = text.split("import {").skip(1);
        for name in lists.flat_map(|rest| rest.split('}').next().unwrap().split(',')) {
            let name = name.trim().rsplit(' ').next().unwrap();
            let uses = all.iter().filter(|word| *word == name).count();
            assert!(name.is_empty() || uses > 1, "{path} imports {name} for nothing");
        }
    }
}

/// The filter offers exactly the existing types: those in the sources that write entries.
#[test]
fn the_audit_page_offers_every_type_of_entry() {
    let page = std::str::from_utf8(content("js/pages/audit/types.js")).unwrap();
    let offered: BTreeSet<&str> = page.split('\'').filter(|text| text.contains('.')).collect();
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut left = vec![sources.join(".."), sources.join("../../shared/store/src")];
    let mut written = BTreeSet::new();
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(path).unwrap();
                for start in ["kind: \"", "Event::new(\""] {
                    let named = text.split(start).skip(1);
                    let kinds = named.filter_map(|rest| rest.split('"').next());
                    written.extend(kinds.filter(|kind| kind.contains('.')).map(str::to_owned));
                }
            }
        }
    }
    assert!(written.len() > 20, "{written:?}");
    // The types for the ends of calls are not written directly: they follow from the lines of holds.
    let missing: Vec<&String> = written
        .iter()
        .filter(|kind| !offered.contains(kind.as_str()))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}
