//! The answer to an approved call: the provider's status, headers and body, and what Tollgate has to add
//! (specification §4.4 "Approved response", decisions D35, D46, D51).

use super::{Reply, names};
use crate::upstream::headers;
use crate::upstream::redact;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use pingora_http::ResponseHeader;
use shared::domain::money::Nanos;

/// What an approved call carries in its headers, whatever the provider answered.
#[derive(Debug)]
pub struct Stamp<'a> {
    /// The decision id.
    pub allow_id: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// The estimate.
    pub estimate: Nanos,
    /// The real cost, when it is known.
    pub actual: Option<Nanos>,
    /// The estimate stays charged although the call failed: repeating it would be charged again.
    pub charged_failure: bool,
}

impl Stamp<'_> {
    /// Sets the headers.
    pub fn on(&self, reply: &mut Reply) {
        reply.set(names::DECISION, "approved");
        reply.set(names::ALLOW_ID, self.allow_id);
        reply.set(names::RUN_ID, self.run_id);
        reply.set(names::ESTIMATED_USD, &self.estimate.to_string());
        if let Some(actual) = self.actual {
            reply.set(names::ACTUAL_USD, &actual.to_string());
        }
        if self.charged_failure {
            reply.set(names::SHOULD_RETRY, "false");
        }
    }
}

/// The provider's answer, unchanged but for connection headers and cookies; from an error, fragments of keys are removed.
pub fn reply(mut head: Box<ResponseHeader>, body: Bytes) -> Reply {
    headers::clean_response(&mut head);
    if head.status.is_success() {
        return Reply { head, body };
    }
    redact::headers(&mut head);
    let encoding = head
        .headers
        .get(CONTENT_ENCODING)
        .map(|value| value.as_bytes().to_vec());
    match redact::body(&body, encoding.as_deref()) {
        redact::Redacted::Unchanged => Reply { head, body },
        redact::Redacted::Changed(body) => {
            head.remove_header(&CONTENT_ENCODING);
            head.remove_header(&CONTENT_LENGTH);
            Reply { head, body }
        }
        redact::Redacted::Unreadable => {
            head.remove_header(&CONTENT_ENCODING);
            head.remove_header(&CONTENT_LENGTH);
            let mut reply = Reply {
                head,
                body: Bytes::from_static(UNREADABLE),
            };
            reply.set(CONTENT_TYPE, "application/json");
            reply
        }
    }
}

/// In place of an error that is encoded in a way that cannot be searched for keys.
const UNREADABLE: &[u8] = br#"{"error":{"message":"The provider's error is encoded in a way that cannot be passed on safely.","type":"upstream_error","param":null,"code":null}}"#;
