//! Step 2: the request body, read in full within its limits of size, time and memory.

use super::rejection::Rejection;
use crate::buffer_budget::{BufferBudget, Reservation, SMALL_BYTES};
use crate::key_owners::known_key::KnownKey;
use crate::reply::refusal::{Refusal, RefusalKind};
use crate::upstream::headers::head_length;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use pingora::protocols::http::ServerSession;
use pingora::{Error, ErrorType};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Pingora's errors for malformed chunks, which are private there.
const INVALID_CHUNK: ErrorType = ErrorType::new("InvalidChunk");
const INVALID_TRAILER_END: ErrorType = ErrorType::new("InvalidTrailerEnd");

/// Number of pieces of a body that may be short, and the average length in bytes that each further one needs. A piece
/// is the part of a chunk, or of a DATA frame, from one read. Each costs a worker thread about the same, whatever its
/// length.
const SHORT_PIECES_MAX: usize = 16 << 10;
const PIECE_BYTES_MIN: usize = 64;

const LATE: &str = "The request was not sent within the time allowed.";

/// The caller's exact bytes, with their reserved memory.
#[derive(Debug)]
pub struct BufferedBody {
    /// At most `proxy.max_body_bytes`.
    pub bytes: Bytes,
    /// Memory of `bytes`. Must be dropped together with them.
    pub reservation: Reservation,
}

/// Length of a body as its head declares it, accepted.
#[derive(Debug, Clone, Copy)]
pub struct DeclaredLength(Option<usize>);

/// Reads bodies.
pub struct BodyReader {
    /// Memory of all bodies.
    pub budget: Arc<BufferBudget>,
    /// `proxy.max_body_bytes`
    pub bytes_max: usize,
    /// `proxy.client_timeout_ms`, for the whole body.
    pub timeout: Duration,
}

impl BodyReader {
    /// Returns the declared length of a body. Refuses one that is too long, before any byte of it is read.
    ///
    /// # Errors
    /// 413.
    pub fn check_declared_length(&self, session: &ServerSession) -> Result<DeclaredLength, Rejection> {
        match declared_length(session) {
            Some(length) if length > self.bytes_max => Err(self.too_large()),
            declared => Ok(DeclaredLength(declared)),
        }
    }

    /// Reads the body of this declared length. The deadline covers the whole body and the wait for memory.
    ///
    /// # Errors
    /// 413 if the body is too long, 408 if it is late or incomplete, 400 if its chunks are malformed or too many.
    pub async fn read(
        &self,
        session: &mut ServerSession,
        declared: DeclaredLength,
        key: &KnownKey,
    ) -> Result<BufferedBody, Rejection> {
        let deadline = Instant::now() + self.timeout;
        if session
            .get_header(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
        {
            // If the caller does not read, this can block after a part of it was written.
            if timeout_at(deadline, pin!(session.write_continue_response()))
                .await
                .is_err()
            {
                session.set_keepalive(None);
                return Err(incomplete(LATE));
            }
        }
        match timeout_at(deadline, pin!(self.read_to_end(session, declared, key))).await {
            Ok(body) => body,
            Err(_elapsed) => Err(incomplete(LATE)),
        }
    }

    async fn read_to_end(
        &self,
        session: &mut ServerSession,
        DeclaredLength(declared): DeclaredLength,
        key: &KnownKey,
    ) -> Result<BufferedBody, Rejection> {
        // The head lives as long as its body, so its memory counts too.
        let head = head_length(&session.req_header().headers);
        let mut reservation = Reservation::new(Arc::clone(&self.budget), Arc::clone(&key.usage));
        let mut first_piece = Bytes::new();
        let mut buffer = BytesMut::new();
        let (mut length, mut pieces) = (0_usize, 0_usize);
        loop {
            // One read from the socket may bring thousands of pieces, which the session gives without a pause: other
            // calls of this thread get their turn.
            tokio::task::consume_budget().await;
            let piece = match session.read_request_body().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    // The position of the next request on this connection is unknown.
                    session.set_keepalive(None);
                    return Err(unreadable(&error));
                }
            };
            length += piece.len();
            pieces += 1;
            if length > self.bytes_max {
                return Err(self.too_large());
            }
            if pieces > pieces_max(length) {
                session.set_keepalive(None);
                return Err(too_many_pieces());
            }
            let reserved = reserved_for(length, declared.unwrap_or(self.bytes_max));
            let grown = reservation.grow(head + length, head + reserved).await;
            grown.map_err(|_closed| Rejection::unavailable())?;
            let is_first = first_piece.is_empty() && buffer.is_empty();
            if is_first && declared.is_none_or(|declared| length >= declared) {
                first_piece = piece;
                continue;
            }
            buffer.reserve(capacity(length, declared).saturating_sub(buffer.len()));
            buffer.extend_from_slice(&std::mem::take(&mut first_piece));
            buffer.extend_from_slice(&piece);
        }
        if declared.is_some_and(|declared| length < declared) {
            return Err(incomplete("The request broke off."));
        }
        reservation.leave_reserve(head + length);
        let bytes = if buffer.is_empty() {
            first_piece
        } else {
            buffer.freeze()
        };
        Ok(BufferedBody { bytes, reservation })
    }

    fn too_large(&self) -> Rejection {
        Refusal::new(
            RefusalKind::PayloadTooLarge,
            format!("The body is longer than {} bytes.", self.bytes_max),
        )
        .into()
    }
}

/// Returns whether a body may be longer than [`SMALL_BYTES`], as declared by the head.
pub fn may_be_large(session: &ServerSession) -> bool {
    match declared_length(session) {
        Some(length) => length > SMALL_BYTES,
        None => session.get_header(TRANSFER_ENCODING).is_some() || session.is_http2(),
    }
}

fn declared_length(session: &ServerSession) -> Option<usize> {
    session.get_header(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Malformed chunks get a 400, which clients do not retry; an interrupted body may be complete the next time.
fn unreadable(error: &Error) -> Rejection {
    match *error.etype() {
        INVALID_CHUNK | INVALID_TRAILER_END => {
            let message = "The chunks of the body are not well-formed.";
            Refusal::new(RefusalKind::BadRequest, message).into()
        }
        _ => incomplete("The request broke off."),
    }
}

/// Returns how many pieces a body of this length may have.
pub const fn pieces_max(length: usize) -> usize {
    SHORT_PIECES_MAX + length / PIECE_BYTES_MIN
}

fn too_many_pieces() -> Rejection {
    let message = format!(
        "The body has too many chunks: more than {SHORT_PIECES_MAX}, and one for each {PIECE_BYTES_MIN} bytes."
    );
    Refusal::new(RefusalKind::BadRequest, message).into()
}

fn incomplete(message: &str) -> Rejection {
    Refusal::new(RefusalKind::RequestTimeout, message).into()
}

/// Returns the number of bytes to reserve after `length` were received: twice as many, so that a body of unknown length
/// requests memory only a few times, but not more than its longest possible length.
fn reserved_for(length: usize, length_max: usize) -> usize {
    (2 * length).min(length_max).max(length)
}

/// Returns the capacity of the buffer for `length` received bytes, so that a growing body is rarely copied. A body that
/// is not small gets its declared length at once: pages that were never written take no memory, and those that were are
/// reserved in the budget.
fn capacity(length: usize, declared: Option<usize>) -> usize {
    match declared {
        Some(declared) if length > SMALL_BYTES => declared,
        Some(declared) => declared.min(SMALL_BYTES),
        None => length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};

    /// Returns a connection on which the caller sent `sent`, and the session of the request.
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

    fn kind(rejection: Rejection) -> RefusalKind {
        match rejection {
            Rejection::Refused(refusal) => refusal.kind,
            Rejection::Denied(denied) => panic!("{denied:?}"),
        }
    }

    #[tokio::test]
    async fn a_declared_length_is_refused_from_one_byte_beyond_the_limit() {
        let fixture = Fixture::new().await;
        let reader = fixture.body_reader();
        let limit = reader.bytes_max;
        for (length, fits) in [(0, true), (limit, true), (limit + 1, false), (2 * limit, false)] {
            let (_caller, session) = session(&head(&format!("content-length: {length}\r\n"))).await;
            assert_eq!(declared_length(&session), Some(length));
            let checked = reader.check_declared_length(&session);
            assert_eq!(checked.is_ok(), fits, "{length}");
            if let Err(rejection) = checked {
                assert_eq!(kind(rejection), RefusalKind::PayloadTooLarge);
            }
        }
        let (_caller, session) = session(&head("transfer-encoding: chunked\r\n")).await;
        assert_eq!(declared_length(&session), None);
        assert!(reader.check_declared_length(&session).is_ok());
    }

    #[tokio::test]
    async fn a_body_may_be_large_unless_its_head_says_otherwise() {
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

    /// In one piece and in several, with and without a declared length.
    #[tokio::test]
    async fn a_body_is_read_in_full_and_reserves_memory_until_it_is_dropped() {
        let fixture = Fixture::new().await;
        let (reader, key) = (fixture.body_reader(), fixture.key());
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
                let declared = DeclaredLength(declared_length(&session));
                let body = reader.read(&mut session, declared, &key).await.unwrap();
                assert_eq!(body.bytes, text.as_bytes());
                assert!(fixture.budget.taken() >= text.len());
                drop(body);
                assert_eq!(fixture.budget.taken(), 0);
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_or_incomplete_is_refused() {
        let fixture = Fixture::new().await;
        let (reader, key) = (fixture.body_reader(), fixture.key());
        let limit = reader.bytes_max;
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
            (format!("{chunked}9\r\n{{}}"), Some(RefusalKind::RequestTimeout)),
            (
                format!("{chunked}z\r\n{{}}\r\n0\r\n\r\n"),
                Some(RefusalKind::BadRequest),
            ),
            (
                format!("{chunked}2\r\n{{}}x\r\n0\r\n\r\n"),
                Some(RefusalKind::BadRequest),
            ),
            (
                chunked + "2\r\n{}\r\n0\r\nX: y\n\r\n",
                Some(RefusalKind::BadRequest),
            ),
        ] {
            let (mut caller, here) = duplex(1 << 16);
            let sending = tokio::spawn(async move {
                // The reader may stop before the end.
                drop(caller.write_all(sent.as_bytes()).await);
                drop(caller.shutdown().await);
            });
            let mut session = ServerSession::new_http1(Box::new(here));
            assert!(session.read_request().await.unwrap());
            let declared = DeclaredLength(declared_length(&session));
            let read = reader.read(&mut session, declared, &key).await;
            assert_eq!(read.err().map(kind), refused);
            drop(session);
            sending.await.unwrap();
            assert_eq!(fixture.budget.taken(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_the_100_is_late() {
        let fixture = Fixture::new().await;
        let (reader, key) = (fixture.body_reader(), fixture.key());
        // Room for less than `HTTP/1.1 100 Continue`.
        let (mut caller, here) = duplex(16);
        let sent = head("expect: 100-continue\r\ncontent-length: 2\r\n");
        let sending = tokio::spawn(async move {
            caller.write_all(sent.as_bytes()).await.unwrap();
            caller
        });
        let mut session = ServerSession::new_http1(Box::new(here));
        assert!(session.read_request().await.unwrap());
        let declared = DeclaredLength(declared_length(&session));
        let read = reader.read(&mut session, declared, &key);
        let read = tokio::time::timeout(2 * reader.timeout, read)
            .await
            .expect("its time-out");
        assert_eq!(read.err().map(kind), Some(RefusalKind::RequestTimeout));
        assert_eq!(session.get_keepalive(), None);
        drop(sending.await.unwrap());
    }

    fn in_chunks_of_one_byte(length: usize) -> String {
        let chunked = head("transfer-encoding: chunked\r\n");
        [chunked, "1\r\nx\r\n".repeat(length), "0\r\n\r\n".to_owned()].concat()
    }

    #[tokio::test]
    async fn a_body_has_a_bounded_number_of_short_chunks() {
        let fixture = Fixture::new().await;
        let (reader, key) = (fixture.body_reader(), fixture.key());
        // The bound grows with the length. A chunk that two reads of the socket bring is two pieces.
        let most = (1..).find(|length| length + 1 > pieces_max(length + 1)).unwrap();
        for (length, refused) in [(most - 16, None), (most + 1, Some(RefusalKind::BadRequest))] {
            let (_caller, mut session) = session(&in_chunks_of_one_byte(length)).await;
            let declared = DeclaredLength(declared_length(&session));
            let read = reader.read(&mut session, declared, &key).await;
            assert_eq!(
                read.as_ref().map_or(0, |body| body.bytes.len()),
                [0, length][usize::from(refused.is_none())]
            );
            assert_eq!(read.err().map(kind), refused, "{length}");
        }
    }

    /// All of the body is there, so nothing but its reader makes the others of its thread wait.
    #[tokio::test]
    async fn other_calls_get_their_turn_while_a_body_of_short_chunks_is_read() {
        let fixture = Fixture::new().await;
        let (reader, key) = (fixture.body_reader(), fixture.key());
        let (_caller, mut session) = session(&in_chunks_of_one_byte(10_000)).await;
        let mut turns = 0;
        let declared = DeclaredLength(declared_length(&session));
        let mut reading = Box::pin(reader.read(&mut session, declared, &key));
        while futures::poll!(&mut reading).is_pending() {
            turns += 1;
            tokio::task::yield_now().await;
        }
        assert!(turns > 50, "{turns}");
    }

    #[test]
    fn the_buffer_has_the_declared_length_once_a_small_body_was_received() {
        for (length, declared, made) in [
            (10, None, 10),
            (10, Some(20), 20),
            (10, Some(1 << 20), SMALL_BYTES),
            (SMALL_BYTES, Some(1 << 20), SMALL_BYTES),
            (SMALL_BYTES + 1, Some(1 << 20), 1 << 20),
        ] {
            assert_eq!(capacity(length, declared), made, "{length} {declared:?}");
        }
    }
}
