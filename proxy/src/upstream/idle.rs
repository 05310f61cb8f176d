//! Idle connections to the provider: a stack with a time limit. Each upstream has its own. Pingora's pool, made for
//! many providers, spawns and wakes a task for each idle connection.

use super::connection_budget::ConnectionPermit;
use futures::FutureExt;
use parking_lot::Mutex;
use pingora::protocols::Stream;
use pingora::upstreams::peer::HttpPeer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::task::unconstrained;

/// How long an idle connection is kept. Shorter than the five seconds of Python and Node servers, so that a call rarely
/// gets a connection that is about to close.
const KEPT: Duration = Duration::from_secs(4);
/// Maximum number of idle connections.
const CONNECTIONS_MAX: usize = 1024;
/// Interval of closing connections that were idle too long or were closed by the provider.
pub const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A connection to the provider, with its permit.
pub struct Connected {
    pub stream: Stream,
    /// Counts the connection.
    pub permit: ConnectionPermit,
}

/// A connection that no exchange uses now.
struct IdleConnection {
    connected: Connected,
    /// Its address. The provider's name may meanwhile resolve to another one.
    peer: Arc<HttpPeer>,
    since: Instant,
}

/// Idle connections, the last used on top.
#[derive(Default)]
pub struct Idle(Mutex<VecDeque<IdleConnection>>);

impl Idle {
    /// Takes a usable connection to the peer, as far as this can be judged without waiting.
    pub fn take(&self, peer: &HttpPeer) -> Option<Connected> {
        loop {
            let mut idle = self.0.lock().pop_back()?;
            if idle.peer._address == peer._address && idle.is_usable() {
                return Some(idle.connected);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub fn keep(&self, peer: Arc<HttpPeer>, connected: Connected) {
        let since = Instant::now();
        let mut all = self.0.lock();
        let oldest = (all.len() == CONNECTIONS_MAX).then(|| all.pop_front());
        all.push_back(IdleConnection {
            connected,
            peer,
            since,
        });
        drop(all);
        drop(oldest);
    }

    /// Closes connections that were idle too long or were closed by the provider.
    pub fn sweep(&self) {
        self.0.lock().retain_mut(IdleConnection::is_usable);
    }
}

impl IdleConnection {
    /// Returns whether the connection is recent and silent. A connection is not reused if the provider closed it or
    /// sent unrequested bytes on it.
    fn is_usable(&mut self) -> bool {
        let mut byte = [0];
        self.since.elapsed() < KEPT
            && unconstrained(self.connected.stream.read(&mut byte))
                .now_or_never()
                .is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::connection_budget::ConnectionBudget;
    use pingora::protocols::l4::stream::Stream as L4Stream;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    /// Returns a connection and its other end.
    async fn connection() -> (Connected, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let budget = ConnectionBudget::divide(1, 1).next().unwrap();
        let permit = budget.try_take().unwrap();
        let stream = Box::new(L4Stream::from(near));
        (Connected { stream, permit }, listener.accept().await.unwrap().0)
    }

    fn peer(port: u16) -> Arc<HttpPeer> {
        Arc::new(HttpPeer::new(("127.0.0.1", port), false, String::new()))
    }

    #[tokio::test]
    async fn the_last_used_connection_is_reused_first_and_only_for_its_address() {
        let idle = Idle::default();
        let (first, _other_end) = connection().await;
        let (second, _other_end) = connection().await;
        let ids = (first.stream.id(), second.stream.id());
        idle.keep(peer(1), first);
        idle.keep(peer(1), second);
        assert_eq!(idle.take(&peer(1)).unwrap().stream.id(), ids.1);
        assert!(idle.take(&peer(2)).is_none(), "the provider moved");
        assert!(idle.take(&peer(1)).is_none(), "so its old connections are gone");
    }

    #[tokio::test]
    async fn closed_and_talking_connections_are_not_reused() {
        let idle = Idle::default();
        let (closed, other_end) = connection().await;
        drop(other_end);
        wait_until_closed(&idle, closed).await;
        let (talking, mut other_end) = connection().await;
        other_end.write_all(b"HTTP/1.1 408").await.unwrap();
        wait_until_closed(&idle, talking).await;
    }

    /// Keeps the connection and waits until a sweep closes it.
    async fn wait_until_closed(idle: &Idle, connected: Connected) {
        idle.keep(peer(1), connected);
        while !idle.0.lock().is_empty() {
            tokio::task::yield_now().await;
            idle.sweep();
        }
        assert!(idle.take(&peer(1)).is_none());
    }

    #[tokio::test]
    async fn a_connection_that_is_idle_too_long_is_closed() {
        let idle = Idle::default();
        let (stream, _other_end) = connection().await;
        idle.keep(peer(1), stream);
        idle.sweep();
        assert_eq!(idle.0.lock().len(), 1);
        idle.0.lock()[0].since -= KEPT;
        idle.sweep();
        assert_eq!(idle.0.lock().len(), 0);
    }
}
