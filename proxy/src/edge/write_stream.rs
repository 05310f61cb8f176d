//! Writes a streamed answer: its head at once, then each piece when it arrives. The provider's stream is read in the
//! same task, and in a task of its own after the caller has disconnected.

use super::head_limited::HeadLimited;
use super::write::{ReplyWriter, head_of, in_time};
use crate::call::handoff::PieceReceiver;
use crate::call::prepared_reply::RunningStream;
use crate::reply::EdgeReply;
use bytes::{Bytes, BytesMut};
use futures::future::{Either, select};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Version};
use pingora::ErrorType::ConnectionClosed;
use pingora::http::RequestHeader;
use pingora::protocols::http::ServerSession;
use pingora::{Error, Result};
use std::pin::pin;
use std::time::Duration;

impl ReplyWriter {
    /// Writes a head and a stream. The connection is kept if the caller read the whole answer.
    ///
    /// # Errors
    /// The caller disconnected, or did not read a piece within `proxy.client_timeout_ms`. Reading of the provider's
    /// stream continues, so that the call can be settled.
    pub(super) async fn write_stream(
        &self,
        session: &mut ServerSession,
        head: &mut EdgeReply,
        stream: RunningStream,
    ) -> Result<()> {
        self.set_keepalive(session);
        head.headers.remove(CONTENT_LENGTH);
        match session.req_header().version {
            Version::HTTP_11 => {
                let chunked = HeaderValue::from_static("chunked");
                head.headers.insert(TRANSFER_ENCODING, chunked);
            }
            // HTTP/1.0 has no chunks: the end of the connection ends the body.
            Version::HTTP_10 => session.set_keepalive(None),
            _ => {}
        }
        if let Some(head) = HeadLimited::head_of(session) {
            head.flush_next_write();
        }
        let head = head_of(head.status, std::mem::take(&mut head.headers));
        let RunningStream { reader, pieces } = stream;
        let writing = pin!(async {
            in_time(self.timeout, session.write_response_header(head)).await?;
            drop_request_headers(session);
            write_pieces(session, pieces, self.timeout).await
        });
        // Polled first: the reader gives the next piece when the previous one was written.
        match select(writing, reader).await {
            Either::Left((written, _reader)) => written,
            Either::Right((_done, writing)) => writing.await,
        }
    }
}

/// Drops the headers of the request, which nothing reads once the head of the answer was written. Pingora keeps them
/// twice, with the names as they were sent.
fn drop_request_headers(session: &mut ServerSession) {
    let without = RequestHeader::build_no_case(Method::POST, b"/", Some(0));
    if let (ServerSession::H1(_), Ok(mut without)) = (&*session, without) {
        without.set_version(session.req_header().version);
        *session.req_header_mut() = without;
    }
}

async fn write_pieces(
    session: &mut ServerSession,
    mut pieces: PieceReceiver,
    within: Duration,
) -> Result<()> {
    while let Some(some) = next(session, &mut pieces).await? {
        in_time(within, session.write_response_body(joined(some), false)).await?;
    }
    in_time(within, session.write_response_body(Bytes::new(), true)).await
}

/// Waits for the next pieces. Watches the caller's connection until the caller sends something: Pingora keeps a
/// pipelined request for later, and would then wait forever. After that, a write fails if the caller has disconnected.
///
/// # Errors
/// The caller disconnected, or closed the sending side of the connection.
async fn next(session: &mut ServerSession, pieces: &mut PieceReceiver) -> Result<Option<Vec<Bytes>>> {
    tokio::select! {
        biased;
        pieces = pieces.next() => Ok(pieces),
        idle = session.read_body_or_idle(true) => {
            Err(idle.err().unwrap_or_else(|| Error::new_down(ConnectionClosed)))
        }
    }
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.pop().unwrap_or_default();
    }
    let mut all = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in pieces {
        all.extend_from_slice(&piece);
    }
    all.freeze()
}
