//! Writes an answer, so that the caller gets it whatever state its own sending is in.
//!
//! What is given time is pinned where it stands: by value, each future would be moved, and a call's are thousands of bytes.

use crate::gate::Gate;
use crate::reply::Reply;
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use pingora::ErrorType::WriteTimedout;
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::{Error, Result};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// How long an unused connection of a caller is kept.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How much of an answer's body a caller has to take within `proxy.client_timeout_ms`: one who reads nothing is let go.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// How much of a refused body is read and thrown away, so that the caller can finish sending and read the answer.
const LINGER_BYTES: usize = 64 << 20;
/// How long that may take.
const LINGER: Duration = Duration::from_secs(5);

/// An answer with its length, as Pingora writes it.
pub(super) fn on_the_wire(reply: Reply) -> (Box<ResponseHeader>, Bytes) {
    let Reply {
        status,
        mut headers,
        body,
    } = reply;
    if !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        headers.insert(CONTENT_LENGTH, body.len().into());
    }
    let mut head = http::Response::new(()).into_parts().0;
    (head.status, head.headers) = (status, headers);
    (Box::new(head.into()), body)
}

/// Writes the answer. The connection is kept when the request was read to its end and the process stays up.
///
/// # Errors
/// The caller left, or does not take the answer in time. Part of it may have been written.
pub(super) async fn write(gate: &Gate, session: &mut ServerSession, reply: Reply) -> Result<()> {
    let client_timeout = Duration::from_millis(gate.settings.proxy.client_timeout_ms);
    let unread = !session.is_body_done();
    // What the caller asked for (`Connection: close`, HTTP/1.0) is already in the session, and so is that its body broke
    // off, or that the listener stops; it is only ever tightened here.
    let keep = session
        .get_keepalive()
        .filter(|_| !unread && !gate.is_draining())
        .map(|_| KEEP_ALIVE.as_secs());
    session.set_keepalive(keep);
    let (head, mut body) = on_the_wire(reply);
    let mut head = Some(head);
    loop {
        let piece = body.split_to(body.len().min(WRITTEN_AT_ONCE));
        let written = pin!(async {
            if let Some(head) = head.take() {
                session.write_response_header(head).await?;
            }
            session.write_response_body(piece, body.is_empty()).await
        });
        match timeout(client_timeout, written).await {
            Ok(written) => written?,
            Err(_elapsed) => return Err(Error::new_down(WriteTimedout)),
        }
        if body.is_empty() {
            break;
        }
    }
    if unread {
        drop(timeout(LINGER, Box::pin(linger(session))).await);
    }
    Ok(())
}

async fn linger(session: &mut ServerSession) {
    let mut read = 0;
    while let Ok(Some(piece)) = session.read_request_body().await {
        read += piece.len();
        if read > LINGER_BYTES {
            return;
        }
    }
}
