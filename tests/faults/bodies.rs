//! Malformed bodies over HTTP: each is a 400 that names the fault, counts against the key's rate, and is not forwarded
//! (decisions D34, D62, D63).

use crate::stage::{Setup, Stage};
use harness::Reply;

pub const JSON: &str = "application/json";

/// A request that must be refused.
struct Case {
    body: Vec<u8>,
    code: &'static str,
    /// The message has this in it.
    names: &'static str,
}

fn case(body: impl Into<Vec<u8>>, code: &'static str, names: &'static str) -> Case {
    Case {
        body: body.into(),
        code,
        names,
    }
}

/// `{"model":…,"messages":…` and these further fields.
pub fn with(fields: &str) -> Vec<u8> {
    format!(r#"{{"model":"gpt-4o-mini","messages":[{{"role":"user","content":"hi"}}]{fields}}}"#).into_bytes()
}

pub fn nested(levels: usize) -> Vec<u8> {
    let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
    with(&format!(r#","x":{open}{close}"#))
}

/// Bodies that are not one JSON object that everybody reads in the same way.
fn no_json() -> Vec<Case> {
    let invalid = |body: &[u8], names| case(body, "invalid_json", names);
    let mut cases = vec![
        invalid(b"", "empty"),
        invalid(b" \r\n\t", "empty"),
        invalid(b"[]", "JSON object"),
        invalid(b"\"model\"", "JSON object"),
        invalid(b"null", "JSON object"),
        invalid(b"{", "middle"),
        invalid(b"{\"model\":\"gpt-4o-mini\",\"messages\":[", "middle"),
        invalid(b"{'model':1}", "unexpected character"),
        invalid(b"{\"model\":1,}", "unexpected character"),
        invalid(b"\xEF\xBB\xBF{}", "byte order mark"),
        invalid(b"{\"model\":\"\xFF\"}", "UTF-8"),
        invalid(b"{\"model\":\"\xC0\xAF\"}", "UTF-8"),
        invalid(b"{\"model\":\"\xED\xA0\x80\"}", "UTF-8"),
        invalid(b"{\"mo\x80del\":\"a\"}", "UTF-8"),
        invalid(b"{\"model\":\"a\nb\"}", "control character"),
        invalid(b"{\"model\":\"\\x41\"}", "escape"),
        invalid(b"{\"model\":\"\\ud800\"}", "surrogate"),
        invalid(b"{\"model\":\"\\udc00\\ud800\"}", "surrogate"),
        invalid(&[&with("")[..], b"{}"].concat(), "unexpected data after"),
        invalid(&[&with("")[..], b"x"].concat(), "unexpected data after"),
        invalid(&[&with("")[..], b"\0"].concat(), "unexpected data after"),
        invalid(&nested(129), "128 levels"),
        invalid(&nested(100_000), "128 levels"),
        invalid(&with(",\"x\":"), "unexpected character"),
    ];
    for number in [
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "0x10",
        "NaN",
        "Infinity",
        "-Infinity",
    ] {
        let names = match number.as_bytes()[0] {
            b'0'..=b'9' | b'-' => "at byte",
            _ => "unexpected character",
        };
        cases.push(case(with(&format!(",\"x\":{number}")), "invalid_json", names));
    }
    cases.push(case(with(",\"x\":1e400"), "invalid_json", "out of range"));
    cases
}

/// Keys that two parsers could take for different ones.
fn ambiguous_keys() -> Vec<Case> {
    vec![
        case(
            with(r#","model":"gpt-4o""#),
            "invalid_json",
            "`model` appears twice",
        ),
        case(with(r#","n":1,"n":128"#), "invalid_json", "`n` appears twice"),
        case(
            with(r#","n":1,"\u006e":128"#),
            "invalid_json",
            "`n` appears twice",
        ),
        case(
            with(r#","stream":false,"stream":true"#),
            "invalid_json",
            "`stream` appears twice",
        ),
        case(with(r#","x":1,"x":1"#), "invalid_json", "`x` appears twice"),
        case(with(r#","N":128"#), "invalid_json", "must be written `n`"),
        case(
            with(r#","Stream":true"#),
            "invalid_json",
            "must be written `stream`",
        ),
        case(
            with(r#","Max_Tokens":5"#),
            "invalid_json",
            "must be written `max_tokens`",
        ),
    ]
}

/// Fields that are missing, of the wrong type or out of range.
fn wrong_fields() -> Vec<Case> {
    let mut cases = vec![case(b"{}", "missing_model", "`model`")];
    for model in ["null", "\"\"", "5", "[]", "{}", "true"] {
        let body = format!(r#"{{"model":{model},"messages":[{{"role":"user","content":"hi"}}]}}"#);
        cases.push(case(body, "missing_model", "`model`"));
    }
    let long = "m".repeat(257);
    cases.push(case(
        format!(r#"{{"model":"{long}","messages":[{{}}]}}"#),
        "invalid_json",
        "`model`",
    ));
    cases.push(case(
        r#"{"model":"gpt-4o-mini"}"#,
        "missing_messages",
        "`messages`",
    ));
    for messages in ["null", "[]", "{}", "\"hi\"", "5"] {
        let body = format!(r#"{{"model":"gpt-4o-mini","messages":{messages}}}"#);
        cases.push(case(body, "missing_messages", "`messages`"));
    }
    cases.push(case(
        r#"{"model":"gpt-4o-mini","messages":[5]}"#,
        "invalid_json",
        "`messages[0]`",
    ));
    cases.push(case(with(r#","stream":true"#), "stream_not_supported", "stream"));
    for stream in ["1", "\"true\"", "\"false\"", "{}", "[]", "0"] {
        cases.push(case(
            with(&format!(",\"stream\":{stream}")),
            "invalid_json",
            "`stream`",
        ));
    }
    for n in [
        "0",
        "129",
        "-1",
        "1.0",
        "1e0",
        "\"1\"",
        "true",
        "[]",
        "1.5",
        "99999999999999999999",
    ] {
        cases.push(case(
            with(&format!(",\"n\":{n}")),
            "invalid_json",
            "`n` must be an integer from 1 to 128",
        ));
    }
    for tokens in [
        "0",
        "-5",
        "10000001",
        "1.0",
        "1e3",
        "\"100\"",
        "{}",
        "18446744073709551617",
    ] {
        cases.push(case(
            with(&format!(",\"max_tokens\":{tokens}")),
            "invalid_json",
            "`max_tokens`",
        ));
        let field = format!(",\"max_completion_tokens\":{tokens}");
        cases.push(case(with(&field), "invalid_json", "`max_completion_tokens`"));
    }
    cases.push(case(
        with(r#","max_completion_tokens":10,"max_tokens":0"#),
        "invalid_json",
        "`max_tokens`",
    ));
    cases.push(case(
        with(r#","service_tier":5"#),
        "invalid_json",
        "`service_tier`",
    ));
    cases
}

/// Asserts the common parts of every 400.
#[track_caller]
pub fn refused(reply: &Reply, code: &str, names: &str, what: &str) {
    assert_eq!(
        (reply.status, reply.error_code().as_str()),
        (400, code),
        "{what}: {reply:?}"
    );
    let error = &reply.json()["error"];
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains(names), "{what}: {message} should name {names}");
    assert_eq!(error["type"], "invalid_request_error", "{what}");
    assert!(reply.header("x-request-id").is_some(), "{what}");
    assert_eq!(
        reply.header("x-service-decision"),
        None,
        "{what}: no decision was made"
    );
}

pub async fn untouched(stage: &Stage, requests: usize) {
    assert_eq!(stage.rate(), requests as u64, "each counts against the rate");
    assert_eq!(stage.upstream.arrived(), 0, "nothing is forwarded");
    stage.settled_at(0).await;
}

#[tokio::test]
async fn every_malformed_body_is_a_400_that_names_it() {
    let stage = Setup::default().start().await;
    let caller = stage.edge.caller(&stage.key);
    let cases: Vec<Case> = [no_json(), ambiguous_keys(), wrong_fields()]
        .into_iter()
        .flatten()
        .collect();
    for Case { body, code, names } in &cases {
        let what = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let headers = [("content-type", JSON)];
        let reply = caller
            .send("POST", "/v1/chat/completions", &headers, body.clone())
            .await;
        refused(&reply, code, names, &what);
    }
    untouched(&stage, cases.len()).await;
}
