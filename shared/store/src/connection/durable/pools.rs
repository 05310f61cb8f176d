//! Pools of dedicated connections, one per server: created on demand, bounded, and dropped when the server leaves the
//! cluster. A [fair queue](super::fair_queue) comes before it.

use super::dedicated::{Dedicated, DedicatedServer, Manager, late};
use super::fair_queue::{Address, CONNECTIONS_MAX, FairQueue, QueuePermit};
use crate::connection::cluster::Cluster;
use bb8_redis::bb8::{Pool, PooledConnection, QueueStrategy, RunError};
use parking_lot::Mutex;
use redis::{ConnectionInfo, RedisError, RedisResult};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of pools. Beyond that the least recently used one is dropped; its connections in use stay usable.
const POOLS_MAX: usize = 256;
/// Interval between sweeps for pools of servers that left the cluster.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Idle time after which a connection is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Target of dedicated connections.
pub(in crate::connection) enum Dial {
    /// The server of this client.
    Single(Box<redis::Client>),
    /// The masters of this cluster.
    Cluster(Arc<Cluster>),
}

impl Dial {
    fn info(&self, address: &Address) -> RedisResult<ConnectionInfo> {
        match self {
            Self::Single(client) => Ok(client.get_connection_info().clone()),
            Self::Cluster(cluster) => cluster.info(address.as_deref().unwrap_or_default()),
        }
    }

    /// Returns whether this is a known server.
    fn is_known(&self, address: &Address) -> bool {
        match (self, address) {
            (Self::Cluster(cluster), Some(address)) => cluster.is_master(address),
            _ => true,
        }
    }
}

/// The pools of all servers.
pub(super) struct Pools {
    pub(super) dial: Dial,
    /// Longest wait for a connection, and for the replies on it.
    deadline: Duration,
    queue: FairQueue,
    open: Mutex<OpenPools>,
}

struct OpenPools {
    pools: HashMap<Address, PoolEntry>,
    last_sweep: Instant,
}

struct PoolEntry {
    pool: Pool<Manager>,
    last_used: Instant,
}

/// A dedicated connection in use. Dropping it releases the permit and returns the connection to its pool, unless it
/// broke or replies are outstanding.
pub(super) struct LentConnection {
    connection: PooledConnection<'static, Manager>,
    _permit: QueuePermit,
}

impl Deref for LentConnection {
    type Target = Dedicated;

    fn deref(&self) -> &Dedicated {
        &self.connection
    }
}

impl DerefMut for LentConnection {
    fn deref_mut(&mut self) -> &mut Dedicated {
        &mut self.connection
    }
}

impl Pools {
    pub(super) fn new(dial: Dial, deadline: Duration) -> Self {
        Self {
            dial,
            deadline,
            queue: FairQueue::default(),
            open: Mutex::new(OpenPools {
                pools: HashMap::new(),
                last_sweep: Instant::now(),
            }),
        }
    }

    /// Waits for a permit and takes a connection to `address`, for a change whose first key is `key`.
    ///
    /// # Errors
    /// No connection could be made; nothing was sent.
    pub(super) async fn take(&self, address: &Address, key: &str) -> RedisResult<LentConnection> {
        let permit = self.queue.take(address, key).await?;
        let pool = self.pool(address, Instant::now())?;
        let mut connection = pool.get_owned().await.map_err(not_available)?;
        connection.connect().await?;
        Ok(LentConnection {
            connection,
            _permit: permit,
        })
    }

    /// Returns the pool of a server.
    fn pool(&self, address: &Address, now: Instant) -> RedisResult<Pool<Manager>> {
        let mut open = self.open.lock();
        if now - open.last_sweep >= SWEEP_EVERY {
            open.pools
                .retain(|other, _| other == address || self.dial.is_known(other));
            open.last_sweep = now;
        }
        if let Some(known) = open.pools.get_mut(address) {
            known.last_used = now;
            return Ok(known.pool.clone());
        }
        let server = DedicatedServer::new(self.dial.info(address)?, self.deadline)?;
        let pool = new_pool(server, self.deadline);
        while open.pools.len() >= POOLS_MAX {
            open.forget_least_recent();
        }
        let known = PoolEntry {
            pool: pool.clone(),
            last_used: now,
        };
        open.pools.insert(address.clone(), known);
        Ok(pool)
    }
}

impl OpenPools {
    fn forget_least_recent(&mut self) {
        let oldest = self.pools.iter().min_by_key(|(_, known)| known.last_used);
        if let Some(address) = oldest.map(|(address, _)| address.clone()) {
            self.pools.remove(&address);
        }
    }
}

fn new_pool(server: DedicatedServer, deadline: Duration) -> Pool<Manager> {
    Pool::builder()
        .max_size(CONNECTIONS_MAX)
        .connection_timeout(deadline)
        .idle_timeout(IDLE_MAX)
        .max_lifetime(None)
        .queue_strategy(QueueStrategy::Lifo)
        .build_unchecked(Manager(Arc::new(server)))
}

fn not_available(error: RunError<RedisError>) -> RedisError {
    match error {
        RunError::User(error) => error,
        RunError::TimedOut => late("no connection was free in time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_cluster() -> Pools {
        let cluster = Cluster::new("127.0.0.1:1", Duration::from_secs(1)).unwrap();
        Pools::new(Dial::Cluster(Arc::new(cluster)), Duration::from_secs(1))
    }

    fn address(number: usize) -> Address {
        Some(format!("10.0.0.1:{number}"))
    }

    fn has(pools: &Pools, number: usize) -> bool {
        pools.open.lock().pools.contains_key(&address(number))
    }

    #[tokio::test]
    async fn beyond_the_bound_the_least_recently_used_pool_goes() {
        let (pools, start) = (on_a_cluster(), Instant::now());
        let at = |number| start + Duration::from_micros(number as u64);
        for number in 0..POOLS_MAX {
            pools.pool(&address(number), at(number)).unwrap();
        }
        assert!((0..POOLS_MAX).all(|number| has(&pools, number)));
        pools.pool(&address(0), at(POOLS_MAX)).unwrap();
        pools.pool(&address(POOLS_MAX), at(POOLS_MAX)).unwrap();
        assert_eq!(pools.open.lock().pools.len(), POOLS_MAX);
        assert!(has(&pools, 0) && !has(&pools, 1) && has(&pools, POOLS_MAX));
    }

    #[tokio::test]
    async fn pools_of_servers_that_are_gone_are_dropped() {
        let (pools, start) = (on_a_cluster(), Instant::now());
        pools.pool(&address(1), start).unwrap();
        pools.pool(&address(2), start).unwrap();
        assert!(has(&pools, 1), "looked for once in a while");
        pools.pool(&address(2), start + 2 * SWEEP_EVERY).unwrap();
        assert!(!has(&pools, 1) && has(&pools, 2), "the one in use stays");
    }

    #[tokio::test]
    async fn an_address_that_is_none_has_no_pool() {
        let pools = on_a_cluster();
        assert!(pools.pool(&Some("a b".to_owned()), Instant::now()).is_err());
        assert!(pools.open.lock().pools.is_empty());
    }
}
