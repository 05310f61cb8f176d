//! The shapes of Tollgate's own answers, checked to the last field (specification "Errors", decisions D5, D46, D48).

use domain::decision::denial_kind;
use domain::denial::Denial;
use harness::Reply;
use serde_json::{Value, json};

#[track_caller]
pub fn every_answer(reply: &Reply) {
    let id = reply.header("x-request-id").expect("X-Request-Id");
    assert!(!id.is_empty(), "{reply:?}");
    let overhead = reply
        .header("x-service-overhead-ms")
        .expect("X-Service-Overhead-Ms");
    let (whole, fraction) = overhead.split_once('.').unwrap_or((overhead, "0"));
    assert!(
        whole.parse::<u64>().is_ok() && fraction.parse::<u64>().is_ok(),
        "{overhead}"
    );
    assert!(!reply.headers.contains_key("set-cookie"), "{reply:?}");
}

/// Checks that `reply` is the denial of `reason`, whole.
#[track_caller]
pub fn denied(reply: &Reply, reason: &str) {
    let denial = Denial::from_reason(reason).unwrap_or_else(|| panic!("no such reason: {reason}"));
    let (status, prefix) = (denial.status(), denial_kind(denial).prefix());
    assert_eq!(reply.status, status, "{reason}: {reply:?}");
    every_answer(reply);
    assert_eq!(reply.header("x-service-decision"), Some("denied"));
    assert_eq!(reply.header("x-service-reason"), Some(reason), "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    for absent in ["x-service-allow-id", "x-service-actual-usd"] {
        assert_eq!(reply.header(absent), None, "{reply:?}");
    }
    assert_eq!(reply.header("retry-after"), (status == 429).then_some("60"));
    let final_answer = matches!(status, 402 | 403);
    assert_eq!(reply.header("x-should-retry"), final_answer.then_some("false"));

    let body = reply.json();
    let (id, message) = (text(&body, "id"), text(&body, "message"));
    assert!(id.starts_with(prefix) && id.len() > prefix.len() + 10, "{body}");
    assert_eq!(reply.header("x-service-decision-id"), Some(id));
    let mut expected = json!({
        "approved": false, "reason": reason, "id": id, "message": message,
        "error": { "message": message, "type": "service_denied", "code": reason },
    });
    if denial.names_plan() {
        for field in ["plan", "limit", "upgradeTo", "upgradeUrl"] {
            expected[field] = text(&body, field).into();
        }
    }
    assert_eq!(body, expected);
}

/// Checks that `reply` is a refusal in OpenAI's error shape.
#[track_caller]
pub fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!(
        (reply.status, reply.error_code().as_str()),
        (status, code),
        "{reply:?}"
    );
    every_answer(reply);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json();
    let kind = if status >= 500 {
        "upstream_error"
    } else {
        "invalid_request_error"
    };
    let error = &body["error"];
    let expected = json!({ "error": {
        "message": text(error, "message"), "type": kind, "param": error["param"], "code": code,
    }});
    assert_eq!(body, expected);
    assert!(error["param"].is_null() || error["param"].is_string(), "{body}");
    if status < 500 {
        // Nothing was decided, so no header names a decision.
        for absent in [
            "x-service-decision",
            "x-service-allow-id",
            "x-service-decision-id",
            "x-service-estimated-usd",
            "x-should-retry",
        ] {
            assert_eq!(reply.header(absent), None, "{reply:?}");
        }
    }
}

/// Checks the headers of an approved answer. Returns the decision id.
#[track_caller]
pub fn approved(reply: &Reply) -> String {
    every_answer(reply);
    assert_eq!(reply.header("x-service-decision"), Some("approved"), "{reply:?}");
    assert_eq!(reply.header("x-service-reason"), None);
    let id = reply.header("x-service-allow-id").expect("X-Service-Allow-Id");
    assert!(id.starts_with("allow_") && id.len() > 16, "{id}");
    assert!(reply.header("x-service-run-id").is_some(), "{reply:?}");
    super::fixture::amounts(reply);
    id.to_owned()
}

#[track_caller]
fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    let text = body[field].as_str().unwrap_or_default();
    assert!(!text.is_empty(), "`{field}` in {body}");
    text
}
