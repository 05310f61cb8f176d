//! Reading a request's head and writing an answer, so that the caller gets it whatever state its own sending is in.
//!
//! What is given time is pinned where it stands: by value, each future would be moved, and a call's are thousands of bytes.

use super::malformed;
use crate::gate::Gate;
use crate::reply::Reply;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use pingora_core::apps::{HttpPersistentSettings, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// How long an unused connection of a caller is kept.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How much of an answer a caller has to take within `proxy.client_timeout_ms`: one who reads nothing is let go.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// How much of a refused body is read and thrown away, so that the caller can finish sending and read the answer.
const LINGER_BYTES: usize = 64 << 20;
/// How long that may take.
const LINGER: Duration = Duration::from_secs(5);

/// Reads the head. `false` when there is none to answer: the caller left, or sent no HTTP (which is answered here).
pub async fn read_head(gate: &Gate, session: &mut ServerSession) -> bool {
    let within = KEEP_ALIVE + Duration::from_millis(gate.settings.proxy.client_timeout_ms);
    let read = timeout(within, pin!(session.read_request())).await;
    match read {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a request that is not HTTP");
            let Reply { head, body } = with_length(malformed(gate));
            session.set_keepalive(None);
            if session.write_response_header(head).await.is_ok() {
                drop(session.write_response_body(body, true).await);
            }
            false
        }
        Err(_elapsed) => false,
    }
}

fn with_length(mut reply: Reply) -> Reply {
    if !matches!(
        reply.head.status,
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    ) {
        let length = reply.body.len().to_string();
        reply.set(CONTENT_LENGTH, &length);
    }
    reply
}

/// Writes the answer. The connection is kept when the request was read to its end and the server stays up.
pub async fn write(
    mut session: ServerSession,
    reply: Reply,
    stopping: bool,
    client_timeout: Duration,
) -> Option<ReusedHttpStream> {
    let unread = !session.is_body_done();
    // What the caller asked for (`Connection: close`, HTTP/1.0) is already in the session, and so is that its body broke
    // off; it is only ever tightened here.
    let keep = session
        .get_keepalive()
        .filter(|_| !unread && !stopping)
        .map(|_| KEEP_ALIVE.as_secs());
    session.set_keepalive(keep);
    let reply = with_length(reply);
    let Reply { head, mut body } = reply;
    timeout(client_timeout, pin!(session.write_response_header(head)))
        .await
        .ok()?
        .ok()?;
    loop {
        let piece = body.split_to(body.len().min(WRITTEN_AT_ONCE));
        let written = session.write_response_body(piece, body.is_empty());
        timeout(client_timeout, pin!(written)).await.ok()?.ok()?;
        if body.is_empty() {
            break;
        }
    }
    if unread {
        drop(timeout(LINGER, Box::pin(linger(&mut session))).await);
    }
    let settings = HttpPersistentSettings::for_session(&session);
    let stream = timeout(client_timeout, pin!(session.finish()))
        .await
        .ok()?
        .ok()??;
    Some(ReusedHttpStream::from_reusable_stream(stream, settings))
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
