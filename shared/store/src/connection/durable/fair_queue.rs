//! Fair queue for a server's dedicated connections: an account with many changes in flight leaves connections to the
//! others.
//!
//! First come, first served. Without it, the pool would let a new caller overtake waiting ones.

use keyed_limit::{KeyedLimiter, Queued};
use redis::{ErrorKind, RedisError, RedisResult};
use std::hash::Hash;
use tokio::sync::OwnedSemaphorePermit;

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
#[derive(Debug)]
pub(super) struct FairQueue {
    /// One queue for each server: a hanging server occupies its connections for a long time.
    servers: KeyedLimiter<Address>,
    /// Per server and account.
    shares: KeyedLimiter<Share>,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub(super) struct QueuePermit {
    _server: Place<Address>,
    _share: Place<Share>,
}

/// A permit of one queue. The fields are dropped in this order: the queue ends after its last permit.
#[derive(Debug)]
struct Place<K: Eq + Hash> {
    _permit: OwnedSemaphorePermit,
    _queued: Queued<K>,
}

impl Default for FairQueue {
    fn default() -> Self {
        // Callers wait within their deadline, so no further bound of the queues is needed.
        Self {
            servers: KeyedLimiter::new(CONNECTIONS_MAX as usize, usize::MAX),
            shares: KeyedLimiter::new(CONNECTIONS_OF_ACCOUNT_MAX as usize, usize::MAX),
        }
    }
}

impl FairQueue {
    /// Waits for a permit on the server at `address`, for a change whose first key is `key`.
    pub(super) async fn take(&self, address: &Address, key: &str) -> RedisResult<QueuePermit> {
        let share = (address.clone(), account_of(key).to_owned());
        // The account's own queue comes first, since waiting there delays no other account.
        let share = wait(&self.shares, share).await?;
        let server = wait(&self.servers, address.clone()).await?;
        Ok(QueuePermit {
            _server: server,
            _share: share,
        })
    }
}

async fn wait<K: Clone + Eq + Hash>(queues: &KeyedLimiter<K>, name: K) -> RedisResult<Place<K>> {
    let none_left = || RedisError::from((ErrorKind::Client, "no connection is left"));
    let queued = queues.enter(name).map_err(|_| none_left())?;
    let permit = queued.acquire().await.ok_or_else(none_left)?;
    Ok(Place {
        _permit: permit,
        _queued: queued,
    })
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
        let (queue, server) = (FairQueue::default(), Some("a:1".to_owned()));
        let mut taken = Vec::new();
        for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
            taken.push(queue.take(&server, &key("acct_1")).await.unwrap());
        }
        assert!(queue.take(&server, &key("acct_1")).now_or_never().is_none());
        let elsewhere = queue.take(&None, &key("acct_1")).now_or_never();
        assert!(elsewhere.is_some(), "each server by itself");
        drop(elsewhere);
        let first = key("acct_1");
        let mut waiting = Box::pin(queue.take(&server, &first));
        assert!(futures::poll!(&mut waiting).is_pending());
        taken.push(queue.take(&server, &key("acct_2")).await.unwrap());
        taken.remove(0);
        taken.push(waiting.await.unwrap());
        // Several accounts use all connections of the server.
        for account in ["acct_3", "acct_4", "acct_5"] {
            for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
                match queue.take(&server, &key(account)).now_or_never() {
                    Some(permit) => taken.push(permit.unwrap()),
                    None => assert_eq!(taken.len(), CONNECTIONS_MAX as usize),
                }
            }
        }
        assert_eq!(taken.len(), CONNECTIONS_MAX as usize);
        drop(taken);
        assert_eq!(queue.shares.names(), 0, "nobody is remembered");
        assert_eq!(queue.servers.names(), 0);
    }

    #[tokio::test]
    async fn an_abandoned_wait_is_forgotten() {
        let queue = FairQueue::default();
        let mut taken = Vec::new();
        for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
            taken.push(queue.take(&None, &key("acct_1")).await.unwrap());
        }
        let first = key("acct_1");
        let mut waiting = Box::pin(queue.take(&None, &first));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(taken);
        assert_eq!(queue.shares.names(), 1);
        drop(waiting);
        assert_eq!(queue.shares.names(), 0);
    }

    #[tokio::test]
    async fn waiting_for_the_own_share_takes_no_place_of_others() {
        let (queue, first) = (FairQueue::default(), key("acct_1"));
        let mut taken = Vec::new();
        for _ in 0..CONNECTIONS_OF_ACCOUNT_MAX {
            taken.push(queue.take(&None, &first).await.unwrap());
        }
        let waiting = (0..CONNECTIONS_MAX).map(|_| Box::pin(queue.take(&None, &first)));
        let mut waiting: Vec<_> = waiting.collect();
        for permit in &mut waiting {
            assert!(futures::poll!(permit).is_pending());
        }
        let other = queue.take(&None, &key("acct_2")).now_or_never();
        assert!(other.is_some(), "behind those who wait for their share");
    }

    #[tokio::test]
    async fn later_callers_do_not_overtake() {
        let queue = FairQueue::default();
        let mut taken = Vec::new();
        for number in 0..CONNECTIONS_MAX {
            let account = number / CONNECTIONS_OF_ACCOUNT_MAX;
            taken.push(queue.take(&None, &key(&format!("acct_{account}"))).await.unwrap());
        }
        let (early, late) = (key("acct_early"), key("acct_late"));
        let mut waiting = Box::pin(queue.take(&None, &early));
        assert!(futures::poll!(&mut waiting).is_pending());
        taken.pop();
        assert!(queue.take(&None, &late).now_or_never().is_none());
        let queued = waiting.now_or_never();
        assert!(queued.is_some(), "the place is its own");
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
