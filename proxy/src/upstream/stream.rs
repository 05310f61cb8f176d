//! A streamed answer of server-sent events, read piece by piece.

use super::encoding::{self, Encoding};
use super::failure::{BreakOff, UpstreamFailure};
use super::inflate::Inflater;
use super::open::OpenExchange;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;

/// Returns whether the content type is `text/event-stream`.
pub fn has_events(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|content_type| {
        let essence = content_type.split(|byte| *byte == b';').next();
        let essence = essence.unwrap_or_default().trim_ascii();
        essence.eq_ignore_ascii_case(b"text/event-stream")
    })
}

/// An answer whose head was read. Dropping it closes its connection.
pub struct AnswerStream {
    open: Box<OpenExchange>,
    /// When the request was sent.
    pub began: Instant,
    /// 2xx
    pub status: StatusCode,
    /// Names in lower case; without the encoding, which [`next`](Self::next) removes.
    pub headers: HeaderMap,
    inflater: Option<Inflater>,
    is_at_end: bool,
}

impl AnswerStream {
    /// Returns whether an answer with this head is a readable stream: a success with the content type
    /// `text/event-stream`.
    pub(super) fn is_stream(status: StatusCode, headers: &HeaderMap) -> bool {
        let content_encoding = encoding::content_encoding(headers);
        let has_body = status.is_success() && status != StatusCode::NO_CONTENT;
        has_body && has_events(headers) && Encoding::parse(content_encoding.as_deref()).is_some()
    }

    /// Creates the stream of an exchange that was sent at `began` and whose head was read.
    pub(super) fn new(
        open: Box<OpenExchange>,
        began: Instant,
        status: StatusCode,
        mut headers: HeaderMap,
    ) -> Self {
        let encoding = Encoding::parse(encoding::content_encoding(&headers).as_deref());
        headers.remove(CONTENT_ENCODING);
        let inflater = encoding.and_then(Inflater::new);
        headers.remove(CONTENT_LENGTH);
        Self {
            open,
            began,
            status,
            headers,
            inflater,
            is_at_end: false,
        }
    }

    /// Reads the next piece, at most 64 KiB; `None` at the end. A piece is empty if the provider's bytes decode to
    /// nothing. Must not be called again after an error, or after its future was dropped.
    ///
    /// # Errors
    /// [`UpstreamFailure::Unreachable`]: the provider broke off, or its encoding is broken.
    pub async fn next(&mut self) -> Result<Option<Bytes>, UpstreamFailure> {
        loop {
            if let Some(inflater) = &mut self.inflater
                && let Some(plain) = inflater.next()?
            {
                return Ok(Some(plain));
            }
            if self.is_at_end {
                return Ok(None);
            }
            let piece = self.open.session.read_body_bytes().await;
            let piece = piece.map_err(|error| self.open.destination.lost(BreakOff::Body, &error))?;
            self.is_at_end = piece.is_none();
            if self.is_at_end && self.open.broke_off() {
                return Err(UpstreamFailure::Unreachable(BreakOff::Body));
            }
            match (piece, &mut self.inflater) {
                (Some(piece), None) if !piece.is_empty() => return Ok(Some(piece)),
                (Some(piece), Some(inflater)) => inflater.push(piece),
                _ => {}
            }
        }
    }

    /// Keeps the connection of a stream that was read to its end.
    pub async fn keep(self: Box<Self>) {
        if self.is_at_end {
            self.open.keep().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_success_with_events() {
        let is_stream = |status: u16, head: &[(&'static str, &'static str)]| {
            let head = head.iter().map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            });
            AnswerStream::is_stream(StatusCode::from_u16(status).unwrap(), &head.collect())
        };
        assert!(is_stream(200, &[("content-type", "text/event-stream")]));
        assert!(is_stream(
            201,
            &[("content-type", "Text/Event-Stream; charset=utf-8")]
        ));
        assert!(is_stream(
            200,
            &[
                ("content-type", "text/event-stream"),
                ("content-encoding", "gzip")
            ]
        ));
        assert!(!is_stream(
            200,
            &[("content-type", "text/event-stream"), ("content-encoding", "br")]
        ));
        assert!(!is_stream(200, &[("content-type", "application/json")]));
        assert!(!is_stream(200, &[]));
        assert!(!is_stream(204, &[("content-type", "text/event-stream")]));
        assert!(!is_stream(400, &[("content-type", "text/event-stream")]));
    }
}
