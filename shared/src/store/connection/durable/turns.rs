//! Turns at the lanes of a server, shared out among accounts: one that has any number of changes in flight leaves lanes to the
//! others.

use redis::{ErrorKind, RedisError, RedisResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Changes of money that one process waits for at the same time on one server; more wait for their turn within the deadline.
const LANES_MAX: usize = 32;
/// Those among them that are one account's at most. Its further changes wait for each other, and for nobody else's.
const LANES_OF_ACCOUNT_MAX: usize = 8;

/// A server, by its address, or `None` for the single one.
type Server = Option<String>;
/// The lanes of a server that are an account's.
type Share = (Server, String);

/// Who has a turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// By server: the lanes of one that hangs are taken for long.
    servers: Mutex<HashMap<Server, Arc<Semaphore>>>,
    /// By account, while it has a turn or waits for one.
    shares: Arc<Shares>,
}

#[derive(Debug, Default)]
struct Shares(Mutex<HashMap<Share, Arc<Semaphore>>>);

/// A turn; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _lane: OwnedSemaphorePermit,
    _share: Held,
}

/// An account's place, or its wait for one.
#[derive(Debug)]
struct Held {
    shares: Arc<Shares>,
    of: Share,
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Waits for a turn on `server` with a change whose first key is `key`.
    pub(super) async fn take(&self, server: &Server, key: &str) -> RedisResult<Turn> {
        let mut share = self.shares.of((server.clone(), account_of(key).to_owned()));
        share.wait().await?;
        let lanes = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            let lanes = servers.entry(server.clone());
            Arc::clone(lanes.or_insert_with(|| Arc::new(Semaphore::new(LANES_MAX))))
        };
        Ok(Turn {
            _lane: lanes.acquire_owned().await.map_err(closed)?,
            _share: share,
        })
    }
}

impl Shares {
    fn of(self: &Arc<Self>, of: Share) -> Held {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.entry(of.clone());
        let semaphore = share.or_insert_with(|| Arc::new(Semaphore::new(LANES_OF_ACCOUNT_MAX)));
        Held {
            shares: Arc::clone(self),
            of,
            semaphore: Some(Arc::clone(semaphore)),
            permit: None,
        }
    }
}

impl Held {
    async fn wait(&mut self) -> RedisResult<()> {
        if let Some(semaphore) = &self.semaphore {
            self.permit = Some(Arc::clone(semaphore).acquire_owned().await.map_err(closed)?);
        }
        Ok(())
    }
}

impl Drop for Held {
    /// Forgets accounts that have nothing in flight.
    fn drop(&mut self) {
        let mut shares = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.permit.take());
        drop(self.semaphore.take());
        let is_last = |share: &Arc<Semaphore>| Arc::strong_count(share) == 1;
        if shares.get(&self.of).is_some_and(is_last) {
            shares.remove(&self.of);
        }
    }
}

fn closed(_: tokio::sync::AcquireError) -> RedisError {
    RedisError::from((ErrorKind::Client, "no lane is left"))
}

/// The account that a key is of: `{b0001}/<account>` and what begins so.
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
        let (turns, server) = (Turns::default(), Some("a:1".to_owned()));
        let mut taken = Vec::new();
        for _ in 0..LANES_OF_ACCOUNT_MAX {
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
        // All lanes of the server are taken by several accounts.
        for account in ["acct_3", "acct_4", "acct_5"] {
            for _ in 0..LANES_OF_ACCOUNT_MAX {
                match turns.take(&server, &key(account)).now_or_never() {
                    Some(turn) => taken.push(turn.unwrap()),
                    None => assert_eq!(taken.len(), LANES_MAX),
                }
            }
        }
        assert_eq!(taken.len(), LANES_MAX);
        drop(taken);
        assert!(turns.shares.0.lock().unwrap().is_empty(), "nobody is remembered");
    }

    #[tokio::test]
    async fn who_stops_waiting_is_forgotten() {
        let turns = Turns::default();
        let mut taken = Vec::new();
        for _ in 0..LANES_OF_ACCOUNT_MAX {
            taken.push(turns.take(&None, &key("acct_1")).await.unwrap());
        }
        let first = key("acct_1");
        let mut waiting = Box::pin(turns.take(&None, &first));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(taken);
        assert_eq!(turns.shares.0.lock().unwrap().len(), 1);
        drop(waiting);
        assert!(turns.shares.0.lock().unwrap().is_empty());
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
