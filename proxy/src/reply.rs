//! Answers: a head and a whole body. Everything that Tollgate itself says is built here, in OpenAI's error shape.

pub mod approved;
pub mod denied;
pub mod health;
pub mod models;
pub mod refusal;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName};
use pingora_http::ResponseHeader;
use serde::Serialize;

/// An answer that is ready to be written. Its length and connection headers are set where it is written.
#[derive(Debug)]
pub struct Reply {
    /// Status and headers.
    pub head: Box<ResponseHeader>,
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
    /// Id of the decision.
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
    /// Id of the request.
    pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
}

impl Reply {
    /// A JSON answer.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(body).unwrap_or_default();
        let mut reply = Self {
            head: head(status),
            body: body.into(),
        };
        reply.set(CONTENT_TYPE, "application/json");
        reply
    }

    /// Sets a header. A value that cannot be one is left out: no answer fails for the sake of a header.
    pub fn set(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = http::HeaderValue::from_str(value) {
            drop(self.head.insert_header(name, value));
        }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }
}

/// An empty head.
fn head(status: StatusCode) -> Box<ResponseHeader> {
    let mut response = http::Response::new(());
    *response.status_mut() = status;
    Box::new(ResponseHeader::from(response.into_parts().0))
}
