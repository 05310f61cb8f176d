//! Headers that every operation accepts, and headers of answers.

use domain::names::RUN_ID_MAX;
use endpoint::RouteRate;
use endpoint::doc::field::{self, Field};
use openapi::parts::{self, header, header_reference};
use openapi::{Json, object};

/// Returns a reference to a parameter of the document.
pub(super) fn parameter(name: &str) -> Json {
    object([("$ref", format!("#/components/parameters/{name}").into())])
}

/// Returns the parameters that operations share.
pub(super) fn parameters() -> Json {
    let of = |name: &str, description: &str, schema: Json| {
        parts::parameter("header", (name, false), description, schema)
    };
    let idempotency_key = "The same key and the same request: the first answer again, and nothing happens twice. The \
                           same key and another request: 422. Kept for at least 30 days.";
    let mode = "The mode of a call with a session. With an API key the mode of the key counts. A word that is no mode is refused.";
    let id = format!(
        "Your own id of the request, 1 to {RUN_ID_MAX} characters of A-Z a-z 0-9 . _ : -. It is returned and logged."
    );
    object([
        (
            "IdempotencyKey",
            of("Idempotency-Key", idempotency_key, field::idempotency_key()),
        ),
        (
            "Mode",
            of(
                "X-Tollgate-Mode",
                mode,
                field::words(["live", "test"]).with("x-default", "live"),
            ),
        ),
        (
            "RequestId",
            of("X-Request-Id", &id, field::string().example("my-request-1")),
        ),
    ])
}

/// Returns the headers that answers share.
pub(super) fn components() -> Json {
    let number = || object([("type", "integer".into())]);
    let required = |header: Json| header.with("required", true);
    object([
        (
            "RequestId",
            required(header(
                "The id of the request: yours when it was well-formed, else a new one.",
                field::string(),
            )),
        ),
        (
            "RateLimit",
            header(
                "Requests that the plan allows the API key in this window. Only where the request counted.",
                number(),
            ),
        ),
        (
            "RateRemaining",
            header("Requests that are left in this window.", number()),
        ),
        (
            "RateReset",
            header("When the window ends, in seconds since 1970.", number()),
        ),
        (
            "RetryAfter",
            required(header("Seconds until another try is worth it.", number())),
        ),
        (
            "WwwAuthenticate",
            header("How to authenticate.", field::string().example("Bearer")),
        ),
        (
            "ContentDisposition",
            required(header(
                "The name under which the file is to be saved.",
                field::string(),
            )),
        ),
        ("SetCookie", header("The cookie of the session.", field::string())),
    ])
}

/// Returns the headers that every answer of a row has.
pub(super) fn of_all(rate: RouteRate) -> Json {
    let mut headers = object([("X-Request-Id", header_reference("RequestId"))]);
    if rate != RouteRate::Uncounted {
        headers.set("X-RateLimit-Limit", header_reference("RateLimit"));
        headers.set("X-RateLimit-Remaining", header_reference("RateRemaining"));
        headers.set("X-RateLimit-Reset", header_reference("RateReset"));
    }
    headers
}

/// Builds a header of one operation's answer.
pub(super) fn of_field(field: &Field) -> Json {
    parts::header(field.description, field.schema.clone())
}
