//! Tests of the body parsers: which bodies they refuse, what they count, and that they agree with `serde_json`.

mod cache_lifetime;
mod choices;
mod embeddings;
mod generated;
mod grammar;
mod properties;
mod reference;
mod refusals;
mod responses;
mod sizes;
mod streams;
mod tools;

use super::{BodyError, RequestBody, parse_call};
use domain::measured::Endpoint;

/// Parses a chat-completions body that must not request a stream.
fn parse(bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    parse_call(Endpoint::Chat, false, bytes)
}

/// Parses a chat-completions body that may request a stream.
fn parse_streaming(bytes: &[u8]) -> Result<RequestBody<'_>, BodyError> {
    parse_call(Endpoint::Chat, true, bytes)
}

/// Returns a body with one message of two characters, and `members` before the closing brace.
fn with(members: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}]{members}}}"#)
}

/// Checks that `body` is refused with `code`, a message that contains `fragment`, and `param`.
#[track_caller]
fn refused(body: impl AsRef<[u8]>, code: &str, fragment: &str, param: Option<&str>) {
    let shown = String::from_utf8_lossy(&body.as_ref()[..body.as_ref().len().min(80)]).into_owned();
    let error = parse(body.as_ref()).expect_err(&shown);
    assert_eq!(error.code(), code, "code of {shown}: {error}");
    assert!(
        error.to_string().contains(fragment),
        "{shown} should say {fragment:?}, says {error}"
    );
    assert_eq!(error.param(), param, "param of {shown}");
}

/// `refused` with `invalid_json` and no parameter.
#[track_caller]
fn malformed(body: impl AsRef<[u8]>, fragment: &str) {
    refused(body, "invalid_json", fragment, None);
}
