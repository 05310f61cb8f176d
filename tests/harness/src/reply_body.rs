//! Exact checks of management API responses.

use crate::client::Reply;
use serde_json::{Value, json};

/// Checks an error exactly: status, code, and a body of sentence and code only, with `intent_id` where the refused call
/// would have had an intent (decision D75). Returns the sentence.
#[track_caller]
pub fn problem(reply: &Reply, status: u16, code: &str) -> String {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert!(
        reply.header("x-request-id").is_some(),
        "every answer carries an id"
    );
    let body = reply.json();
    assert_eq!(body["code"], json!(code), "{body}");
    let sentence = body["error"].as_str().expect("a sentence").to_owned();
    let mut expected = json!({ "error": sentence, "code": code });
    if let Some(id) = body["intent_id"].as_str() {
        assert!(id.starts_with("int_") && id.len() == 30, "{body}");
        expected["intent_id"] = id.into();
    }
    assert_eq!(body, expected);
    sentence
}

/// Removes a field from a body and returns its value as text.
#[track_caller]
pub fn text<'a>(body: &'a Value, pointer: &str) -> &'a str {
    body.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer} in {body}"))
}
