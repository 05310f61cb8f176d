//! A new connection: it is counted, encrypted where the edge speaks TLS, and then spoken to, all of it under one deadline
//! until the first request's head is there. Pingora waits without one for the preface of HTTP/2, so a caller who connects
//! and stays silent would hold its connection for ever.

use super::Edge;
use super::connection::{self, Connection};
use super::connections::Connections;
use super::head::Head;
use super::head_limited::HeadLimited;
use super::state::EdgeState;
use async_trait::async_trait;
use connections::limit::Requests;
use pingora::apps::ServerApp;
use pingora::listeners::tls::Acceptor;
use pingora::protocols::l4::stream::Stream as Tcp;
use pingora::protocols::{ALPN, Stream};
use pingora::proxy::HttpProxy;
use pingora::server::ShutdownWatch;
use pingora::server::configuration::ServerConf;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The preface of HTTP/2. No request with a `Host` header is shorter, so as much of a connection is waited for.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How much longer than the deadline a connection lives, for the answer that tells of the deadline.
const LAST_WORD: Duration = Duration::from_secs(2);

/// The edge behind its listener. Pingora's `cleanup` does not reach the proxy: it would drop the connections that wait for their
/// next request at once, where [`crate::server`] lets them bring one more.
pub struct Opening {
    proxy: Arc<HttpProxy<Edge>>,
    state: Arc<OnceLock<Arc<EdgeState>>>,
    connections: Arc<Connections>,
    tls: Option<Acceptor>,
    within: Duration,
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

impl Opening {
    /// The edge of a gate that is set before the first connection is taken, with this long for the first head of a connection.
    #[must_use]
    pub fn new(
        state: Arc<OnceLock<Arc<EdgeState>>>,
        conf: Arc<ServerConf>,
        connections: Arc<Connections>,
        tls: Option<Acceptor>,
        within: Duration,
    ) -> Self {
        let mut proxy = HttpProxy::new(Edge::new(Arc::clone(&state)), conf);
        proxy.handle_init_modules();
        proxy.server_options = Some(connection::options());
        Self {
            proxy: Arc::new(proxy),
            state,
            connections,
            tls,
            within,
        }
    }

    /// Speaks HTTP on a connection until it ends.
    async fn speak(
        &self,
        connection: Stream,
        head: Arc<Head>,
        requests: Requests,
        shutdown: &ShutdownWatch,
    ) -> Option<()> {
        let mut connection = match &self.tls {
            Some(acceptor) => encrypted(acceptor, connection).await?,
            None => connection,
        };
        let is_h2 = match &self.tls {
            Some(_) => matches!(connection.selected_alpn_proto(), Some(ALPN::H2)),
            None => {
                let mut first = [0; PREFACE.len()];
                connection.try_peek(&mut first).await.ok()? && first == *PREFACE
            }
        };
        let connection = match is_h2 {
            true => connection,
            false => {
                let metrics = Arc::clone(&self.state.get()?.metrics);
                Box::new(HeadLimited::new(
                    connection,
                    Arc::clone(&head),
                    metrics,
                    self.within,
                ))
            }
        };
        let app = Arc::new(Connection::new(Arc::clone(&self.proxy), head, requests));
        app.process_new(connection, shutdown).await;
        Some(())
    }
}

#[async_trait]
impl ServerApp for Opening {
    async fn process_new(self: &Arc<Self>, connection: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let place = self.connections.admit(peer_of(&connection)).ok()?;
        let deadline = Instant::now() + self.within;
        let head = Arc::new(Head::expected_by(deadline));
        let spoken = pin!(self.speak(connection, Arc::clone(&head), place.requests(), shutdown));
        let overdue = Box::pin(sleep_until(deadline + LAST_WORD));
        let opened = Opened {
            spoken,
            head,
            overdue: Some(overdue),
        };
        tokio::select! {
            () = opened => {}
            () = place.closed_for_another() => self.connections.closed_for_another(),
        }
        None
    }
}

/// The other end of a connection.
fn peer_of(connection: &Stream) -> Option<IpAddr> {
    let digest = connection.get_socket_digest()?;
    Some(digest.peer_addr()?.as_inet()?.ip())
}

/// The connection after its TLS handshake.
async fn encrypted(acceptor: &Acceptor, connection: Stream) -> Option<Stream> {
    let tcp = connection.into_any().downcast::<Tcp>().ok()?;
    match acceptor.tls_handshake(*tcp).await {
        Ok(encrypted) => Some(Box::new(encrypted)),
        Err(error) => {
            tracing::debug!(error = ?error.etype(), "a TLS handshake failed");
            None
        }
    }
}

/// A connection that is given up when its first head is not there in time.
struct Opened<'a, F> {
    spoken: Pin<&'a mut F>,
    head: Arc<Head>,
    /// Until the first head is there.
    overdue: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Opened<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.spoken.as_mut().poll(context).is_ready() {
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
