//! Step 2: the request body, read whole within its limits of size, time and memory.

pub mod room;

use super::Stop;
use super::known_key::KnownKey;
use crate::gate::Gate;
use crate::reply::refusal::{Refusal, RefusalKind};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use pingora::protocols::http::ServerSession;
use room::{SMALL_BYTES, Share};
use shared::domain::denial::Denial;
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
