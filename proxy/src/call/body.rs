//! Step 2: the request body, read whole within its limits of size, time and memory.

use super::Stop;
use crate::buffer_budget::{SMALL_BYTES, Share};
use crate::gate::Gate;
use crate::key_owners::known_key::KnownKey;
use crate::reply::refusal::{Refusal, RefusalKind};
use bytes::{Bytes, BytesMut};
use domain::denial::Denial;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use pingora::protocols::http::ServerSession;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A body, the caller's exact bytes, with its share of the memory that bodies may take.
#[derive(Debug)]
pub struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// Their share, to be dropped with them.
    pub share: Share,
}

fn too_large(gate: &Gate) -> Stop {
    let limit = gate.settings.proxy.max_body_bytes;
    Refusal::new(
        RefusalKind::PayloadTooLarge,
        format!("The body is longer than {limit} bytes."),
    )
    .into()
}

fn declared_length(session: &ServerSession) -> Option<usize> {
    session.get_header(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses a body that declares itself too long, before a byte of it is read.
///
/// # Errors
/// 413.
pub fn check_declared_length(gate: &Gate, session: &ServerSession) -> Result<(), Stop> {
    match declared_length(session) {
        Some(length) if length > gate.settings.proxy.max_body_bytes => Err(too_large(gate)),
        _ => Ok(()),
    }
}

/// Whether a body can be longer than [`SMALL_BYTES`], as far as its head says.
pub fn may_be_large(session: &ServerSession) -> bool {
    match declared_length(session) {
        Some(length) => length > SMALL_BYTES,
        None => session.get_header(TRANSFER_ENCODING).is_some() || session.is_http2(),
    }
}

/// Reads the body. The deadline covers the whole of it, and the wait for memory.
///
/// # Errors
/// 413 when it grows too long, 408 when it is not there in time or breaks off.
pub async fn body(gate: &Gate, session: &mut ServerSession, known: &KnownKey) -> Result<Body, Stop> {
    let deadline = Instant::now() + Duration::from_millis(gate.settings.proxy.client_timeout_ms);
    if session
        .get_header(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    {
        drop(session.write_continue_response().await);
    }
    match timeout_at(deadline, pin!(read(gate, session, known))).await {
        Ok(body) => body,
        Err(_elapsed) => Err(incomplete("The request was not sent within the time allowed.")),
    }
}

fn incomplete(message: &str) -> Stop {
    Refusal::new(RefusalKind::RequestTimeout, message).into()
}

async fn read(gate: &Gate, session: &mut ServerSession, known: &KnownKey) -> Result<Body, Stop> {
    let limit = gate.settings.proxy.max_body_bytes;
    let declared = declared_length(session);
    let head = head_length(&session.req_header().headers);
    let mut share = Share::new(Arc::clone(&gate.body_room), Arc::clone(&known.part));
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    let mut length = 0_usize;
    loop {
        let Ok(piece) = session.read_request_body().await else {
            // Nobody can say where the next request of this connection would start.
            session.set_keepalive(None);
            return Err(incomplete("The request broke off."));
        };
        let Some(piece) = piece else { break };
        length += piece.len();
        if length > limit {
            return Err(too_large(gate));
        }
        let hoped = (2 * length).min(declared.unwrap_or(limit)).max(length);
        let grown = share.grow(head + length, head + hoped).await;
        grown.map_err(|_closed| Stop::denied(Denial::ServiceUnavailable))?;
        let is_first = first.is_empty() && whole.is_empty();
        if is_first && declared.is_none_or(|declared| length >= declared) {
            first = piece;
            continue;
        }
        whole.reserve(planned(length, declared).saturating_sub(whole.len()));
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&piece);
    }
    if declared.is_some_and(|declared| length < declared) {
        return Err(incomplete("The request broke off."));
    }
    share.complete(head + length);
    let bytes = if whole.is_empty() { first } else { whole.freeze() };
    Ok(Body { bytes, share })
}

/// The bytes of a head's names and values: it stays as long as its body, so it counts with it.
fn head_length(headers: &HeaderMap) -> usize {
    let lines = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    lines.sum()
}

/// How long the buffer is made, so that a body is not copied from one to the next while it grows. Beyond a small one
/// that is all of the declared length at once: memory that nothing was written to yet is but an address, and what was
/// written has its share of the budget.
fn planned(length: usize, declared: Option<usize>) -> usize {
    match declared {
        Some(declared) if length > SMALL_BYTES => declared,
        Some(declared) => declared.min(SMALL_BYTES),
        None => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Stand;
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

    /// A caller who has sent this, and the session of the request.
    async fn session(sent: &str) -> (DuplexStream, ServerSession) {
        let (mut caller, here) = duplex(1 << 20);
        caller.write_all(sent.as_bytes()).await.unwrap();
        let mut session = ServerSession::new_http1(Box::new(here));
        assert!(session.read_request().await.unwrap());
        (caller, session)
    }

    fn head(lines: &str) -> String {
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n{lines}\r\n")
    }

    fn kind(stop: Stop) -> RefusalKind {
        match stop {
            Stop::Refused(refusal) => refusal.kind,
            Stop::Denied(denied) => panic!("{denied:?}"),
        }
    }

    #[tokio::test]
    async fn a_body_is_refused_from_one_byte_beyond_the_limit_on() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let limit = gate.settings.proxy.max_body_bytes;
        for (length, fits) in [(0, true), (limit, true), (limit + 1, false), (2 * limit, false)] {
            let (_caller, session) = session(&head(&format!("content-length: {length}\r\n"))).await;
            assert_eq!(declared_length(&session), Some(length));
            let checked = check_declared_length(gate, &session);
            assert_eq!(checked.is_ok(), fits, "{length}");
            if let Err(stop) = checked {
                assert_eq!(kind(stop), RefusalKind::PayloadTooLarge);
            }
        }
        let (_caller, session) = session(&head("transfer-encoding: chunked\r\n")).await;
        assert_eq!(declared_length(&session), None);
        assert!(check_declared_length(gate, &session).is_ok());
    }

    #[tokio::test]
    async fn a_body_may_be_large_when_its_head_says_so_or_says_nothing() {
        for (lines, large) in [
            ("", false),
            ("content-length: 65536\r\n", false),
            ("content-length: 65537\r\n", true),
            ("transfer-encoding: chunked\r\n", true),
        ] {
            let (_caller, session) = session(&head(lines)).await;
            assert_eq!(may_be_large(&session), large, "{lines}");
        }
    }

    /// In pieces and in one, declared and not; the memory that it takes is its own and its head's.
    #[tokio::test]
    async fn a_body_is_read_whole_and_counted_until_it_is_dropped() {
        let stand = Stand::new().await;
        let (gate, known) = (&stand.gate, stand.known());
        for text in ["{}".to_owned(), "x".repeat(100_000)] {
            let chunked = head("transfer-encoding: chunked\r\n");
            let half = text.len() / 2;
            let (first, second) = text.split_at(half);
            let pieces = format!(
                "{chunked}{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
                half,
                text.len() - half
            );
            let whole = format!("{}{text}", head(&format!("content-length: {}\r\n", text.len())));
            for sent in [pieces, whole] {
                let (_caller, mut session) = session(&sent).await;
                let body = body(gate, &mut session, &known).await.unwrap();
                assert_eq!(body.bytes, text.as_bytes());
                assert!(gate.body_room.taken() >= text.len());
                drop(body);
                assert_eq!(gate.body_room.taken(), 0);
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_grows_too_long_or_breaks_off_is_refused() {
        let stand = Stand::new().await;
        let (gate, known) = (&stand.gate, stand.known());
        let limit = gate.settings.proxy.max_body_bytes;
        let chunked = head("transfer-encoding: chunked\r\n");
        let exactly = format!("{chunked}{limit:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(limit));
        let too_long = format!(
            "{chunked}{:x}\r\n{}\r\n0\r\n\r\n",
            limit + 9,
            "x".repeat(limit + 9)
        );
        for (sent, refused) in [
            (exactly, None),
            (too_long, Some(RefusalKind::PayloadTooLarge)),
            (
                head("content-length: 9\r\n") + "{}",
                Some(RefusalKind::RequestTimeout),
            ),
            (chunked + "9\r\n{}", Some(RefusalKind::RequestTimeout)),
        ] {
            let (mut caller, here) = duplex(1 << 16);
            let sending = tokio::spawn(async move {
                // The gate need not read all of it.
                drop(caller.write_all(sent.as_bytes()).await);
                drop(caller.shutdown().await);
            });
            let mut session = ServerSession::new_http1(Box::new(here));
            assert!(session.read_request().await.unwrap());
            let read = body(gate, &mut session, &known).await;
            assert_eq!(read.err().map(kind), refused);
            drop(session);
            sending.await.unwrap();
            assert_eq!(gate.body_room.taken(), 0);
        }
    }

    #[test]
    fn a_buffer_is_made_for_what_is_declared_once_some_of_it_is_there() {
        for (length, declared, made) in [
            (10, None, 10),
            (10, Some(20), 20),
            (10, Some(1 << 20), SMALL_BYTES),
            (SMALL_BYTES, Some(1 << 20), SMALL_BYTES),
            (SMALL_BYTES + 1, Some(1 << 20), 1 << 20),
        ] {
            assert_eq!(planned(length, declared), made, "{length} {declared:?}");
        }
    }
}
