//! Reading a request's head and writing an answer, so that the caller gets it whatever state its own sending is in.
//!
//! What is given time is pinned where it stands: by value, each future would be moved, and a call's are thousands of bytes.

use super::head::{HEAD_BYTES_MAX, Head};
use super::unread;
use crate::gate::Gate;
use crate::reply::Reply;
use crate::reply::refusal::{Refusal, RefusalKind};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use pingora_core::apps::{HttpPersistentSettings, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_http::ResponseHeader;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long an unused connection of a caller is kept.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Requests on one connection: no limit that anybody comes to. Counted down from here, it tells the first from the others.
pub const REQUESTS_MAX: u32 = u32::MAX;
/// How much of an answer's body a caller has to take within `proxy.client_timeout_ms`: one who reads nothing is let go.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// How much of a refused body is read and thrown away, so that the caller can finish sending and read the answer.
const LINGER_BYTES: usize = 64 << 20;
/// How long that may take.
const LINGER: Duration = Duration::from_secs(5);

/// Reads the head. `false` when there is none to answer: the caller left, or sent no whole head of HTTP in time and within
/// its length (which is answered here).
pub async fn read_head(gate: &Gate, session: &mut ServerSession, bounds: &Head) -> bool {
    let is_first = session.get_keepalive_reuses_remaining() == Some(REQUESTS_MAX);
    let deadline = match is_first {
        true => bounds.deadline(),
        false => {
            let within = Duration::from_millis(gate.settings.proxy.client_timeout_ms);
            Instant::now() + within + KEEP_ALIVE
        }
    };
    bounds.begins();
    let read = timeout_at(deadline, pin!(session.read_request())).await;
    // Who was read so much may have sent a long body: then the head itself is measured.
    let is_too_long =
        bounds.is_spent() && !matches!(&read, Ok(Ok(_)) if session.to_h1_raw().len() <= HEAD_BYTES_MAX);
    let refusal = match read {
        _ if is_too_long => Refusal::new(
            RefusalKind::HeadTooLong,
            format!("Request line and headers are longer than {HEAD_BYTES_MAX} bytes."),
        ),
        Ok(Ok(read)) => {
            bounds.ends();
            return read;
        }
        Ok(Err(error)) => {
            // The kind alone: the library's text quotes the head, credentials included.
            tracing::debug!(error = ?error.etype(), "a request that is not HTTP");
            Refusal::new(RefusalKind::BadRequest, "The request is not well-formed HTTP.")
        }
        Err(_elapsed) if is_first => Refusal::new(
            RefusalKind::RequestTimeout,
            "The request was not sent within the time allowed.",
        ),
        // A connection that was used and rests: who closes it says nothing.
        Err(_elapsed) => return false,
    };
    session.set_keepalive(None);
    let (head, body) = on_the_wire(unread(gate, &refusal));
    if session.write_response_header(head).await.is_ok() {
        drop(session.write_response_body(body, true).await);
    }
    false
}

/// An answer with its length, as Pingora writes it.
fn on_the_wire(reply: Reply) -> (Box<ResponseHeader>, Bytes) {
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
        timeout(client_timeout, written).await.ok()?.ok()?;
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
