//! Headers that the edge sets, under the names used in its answers.

use crate::reply::names;
use domain::denial::Denial;
use domain::names::{NAME_PATTERN, RUN_ID_MAX};
use http::HeaderName;
use openapi::parts::{self, header_reference};
use openapi::{Json, object};

/// Every header that Tollgate sets.
const ALL: [(HeaderName, &str); 10] = [
    (
        names::DECISION,
        "`approved` or `denied`; absent where nothing was decided.",
    ),
    (names::REASON, "Why the call was denied."),
    (
        names::DECISION_ID,
        "The id of the denial, `id` in its body; `GET /decisions/{id}` of the management API explains it.",
    ),
    (
        names::ALLOW_ID,
        "The id of the approval; `GET /decisions/{id}` of the management API explains it.",
    ),
    (
        names::RUN_ID,
        "The run: the caller's, or a generated one that begins with `req_`.",
    ),
    (
        names::ESTIMATED_USD,
        "Estimated cost of the call: an exact decimal number of USD.",
    ),
    (
        names::ACTUAL_USD,
        "Real cost, if the provider reported its usage. Absent from a stream, whose head is sent earlier.",
    ),
    (
        names::OVERHEAD_MS,
        "Milliseconds spent in Tollgate, the provider excluded.",
    ),
    (
        names::SHOULD_RETRY,
        "`false` where repeating the call would be charged again or cannot help.",
    ),
    (
        names::REQUEST_ID,
        "The id of the request: the caller's or the provider's, else a new one.",
    ),
];
/// Name of the header with the seconds to wait.
const RETRY_AFTER: &str = "Retry-After";

fn text() -> Json {
    object([("type", "string".into())])
}

/// Builds all headers as components.
pub(super) fn components() -> Json {
    let mut all = object([]);
    for (name, says) in ALL {
        let words: Vec<&str> = if name == names::DECISION {
            vec!["approved", "denied"]
        } else if name == names::REASON {
            Denial::ALL.iter().map(|denial| denial.reason()).collect()
        } else {
            Vec::new()
        };
        let schema = if words.is_empty() {
            text()
        } else {
            text().with("enum", words)
        };
        all.set(name.as_str(), parts::header(says, schema));
    }
    let seconds = object([("type", "integer".into())]);
    all.with(RETRY_AFTER, parts::header("Seconds to wait.", seconds))
}

/// Builds references to some headers.
pub(super) fn some(names: &[HeaderName]) -> Json {
    let mut some = object([]);
    for name in names {
        some.set(name.as_str(), header_reference(name.as_str()));
    }
    some
}

pub(super) fn with_retry_after(headers: Json) -> Json {
    headers.with(RETRY_AFTER, header_reference(RETRY_AFTER))
}

fn parameter(name: &str, says: &str, schema: Json) -> Json {
    parts::parameter("header", (name, false), says, schema)
}

/// Returns the parameter `X-Request-Id`.
pub(super) fn request_id() -> Json {
    let says = format!(
        "Your own id of the request; it is sent back where the provider sends none. One that has not 1 to {RUN_ID_MAX} characters of \
         A-Z a-z 0-9 . _ : - is replaced by a new one."
    );
    parameter("X-Request-Id", &says, text().example("my-request-1"))
}

/// Builds the header parameters of a call. `can_stream`: whether its answer can be a stream.
pub(super) fn call(can_stream: bool) -> Vec<Json> {
    let run = "Calls of an agent with the same run id share the per-run limit, also after the agent restarts. Without it each call is a run of its own.";
    let schema = text().with("maxLength", RUN_ID_MAX).with("pattern", NAME_PATTERN);
    let mut all = vec![
        parameter("X-Service-Run-Id", run, schema.example("nightly-42")),
        request_id(),
    ];
    if can_stream {
        let says = "`true`: a stream ends with a comment that says what it cost, `: x-service-actual-usd: 0.0000123`.";
        all.push(parameter("X-Service-Stream-Cost", says, text().example("true")));
    }
    all
}
