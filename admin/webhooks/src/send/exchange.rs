//! The request of an attempt, and the parts that are read of its answer: a bounded head and the first bytes of the
//! body.

use super::bounded::Bounded;
use super::connect::Stream;
use super::failure::AttemptFailure;
use crate::target::DeliveryTarget;
use bytes::Bytes;
use domain::printable::one_line;
use http::header::{ACCEPT, CONNECTION, HOST, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Maximum number of bytes of an answer's body that are kept.
pub(crate) const EXCERPT_MAX: usize = 256;
/// Longest wait for these bytes after the head, whose status already decides whether the delivery was accepted.
const EXCERPT_WAIT: Duration = Duration::from_millis(500);
/// Longest head of an answer; also the maximum read ahead of an answer.
const HEAD_MAX: usize = 16 * 1024;
/// Maximum number of bytes that are read of an answer: its head, some interim ones, and the read-ahead of its body.
const ANSWER_MAX: usize = 4 * HEAD_MAX;
/// Maximum number of header lines of an answer.
const HEADERS_MAX: usize = 100;

/// Builds the complete request with its `Host`. The connection is used for it alone.
pub(super) fn request(target: &DeliveryTarget, mut headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    headers.insert(HOST, target.authority.clone());
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(target.path.clone());
    *request.headers_mut() = headers;
    request
}

/// The head of an answer whose body follows. Dropping it closes the connection.
pub(super) struct AnswerHead {
    response: Response<Incoming>,
    /// Task that drives the connection; it ends when this is dropped.
    _moving: JoinSet<()>,
}

/// Sends the request and waits for the head of the answer.
pub(super) async fn answer(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<AnswerHead, AttemptFailure> {
    let failed = |error: hyper::Error| AttemptFailure::from_http(&error);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_MAX)
        .max_headers(HEADERS_MAX)
        .handshake(TokioIo::new(Bounded::new(stream, ANSWER_MAX)))
        .await
        .map_err(failed)?;
    let mut moving = JoinSet::new();
    moving.spawn(async move {
        // Its error also makes `send_request`, or the body, fail.
        let _reported_there = connection.await;
    });
    let response = sender.send_request(request).await.map_err(failed)?;
    Ok(AnswerHead {
        response,
        _moving: moving,
    })
}

impl AnswerHead {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the start of the body, if it arrives soon. Then the connection is closed, even if more follows.
    pub(super) async fn excerpt(self, deadline: Instant) -> Option<String> {
        let until = deadline.min(Instant::now() + EXCERPT_WAIT);
        let mut body = self.response.into_body();
        let mut kept = Vec::with_capacity(EXCERPT_MAX);
        while kept.len() < EXCERPT_MAX {
            let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await else {
                break;
            };
            let part = frame.into_data().unwrap_or_default();
            let room = EXCERPT_MAX - kept.len();
            kept.extend_from_slice(&part[..part.len().min(room)]);
        }
        (!kept.is_empty()).then(|| one_line(&kept))
    }
}
