//! The files in docs/openapi are what the code says, follow OpenAPI 3.1, and every example is one of its schema.

use harness::{REPOSITORY, python_package};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// Set to anything, it makes the tests write the files instead of comparing them.
const WRITE: &str = "TOLLGATE_WRITE_OPENAPI";
/// Checks a document against the schema that the OpenAPI Initiative publishes; it is part of the package.
const VALIDATOR: &str = "openapi-spec-validator==0.9.0";

fn file(name: &str) -> PathBuf {
    PathBuf::from(REPOSITORY).join("docs/openapi").join(name)
}

#[track_caller]
fn compare(name: &str, generated: &str) {
    let file = file(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&file, generated).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = kept.lines().zip(generated.lines()).position(|(kept, generated)| kept != generated);
    assert!(
        kept == generated,
        "docs/openapi/{name} is not what the code says, from line {} on. If the code is right, write it anew:\n    \
         {WRITE}=1 cargo test --test openapi documents",
        differs.map_or(kept.lines().count(), |at| at) + 1
    );
}

#[test]
fn the_management_document_is_that_of_the_code() {
    compare("management.json", &admin::openapi::MANAGEMENT);
}
