//! A streamed answer that its connection writes after Pingora's request has ended. Pingora's future of a request takes
//! 14 KB, nearly all of it for Pingora's own forwarding, and that of our hook another 4 KB. A stream can be open for
//! minutes, so it must not keep them.

use super::logging;
use super::state::EdgeState;
use crate::admission::RequestInFlight;
use crate::call::prepared_reply::RunningStream;
use crate::protected_request::ProtectedRequest;
use crate::reply::EdgeReply;
use pingora::apps::{HttpPersistentSettings, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use std::io::Cursor;
use std::sync::Arc;

/// A stream that will be written, and everything that its request holds until then.
pub(super) struct DetachedStream {
    pub(super) session: ServerSession,
    pub(super) state: Arc<EdgeState>,
    pub(super) head: EdgeReply,
    pub(super) stream: RunningStream,
    /// Keeps the connection from being closed for another one.
    pub(super) _protection: ProtectedRequest,
    /// Counts the request as in flight.
    pub(super) _in_flight: Option<RequestInFlight>,
}

/// Takes the session of a request, and leaves one without a connection, which Pingora ends without effect.
pub(super) fn take_session(session: &mut ServerSession) -> ServerSession {
    let unconnected = Box::new(Cursor::new(Vec::new()));
    std::mem::replace(session, ServerSession::new_http1(unconnected))
}

impl DetachedStream {
    /// Writes the answer. Returns the connection if it can be reused, as Pingora does at the end of a request.
    pub(super) async fn write(mut self: Box<Self>) -> Option<ReusedHttpStream> {
        let writer = &self.state.writer;
        let written = writer.write_stream(&mut self.session, &mut self.head, self.stream);
        if let Err(error) = written.await {
            logging::log(Some(&error));
            return None;
        }
        let mut settings = HttpPersistentSettings::for_session(&self.session);
        // Boxed, since it is needed only at the end.
        let finishing = Box::pin(take_session(&mut self.session).finish());
        let (connection, pipelined) = finishing.await.ok()??.into_parts();
        match pipelined {
            Some(pipelined) => settings.set_pipelined_prefix(pipelined),
            None => settings.set_user_context(Box::new(Drained)),
        }
        Some(ReusedHttpStream::new(connection, Some(settings)))
    }
}

/// Marks, in the settings of a connection, that no byte of its next request was received yet. Pingora does not
/// report the answers that it ends itself.
struct Drained;

/// Returns whether it is certain that no byte of the next request was received yet, and forgets it.
pub(super) fn is_drained(settings: &mut HttpPersistentSettings) -> bool {
    settings
        .take_user_context()
        .is_some_and(|mark| mark.is::<Drained>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::handoff;
    use crate::call::run_to_completion::RunToCompletion;
    use crate::fixture::Fixture;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    /// Returns a stream with one event, and the caller's end of its connection.
    async fn stream() -> (Box<DetachedStream>, DuplexStream) {
        stream_before("").await
    }

    /// Like [`stream`], with this beginning of the next request, received together with its own.
    async fn stream_before(next: &str) -> (Box<DetachedStream>, DuplexStream) {
        let (mut caller, connection) = duplex(4 << 10);
        let requests = format!("GET / HTTP/1.1\r\nHost: e\r\n\r\n{next}");
        caller.write_all(requests.as_bytes()).await.unwrap();
        let mut session = ServerSession::new_http1(Box::new(connection));
        session.set_keepalive(Some(60));
        session.set_pipelining_enabled(true);
        assert!(session.read_request().await.unwrap());
        let (mut sender, pieces) = handoff::pair();
        let event = vec![Bytes::from_static(b"data: 1\n\n")];
        let reader = async move {
            let _sent = sender.send(event).await;
        };
        let fixture = Fixture::new().await;
        let admission = &fixture.admission;
        let stream = DetachedStream {
            session,
            state: Arc::new(fixture.edge_state()),
            head: EdgeReply {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: Bytes::new(),
            },
            stream: RunningStream {
                reader: RunToCompletion::new(admission, || reader),
                pieces,
            },
            _protection: ProtectedRequest::default(),
            _in_flight: admission.enter(),
        };
        (Box::new(stream), caller)
    }

    #[tokio::test]
    async fn a_stream_that_was_read_leaves_its_connection() {
        let (stream, mut caller) = stream().await;
        let admission = Arc::clone(&stream.state.admission);
        let connection = stream.write().await;
        assert!(connection.is_some());
        assert_eq!(admission.in_flight(), 0);
        let mut received = vec![0; 1 << 10];
        let read = caller.read(&mut received).await.unwrap();
        let received = String::from_utf8_lossy(&received[..read]);
        assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
        assert!(received.ends_with("9\r\ndata: 1\n\n\r\n0\r\n\r\n"), "{received}");
    }

    /// Otherwise the edge would wait for bytes that it has.
    #[tokio::test]
    async fn a_connection_is_drained_if_nothing_of_the_next_request_was_received() {
        for (next, drained) in [("", true), ("G", false)] {
            let (stream, _caller) = stream_before(next).await;
            let (_, settings) = stream.write().await.unwrap().consume();
            let mut settings = settings.unwrap();
            assert_eq!(is_drained(&mut settings), drained, "{next}");
            assert!(!is_drained(&mut settings), "it says so of one request");
        }
    }

    #[tokio::test]
    async fn a_stream_whose_caller_left_leaves_no_connection() {
        let (stream, caller) = stream().await;
        let admission = Arc::clone(&stream.state.admission);
        drop(caller);
        assert!(stream.write().await.is_none());
        // The reader continues without the caller.
        while admission.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_open_stream_stays_small() {
        const BYTES_MAX: usize = 3 << 10;
        let (stream, _caller) = stream().await;
        assert!(size_of::<DetachedStream>() <= BYTES_MAX / 2);
        let written = stream.write();
        assert!(size_of_val(&written) <= BYTES_MAX, "{}", size_of_val(&written));
    }

    /// Pingora ends the session that remains.
    #[tokio::test]
    async fn a_session_whose_connection_was_taken_ends_without_effect() {
        let (mut stream, mut caller) = stream().await;
        let taken = take_session(&mut stream.session);
        let remains = std::mem::replace(&mut stream.session, taken);
        assert!(matches!(remains.finish().await, Ok(None)));
        drop(stream);
        assert_eq!(caller.read(&mut [0]).await.unwrap(), 0, "nothing was written");
    }
}
