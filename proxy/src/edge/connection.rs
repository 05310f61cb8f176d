//! One connection of a caller: passes each of its requests, over HTTP/1.1 and HTTP/2, to the proxy.

use super::first_bytes::first_bytes;
use super::head::RequestHeads;
use super::write::KEEP_ALIVE;
use super::{Edge, detached_stream, http_options, request_scope};
use crate::boxed;
use crate::http2_requests::Http2Requests;
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

    fn h2_options(&self) -> Option<H2Options> {
        Some(http_options::h2())
    }
}
