//! The answer to an approved call: the provider's status, headers and body, and Tollgate's headers (specification §4.4
//! "Approved response", decisions D35, D46, D51).

use super::{Reply, names};
use crate::upstream::headers::clean_response;
use crate::upstream::{WholeAnswer, redact};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};

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
    pub fn set_on(&self, reply: &mut Reply) {
        reply.set(names::DECISION, "approved");
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

/// Builds the answer: unchanged except for connection headers, cookies, and fragments of keys in an error.
pub fn reply(answer: WholeAnswer) -> Reply {
    let WholeAnswer {
        status,
        mut headers,
        body,
        is_error,
    } = answer;
    clean_response(&mut headers);
    if !is_error {
        return Reply {
            status,
            headers,
            body,
        };
    }
    redact::headers(&mut headers);
    let redacted = redact::body(&body, &headers);
    if redacted != redact::Redacted::Unchanged {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
    }
    let body = match redacted {
        redact::Redacted::Unchanged => body,
        redact::Redacted::Changed(body) => body,
        redact::Redacted::Unreadable => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Bytes::from_static(UNREADABLE)
        }
    };
    Reply {
        status,
        headers,
        body,
    }
}

/// Replaces the body of an error that cannot be decoded and therefore not be searched for keys.
const UNREADABLE: &[u8] = br#"{"error":{"message":"The provider's error is encoded in a way that cannot be passed on safely.","type":"upstream_error","param":null,"code":null}}"#;
