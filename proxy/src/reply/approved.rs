//! The answer to an approved call: the provider's status, headers and body, and Tollgate's headers (specification §4.4
//! "Approved response", decisions D35, D46, D51).

use super::{EdgeReply, names};
use crate::upstream::headers::clean_response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

/// Headers of every approved call, regardless of the provider's answer.
#[derive(Debug)]
pub struct ApprovalHeaders<'a> {
    /// Decision id.
    pub allow_id: &'a str,
    pub run_id: &'a str,
    /// In USD.
    pub estimate: &'a str,
    /// Real cost in USD, if the provider reported its usage.
    pub actual: Option<&'a str>,
    /// The call failed and the estimate stays charged: a retry would be charged again.
    pub charged_failure: bool,
}

impl ApprovalHeaders<'_> {
    /// Sets the headers.
    pub fn set_on(&self, reply: &mut EdgeReply) {
        let approved = HeaderValue::from_static("approved");
        reply.headers.insert(names::DECISION, approved);
        reply.set(names::ALLOW_ID, self.allow_id);
        reply.set(names::RUN_ID, self.run_id);
        reply.set(names::ESTIMATED_USD, self.estimate);
        if let Some(actual) = self.actual {
            reply.set(names::ACTUAL_USD, actual);
        }
        if self.charged_failure {
            reply.set(names::SHOULD_RETRY, "false");
        }
    }
}

/// Builds the answer: unchanged except for connection headers and cookies.
pub fn reply(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> EdgeReply {
    clean_response(&mut headers);
    EdgeReply {
        status,
        headers,
        body,
    }
}
