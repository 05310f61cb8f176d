//! Fair queue for a server's dedicated connections: an account with many changes in flight leaves connections to the
//! others.
//!
//! First come, first served. Without it, the pool would let a new caller overtake waiting ones.

use keyed_limit::{Share, Shares};
use parking_lot::Mutex;
use redis::{ErrorKind, RedisError, RedisResult};
use std::collections::HashMap;

/// Maximum number of dedicated connections of one process to one server in use; further changes wait within the
/// deadline.
pub(super) const CONNECTIONS_MAX: u32 = 32;
/// Maximum number of these in use by one account, which also [leaves more than it has](keyed_limit::may_take). Its
/// further changes wait only for each other.
const CONNECTIONS_OF_ACCOUNT_MAX: u32 = 8;

/// A server's address; `None` is the single server.
pub(super) type Address = Option<String>;

/// The queues of all servers: a hanging server occupies its connections for a long time.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    servers: Mutex<HashMap<Address, Shares>>,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub(super) struct QueuePermit {
    _share: Share,
}

impl FairQueue {
    /// Waits for a permit on the server at `address`, for a change whose first key is `key`. Callers wait within their
    /// deadline.
    pub(super) async fn take(&self, address: &Address, key: &str) -> RedisResult<QueuePermit> {
        let share = self.of_server(address).take(account_of(key)).await;
        let none_left = || RedisError::from((ErrorKind::Client, "no connection is left"));
        let _share = share.ok_or_else(none_left)?;
        Ok(QueuePermit { _share })
    }

    fn of_server(&self, address: &Address) -> Shares {
        let mut servers = self.servers.lock();
        if let Some(known) = servers.get(address) {
            return known.clone();
        }
        servers.retain(|_, shares| shares.is_in_use());
        let new = Shares::new(CONNECTIONS_MAX as usize, CONNECTIONS_OF_ACCOUNT_MAX as usize);
        servers.insert(address.clone(), new.clone());
        new
    }
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
        assert_eq!(queue.of_server(&server).names(), 2);
        drop(taken);
        assert_eq!(queue.of_server(&server).names(), 0, "nobody is remembered");
        drop(queue.take(&Some("b:1".to_owned()), &first).await);
        assert_eq!(queue.servers.lock().len(), 1, "nor a server without changes");
    }

    #[tokio::test]
    async fn four_accounts_leave_a_connection_to_the_next() {
        let queue = FairQueue::default();
        let mut taken = Vec::new();
        for account in 0..4 {
            let greedy = key(&format!("acct_{account}"));
            for _ in 0..CONNECTIONS_MAX {
                taken.extend(queue.take(&None, &greedy).now_or_never());
            }
        }
        assert!(queue.take(&None, &key("acct_new")).now_or_never().is_some());
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
        assert_eq!(queue.of_server(&None).names(), 1);
        drop(waiting);
        assert_eq!(queue.of_server(&None).names(), 0);
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
        for account in 0..CONNECTIONS_MAX {
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
