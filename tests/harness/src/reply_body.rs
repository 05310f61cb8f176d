//! Exact checks of management API responses.

use crate::reply::Reply;
use serde_json::{Value, json};

/// Checks a success with this status. Returns its body.
#[track_caller]
pub fn success(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let body = reply.json();
    assert_eq!(body["success"], json!(true), "{body}");
    body
}

/// Checks that `again` repeats the answer `first`, byte for byte apart from `replayed`.
#[track_caller]
pub fn replayed(first: &Reply, again: &Reply) {
    const MARK: &str = ",\"replayed\":true";
    assert_eq!(first.status, again.status, "{}", again.text());
    let (first, again) = (first.text(), again.text());
    assert!(!first.contains(MARK) && again.contains(MARK), "{first}\n{again}");
    assert_eq!(again.replacen(MARK, "", 1), first);
}

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

/// Asserts that some fields of a JSON object have exactly these values; the object may have more. Further arguments are
/// a message, as in `assert!`.
///
/// ```
/// let body = harness::serde_json::json!({ "state": "open", "amount": 2, "id": "hold_1" });
/// harness::assert_fields!(body, { "state": "open", "amount": 2 });
/// ```
#[macro_export]
macro_rules! assert_fields {
    ($body:expr, { $($fields:tt)* }) => {
        $crate::assert_fields!($body, { $($fields)* }, "")
    };
    ($body:expr, { $($fields:tt)* }, $($message:tt)+) => {
        $crate::has_fields(&$body, &$crate::serde_json::json!({ $($fields)* }), &format!($($message)+))
    };
}

/// The function behind [`assert_fields!`].
#[doc(hidden)]
#[track_caller]
pub fn has_fields(body: &Value, expected: &Value, message: &str) {
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(body[name], *value, "{name} {message} {body}");
    }
}

/// Returns the text at a JSON pointer.
#[track_caller]
pub fn text<'a>(body: &'a Value, pointer: &str) -> &'a str {
    body.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer} in {body}"))
}

/// Returns `base` with the fields of `more`, which replace those of the same name.
pub fn merged(mut base: Value, more: &Value) -> Value {
    let (fields, more) = (base.as_object_mut(), more.as_object());
    fields
        .expect("an object")
        .extend(more.expect("an object").clone());
    base
}
