//! An operation as a `curl` command, with the examples of the document.

use super::document::{Document, DocumentedOperation, media};
use super::schema::compact;
use openapi::Json;

/// Returns the command. Variables stand for the server and the caller's secrets.
pub(super) fn command(operation: &DocumentedOperation<'_>, document: &Document) -> String {
    let url = format!("\"{}{}\"", document.variable, path(operation, document));
    let mut parts = match operation.method {
        "get" => vec![format!("curl {url}")],
        method => vec![format!("curl -X {} {url}", method.to_ascii_uppercase())],
    };
    let security = operation
        .json
        .get("security")
        .map(Json::items)
        .unwrap_or_default();
    let scheme = security
        .first()
        .and_then(|scheme| scheme.fields().first())
        .map(|(name, _)| name.as_str());
    match scheme {
        Some("bearer") => parts.push(format!("-H \"Authorization: Bearer {}\"", document.key)),
        Some(_) => {
            parts.push("-b \"tollgate_session=$TOLLGATE_SESSION\"".to_owned());
            if operation.method != "get" {
                parts.push("-H \"X-CSRF-Token: $TOLLGATE_CSRF\"".to_owned());
            }
        }
        None => {}
    }
    if is_idempotent(operation) {
        parts.push("-H 'Idempotency-Key: order-7731'".to_owned());
    }
    if let Some(example) = operation
        .json
        .get("requestBody")
        .and_then(media)
        .and_then(|media| media.get("example"))
    {
        parts.push("-H 'Content-Type: application/json'".to_owned());
        // A quote must end the shell's quoted text, stand escaped, and begin the text again.
        let body = serde_json::to_string(example)
            .unwrap_or_default()
            .replace('\'', r"'\''");
        parts.push(format!("-d '{body}'"));
    }
    parts.join(" \\\n  ")
}

fn is_idempotent(operation: &DocumentedOperation<'_>) -> bool {
    let parameters = operation
        .json
        .get("parameters")
        .map(Json::items)
        .unwrap_or_default();
    let mut names = parameters
        .iter()
        .filter_map(|parameter| parameter.get("$ref")?.text());
    names.any(|name| name.ends_with("/IdempotencyKey"))
}

/// Returns the path with examples in place of its parameters.
fn path(operation: &DocumentedOperation<'_>, document: &Document) -> String {
    let mut path = operation.path.to_owned();
    let parameters = operation
        .json
        .get("parameters")
        .map(Json::items)
        .unwrap_or_default();
    for parameter in parameters.iter().map(|parameter| document.dereference(parameter)) {
        let (Some(name), Some(schema)) = (
            parameter.get("name").and_then(Json::text),
            parameter.get("schema"),
        ) else {
            continue;
        };
        let example = |schema: &Json| {
            schema
                .get("examples")
                .and_then(|examples| examples.items().first())
                .map(compact)
        };
        if let Some(example) = example(schema).or_else(|| example(document.dereference(schema))) {
            path = path.replace(&format!("{{{name}}}"), &example);
        }
    }
    path
}
