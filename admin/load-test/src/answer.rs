//! Answers of the edge: their reasons, and the charges in them.

use super::kind::CALLER_LEFT;
use super::streamed::BodyTail;
use domain::amount;
use reqwest::header::{HeaderMap, HeaderValue};
use std::time::Instant;

/// Longest reason that is copied into a report.
const REASON_MAX: usize = 60;

/// A received answer.
pub(super) struct TimedAnswer {
    pub status: u16,
    headers: HeaderMap,
    /// End of the body.
    tail: BodyTail,
    /// Length of the body, in bytes.
    pub bytes: u64,
    /// Arrival of the first byte of the body, or of the end of an empty one.
    pub first_byte: Instant,
    /// True if the caller left in the middle of the body.
    pub is_left: bool,
}

impl TimedAnswer {
    /// Sends a request and takes its answer in. A caller that `leaves` closes the connection after the first bytes of a
    /// stream, unless they are all of it.
    pub(super) async fn take_in(
        request: reqwest::RequestBuilder,
        leaves: bool,
    ) -> Result<Self, reqwest::Error> {
        let mut answer = request.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let (mut tail, mut bytes, mut first_byte) = (BodyTail::default(), 0, None);
        let mut is_left = false;
        while let Some(chunk) = answer.chunk().await? {
            first_byte.get_or_insert_with(Instant::now);
            bytes += chunk.len() as u64;
            tail.push(&chunk);
            if leaves && status == 200 && !tail.is_whole() {
                is_left = true;
                break;
            }
        }
        Ok(Self {
            status,
            headers,
            tail,
            bytes,
            first_byte: first_byte.unwrap_or_else(Instant::now),
            is_left,
        })
    }

    /// Returns the reason as the edge reports it; for a stream, the one at its end.
    pub(super) fn reason(&self) -> String {
        if self.is_left {
            return CALLER_LEFT.to_owned();
        }
        let named = self.header("x-service-reason");
        if !named.is_empty() {
            return cut(named);
        }
        if self.header("content-type").starts_with("text/event-stream") {
            return cut(&self.tail.failure());
        }
        if self.status < 400 {
            return String::new();
        }
        let document: serde_json::Value = serde_json::from_slice(self.tail.bytes()).unwrap_or_default();
        cut(document["error"]["code"].as_str().unwrap_or_default())
    }

    /// Returns the charge in nano-USD: the real cost, which a stream reports after its last event, or otherwise the
    /// estimate, unless the provider's own refusal released it. `None` if the answer has neither.
    pub(super) fn charged(&self) -> Option<u64> {
        if self.header("x-service-decision") != "approved" {
            return Some(0);
        }
        match (self.actual(), self.status) {
            (Some(actual), _) => Some(actual),
            (None, 400..=499) => Some(0),
            (None, _) => self.estimated(),
        }
    }

    /// Returns the initial estimate in nano-USD.
    pub(super) fn estimated(&self) -> Option<u64> {
        nanos(self.header("x-service-estimated-usd"))
    }

    /// Returns whether the call cost more than its initial estimate.
    pub(super) fn is_above_estimate(&self) -> bool {
        self.actual()
            .zip(self.estimated())
            .is_some_and(|(actual, estimated)| actual > estimated)
    }

    /// Returns the real cost in nano-USD, if the answer states it.
    fn actual(&self) -> Option<u64> {
        let behind = || nanos(&self.tail.cost()?);
        nanos(self.header("x-service-actual-usd")).or_else(behind)
    }

    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    }
}

fn nanos(usd: &str) -> Option<u64> {
    amount::parse_limit(usd).ok().map(|amount| amount.get())
}

fn cut(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(REASON_MAX)
        .collect()
}
