//! One connection of a caller: passes each of its requests, over HTTP/1.1 and HTTP/2, to the proxy.

use super::Edge;
use super::head::{HEAD_BYTES_MAX, Head};
use super::request_scope;
use super::write::KEEP_ALIVE;
use connections::bursts::Burst;
use connections::limit::Requests;
use pingora::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream};
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::H2Options;
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use std::pin::{Pin, pin};
use std::sync::Arc;

/// Concurrent requests of an HTTP/2 connection.
const STREAMS_MAX: u32 = 100;
/// Maximum of requests that were reset before they were accepted; one more closes the connection ("rapid reset").
const RESET_UNSEEN_MAX: usize = 20;
/// Maximum of requests that the edge reset because of malformed frames; one more closes the connection.
const RESET_BY_US_MAX: usize = 100;
/// Reset requests whose late frames are ignored.
const RESET_KEPT_MAX: usize = 20;
/// Bytes of an answer queued for each request of a caller who does not read.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// The HTTP application of one connection.
pub(super) struct Connection {
    proxy: Arc<HttpProxy<Edge>>,
    head: Arc<Head>,
    requests: Requests,
    burst: Burst,
}

impl Connection {
    pub(super) const fn new(
        proxy: Arc<HttpProxy<Edge>>,
        head: Arc<Head>,
        requests: Requests,
        burst: Burst,
    ) -> Self {
        Self {
            proxy,
            head,
            requests,
            burst,
        }
    }

    /// Serves HTTP/1, as Pingora's own loop does. The future of that one also has room for HTTP/2: 4 KB a connection.
    pub(super) async fn serve_h1(self: &Arc<Self>, connection: Stream, shutdown: &ShutdownWatch) {
        let mut session = first_session(connection, shutdown);
        while let Some(kept) = self.process_new_http(session, shutdown).await {
            session = next_session(kept);
        }
    }
}

fn first_session(connection: Stream, shutdown: &ShutdownWatch) -> ServerSession {
    let mut session = ServerSession::new_http1(connection);
    let is_stopping = *shutdown.borrow();
    session.set_keepalive((!is_stopping).then_some(KEEP_ALIVE.as_secs()));
    session
}

fn next_session(connection: ReusedHttpStream) -> ServerSession {
    let (connection, settings) = connection.consume();
    let mut session = ServerSession::new_http1(connection);
    if let Some(settings) = settings {
        settings.apply_to_session(&mut session);
    }
    session
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
            false => {
                self.head.begins();
                // Otherwise Pingora drops a request that arrived together with the one before.
                session.set_pipelining_enabled(true);
            }
        }
        let serving = self.proxy.process_new_http(session, shutdown);
        let serving = request_scope::scope(self.requests.clone(), serving);
        Box::pin(async move {
            match self.burst.serve(pin!(serving)).await {
                (served, None) => served,
                (_, Some(stream)) => Box::pin(stream.write()).await,
            }
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
            .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(RESET_UNSEEN_MAX)
            .max_local_error_reset_streams(Some(RESET_BY_US_MAX))
            .max_concurrent_reset_streams(RESET_KEPT_MAX)
            .max_send_buffer_size(SEND_BUFFER_BYTES);
        Some(options)
    }
}
