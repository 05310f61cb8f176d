//! Answers of the edge: why they are as they are, and what they say was charged.

use super::streamed::Tail;
use domain::amount;
use reqwest::header::{HeaderMap, HeaderValue};
use std::time::Instant;

/// The longest word of the edge that is taken over into a report.
const REASON_MAX: usize = 60;

/// An answer, taken in.
pub(super) struct Answer {
    pub status: u16,
    headers: HeaderMap,
    /// The end of its body.
    tail: Tail,
    /// Bytes of its body.
    pub bytes: u64,
    /// When the first byte of its body came; of an empty one, its end.
    pub first_byte: Instant,
}

impl Answer {
    /// Sends a request and takes its answer in.
    pub(super) async fn take_in(request: reqwest::RequestBuilder) -> Result<Self, reqwest::Error> {
        let mut answer = request.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let (mut tail, mut bytes, mut first_byte) = (Tail::default(), 0, None);
        while let Some(chunk) = answer.chunk().await? {
            first_byte.get_or_insert_with(Instant::now);
            bytes += chunk.len() as u64;
            tail.push(&chunk);
        }
        Ok(Self {
            status,
            headers,
            tail,
            bytes,
            first_byte: first_byte.unwrap_or_else(Instant::now),
        })
    }

    /// Why it is as it is, in the edge's word: for a stream, what its end says.
    pub(super) fn reason(&self) -> String {
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

    /// Nano-USD that it says were charged: the real cost, which a stream names behind its last event, and where none is
    /// named, the estimate, unless the provider's own refusal released it. `None` if it says neither.
    pub(super) fn charged(&self) -> Option<u64> {
        if self.header("x-service-decision") != "approved" {
            return Some(0);
        }
        let nanos = |text: &str| amount::parse_limit(text).ok().map(|amount| amount.get());
        let behind = || nanos(&self.tail.cost()?);
        let actual = nanos(self.header("x-service-actual-usd")).or_else(behind);
        match (actual, self.status) {
            (Some(actual), _) => Some(actual),
            (None, 400..=499) => Some(0),
            (None, _) => nanos(self.header("x-service-estimated-usd")),
        }
    }

    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    }
}

fn cut(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(REASON_MAX)
        .collect()
}
