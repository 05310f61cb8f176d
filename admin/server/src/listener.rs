//! Accepts connections and serves HTTP/1.1 on them. Everything that a client can delay or grow is bounded: the number
//! of connections (in total and for each address), a request's head in bytes and time, the pause between two requests,
//! and an answer that is not read.

mod bare_answer;
mod layer;
mod paced;
mod request_body;
mod under_way;

use crate::connection_metrics::ListenerMetrics;
use axum::Router;
use axum::body::Body;
use bare_answer::OwnErrors;
use connections::bursts::{Burst, Bursts};
use connections::limit::{ConnectionLimit, OpenConnection, UnderWay};
use connections::request_head;
use endpoint::Peer;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use paced::Paced;
use prometheus::IntGauge;
use request_body::IncomingBody;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service as _;
use under_way::AnswerBody;

/// Longest head of a request, in bytes: hyper answers a longer one with 431. A head that arrives in few reads may have
/// twice as much.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Pause after a failed accept, which fails if the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub(super) struct ListenerLimits {
    /// Limits on the number of connections.
    pub(super) connections: ConnectionLimit,
    /// Longest time for a head, for a pause between two requests, and for an answer without progress
    /// (`admin.client_timeout_ms`).
    pub(super) client_timeout: Duration,
}

/// Serves `router` until `stopping` becomes true, then until the requests in flight are answered.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ListenerLimits,
    metrics: ListenerMetrics,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let bursts = Bursts::default();
    loop {
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let slot = match limits.connections.admit(peer.ip()).await {
            Ok(slot) => slot,
            Err(refused) => {
                metrics.refused[refused as usize].inc();
                continue;
            }
        };
        let open = CountedConnection::new(&metrics.open);
        let connection = serve_connection(
            stream,
            Peer(peer),
            router.clone(),
            limits.client_timeout,
            (slot, bursts.connection(), metrics.clone()),
            stopping.clone(),
        );
        connections.spawn(async move {
            connection.await;
            drop(open);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Counts an open connection until it is dropped, also by a panic.
struct CountedConnection(IntGauge);

impl CountedConnection {
    fn new(open: &IntGauge) -> Self {
        open.inc();
        Self(open.clone())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Serves one connection. A broken connection is not logged: its requests are logged separately.
async fn serve_connection(
    stream: TcpStream,
    peer: Peer,
    router: Router,
    timeout: Duration,
    (slot, burst, metrics): (OpenConnection, Burst, ListenerMetrics),
    mut stopping: watch::Receiver<bool>,
) {
    drop(stream.set_nodelay(true));
    let (requests, burst) = (slot.requests(), Arc::new(burst));
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(requests.clone());
        let is_well_formed = request_head::check(request.version(), request.headers()).is_ok();
        let (request, rest) = IncomingBody::split(request);
        let answering = is_well_formed.then(|| router.clone().call(request.map(Body::new)));
        let burst = Arc::clone(&burst);
        async move {
            let mut response = match answering {
                Some(answering) => burst.serve(pin!(answering)).await?,
                None => bare_answer::of_malformed(),
            };
            if !rest.discard().await {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            let under_way = response.extensions_mut().remove::<Arc<UnderWay>>();
            Ok::<_, Infallible>(response.map(|body| AnswerBody::new(body, under_way)))
        }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    let stream = OwnErrors::over(Paced::over(stream, timeout, metrics.stalled), peer.0.ip());
    let mut connection = server.serve_connection(TokioIo::new(stream), service);
    let stopped = async { drop(stopping.wait_for(|stop| *stop).await) };
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = slot.closed_for_another() => return metrics.closed_for_others.inc(),
        () = stopped => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    let Err(error) = ended else { return };
    let parts = connection.into_parts();
    if let Some(answer) = answer_to_broken_head(&error, parts.read_buf.is_empty()) {
        let mut stream = parts.io.into_inner();
        drop(stream.write_all(answer).await);
        drop(stream.shutdown().await);
    }
}

/// Returns the answer to a head that hyper gave up without one. `is_unused` is a connection without a byte of it, which
/// is closed without an answer: that could be taken for the answer to the next request.
fn answer_to_broken_head(error: &hyper::Error, is_unused: bool) -> Option<&'static [u8]> {
    match (error.is_parse_version_h2(), error.is_timeout()) {
        (true, _) => Some(bare_answer::OF_HTTP_2),
        (_, true) if !is_unused => Some(bare_answer::OF_LATE_HEAD),
        _ => None,
    }
}
