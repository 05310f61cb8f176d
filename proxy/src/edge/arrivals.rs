//! Counts a listener's connections where they are accepted, before Pingora starts a task for each. Otherwise a burst of
//! connections uses up the descriptors reserved for the store and the provider before the tasks that refuse them run.

use super::connections::Connections;
use async_trait::async_trait;
use connections::limit::{ConnectionLimit, OpenConnection, ReachedLimit};
use parking_lot::Mutex;
use pingora::listeners::ConnectionFilter;
use pingora::protocols::Stream;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::task::yield_now;

/// The limits of a listener's connections.
pub trait ConnectionAdmission: std::fmt::Debug + Send + Sync {
    /// Counts a connection from `peer`. Waits while many connections are being closed for others.
    ///
    /// # Errors
    /// The limit that is reached.
    fn admit(&self, peer: IpAddr) -> impl Future<Output = Result<OpenConnection, ReachedLimit>> + Send;
}

impl ConnectionAdmission for ConnectionLimit {
    fn admit(&self, peer: IpAddr) -> impl Future<Output = Result<OpenConnection, ReachedLimit>> + Send {
        self.admit(peer)
    }
}

impl ConnectionAdmission for Arc<Connections> {
    fn admit(&self, peer: IpAddr) -> impl Future<Output = Result<OpenConnection, ReachedLimit>> + Send {
        Connections::admit(self, peer)
    }
}

/// Connections that are accepted and counted, and whose tasks have not started.
#[derive(Debug)]
pub struct Arrivals<A> {
    admission: A,
    /// Slots by address. Slots of one address are interchangeable.
    slots: Mutex<HashMap<IpAddr, Vec<OpenConnection>>>,
}

impl<A> Arrivals<A> {
    /// Creates the arrivals that `admission` counts.
    pub fn new(admission: A) -> Self {
        Self {
            admission,
            slots: Mutex::default(),
        }
    }

    /// Returns the slot of a connection whose task starts.
    pub fn started(&self, connection: &Stream) -> Option<OpenConnection> {
        let digest = connection.get_socket_digest()?;
        self.slot_of(digest.peer_addr()?.as_inet()?.ip())
    }

    /// Returns the slot of a connection from `peer`, once.
    fn slot_of(&self, peer: IpAddr) -> Option<OpenConnection> {
        let mut slots = self.slots.lock();
        let Entry::Occupied(mut of_peer) = slots.entry(peer) else {
            return None;
        };
        let slot = of_peer.get_mut().pop();
        if of_peer.get().is_empty() {
            of_peer.remove();
        }
        slot
    }
}

#[async_trait]
impl<A: ConnectionAdmission> ConnectionFilter for Arrivals<A> {
    /// Takes a slot for a connection. Pingora closes it if there is none, and starts its task otherwise.
    async fn should_accept(&self, peer: Option<&SocketAddr>) -> bool {
        let Some(peer) = peer.map(SocketAddr::ip) else {
            return false;
        };
        // One connection of a burst is accepted at a time; requests on open ones are served in between.
        yield_now().await;
        // No await after this: every slot that was taken belongs to a connection that Pingora starts.
        let Ok(slot) = self.admission.admit(peer).await else {
            return false;
        };
        self.slots.lock().entry(peer).or_default().push(slot);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::connections::ConnectionMetrics;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use telemetry::registrar::Registrar;

    #[tokio::test]
    async fn other_tasks_run_between_the_connections_of_a_burst() {
        const BURST: usize = 100;
        let arrivals = Arrivals::new(ConnectionLimit::new(BURST, BURST, Vec::new()));
        let peer: SocketAddr = "192.0.2.1:1".parse().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&accepted);
        let other_task = tokio::spawn(async move {
            let mut most = 0;
            while counted.load(Ordering::Relaxed) < BURST {
                let before = counted.load(Ordering::Relaxed);
                yield_now().await;
                most = most.max(counted.load(Ordering::Relaxed) - before);
            }
            most
        });
        for _ in 0..BURST {
            assert!(arrivals.should_accept(Some(&peer)).await);
            accepted.fetch_add(1, Ordering::Relaxed);
        }
        assert!(other_task.await.unwrap() <= 2);
    }

    #[tokio::test]
    async fn each_accepted_connection_has_one_slot_for_its_task() {
        let metrics = ConnectionMetrics::new(&Registrar::new("x")).unwrap();
        let connections = Arc::new(Connections::new(2, 2, Vec::new(), metrics));
        let arrivals = Arrivals::new(Arc::clone(&connections));
        let peers = ["192.0.2.1:1", "192.0.2.2:1"].map(|peer| peer.parse::<SocketAddr>().unwrap());
        for peer in &peers {
            assert!(arrivals.should_accept(Some(peer)).await);
        }
        assert!(!arrivals.should_accept(None).await);
        assert_eq!(connections.open(), 2);
        let tasks = peers.map(|peer| arrivals.slot_of(peer.ip()).unwrap());
        assert!(arrivals.slot_of(peers[0].ip()).is_none());
        assert!(arrivals.slots.lock().is_empty(), "nothing is kept");
        let _at_work = tasks.each_ref().map(|task| task.requests().begin().unwrap());
        assert!(
            !arrivals.should_accept(Some(&peers[0])).await,
            "all slots are taken"
        );
        drop(tasks);
        assert_eq!(connections.open(), 0);
    }
}
