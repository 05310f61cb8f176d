//! One connection of a caller: passes each of its requests, over HTTP/1.1 and HTTP/2, to the proxy.

use super::head::RequestHeads;
use super::write::KEEP_ALIVE;
use super::{Edge, detached_stream, request_scope};
use crate::boxed;
use crate::http2_requests::Http2Requests;
use bytes::BytesMut;
use connections::bursts::Burst;
use connections::limit::Requests;
use pingora::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream};
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::H2Options;
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::time::timeout;

/// Concurrent requests of an HTTP/2 connection. Of those whose keys are not known yet, fewer are read at once.
const STREAMS_MAX: u32 = 100;
/// Longest head of a request over HTTP/2, with 32 bytes more for each header. The headers of a head take up to six
/// times that in memory, since they are sent compressed and each takes a place of its own.
const H2_HEAD_BYTES_MAX: u32 = 16 << 10;
/// Maximum of requests that were reset before they were accepted; one more closes the connection ("rapid reset").
const RESET_UNSEEN_MAX: usize = 20;
/// Maximum of requests that the edge reset because of malformed frames; one more closes the connection.
const RESET_BY_US_MAX: usize = 100;
/// Reset requests whose late frames are ignored.
const RESET_KEPT_MAX: usize = 20;
/// Bytes of an answer queued for each request of a caller who does not read.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Bytes of a request that are read before it has a future and a session: as many as Pingora reads first.
const FIRST_BYTES_MAX: usize = 4 << 10;

/// The HTTP application of one connection.
pub(super) struct Connection {
    proxy: Arc<HttpProxy<Edge>>,
    head: Arc<RequestHeads>,
    requests: Requests,
    /// Those of an HTTP/2 connection.
    http2: Option<Arc<Http2Requests>>,
    burst: Burst,
}

impl Connection {
    pub(super) const fn new(
        proxy: Arc<HttpProxy<Edge>>,
        head: Arc<RequestHeads>,
        requests: Requests,
        http2: Option<Arc<Http2Requests>>,
        burst: Burst,
    ) -> Self {
        Self {
            proxy,
            head,
            requests,
            http2,
            burst,
        }
    }

    /// Serves HTTP/1, as Pingora's own loop does. The future of that one also has room for HTTP/2: 4 KB a connection.
    pub(super) async fn serve_h1(self: &Arc<Self>, connection: Stream, shutdown: &ShutdownWatch) {
        let mut connection = ReusedHttpStream::new(connection, None);
        while let Some(kept) = self.serve_next(connection, shutdown).await {
            connection = kept;
        }
    }

    /// Waits for the next request of a connection, and serves it.
    async fn serve_next(
        self: &Arc<Self>,
        connection: ReusedHttpStream,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let (mut connection, mut settings) = connection.consume();
        let is_new = settings.is_none();
        let is_fresh = is_new || settings.as_mut().is_some_and(detached_stream::is_drained);
        self.head.begins(is_fresh);
        let received = match is_fresh {
            true => Some(first_bytes(&mut connection).await?),
            false => None,
        };
        let mut session = ServerSession::new_http1(connection);
        match settings {
            Some(settings) => settings.apply_to_session(&mut session),
            None => {
                let is_stopping = *shutdown.borrow();
                session.set_keepalive((!is_stopping).then_some(KEEP_ALIVE.as_secs()));
            }
        }
        if let Some(received) = received {
            session.set_pipelined_prefix(received);
        }
        self.process_new_http(session, shutdown).await
    }
}

/// Waits for the first bytes of a request, of which nothing was received yet. Pingora would wait for them with the
/// future and the read buffer of a request, 18 KB; and a request keeps this buffer, which is no longer than needed.
/// `None` if the connection ends, or is idle for too long.
async fn first_bytes(connection: &mut Stream) -> Option<BytesMut> {
    let reading = poll_fn(|context| {
        let mut storage = [const { MaybeUninit::uninit() }; FIRST_BYTES_MAX];
        let mut buffer = ReadBuf::uninit(&mut storage);
        let read = ready!(Pin::new(&mut *connection).poll_read(context, &mut buffer));
        Poll::Ready(read.map(|()| BytesMut::from(buffer.filled())))
    });
    let read = timeout(KEEP_ALIVE, reading).await.ok()?.ok()?;
    (!read.is_empty()).then_some(read)
}

/// Returns the options of the proxy: HTTP/2 also without TLS, and all methods answered by the edge's routes.
pub(super) fn options() -> HttpServerOptions {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(KEEP_ALIVE);
    // The proxy never forwards a request by itself, so a CONNECT is answered like any other method.
    options.allow_connect_method_proxying = true;
    options
}

impl HttpServerApp for Connection {
    /// Written as `async_trait` expands it: the attribute would box the proxy's boxed future a second time.
    fn process_new_http<'life0, 'life1, 'async_trait>(
        self: &'life0 Arc<Self>,
        mut session: ServerSession,
        shutdown: &'life1 ShutdownWatch,
    ) -> Pin<Box<dyn Future<Output = Option<ReusedHttpStream>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        match session.is_http2() {
            // HTTP/2 reads the first head itself, before there is a request.
            true => self.head.ends(),
            // Otherwise Pingora drops a request that arrived together with the one before.
            false => session.set_pipelining_enabled(true),
        }
        let in_progress = self.http2.as_ref().map(Http2Requests::begin);
        let serving = self.proxy.process_new_http(session, shutdown);
        let serving = request_scope::scope(self.requests.clone(), self.http2.clone(), serving);
        boxed::future(move || async move {
            let connection = match self.burst.serve(pin!(serving)).await {
                (served, None) => served,
                (_, Some(stream)) => Box::pin(stream.write()).await,
            };
            drop(in_progress);
            connection
        })
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        self.proxy.server_options()
    }

    /// The header limit also bounds CONTINUATION frames: the library closes the connection somewhat above the size of
    /// such a list.
    fn h2_options(&self) -> Option<H2Options> {
        let mut options = H2Options::new();
        options
            .max_header_list_size(H2_HEAD_BYTES_MAX)
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(RESET_UNSEEN_MAX)
            .max_local_error_reset_streams(Some(RESET_BY_US_MAX))
            .max_concurrent_reset_streams(RESET_KEPT_MAX)
            .max_send_buffer_size(SEND_BUFFER_BYTES);
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    #[tokio::test(start_paused = true)]
    async fn the_first_bytes_take_no_more_memory_than_they_need() {
        let (mut caller, connection) = duplex(2 * FIRST_BYTES_MAX);
        let mut connection: Stream = Box::new(connection);
        caller.write_all(b"GET /").await.unwrap();
        let received = first_bytes(&mut connection).await.unwrap();
        assert_eq!((&received[..], received.capacity()), (&b"GET /"[..], 5));
        caller.write_all(&[b'a'; FIRST_BYTES_MAX + 1]).await.unwrap();
        let received = first_bytes(&mut connection).await.unwrap();
        assert_eq!(received.len(), FIRST_BYTES_MAX);
        let received = first_bytes(&mut connection).await.unwrap();
        assert_eq!(received, b"a"[..]);
        assert_eq!(first_bytes(&mut connection).await, None, "idle for too long");
        drop(caller);
        assert_eq!(first_bytes(&mut connection).await, None, "closed");
    }

    /// The state of a connection that is idle, without its socket.
    #[tokio::test]
    async fn an_idle_connection_stays_small() {
        const BYTES_MAX: usize = 512;
        let mut connection: Stream = Box::new(duplex(1).0);
        let waiting = first_bytes(&mut connection);
        assert!(size_of_val(&waiting) <= BYTES_MAX, "{}", size_of_val(&waiting));
    }
}
