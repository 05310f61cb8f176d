//! A mock provider at the level of bytes: it responds as configured, well-formed or not, and records requests.

mod answer;
mod feed;
mod play;
mod request;
mod script;
mod step;

pub use answer::Answer;
pub use feed::Feed;
pub use play::Played;
pub use request::Recorded;
pub use script::Script;

use crate::net::{BACKGROUND, blocking_until, eventually, free_listener};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Longest wait for the end of an upstream, on a slow and busy machine.
const END: Duration = Duration::from_secs(30);

type Handler = Box<dyn Fn(&Recorded) -> Answer + Send + Sync>;

/// A mock provider on a free port; stopped on drop.
pub struct Upstream {
    state: Arc<UpstreamState>,
    addr: SocketAddr,
    acceptor: AbortHandle,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

struct UpstreamState {
    handler: RwLock<Handler>,
    requests: Mutex<Vec<Recorded>>,
    played: Mutex<Vec<Played>>,
    arrived: AtomicUsize,
    connections: AtomicUsize,
    stop: watch::Sender<bool>,
}

impl Upstream {
    /// Starts a provider that answers each request with the result of `handler`.
    pub fn start(handler: impl Fn(&Recorded) -> Answer + Send + Sync + 'static) -> Self {
        let state = Arc::new(UpstreamState {
            handler: RwLock::new(Box::new(handler)),
            requests: Mutex::default(),
            played: Mutex::default(),
            arrived: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            stop: watch::Sender::new(false),
        });
        let listener = free_listener();
        let addr = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a listener");
        let acceptor = BACKGROUND.spawn(accept(listener, state.clone())).abort_handle();
        Self {
            state,
            addr,
            acceptor,
        }
    }

    /// Replaces the handler of all later requests.
    pub fn set(&self, handler: impl Fn(&Recorded) -> Answer + Send + Sync + 'static) {
        *self.state.handler.write() = Box::new(handler);
    }

    /// `http://127.0.0.1:port/v1`, as `upstream.base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// Returns the address on which it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The requests received in full, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.received().clone()
    }

    fn received(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.state.requests.lock()
    }

    /// Requests whose head arrived, received in full or not.
    pub fn arrived(&self) -> usize {
        self.state.arrived.load(Ordering::SeqCst)
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits until `count` requests were received in full.
    pub async fn wait_for(&self, count: usize, within: Duration) {
        let what = format!("request number {count} at the upstream");
        eventually(&what, within, async || {
            (self.received().len() >= count).then_some(())
        })
        .await;
    }

    /// The answers that have ended, in the order of their ends.
    pub fn played(&self) -> Vec<Played> {
        self.state.played.lock().clone()
    }

    /// Closes every connection, stops listening, and waits until both are done: the next call is refused.
    pub fn stop(&self) {
        self.end();
        blocking_until("the end of the upstream", END, || {
            let ended = self.acceptor.is_finished() && self.state.stop.receiver_count() == 0;
            ended.then_some(())
        });
    }

    fn end(&self) {
        self.acceptor.abort();
        let _ = self.state.stop.send(true);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.end();
    }
}

async fn accept(listener: std::net::TcpListener, state: Arc<UpstreamState>) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        let state = state.clone();
        let mut stop = state.stop.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                () = serve(stream, &state) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        });
    }
}

/// One connection: requests and answers in turn, until either side ends it.
async fn serve(mut stream: TcpStream, state: &UpstreamState) {
    let _ = stream.set_nodelay(true);
    let mut received = Vec::new();
    loop {
        let arrived = || state.arrived.fetch_add(1, Ordering::SeqCst);
        let Some(request) = request::read(&mut stream, &mut received, arrived).await else {
            return;
        };
        let answer = {
            let handler = state.handler.read();
            handler(&request)
        };
        let number = request.number;
        state.requests.lock().push(request);
        let (played, goes_on) = play::play(&mut stream, answer.play(), number).await;
        state.played.lock().push(played);
        if !goes_on {
            return;
        }
    }
}
