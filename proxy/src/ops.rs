//! The ops listener (decision D57): `/metrics`, `/livez`, `/readyz`. It never reads the store. Its connections, and
//! their time, are bounded: whoever reaches the port takes no descriptor from callers.

use crate::edge::arrivals::Arrivals;
use crate::gauges::Exposition;
use crate::readiness::Readiness;
use async_trait::async_trait;
use connections::limit::{ConnectionLimit, Requests};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream, ServerApp};
use pingora::http::ResponseHeader;
use pingora::protocols::Stream;
use pingora::protocols::http::ServerSession;
use pingora::server::ShutdownWatch;
use pingora::services::listening::Service;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::timeout;

/// Most open connections. At one more, the longest idle is closed, first of those without a request.
pub const CONNECTIONS_MAX: usize = 64;
/// Longest time until the head of a connection's next request is complete.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Longest time to send an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// State of the ops listener.
pub struct OpsState {
    /// `/readyz`
    pub readiness: Readiness,
    /// `/metrics`
    pub exposition: Exposition,
}

/// The application of the ops listener.
pub struct Ops {
    answers: OpsAnswers,
    arrivals: Arc<Arrivals<ConnectionLimit>>,
}

/// The answers of the ops listener. The state is set once the edge has started.
#[derive(Clone)]
struct OpsAnswers(Arc<OnceLock<OpsState>>);

struct OpsConnection {
    answers: OpsAnswers,
    requests: Requests,
}

impl Ops {
    /// Creates the application. `state` is set once the edge has started.
    pub fn new(state: Arc<OnceLock<OpsState>>) -> Self {
        // No limit of one address: probes and scrapers often share one.
        let limit = ConnectionLimit::new(CONNECTIONS_MAX, CONNECTIONS_MAX, Vec::new());
        Self {
            answers: OpsAnswers(state),
            arrivals: Arc::new(Arrivals::new(limit)),
        }
    }

    /// Returns the service of the listener. It counts connections where they are accepted.
    pub fn service(self) -> Service<Self> {
        let arrivals = Arc::clone(&self.arrivals);
        let mut service = Service::new("ops".to_owned(), self);
        service.set_connection_filter(arrivals);
        service
    }
}

#[async_trait]
impl ServerApp for Ops {
    /// Serves a connection until it ends, or is closed for another one.
    async fn process_new(self: &Arc<Self>, connection: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        let entry = self.arrivals.started(&connection)?;
        let served = Arc::new(OpsConnection {
            answers: self.answers.clone(),
            requests: entry.requests(),
        });
        tokio::select! {
            _ = served.process_new(connection, shutdown) => {}
            () = entry.closed_for_another() => {}
        }
        None
    }
}

#[async_trait]
impl HttpServerApp for OpsConnection {
    /// Answers a request. Its connection is not closed for another meanwhile.
    async fn process_new_http(
        self: &Arc<Self>,
        mut http: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let is_read = timeout(IDLE_MAX, http.read_request()).await.ok()?.ok()?;
        if !is_read {
            return None;
        }
        let _at_work = self.requests.begin()?;
        let is_stopping = *shutdown.borrow();
        http.set_keepalive((!is_stopping).then_some(IDLE_MAX.as_secs()));
        let answered = timeout(ANSWER_MAX, self.answers.answer(http)).await;
        answered.ok()?
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl OpsAnswers {
    /// Sends the answer. `None` if the connection cannot be used again.
    async fn answer(&self, mut http: ServerSession) -> Option<ReusedHttpStream> {
        let (status, content_type, body) = self.to(http.req_header().uri.path());
        let mut head = ResponseHeader::build(status, Some(2)).ok()?;
        head.insert_header(CONTENT_TYPE, content_type).ok()?;
        head.insert_header(CONTENT_LENGTH, body.len()).ok()?;
        http.write_response_header(Box::new(head)).await.ok()?;
        http.write_response_body(body.into(), true).await.ok()?;
        let settings = HttpPersistentSettings::for_session(&http);
        let reusable = http.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(reusable, settings))
    }

    fn to(&self, path: &str) -> (u16, &'static str, Vec<u8>) {
        let state = self.0.get();
        match (path, state) {
            ("/livez", _) => (200, TEXT, b"ok\n".to_vec()),
            ("/readyz", Some(state)) => match state.readiness.reason() {
                None => (200, TEXT, b"ok\n".to_vec()),
                Some(reason) => (503, TEXT, format!("{reason}\n").into_bytes()),
            },
            ("/metrics", Some(state)) => (200, METRICS, state.exposition.text()),
            ("/readyz" | "/metrics", None) => (503, TEXT, b"starting\n".to_vec()),
            _ => (404, TEXT, b"not found\n".to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora::protocols::l4::stream::Stream as Tcp;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::watch;
    use tokio::time::Instant;

    /// A head that arrives byte by byte has no more time than one that does not arrive.
    #[tokio::test(start_paused = true)]
    async fn a_head_has_one_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let entry = ConnectionLimit::new(1, 1, Vec::new())
            .admit(peer.ip())
            .await
            .unwrap();
        let connection = Arc::new(OpsConnection {
            answers: OpsAnswers(Arc::default()),
            requests: entry.requests(),
        });
        let (began, every) = (Instant::now(), IDLE_MAX / 6);
        let served = tokio::spawn(async move {
            let (_stop, shutdown) = watch::channel(false);
            let stream: Stream = Box::new(Tcp::from(accepted));
            connection.process_new(stream, &shutdown).await.is_none()
        });
        client.write_all(b"GET /livez HTTP/1.1\r\nx: ").await.unwrap();
        let mut room = [0; 64];
        while timeout(every, client.read(&mut room)).await.is_err() {
            assert!(began.elapsed() < IDLE_MAX + every, "it goes on");
            client.write_all(b"x").await.unwrap();
        }
        assert!(served.await.unwrap());
    }
}
