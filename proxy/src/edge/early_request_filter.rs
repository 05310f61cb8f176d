//! Begins a request whose head was read: checks the length of the head, encoding and length of the body and the host,
//! and counts the request as in flight.

use super::head::HEAD_BYTES_MAX;
use super::head_limited::HeadLimited;
use super::new_ctx::Ctx;
use super::state::EdgeState;
use connections::request_head::{Malformed, check_host, check_length, is_chunked};
use pingora::ErrorType::{HTTPStatus, InternalError};
use pingora::proxy::Session;
use pingora::{Error, Result};

/// Counts the request as in flight until `ctx` is dropped.
///
/// # Errors
/// `HTTPStatus(431)` for a head that is too long, `HTTPStatus(400)` for a malformed one. `InternalError` right before
/// the process ends: the request was not processed, so its connection is closed and its caller may retry.
pub(super) fn begin(state: Option<&EdgeState>, session: &mut Session, ctx: &mut Ctx) -> Result<()> {
    let mut is_checked = true;
    if let Some(head) = HeadLimited::head_of(session) {
        let may_be_too_long = head.may_be_too_long();
        head.ends();
        // The bytes may include a body that arrived together with the head; in that case the length of the head itself
        // decides.
        if may_be_too_long && session.to_h1_raw().len() > HEAD_BYTES_MAX {
            return Err(Error::new_down(HTTPStatus(431)));
        }
        let request = session.req_header();
        if is_chunked(&request.headers).map_err(malformed)? {
            is_checked = head.body_is_chunked(session.to_h1_raw().len());
        }
        check_length(&request.headers).map_err(malformed)?;
        check_host(request.version, &request.headers).map_err(malformed)?;
    }
    if !is_checked {
        // A proxy in front may see another end of the body, so nothing behind it is served.
        session.set_keepalive(None);
    }
    ctx.in_flight = state.and_then(|state| state.admission.enter());
    match ctx.in_flight {
        Some(_) => Ok(()),
        None => Err(Error::new_in(InternalError)),
    }
}

fn malformed(_: Malformed) -> Box<Error> {
    Error::new_down(HTTPStatus(400))
}
