//! Writes answers, even while the caller is still sending.
//!
//! Futures with a time-out are pinned in place: passed by value, each would be moved, and those of a call have
//! thousands of bytes.

use crate::admission::RequestAdmission;
use crate::call::body::pieces_max;
use crate::reply::EdgeReply;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use pingora::ErrorType::WriteTimedout;
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::{Error, Result};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Lifetime of an idle connection of a caller.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Bytes of an answer's body that a caller must read within `proxy.client_timeout_ms`; otherwise the connection is
/// closed.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// Maximum bytes of an unread body that are discarded, so that the caller can finish sending and read the answer.
const LINGER_BYTES: usize = 64 << 20;
/// Time limit of this discarding.
const LINGER: Duration = Duration::from_secs(5);

/// Converts an answer to Pingora's head, with the length, and the body.
pub(super) fn to_pingora(reply: EdgeReply) -> (Box<ResponseHeader>, Bytes) {
    let EdgeReply {
        status,
        mut headers,
        mut body,
    } = reply;
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        // No body follows, even if the provider sent one.
        headers.remove(CONTENT_LENGTH);
        body.clear();
    } else if !declares_length(&headers, body.len()) {
        headers.insert(CONTENT_LENGTH, body.len().into());
    }
    (head_of(status, headers), body)
}

/// Returns whether the headers have this length and no other one, as a provider's answer usually has.
fn declares_length(headers: &HeaderMap, length: usize) -> bool {
    let mut declared = headers.get_all(CONTENT_LENGTH).iter();
    let is_equal = |value: &HeaderValue| value.as_bytes() == itoa::Buffer::new().format(length).as_bytes();
    declared.next().is_some_and(is_equal) && declared.next().is_none()
}

/// Converts status and headers to Pingora's head.
pub(super) fn head_of(status: StatusCode, headers: HeaderMap) -> Box<ResponseHeader> {
    let mut head = http::Response::new(()).into_parts().0;
    (head.status, head.headers) = (status, headers);
    Box::new(head.into())
}

/// Writes answers.
pub struct ReplyWriter {
    /// A draining process closes its connections.
    pub admission: Arc<RequestAdmission>,
    /// `proxy.client_timeout_ms`, for each [`WRITTEN_AT_ONCE`] bytes.
    pub timeout: Duration,
}

impl ReplyWriter {
    /// Writes an answer. The connection is kept if the request was read to its end and the process is not draining.
    ///
    /// # Errors
    /// The caller disconnected, or did not read the answer in time. A part of it may have been written.
    pub(super) async fn write(&self, session: &mut ServerSession, reply: EdgeReply) -> Result<()> {
        let is_unread = self.set_keepalive(session);
        let (head, mut body) = to_pingora(reply);
        if session.req_header().method == Method::HEAD {
            // Pingora keeps it from callers of HTTP/1.1 only.
            body.clear();
        }
        let mut head = Some(head);
        loop {
            let piece = body.split_to(body.len().min(WRITTEN_AT_ONCE));
            let written = async {
                if let Some(head) = head.take() {
                    session.write_response_header(head).await?;
                }
                session.write_response_body(piece, body.is_empty()).await
            };
            in_time(self.timeout, written).await?;
            if body.is_empty() {
                break;
            }
        }
        if is_unread {
            drop(timeout(LINGER, Box::pin(linger(session))).await);
        }
        Ok(())
    }

    /// Decides whether the connection is kept after this answer. Returns whether the request was not read to its end.
    pub(super) fn set_keepalive(&self, session: &mut ServerSession) -> bool {
        let is_unread = !session.is_body_done();
        // The session already knows the caller's choice (`Connection: close`, HTTP/1.0), whether the body was cut off,
        // and whether the listener stops. This check only closes more connections.
        let keep = session
            .get_keepalive()
            .filter(|_| !is_unread && !self.admission.is_draining())
            .map(|_| KEEP_ALIVE.as_secs());
        session.set_keepalive(keep);
        is_unread
    }
}

/// Fails a write that takes longer than `within` because the caller does not read.
pub(super) async fn in_time(within: Duration, write: impl Future<Output = Result<()>>) -> Result<()> {
    match timeout(within, pin!(write)).await {
        Ok(written) => written,
        Err(_elapsed) => Err(Error::new_down(WriteTimedout)),
    }
}

/// Discards the rest of the request's body, up to [`LINGER_BYTES`] and as many pieces as a body may have, which cost
/// more than their bytes.
async fn linger(session: &mut ServerSession) {
    let (mut length, mut pieces) = (0, 0);
    while let Ok(Some(piece)) = session.read_request_body().await {
        length += piece.len();
        pieces += 1;
        if length > LINGER_BYTES || pieces > pieces_max(length) {
            return;
        }
        // Other calls of this thread get their turn.
        tokio::task::consume_budget().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    #[test]
    fn an_answer_has_the_length_of_its_body_once() {
        for declared in [&[][..], &["4"], &["04"], &["5"], &["4", "4"]] {
            let mut reply = EdgeReply {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: Bytes::from_static(b"body"),
            };
            for length in declared {
                reply.headers.append(CONTENT_LENGTH, length.parse().unwrap());
            }
            let head = to_pingora(reply).0;
            let lengths: Vec<_> = head.headers.get_all(CONTENT_LENGTH).iter().collect();
            assert_eq!(lengths, ["4"], "{declared:?}");
        }
    }

    /// Sends a body of `length` chunks of one byte; returns whether all of it is discarded.
    async fn is_discarded(length: usize) -> bool {
        let (mut caller, here) = duplex(1 << 20);
        let sending = tokio::spawn(async move {
            let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
            let body = "1\r\nx\r\n".repeat(length);
            // The reader may stop before the end.
            drop(
                caller
                    .write_all([head, &body, "0\r\n\r\n"].concat().as_bytes())
                    .await,
            );
        });
        let mut session = ServerSession::new_http1(Box::new(here));
        assert!(session.read_request().await.unwrap());
        linger(&mut session).await;
        let is_discarded = session.is_body_done();
        drop(session);
        sending.await.unwrap();
        is_discarded
    }

    #[tokio::test]
    async fn an_unread_body_of_many_short_chunks_is_not_discarded_to_its_end() {
        assert!(is_discarded(pieces_max(0) / 2).await);
        assert!(!is_discarded(2 * pieces_max(0)).await);
    }
}
