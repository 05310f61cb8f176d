//! Answers: status, headers and a complete body. Builds every answer that Tollgate itself gives, in the shape of
//! OpenAI's errors.
//!
//! Headers are kept in a map of the `http` crate until they are written: Pingora's own map parses a name each time it
//! is set.

pub mod approved;
pub mod denied;
pub mod health;
pub mod models;
pub mod refusal;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

/// An answer to be written. Its length and connection headers are set when it is written.
#[derive(Debug)]
pub struct EdgeReply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// Names of the headers that Tollgate sets (specification §4.4).
pub mod names {
    use http::HeaderName;

    /// `approved` or `denied`.
    pub const DECISION: HeaderName = HeaderName::from_static("x-service-decision");
    /// Why a call was denied.
    pub const REASON: HeaderName = HeaderName::from_static("x-service-reason");
    /// Id of a denial, as its body has it: some clients keep nothing of a body but `error`.
    pub const DECISION_ID: HeaderName = HeaderName::from_static("x-service-decision-id");
    /// Id of an approval.
    pub const ALLOW_ID: HeaderName = HeaderName::from_static("x-service-allow-id");
    /// The run that the call belongs to.
    pub const RUN_ID: HeaderName = HeaderName::from_static("x-service-run-id");
    /// The estimate, in USD.
    pub const ESTIMATED_USD: HeaderName = HeaderName::from_static("x-service-estimated-usd");
    /// The real cost, in USD.
    pub const ACTUAL_USD: HeaderName = HeaderName::from_static("x-service-actual-usd");
    /// Milliseconds spent in Tollgate, upstream excluded (decision D48).
    pub const OVERHEAD_MS: HeaderName = HeaderName::from_static("x-service-overhead-ms");
    /// `false` keeps the OpenAI SDKs from repeating a call by themselves (decision D46).
    pub const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
    pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
}

impl EdgeReply {
    /// Creates an answer with a JSON body.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(body).unwrap_or_default();
        let json = HeaderValue::from_static("application/json");
        Self {
            status,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
            body: body.into(),
        }
    }

    /// Sets a header. Ignores an invalid value: no answer fails because of a header.
    pub fn set(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
    }
}
