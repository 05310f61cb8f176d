//! Tests that codes, statuses and bodies are those of the specification.

use super::*;
use std::collections::HashSet;

#[test]
fn codes_and_statuses_are_those_of_the_specification() {
    let table = [
        ("API_KEY_REQUIRED", 401),
        ("INVALID_API_KEY", 401),
        ("INSUFFICIENT_API_KEY_PERMISSIONS", 403),
        ("IP_BLOCKED", 403),
        ("API_KEY_RATE_LIMITED", 429),
        ("SESSION_REQUIRED", 401),
        ("INVALID_CREDENTIALS", 401),
        ("TOTP_REQUIRED", 401),
        ("LOGIN_LOCKED", 429),
        ("INSUFFICIENT_ROLE", 403),
        ("CSRF_FAILED", 403),
        ("LAST_OWNER", 409),
        ("TIER_LIMIT", 403),
        ("INVALID_PROVIDER_KEY", 400),
        ("LIVE_MODE_REQUIRED", 400),
        ("PLAN_VIRTUAL_KEY_LIMIT", 402),
    ];
    for (code, status) in table {
        let found = Code::ALL.iter().find(|known| known.as_str() == code).unwrap();
        assert_eq!(found.status().as_u16(), status, "{code}");
    }
    let distinct: HashSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(distinct.len(), Code::ALL.len());
}

#[test]
fn the_body_is_error_code_and_what_was_added() {
    let problem = Problem::new(Code::PlanVirtualKeyLimit, "Full.").with("limit", "1");
    let response = problem.into_response();
    assert_eq!(response.status(), 402);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = runtime
        .block_on(axum::body::to_bytes(response.into_body(), 1000))
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let expected = serde_json::json!({ "error": "Full.", "code": "PLAN_VIRTUAL_KEY_LIMIT", "limit": "1" });
    assert_eq!(body, expected);
}

#[test]
fn test_mode_is_named_where_nothing_is_found_and_nowhere_else() {
    let missing = Problem::new(Code::NotFound, "There is no agent `a`.").with("intent_id", "int_1");
    let marked = missing.clone().in_test_mode("Your API key is");
    let sentence = "There is no agent `a`. Your API key is in test mode, which has records of its own.";
    assert_eq!((marked.message(), &marked.more), (sentence, &missing.more));
    let other = Problem::from(Code::Conflict);
    assert_eq!(other.clone().in_test_mode("You are"), other);
}

/// A caller who takes a 503 for a refusal pays twice.
#[test]
fn a_store_without_an_answer_may_have_made_the_change() {
    let unanswered = Problem::from(StoreError::NoAnswer(None));
    assert_eq!(unanswered.code(), Code::ServiceUnavailable);
    for advice in ["may have been made", "same idempotency key", "look first"] {
        assert!(unanswered.message().contains(advice), "{unanswered:?}");
    }
    // Nothing was sent, or it was refused.
    let unknown = Problem::from(StoreError::LacksWrites);
    assert_eq!(unknown.message(), Code::ServiceUnavailable.message());
}
