//! The documented table of tested clients has the versions that the tests run.

use crate::install::{CODEX, LLAMAINDEX, NODE_FRAMEWORKS, NODE_SDK, PYTHON_FRAMEWORKS, PYTHON_SDK};
use harness::REPOSITORY;
use std::path::Path;

#[test]
fn the_document_names_the_versions_that_are_tested() {
    let path = Path::new(REPOSITORY).join("docs/reference/streams.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let (_, clients) = text.split_once("## Clients").expect("a section on clients");
    let packages = [PYTHON_SDK, NODE_SDK, CODEX]
        .into_iter()
        .chain(PYTHON_FRAMEWORKS)
        .chain(LLAMAINDEX)
        .chain(NODE_FRAMEWORKS);
    for package in packages {
        let (name, version) = package.rsplit_once(['=', '@']).expect("a name and a version");
        let named = format!("`{}` {version}", name.trim_end_matches('='));
        assert!(clients.contains(&named), "{named} in {clients}");
    }
}
