//! Serves a new connection that [`Arrivals`] has counted: performs the TLS handshake if TLS is configured, then serves
//! HTTP. One deadline covers everything up to the first request's head. Pingora has no deadline for the HTTP/2 preface,
//! so a caller who connects and stays silent would hold its connection forever.

use super::Edge;
use super::arrivals::Arrivals;
use super::connection::Connection;
use super::connections::Connections;
use super::control_limited::ControlLimited;
use super::head::RequestHeads;
use super::head_limited::HeadLimited;
use super::http_options;
use super::preface;
use super::state::EdgeState;
use super::unknown_keys_limited::UnknownKeysLimited;
use crate::http2_requests::Http2Requests;
use async_trait::async_trait;
use connections::bursts::Bursts;
use connections::limit::{OpenConnection, Requests};
use pingora::apps::ServerApp;
use pingora::listeners::tls::Acceptor;
use pingora::protocols::l4::stream::Stream as Tcp;
use pingora::protocols::{ALPN, Stream};
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use pingora::server::configuration::ServerConf;
use pingora::services::listening::Service;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Time that a connection stays open after the deadline, so that the answer to a late head can be sent.
const LATE_ANSWER: Duration = Duration::from_secs(2);

/// Application of the edge's listener. Pingora's `cleanup` does not reach the proxy: it would close idle connections
/// immediately, while [`crate::server`] lets them send one more request.
pub struct EdgeApp {
    proxy: Arc<HttpProxy<Edge>>,
    state: Arc<OnceLock<Arc<EdgeState>>>,
    arrivals: Arc<Arrivals<Arc<Connections>>>,
    connections: Arc<Connections>,
    tls: Option<Acceptor>,
    client_timeout: Duration,
    bursts: Bursts,
}

impl EdgeApp {
    /// Creates the application. `state` is set before the first connection is accepted; `client_timeout`
    /// (`proxy.client_timeout_ms`) is the deadline of the first head, counted from the accept.
    pub fn new(
        state: Arc<OnceLock<Arc<EdgeState>>>,
        conf: Arc<ServerConf>,
        connections: Arc<Connections>,
        tls: Option<Acceptor>,
        client_timeout: Duration,
    ) -> Self {
        let mut proxy = HttpProxy::new(Edge::new(Arc::clone(&state)), conf);
        proxy.handle_init_modules();
        proxy.server_options = Some(http_options::proxy());
        Self {
            proxy: Arc::new(proxy),
            state,
            arrivals: Arc::new(Arrivals::new(Arc::clone(&connections))),
            connections,
            tls,
            client_timeout,
            bursts: Bursts::default(),
        }
    }

    /// Returns the service of the listener. It counts connections where they are accepted.
    pub fn service(self) -> Service<Self> {
        let arrivals = Arc::clone(&self.arrivals);
        let mut service = Service::new("edge".to_owned(), self);
        service.set_connection_filter(arrivals);
        service
    }

    /// Serves HTTP on a connection until it ends, misses the deadline of its first head, or is closed for another one.
    async fn serve_in_time(&self, connection: Stream, entry: &OpenConnection, shutdown: &ShutdownWatch) {
        let deadline = Instant::now() + self.client_timeout;
        let head = Arc::new(RequestHeads::expected_by(deadline));
        let serving = pin!(self.serve(connection, Arc::clone(&head), entry.requests(), shutdown));
        let overdue = Box::pin(sleep_until(deadline + LATE_ANSWER));
        let until_first_head = UntilFirstHead {
            serving,
            head,
            overdue: Some(overdue),
        };
        tokio::select! {
            biased;
            () = until_first_head => {}
            () = entry.closed_for_another() => self.connections.closed_for_another(),
        }
    }

    /// Serves HTTP on a connection until it ends.
    async fn serve(
        &self,
        connection: Stream,
        head: Arc<RequestHeads>,
        requests: Requests,
        shutdown: &ShutdownWatch,
    ) -> Option<()> {
        let mut tcp = connection.into_any().downcast::<Tcp>().ok()?;
        let (connection, is_h2) = match &self.tls {
            Some(acceptor) => {
                // Boxed: a handshake needs more space than everything after it.
                let connection = Box::pin(encrypted(acceptor, *tcp)).await?;
                let is_h2 = matches!(connection.selected_alpn_proto(), Some(ALPN::H2));
                (connection, is_h2)
            }
            None => {
                let is_h2 = preface::is_sent(&mut tcp, head.deadline()).await?;
                (tcp as Stream, is_h2)
            }
        };
        let seen = match (is_h2, &self.tls) {
            (false, _) => Some(Arc::clone(&head)),
            // Without TLS the listener has no write buffer.
            (true, None) => Some(Arc::new(RequestHeads::unseen())),
            (true, Some(_)) => None,
        };
        let connection: Stream = match seen {
            Some(seen) => {
                let metrics = Arc::clone(&self.state.get()?.metrics);
                Box::new(HeadLimited::new(connection, seen, metrics, self.client_timeout))
            }
            None => connection,
        };
        let http2 = is_h2.then(Arc::<Http2Requests>::default);
        let connection = match &http2 {
            Some(requests) => {
                let limited = Box::new(ControlLimited::new(connection));
                Box::new(UnknownKeysLimited::new(limited, Arc::clone(requests)))
            }
            None => connection,
        };
        let app = Arc::new(Connection::new(
            Arc::clone(&self.proxy),
            head,
            requests,
            http2,
            self.bursts.connection(),
        ));
        match is_h2 {
            true => drop(app.process_new(connection, shutdown).await),
            false => app.serve_h1(connection, shutdown).await,
        }
        Some(())
    }
}

#[async_trait]
impl ServerApp for EdgeApp {
    /// Serves the connection in a task of its own: Pingora's task has room for its own handshake, 8 KB, and ends now.
    async fn process_new(self: &Arc<Self>, connection: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let entry = self.arrivals.started(&connection)?;
        let (app, shutdown) = (Arc::clone(self), shutdown.clone());
        drop(tokio::spawn(async move {
            app.serve_in_time(connection, &entry, &shutdown).await
        }));
        None
    }
}

/// Performs the TLS handshake.
async fn encrypted(acceptor: &Acceptor, tcp: Tcp) -> Option<Stream> {
    match acceptor.tls_handshake(tcp).await {
        Ok(encrypted) => Some(Box::new(encrypted)),
        Err(error) => {
            tracing::debug!(error = ?error.etype(), "a TLS handshake failed");
            None
        }
    }
}

/// A connection that is closed if its first head is late.
struct UntilFirstHead<'a, F> {
    serving: Pin<&'a mut F>,
    head: Arc<RequestHeads>,
    /// `None` once the first head was received.
    overdue: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for UntilFirstHead<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.serving.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        match &mut this.overdue {
            None => Poll::Pending,
            Some(_) if this.head.has_arrived() => {
                this.overdue = None;
                Poll::Pending
            }
            Some(overdue) => overdue.as_mut().poll(context),
        }
    }
}
