//! Counts callers' connections where they are accepted, before Pingora starts a task for each. Otherwise a burst of
//! connections uses up the descriptors reserved for the store and the provider before the tasks that refuse them run.

use super::connections::Connections;
use async_trait::async_trait;
use connections::limit::OpenConnection;
use parking_lot::Mutex;
use pingora::listeners::ConnectionFilter;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Connections that are accepted and counted, and whose tasks have not started.
#[derive(Debug)]
pub struct Arrivals {
    connections: Arc<Connections>,
    /// Slots by address. Those of one address are alike, so it does not matter which of its tasks gets which.
    slots: Mutex<HashMap<IpAddr, Vec<OpenConnection>>>,
}

impl Arrivals {
    /// Creates the arrivals that `connections` counts.
    pub fn new(connections: Arc<Connections>) -> Self {
        Self {
            connections,
            slots: Mutex::default(),
        }
    }

    /// Returns the slot of a connection from `peer` whose task starts, once.
    pub fn started(&self, peer: IpAddr) -> Option<OpenConnection> {
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

    /// Counts an idle connection that was closed to make room for a new one.
    pub fn closed_for_another(&self) {
        self.connections.closed_for_another();
    }
}

#[async_trait]
impl ConnectionFilter for Arrivals {
    /// Takes a slot for a connection. Pingora closes it if there is none, and starts its task otherwise.
    async fn should_accept(&self, peer: Option<&SocketAddr>) -> bool {
        let Some(peer) = peer.map(SocketAddr::ip) else {
            return false;
        };
        // No await after this: what is counted is started.
        let Ok(slot) = self.connections.admit(peer).await else {
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
    use telemetry::registrar::Registrar;

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
        let tasks = peers.map(|peer| arrivals.started(peer.ip()).unwrap());
        assert!(arrivals.started(peers[0].ip()).is_none());
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
