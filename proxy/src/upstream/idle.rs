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

/// Maximum idle time of a connection. Shorter than the five seconds of Python and Node servers, so that a call rarely
/// gets a connection that is about to close.
const KEPT: Duration = Duration::from_secs(4);
/// Maximum number of idle connections.
const CONNECTIONS_MAX: usize = 1024;
/// Interval of closing connections that were idle too long or were closed by the provider.
pub const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of connections that a sweep takes at once. Calls cannot take these meanwhile.
const SWEPT_AT_ONCE: usize = 16;

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
        self.sweep_by(IdleConnection::is_usable);
    }

    /// Checks and closes connections outside of the lock, since every call takes it.
    fn sweep_by(&self, mut is_usable: impl FnMut(&mut IdleConnection) -> bool) {
        let mut at = 0;
        loop {
            let mut all = self.0.lock();
            let end = all.len().min(at + SWEPT_AT_ONCE);
            if at >= end {
                return;
            }
            let taken: Vec<IdleConnection> = all.drain(at..end).collect();
            drop(all);
            let (mut usable, mut closed) = (Vec::new(), Vec::new());
            for mut connection in taken {
                match is_usable(&mut connection) {
                    true => usable.push(connection),
                    false => closed.push(connection),
                }
            }
            let checked = usable.len();
            closed.extend(self.put_back(at, usable));
            at += checked;
        }
    }

    /// Puts connections back at their place. Returns the oldest ones if there are too many.
    fn put_back(&self, at: usize, connections: Vec<IdleConnection>) -> Vec<IdleConnection> {
        let mut all = self.0.lock();
        let at = at.min(all.len());
        let newer = all.split_off(at);
        all.extend(connections);
        all.extend(newer);
        let too_many = all.len().saturating_sub(CONNECTIONS_MAX);
        all.drain(..too_many).collect()
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

    /// A check is a system call and, with TLS, more; closing is too.
    #[tokio::test]
    async fn calls_take_and_keep_connections_during_a_sweep() {
        let idle = Idle::default();
        let mut other_ends = Vec::new();
        for number in 0..2 * SWEPT_AT_ONCE + 1 {
            let (connected, other_end) = connection().await;
            other_ends.push(other_end);
            idle.keep(peer(u16::try_from(number).unwrap()), connected);
        }
        let ports = || -> Vec<u16> {
            let all = idle.0.lock();
            let ports = all.iter().map(|one| one.peer._address.as_inet().unwrap().port());
            ports.collect()
        };
        let before = ports();
        let mut checked = Vec::new();
        idle.sweep_by(|one| {
            assert!(!idle.0.is_locked(), "a call would wait");
            let others = idle.0.lock().len();
            assert!(others >= before.len() - 1 - SWEPT_AT_ONCE - 1, "{others}");
            let port = one.peer._address.as_inet().unwrap().port();
            checked.push(port);
            port != 1
        });
        assert_eq!(checked, before, "each once");
        let left: Vec<u16> = before.into_iter().filter(|port| *port != 1).collect();
        assert_eq!(ports(), left, "in their order");
    }

    #[tokio::test]
    async fn connections_kept_during_a_sweep_do_not_exceed_the_maximum() {
        let idle = Idle::default();
        let mut permits = ConnectionBudget::divide(2 * CONNECTIONS_MAX, 1);
        let budget = permits.next().unwrap();
        let connected = || Connected {
            stream: Box::new(tokio::io::duplex(1).0),
            permit: budget.try_take().unwrap(),
        };
        for _ in 0..CONNECTIONS_MAX {
            idle.keep(peer(1), connected());
        }
        let mut is_first = true;
        idle.sweep_by(|_| {
            if std::mem::take(&mut is_first) {
                for _ in 0..SWEPT_AT_ONCE + 1 {
                    idle.keep(peer(2), connected());
                }
            }
            true
        });
        let all = idle.0.lock();
        assert_eq!(all.len(), CONNECTIONS_MAX);
        let newest = all
            .iter()
            .rev()
            .take_while(|one| one.peer._address == peer(2)._address);
        assert_eq!(newest.count(), SWEPT_AT_ONCE + 1);
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
