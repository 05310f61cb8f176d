//! Answers to heads that do not form a request: too long, too late, or malformed.

use super::head::HEAD_BYTES_MAX;
use super::write::to_pingora;
use crate::call::request_trace::RequestTrace;
use crate::metrics::Metrics;
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::reply::{EdgeReply, names};
use bytes::{Bytes, BytesMut};
use connections::request_head::Malformed;
use http::header::{CONNECTION, DATE};
use http::{HeaderMap, HeaderValue};
use pingora::protocols::http::date::get_cached_date;
use std::net::IpAddr;
use std::sync::Arc;

/// Capacity for the head of such an answer, in bytes.
const HEAD_BYTES: usize = 512;

/// Returns 431: the head is longer than [`HEAD_BYTES_MAX`].
pub(super) fn too_long() -> Refusal {
    let message = format!("Request line and headers are longer than {HEAD_BYTES_MAX} bytes.");
    Refusal::new(RefusalKind::HeadTooLong, message)
}

/// Returns 408: the head is late.
pub(super) fn too_late() -> Refusal {
    let message = "The request was not sent within the time allowed.";
    Refusal::new(RefusalKind::RequestTimeout, message)
}

/// Returns 400: the head is malformed.
pub(super) fn not_http() -> Refusal {
    Refusal::new(RefusalKind::BadRequest, "The request is not well-formed HTTP.")
}

/// Returns 400: the head breaks a rule that both servers enforce.
pub(super) fn malformed(what: Malformed) -> Refusal {
    let message = match what {
        Malformed::TransferCoding => "The only transfer coding of a body is `chunked`.",
        Malformed::Length => "The request needs one `Content-Length` at most, in digits.",
        Malformed::Host => "The request needs one `Host` header, with a name or an address.",
    };
    Refusal::new(RefusalKind::BadRequest, message)
}

/// Builds the answer with the headers of every answer, and records it in metrics and log. `peer` is the address of the
/// connection: what such a head says about the caller does not count.
pub(super) fn reply(metrics: &Arc<Metrics>, peer: Option<IpAddr>, refusal: &Refusal) -> EdgeReply {
    let trace = RequestTrace::new(&HeaderMap::new(), peer, peer, metrics);
    trace.record_refusal(refusal.kind);
    let mut reply = refusal.reply();
    reply.set(names::OVERHEAD_MS, "0.000");
    reply.set(names::REQUEST_ID, trace.request_id());
    reply
}

/// Builds the answer as bytes of HTTP/1.1. The answer closes the connection.
pub(super) fn bytes(metrics: &Arc<Metrics>, peer: Option<IpAddr>, refusal: &Refusal) -> Bytes {
    let mut reply = reply(metrics, peer, refusal);
    reply.headers.insert(DATE, get_cached_date());
    reply
        .headers
        .insert(CONNECTION, HeaderValue::from_static("close"));
    let (head, body) = to_pingora(reply);
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut bytes = BytesMut::with_capacity(HEAD_BYTES + body.len());
    bytes.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", head.status.as_u16()).as_bytes());
    head.header_to_h1_wire(&mut bytes);
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&body);
    bytes.freeze()
}
