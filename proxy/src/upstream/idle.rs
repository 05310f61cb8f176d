//! Connections to the provider that wait for their next request. There is one provider, so they are a stack with a time
//! limit. Pingora's own pool, made for many, starts and wakes a task each time that a connection waits.

use futures::FutureExt;
use pingora::protocols::Stream;
use pingora::upstreams::peer::HttpPeer;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::unconstrained;

/// How long an unused connection is kept: less than the five seconds that servers in Python and Node keep theirs, so that a call
/// rarely meets one that is about to close.
const KEPT: Duration = Duration::from_secs(4);
/// Unused connections that are kept.
const CONNECTIONS_MAX: usize = 1024;
/// Between two looks for connections that waited too long, or that the provider closed.
pub const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A connection to the provider, with its place among those that there may be.
pub struct Connected {
    /// The connection.
    pub stream: Stream,
    /// Its place.
    pub place: OwnedSemaphorePermit,
}

struct Waiting {
    connected: Connected,
    /// Where it leads: the provider may have moved meanwhile.
    peer: Arc<HttpPeer>,
    since: Instant,
}

/// The connections that wait, the one used last on top.
#[derive(Default)]
pub struct Idle(Mutex<VecDeque<Waiting>>);

impl Idle {
    /// A connection to the peer that still stands, as far as can be told without waiting.
    pub fn take(&self, peer: &HttpPeer) -> Option<Connected> {
        loop {
            let mut waiting = self.lock().pop_back()?;
            if waiting.peer._address == peer._address && waiting.stands() {
                return Some(waiting.connected);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end.
    pub fn keep(&self, peer: Arc<HttpPeer>, connected: Connected) {
        let since = Instant::now();
        let mut all = self.lock();
        let oldest = (all.len() == CONNECTIONS_MAX).then(|| all.pop_front());
        all.push_back(Waiting {
            connected,
            peer,
            since,
        });
        drop(all);
        drop(oldest);
    }

    /// Closes what waited too long and what the provider closed.
    pub fn sweep(&self) {
        self.lock().retain_mut(Waiting::stands);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Whether it is young and silent: a provider that says something unasked, or closes, is not to be asked there.
    fn stands(&mut self) -> bool {
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
    use pingora::protocols::l4::stream::Stream as L4Stream;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Semaphore;

    /// A connection, and its other end.
    async fn connection() -> (Connected, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let stream = Box::new(L4Stream::from(near));
        (Connected { stream, place }, listener.accept().await.unwrap().0)
    }

    fn peer(port: u16) -> Arc<HttpPeer> {
        Arc::new(HttpPeer::new(("127.0.0.1", port), false, String::new()))
    }

    #[tokio::test]
    async fn the_connection_used_last_is_taken_first_and_only_for_its_address() {
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
    async fn a_closed_and_a_talking_connection_are_not_taken() {
        let idle = Idle::default();
        let (closed, other_end) = connection().await;
        drop(other_end);
        closed_by_now(&idle, closed).await;
        let (talking, mut other_end) = connection().await;
        other_end.write_all(b"HTTP/1.1 408").await.unwrap();
        closed_by_now(&idle, talking).await;
    }

    /// Keeps the connection and waits until a look finds it unfit.
    async fn closed_by_now(idle: &Idle, connected: Connected) {
        idle.keep(peer(1), connected);
        while !idle.lock().is_empty() {
            tokio::task::yield_now().await;
            idle.sweep();
        }
        assert!(idle.take(&peer(1)).is_none());
    }

    #[tokio::test]
    async fn what_waited_too_long_is_closed() {
        let idle = Idle::default();
        let (stream, _other_end) = connection().await;
        idle.keep(peer(1), stream);
        idle.sweep();
        assert_eq!(idle.lock().len(), 1);
        idle.lock()[0].since -= KEPT;
        idle.sweep();
        assert_eq!(idle.lock().len(), 0);
    }
}
