//! Step 2: the request body, read whole within its limits of size, time and memory.

pub mod room;

use super::Stop;
use crate::gate::Gate;
use crate::reply::refusal::{Refusal, RefusalKind};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT};
use pingora_core::protocols::http::ServerSession;
use room::{FREE_BYTES, Share};
use shared::domain::denial::Denial;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The bytes of a body, with its share of the memory that bodies may take.
struct Sharing {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Sharing {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
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

/// Reads the body, the caller's exact bytes, which give back their share of the memory when they are dropped. The deadline
/// covers the whole of it, and the wait for memory.
///
/// # Errors
/// 413 when it grows too long, 408 when it is not there in time or breaks off.
pub async fn body(gate: &Gate, session: &mut ServerSession) -> Result<Bytes, Stop> {
    let deadline = Instant::now() + Duration::from_millis(gate.settings.proxy.client_timeout_ms);
    if session
        .get_header(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    {
        drop(session.write_continue_response().await);
    }
    match timeout_at(deadline, pin!(read(gate, session))).await {
        Ok(body) => body,
        Err(_elapsed) => Err(incomplete("The request was not sent within the time allowed.")),
    }
}

fn incomplete(message: &str) -> Stop {
    Refusal::new(RefusalKind::RequestTimeout, message).into()
}

async fn read(gate: &Gate, session: &mut ServerSession) -> Result<Bytes, Stop> {
    let limit = gate.settings.proxy.max_body_bytes;
    let declared = declared_length(session);
    let mut share = Share::free();
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
        let grown = share.grow(&gate.body_room, length, hoped).await;
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
    share.complete(&gate.body_room, length);
    let bytes = if whole.is_empty() { first } else { whole.freeze() };
    Ok(match share.is_free() {
        true => bytes,
        false => Bytes::from_owner(Sharing { bytes, _share: share }),
    })
}

/// How long the buffer is made, so that a body is not copied from one to the next while it grows. Beyond what is free
/// that is all of the declared length at once: memory that nothing was written to yet is but an address, and what was
/// written has its share of the budget.
fn planned(length: usize, declared: Option<usize>) -> usize {
    match declared {
        Some(declared) if length > FREE_BYTES => declared,
        Some(declared) => declared.min(FREE_BYTES),
        None => length,
    }
}
