//! Fair queue for a server's dedicated connections: an account with many changes in flight leaves connections to the
//! others.
//!
//! First come, first served. Without it, the pool would let a new caller overtake waiting ones.

use parking_lot::Mutex;
use redis::{ErrorKind, RedisError, RedisResult};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of dedicated connections of one process to one server in use; further changes wait within the
/// deadline.
pub(super) const CONNECTIONS_MAX: u32 = 32;
/// Maximum number of these in use by one account. Its further changes wait only for each other.
const CONNECTIONS_OF_ACCOUNT_MAX: u32 = 8;

/// A server's address; `None` is the single server.
pub(super) type Address = Option<String>;

/// A server and an account.
type Share = (Address, String);

/// The queues of all servers and accounts.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    /// One queue for each server: a hanging server occupies its connections for a long time.
    servers: Arc<Queues<Address>>,
    /// Per server and account.
    shares: Arc<Queues<Share>>,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub(super) struct QueuePermit {
    _server: QueuePlace<Address>,
    _share: QueuePlace<Share>,
}

impl FairQueue {
    /// Waits for a permit on the server at `address`, for a change whose first key is `key`.
    pub(super) async fn take(&self, address: &Address, key: &str) -> RedisResult<QueuePermit> {
        let share = (address.clone(), account_of(key).to_owned());
        // The account's own queue comes first, since waiting there delays no other account.
        let share = self.shares.enter(share, CONNECTIONS_OF_ACCOUNT_MAX).await?;
        let server = self.servers.enter(address.clone(), CONNECTIONS_MAX).await?;
        Ok(QueuePermit {
            _server: server,
            _share: share,
        })
    }
}

/// Semaphores by key. Each exists only while it is used.
#[derive(Debug)]
struct Queues<K>(Mutex<HashMap<K, Arc<Semaphore>>>);

impl<K> Default for Queues<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Queues<K> {
    /// Waits for one of the `most` places of a queue.
    async fn enter(self: &Arc<Self>, of: K, most: u32) -> RedisResult<QueuePlace<K>> {
        let mut place = self.begin(of, most);
        if let Some(queue) = &place.queue {
            place.permit = Some(Arc::clone(queue).acquire_owned().await.map_err(closed)?);
        }
        Ok(place)
    }

    fn begin(self: &Arc<Self>, of: K, most: u32) -> QueuePlace<K> {
        let mut queues = self.0.lock();
        let queue = queues.entry(of.clone());
        let queue = queue.or_insert_with(|| Arc::new(Semaphore::new(most as usize)));
        QueuePlace {
            queues: Arc::clone(self),
            of,
            queue: Some(Arc::clone(queue)),
            permit: None,
        }
    }
}

/// A permit, or the wait for one.
#[derive(Debug)]
struct QueuePlace<K: Eq + Hash> {
    queues: Arc<Queues<K>>,
    of: K,
    queue: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl<K: Eq + Hash> Drop for QueuePlace<K> {
    /// Removes an unused queue.
    fn drop(&mut self) {
        let mut queues = self.queues.0.lock();
        drop(self.permit.take());
        drop(self.queue.take());
        let is_last = |queue: &Arc<Semaphore>| Arc::strong_count(queue) == 1;
        if queues.get(&self.of).is_some_and(is_last) {
            queues.remove(&self.of);
        }
    }
}

fn closed(_: tokio::sync::AcquireError) -> RedisError {
    RedisError::from((ErrorKind::Client, "no connection is left"))
}

/// Returns the account of a key: `{b0001}/<account>` and its extensions.
fn account_of(key: &str) -> &str {
    key.split('/').nth(1).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn key(account: &str) -> String {
        format!("{{b0001}}/{account}/live/audit")
    }

    #[tokio::test]
    async fn an_account_has_its_share_of_a_server_and_leaves_the_others_theirs() {
        let (turns, server) = (FairQueue::default(), Some("a:1".to_owned()));
        let mut taken = Vec::new();
        for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
            taken.push(turns.take(&server, &key("acct_1")).await.unwrap());
        }
        assert!(turns.take(&server, &key("acct_1")).now_or_never().is_none());
        let elsewhere = turns.take(&None, &key("acct_1")).now_or_never();
        assert!(elsewhere.is_some(), "each server by itself");
        drop(elsewhere);
        let first = key("acct_1");
        let mut waiting = Box::pin(turns.take(&server, &first));
        assert!(futures::poll!(&mut waiting).is_pending());
        taken.push(turns.take(&server, &key("acct_2")).await.unwrap());
        taken.remove(0);
        taken.push(waiting.await.unwrap());
        // Several accounts use all connections of the server.
        for account in ["acct_3", "acct_4", "acct_5"] {
            for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
                match turns.take(&server, &key(account)).now_or_never() {
                    Some(turn) => taken.push(turn.unwrap()),
                    None => assert_eq!(taken.len(), CONNECTIONS_MAX as usize),
                }
            }
        }
        assert_eq!(taken.len(), CONNECTIONS_MAX as usize);
        drop(taken);
        assert!(turns.shares.0.lock().is_empty(), "nobody is remembered");
        assert!(turns.servers.0.lock().is_empty());
    }

    #[tokio::test]
    async fn an_abandoned_wait_is_forgotten() {
        let turns = FairQueue::default();
        let mut taken = Vec::new();
        for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
            taken.push(turns.take(&None, &key("acct_1")).await.unwrap());
        }
        let first = key("acct_1");
        let mut waiting = Box::pin(turns.take(&None, &first));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(taken);
        assert_eq!(turns.shares.0.lock().len(), 1);
        drop(waiting);
        assert!(turns.shares.0.lock().is_empty());
    }

    #[tokio::test]
    async fn waiting_for_the_own_share_takes_no_place_of_others() {
        let (turns, first) = (FairQueue::default(), key("acct_1"));
        let mut taken = Vec::new();
        for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
            taken.push(turns.take(&None, &first).await.unwrap());
        }
        let waiting = (0..CONNECTIONS_MAX).map(|_| Box::pin(turns.take(&None, &first)));
        let mut waiting: Vec<_> = waiting.collect();
        for turn in &mut waiting {
            assert!(futures::poll!(turn).is_pending());
        }
        let other = turns.take(&None, &key("acct_2")).now_or_never();
        assert!(other.is_some(), "behind those who wait for their share");
    }

    #[tokio::test]
    async fn later_callers_do_not_overtake() {
        let turns = FairQueue::default();
        let mut taken = Vec::new();
        for number in 0..CONNECTIONS_MAX {
            let account = number / CONNECTIONS_OF_ACCOUNT_MAX;
            taken.push(turns.take(&None, &key(&format!("acct_{account}"))).await.unwrap());
        }
        let (early, late) = (key("acct_early"), key("acct_late"));
        let mut waiting = Box::pin(turns.take(&None, &early));
        assert!(futures::poll!(&mut waiting).is_pending());
        taken.pop();
        assert!(turns.take(&None, &late).now_or_never().is_none());
        let turn = waiting.now_or_never();
        assert!(turn.is_some(), "the place is its own");
    }

    #[test]
    fn a_key_names_its_account() {
        for (key, account) in [
            ("{b0007}/acct_1", "acct_1"),
            ("{b0007}/acct_1/live/intent/int_1", "acct_1"),
            ("{b0007}/fence", "fence"),
            ("none", "none"),
        ] {
            assert_eq!(account_of(key), account, "{key}");
        }
    }
}
