//! Look-ups through the operating system, which can block a thread for half a minute and cannot be cancelled.
//!
//! Slow name servers must not use up the threads. So an account has only one look-up of a name at a time, which all its
//! callers for that name share; each account has a share of the threads; and the number of concurrent names is bounded.
//! No account takes as much of either [as it leaves](keyed_limit::may_take).

use super::{Addresses, LOOKUP_TIMEOUT, Lookup, PendingLookup, Unresolved};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use keyed_limit::{Shares, may_take};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

/// Maximum number of names looked up concurrently, each on a thread; a quarter of the threads for blocking work.
const LOOKUPS_AT_ONCE: usize = 128;
/// Maximum number of concurrent look-ups for registrations. So names without an answer delay no delivery.
const REGISTRATIONS_AT_ONCE: usize = 16;
/// Maximum number of names that are looked up or wait; further look-ups fail.
const NAMES_MAX: usize = 4096;
/// Divisor for an account's share of threads and names.
const SHARES: usize = 8;

/// The operating system's resolver.
#[derive(Debug, Clone)]
pub struct System {
    under_way: Lookups,
    /// The threads, and how many one account may have.
    threads: Shares,
}

/// The look-ups in progress, by account.
type Lookups = Arc<Mutex<HashMap<String, AccountLookups>>>;

#[derive(Debug, Default)]
struct AccountLookups {
    names: HashMap<String, SharedLookup>,
}

#[derive(Debug, Clone)]
struct SharedLookup {
    answer: Shared<BoxFuture<'static, Addresses>>,
    begun: Arc<AtomicBool>,
}

impl SharedLookup {
    fn pending_lookup(&self) -> PendingLookup {
        PendingLookup {
            answer: self.answer.clone().boxed(),
            begun: Arc::clone(&self.begun),
        }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new(LOOKUPS_AT_ONCE)
    }
}

impl Lookup for System {
    fn lookup(&self, account: &str, name: &str) -> PendingLookup {
        self.joined(account, name, resolve_by_system)
    }
}

impl System {
    /// Creates a resolver for the registration of webhooks, with separate limits.
    pub(crate) fn for_registrations() -> Self {
        Self::new(REGISTRATIONS_AT_ONCE)
    }

    fn new(at_once: usize) -> Self {
        Self {
            under_way: Arc::default(),
            threads: Shares::new(at_once, at_once / SHARES),
        }
    }

    /// Returns the account's look-up of this name in progress, otherwise a new one by `resolve`.
    fn joined<F>(&self, account: &str, name: &str, resolve: fn(String) -> F) -> PendingLookup
    where
        F: Future<Output = Addresses> + Send + 'static,
    {
        let mut under_way = self.under_way.lock();
        let all: usize = under_way.values().map(|account| account.names.len()).sum();
        let own = under_way.get(account);
        if let Some(name_lookup) = own.and_then(|own| own.names.get(name)) {
            return name_lookup.pending_lookup();
        }
        let of_account = own.map_or(0, |own| own.names.len());
        if !may_take(of_account, NAMES_MAX.saturating_sub(all)) || of_account >= NAMES_MAX / SHARES {
            return PendingLookup::at_once(std::future::ready(Err(Unresolved::Busy)));
        }
        let own = under_way.entry(account.to_owned()).or_default();
        // A separate task: the thread continues when nobody waits any more, and must be counted until it is done.
        let (threads, of_account) = (self.threads.clone(), account.to_owned());
        let permit = async move { threads.take(of_account).await };
        let entry = LookupEntry {
            under_way: Arc::clone(&self.under_way),
            account: account.to_owned(),
            name: name.to_owned(),
        };
        let begun = Arc::<AtomicBool>::default();
        let begins = Arc::clone(&begun);
        let task = tokio::spawn(async move {
            let entry = entry;
            // No caller waits longer than this.
            let Ok(_permit) = timeout(LOOKUP_TIMEOUT, permit).await else {
                return Err(Unresolved::Busy);
            };
            begins.store(true, Ordering::Relaxed);
            resolve(entry.name.clone()).await
        });
        let answer = task.map(|ended| ended.unwrap_or(Err(Unresolved::NoAddress)));
        let answer = answer.boxed().shared();
        let name_lookup = SharedLookup { answer, begun };
        own.names.insert(name.to_owned(), name_lookup.clone());
        name_lookup.pending_lookup()
    }
}

/// A name of an account in the table of look-ups in progress. It is removed at the end of its task, however that ends.
struct LookupEntry {
    under_way: Lookups,
    account: String,
    name: String,
}

impl Drop for LookupEntry {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock();
        if let Some(account) = under_way.get_mut(&self.account) {
            account.names.remove(&self.name);
            if account.names.is_empty() {
                under_way.remove(&self.account);
            }
        }
    }
}

async fn resolve_by_system(name: String) -> Addresses {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|_| Unresolved::NoAddress)?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn the_own_machine_has_addresses() {
        let found = System::default().lookup("a", "localhost").answer.await.unwrap();
        assert!(
            !found.is_empty() && found.iter().all(IpAddr::is_loopback),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn a_name_that_no_server_can_be_asked_for_has_none() {
        let found = System::default().lookup("a", &"a".repeat(64)).answer.await;
        assert_eq!(found, Err(Unresolved::NoAddress));
    }

    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    static GO: Notify = Notify::const_new();

    #[tokio::test]
    async fn a_name_is_asked_for_once_however_many_wait_or_go_away() {
        async fn slow(_name: String) -> Addresses {
            LOOKUPS.fetch_add(1, Ordering::SeqCst);
            GO.notified().await;
            Ok(vec![[8, 8, 8, 8].into()])
        }
        let system = System::default();
        drop(system.joined("a", "a.example", slow)); // dropped by its caller
        let waiting: Vec<_> = (0..100)
            .map(|_| system.joined("a", "a.example", slow).answer)
            .collect();
        tokio::task::yield_now().await; // by now every look-up in progress has queried
        assert_eq!(LOOKUPS.load(Ordering::SeqCst), 1);
        GO.notify_one();
        for answer in futures::future::join_all(waiting).await {
            assert_eq!(answer, Ok(vec![[8, 8, 8, 8].into()]));
        }
        assert!(system.under_way.lock().is_empty(), "an answer is not kept");
        GO.notify_one();
        system.joined("a", "a.example", slow).answer.await.unwrap();
        assert_eq!(
            LOOKUPS.load(Ordering::SeqCst),
            2,
            "each later attempt looks up anew"
        );
    }

    #[tokio::test]
    async fn accounts_together_leave_a_look_up_to_the_next() {
        async fn endless(_name: String) -> Addresses {
            std::future::pending().await
        }
        let system = System::for_registrations();
        for account in 0..SHARES {
            for name in 0..SHARES {
                let _endless = system.joined(&format!("acct_{account}"), &format!("{name}.example"), endless);
            }
        }
        for _ in 0..SHARES * SHARES {
            tokio::task::yield_now().await;
        }
        let last = system.joined("acct_new", "a.example", endless);
        tokio::task::yield_now().await;
        assert!(last.begun.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn registrations_have_fewer_threads_and_each_account_a_share() {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        async fn never(_name: String) -> Addresses {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        }
        let system = System::for_registrations();
        for account in 0..SHARES * 2 {
            for at in 0..REGISTRATIONS_AT_ONCE {
                drop(system.joined(&account.to_string(), &format!("n{at}.example"), never));
            }
            tokio::task::yield_now().await; // by now every look-up that can begin has begun
            // The last two of the first eight accounts would have more than they leave.
            let most = ((account + 1) * REGISTRATIONS_AT_ONCE / SHARES).min(14 + account.saturating_sub(6));
            assert_eq!(
                BEGUN.load(Ordering::SeqCst),
                most.min(REGISTRATIONS_AT_ONCE),
                "{account}"
            );
        }
    }

    #[tokio::test]
    async fn an_account_whose_names_hang_holds_up_no_other() {
        async fn never(_name: String) -> Addresses {
            std::future::pending().await
        }
        async fn at_once(_name: String) -> Addresses {
            Ok(vec![[8, 8, 8, 8].into()])
        }
        let system = System::for_registrations();
        let hanging: Vec<PendingLookup> = (0..60)
            .map(|at| system.joined("slow", &format!("n{at}.example"), never))
            .collect();
        // Including the same name: another account does not wait in this one's queue.
        for name in ["good.example", "n59.example"] {
            let answer = system.joined("other", name, at_once).answer;
            assert_eq!(answer.await, Ok(vec![[8, 8, 8, 8].into()]));
        }
        let begun = hanging.iter().filter(|one| one.begun.load(Ordering::SeqCst));
        assert_eq!(begun.count(), REGISTRATIONS_AT_ONCE / SHARES);
        // A look-up without a permit is given up, which frees its place in the table.
        let last = hanging.into_iter().next_back().unwrap();
        assert_eq!(last.answer.await, Err(Unresolved::Busy));
        let left = || system.under_way.lock()["slow"].names.len();
        while left() > REGISTRATIONS_AT_ONCE / SHARES {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn names_are_bounded() {
        async fn never(_name: String) -> Addresses {
            std::future::pending().await
        }
        async fn at_once(_name: String) -> Addresses {
            Ok(Vec::new())
        }
        let system = System::default();
        let share = NAMES_MAX / SHARES;
        let more = async |account: &str| system.joined(account, "one-more.example", at_once).answer.await;
        for account in 0..SHARES {
            for at in 0..share {
                let account = account.to_string();
                drop(system.joined(&account, &format!("n{at}.example"), never));
            }
            if account == 0 {
                assert_eq!(more("0").await, Err(Unresolved::Busy), "of one account");
                assert_eq!(more("1").await, Ok(Vec::new()));
            }
        }
        let all = || -> usize {
            let under_way = system.under_way.lock();
            under_way.values().map(|account| account.names.len()).sum()
        };
        assert_eq!(
            all(),
            NAMES_MAX - share / 2,
            "the last one left as much as it has"
        );
        assert_eq!(more("another").await, Ok(Vec::new()));
        for account in 0..share {
            drop(system.joined(&format!("one-{account}"), "n.example", never));
        }
        assert_eq!(all(), NAMES_MAX);
        assert_eq!(more("another").await, Err(Unresolved::Busy), "of all");
    }
}
