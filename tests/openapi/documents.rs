//! The files in docs/reference/openapi follow OpenAPI 3.1, every example follows its schema, and that of the management
//! API is the one that the code generates. A test of `proxy` compares that of the edge.

use harness::{REPOSITORY, compare_written, python_package};
use serde_json::{Value, json};
use std::process::Command;

const FOLDER: &str = "docs/reference/openapi";
/// Checks a document against the schema that the OpenAPI Initiative publishes; it is part of the package.
const VALIDATOR: &str = "openapi-spec-validator==0.9.0";

#[test]
fn the_management_document_is_that_of_the_code() {
    compare_written(
        &format!("{FOLDER}/management.json"),
        &api_docs::openapi::MANAGEMENT,
        "--lib --test openapi is_that_of_the_code",
    );
}

/// Both documents; that of the edge as the file has it, which a test of `proxy` compares with the code.
fn documents() -> [(&'static str, Value); 2] {
    let edge = serde_json::from_str(api_docs::openapi::EDGE).unwrap();
    [
        ("management.json", json!(api_docs::openapi::management())),
        ("edge.json", edge),
    ]
}

#[test]
fn both_documents_follow_openapi_3_1() {
    let validator = python_package(env!("CARGO_TARGET_TMPDIR"), "openapi-spec-validator", VALIDATOR);
    for (name, document) in documents() {
        assert_eq!(document["openapi"], "3.1.0");
        let output = Command::new(validator.join("bin/openapi-spec-validator"))
            .args(["--schema", "3.1"])
            .arg(format!("{REPOSITORY}/{FOLDER}/{name}"))
            .output()
            .unwrap();
        let message =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {message}");
    }
}

/// Every content of a document: its place, its schema and its example.
fn contents<'a>(path: &str, value: &'a Value, found: &mut Vec<(String, &'a Value, &'a Value)>) {
    match value {
        Value::Object(fields) => {
            if let (Some(schema), Some(example)) = (fields.get("schema"), fields.get("example")) {
                found.push((path.to_owned(), schema, example));
            }
            let properties = fields.get("properties").and_then(Value::as_object);
            for schema in properties.into_iter().flat_map(|properties| properties.values()) {
                let examples = schema["examples"].as_array();
                found.extend(
                    examples
                        .into_iter()
                        .flatten()
                        .map(|example| (format!("{path}/examples"), schema, example)),
                );
            }
            for (name, value) in fields
                .iter()
                .filter(|(name, _)| *name != "example" && *name != "examples")
            {
                contents(&format!("{path}/{name}"), value, found);
            }
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, item)| contents(&format!("{path}/{at}"), item, found)),
        _ => {}
    }
}

#[test]
fn every_example_is_one_of_its_schema() {
    for (name, document) in documents() {
        let mut found = Vec::new();
        contents("", &document, &mut found);
        assert!(found.len() > 20, "{name} has {} examples", found.len());
        for (path, schema, example) in found {
            let schema = json!({ "allOf": [schema], "components": document["components"] });
            let validator = jsonschema::draft202012::options()
                .should_validate_formats(true)
                .build(&schema)
                .unwrap();
            let wrong: Vec<String> = validator
                .iter_errors(example)
                .map(|error| error.to_string())
                .collect();
            assert!(wrong.is_empty(), "{name} {path}: {example}: {wrong:?}");
        }
    }
}
