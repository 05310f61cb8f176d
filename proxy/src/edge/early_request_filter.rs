//! Begins a request whose head was read: checks the length of the head and the coding of the body, and counts the
//! request as in flight.

use super::head::HEAD_BYTES_MAX;
use super::head_limited::HeadLimited;
use super::new_ctx::Ctx;
use super::state::EdgeState;
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, HeaderValue};
use pingora::ErrorType::{HTTPStatus, InternalError};
use pingora::proxy::Session;
use pingora::{Error, Result};

/// Counts the request as in flight until `ctx` is dropped.
///
/// # Errors
/// `HTTPStatus(431)` for a head that is too long, `HTTPStatus(400)` for a body in another transfer coding than
/// `chunked`. `InternalError` right before the process ends: the request was not processed, so its connection is closed
/// and its caller may send it again.
pub(super) fn begin(state: Option<&EdgeState>, session: &Session, ctx: &mut Ctx) -> Result<()> {
    if let Some(head) = HeadLimited::head_of(session) {
        let is_spent = head.is_spent();
        head.ends();
        // The bytes may include a body that arrived together with its head: then the length of the head itself decides.
        if is_spent && session.to_h1_raw().len() > HEAD_BYTES_MAX {
            return Err(Error::new_down(HTTPStatus(431)));
        }
        if !is_coding_known(&session.req_header().headers) {
            return Err(Error::new_down(HTTPStatus(400)));
        }
    }
    ctx.in_flight = state.and_then(|state| state.admission.enter());
    match ctx.in_flight {
        Some(_) => Ok(()),
        None => Err(Error::new_in(InternalError)),
    }
}

/// True if the body has no transfer coding, or is `chunked` once. Pingora takes `gzip, chunked` for `chunked`.
fn is_coding_known(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    codings.next().is_none_or(is_chunked) && codings.next().is_none()
}
