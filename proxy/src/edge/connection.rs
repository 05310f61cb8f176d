//! One connection of a caller: HTTP gives each of its requests, over HTTP/1.1 and HTTP/2 alike, to the proxy from here.

use super::Edge;
use super::head::{HEAD_BYTES_MAX, Head};
use super::place;
use super::write::KEEP_ALIVE;
use connections::limit::Requests;
use pingora::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream};
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::v2::server::H2Options;
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use std::pin::Pin;
use std::sync::Arc;

/// Requests that a connection of HTTP/2 may have under way.
const STREAMS_MAX: u32 = 100;
/// Requests that were reset before anybody looked at them; one more ends the connection ("rapid reset").
const RESET_UNSEEN_MAX: usize = 20;
/// Requests that the edge itself reset, for mistakes in their frames; one more ends the connection.
const RESET_BY_US_MAX: usize = 100;
/// Requests that are remembered after a reset, for what of them is still on its way.
const RESET_KEPT_MAX: usize = 20;
/// Bytes of an answer that are queued for a caller who does not read, for each request.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// The application of one connection.
pub(super) struct Connection {
    proxy: Arc<HttpProxy<Edge>>,
    head: Arc<Head>,
    requests: Requests,
}

impl Connection {
    pub(super) const fn new(proxy: Arc<HttpProxy<Edge>>, head: Arc<Head>, requests: Requests) -> Self {
        Self {
            proxy,
            head,
            requests,
        }
    }
}

/// Options of the proxy: HTTP/2 also without TLS, and no method that is answered otherwise than the edge's route says.
pub(super) fn options() -> HttpServerOptions {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(KEEP_ALIVE);
    // Nothing is forwarded by the proxy itself, CONNECT neither.
    options.allow_connect_method_proxying = true;
    options
}

impl HttpServerApp for Connection {
    /// Written as `async_trait` expands it: the attribute would put the proxy's boxed future into a third box.
    fn process_new_http<'life0, 'life1, 'async_trait>(
        self: &'life0 Arc<Self>,
        session: ServerSession,
        shutdown: &'life1 ShutdownWatch,
    ) -> Pin<Box<dyn Future<Output = Option<ReusedHttpStream>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        match session.is_http2() {
            // It is there before there is a request.
            true => self.head.ends(),
            false => self.head.begins(),
        }
        let serving = self.proxy.process_new_http(session, shutdown);
        Box::pin(place::with(self.requests.clone(), serving))
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        self.proxy.server_options()
    }

    /// The library's header limit also bounds CONTINUATION: as many frames as such a list takes, and some more, then the
    /// connection ends.
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
