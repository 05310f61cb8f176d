//! Answers in the provider's shape: its headers on all of them, its error bodies.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use serde_json::{Value, json};
use std::time::Instant;

/// Numbers of characters of a wrong key that the provider repeats from its start and from its end.
const ECHOED: (usize, usize) = (8, 4);

/// An answer, boxed since it is large.
#[derive(Debug)]
pub(super) struct BoxedReply(Box<Response>);

impl IntoResponse for BoxedReply {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl BoxedReply {
    pub(super) fn new(status: StatusCode, content_type: &'static str, body: Body) -> Self {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Self(Box::new(response)).with(CONTENT_TYPE, HeaderValue::from_static(content_type))
    }

    pub(super) fn with(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.0.headers_mut().insert(name, value.into());
        self
    }

    pub(super) fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    /// Adds the headers that the provider sends with everything.
    pub(super) fn finish(self, number: u64, began: Instant) -> Self {
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let id = format!("req_sandbox{number:016x}");
        let id = HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("req_sandbox"));
        self.with(HeaderName::from_static("x-request-id"), id)
            .with(HeaderName::from_static("openai-processing-ms"), took_ms)
            .with(
                HeaderName::from_static("openai-version"),
                HeaderValue::from_static("2020-10-01"),
            )
            .with(
                HeaderName::from_static("openai-organization"),
                HeaderValue::from_static("sandbox"),
            )
            .limits()
    }

    /// Adds the provider's own rate limits, unless the answer already has them.
    fn limits(mut self) -> Self {
        for (name, value) in [
            ("x-ratelimit-limit-requests", "10000"),
            ("x-ratelimit-remaining-requests", "9999"),
            ("x-ratelimit-reset-requests", "6ms"),
            ("x-ratelimit-limit-tokens", "2000000"),
            ("x-ratelimit-remaining-tokens", "1999000"),
            ("x-ratelimit-reset-tokens", "30ms"),
        ] {
            let headers = self.0.headers_mut();
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
        self
    }
}

/// Returns a JSON answer.
pub(super) fn json(status: StatusCode, document: Value) -> BoxedReply {
    BoxedReply::new(status, "application/json", Body::from(document.to_string()))
}

/// Returns an error about the request.
pub(super) fn refusal(status: u16, message: &str, code: Option<&str>) -> BoxedReply {
    failure(status, message, "invalid_request_error", code)
}

/// Returns the answer to a request without a key.
pub(super) fn no_key() -> BoxedReply {
    let message = "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                   Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
    refusal(401, message, None)
}

/// Returns the provider's error with this status.
pub(super) fn error(status: u16, headers: &HeaderMap) -> BoxedReply {
    match status {
        400 => refusal(
            400,
            "Invalid value: 'sandbox-400' asked for this error.",
            Some("invalid_value"),
        ),
        401 => refusal(401, &incorrect_key(headers), Some("invalid_api_key")),
        403 => refusal(
            403,
            "Project does not have access to this model.",
            Some("model_not_found"),
        ),
        404 => refusal(
            404,
            "The model `sandbox-404` does not exist or you do not have access to it.",
            Some("model_not_found"),
        ),
        429 => {
            let message = "Rate limit reached for requests. Limit: 3 / min. Please try again in 20s.";
            failure(429, message, "requests", Some("rate_limit_exceeded"))
                .with(RETRY_AFTER, 20_u64)
                .with(HeaderName::from_static("retry-after-ms"), 20_000_u64)
                .with(HeaderName::from_static("x-ratelimit-limit-requests"), 3_u64)
                .with(HeaderName::from_static("x-ratelimit-remaining-requests"), 0_u64)
                .with(
                    HeaderName::from_static("x-ratelimit-reset-requests"),
                    HeaderValue::from_static("20s"),
                )
        }
        500 => server_error(
            500,
            "The server had an error while processing your request. Sorry about that!",
            None,
        ),
        503 => {
            let message = "The engine is currently overloaded, please try again later.";
            server_error(503, message, Some("overloaded"))
        }
        status if status > 500 => server_error(status, "The sandbox was asked for this error.", None),
        status => refusal(status, "The sandbox was asked for this error.", None),
    }
}

/// Builds a 302 to a URL that does not exist; redirects must not be followed.
pub(super) fn redirect() -> BoxedReply {
    json(StatusCode::FOUND, json!({})).with(LOCATION, HeaderValue::from_static("/v1/elsewhere"))
}

fn server_error(status: u16, message: &str, code: Option<&str>) -> BoxedReply {
    failure(status, message, "server_error", code)
}

fn failure(status: u16, message: &str, kind: &str, code: Option<&str>) -> BoxedReply {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(
        status,
        json!({ "error": { "message": message, "type": kind, "param": null, "code": code } }),
    )
}

/// Builds the error that repeats both ends of a wrong key, which the edge must remove.
fn incorrect_key(headers: &HeaderMap) -> String {
    let text = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let key = text.strip_prefix("Bearer ").unwrap_or_default();
    let (head, tail) = ECHOED;
    let echoed = match (
        key.get(..head),
        key.len().checked_sub(tail).and_then(|from| key.get(from..)),
    ) {
        (Some(start), Some(end)) if key.len() > head + tail => {
            format!("{start}{}{end}", "*".repeat(key.len() - head - tail))
        }
        _ => "*".repeat(key.len()),
    };
    format!(
        "Incorrect API key provided: {echoed}. You can find your API key at \
         https://platform.openai.com/account/api-keys."
    )
}
