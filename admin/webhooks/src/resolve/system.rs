//! Look-ups through the operating system, which can block a thread for half a minute and cannot be cancelled.
//!
//! Slow name servers must not use up the threads. So there is one look-up of a name at a time, which all callers for that
//! name share, and a bounded number of names at once, first come first served.

use super::{Lookup, Unresolved};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Names looked up at the same time, each on a thread; a quarter of the threads that may block.
const LOOKUPS_AT_ONCE: usize = 128;
/// The same for registrations, which have their own, so that names without an answer delay no delivery.
const REGISTRATIONS_AT_ONCE: usize = 16;
/// Names that are looked up or wait for it; beyond it the look-up fails.
const NAMES_MAX: usize = 4096;

type Answer = Result<Vec<IpAddr>, Unresolved>;
type UnderWay = Arc<Mutex<HashMap<String, Shared<BoxFuture<'static, Answer>>>>>;

/// The operating system's resolver.
#[derive(Debug, Clone)]
pub struct System {
    under_way: UnderWay,
    turns: Arc<Semaphore>,
}

impl Default for System {
    fn default() -> Self {
        Self::of(LOOKUPS_AT_ONCE)
    }
}

impl Lookup for System {
    fn lookup(&self, name: &str) -> BoxFuture<'static, Answer> {
        self.joined(name, resolve_by_system)
    }
}

impl System {
    /// One for the URLs of webhooks that are to be registered, with look-ups of its own.
    pub(crate) fn of_registrations() -> Self {
        Self::of(REGISTRATIONS_AT_ONCE)
    }

    fn of(at_once: usize) -> Self {
        Self {
            under_way: Arc::default(),
            turns: Arc::new(Semaphore::new(at_once)),
        }
    }

    /// The answer of the look-up of this name that is under way, else of a new one by `resolve`.
    fn joined<F>(&self, name: &str, resolve: fn(String) -> F) -> BoxFuture<'static, Answer>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let mut under_way = locked(&self.under_way);
        if let Some(looking) = under_way.get(name) {
            return looking.clone().boxed();
        }
        if under_way.len() >= NAMES_MAX {
            return std::future::ready(Err(Unresolved::Slow)).boxed();
        }
        // A task of its own: the thread works on when nobody waits any more, and has to be counted until it is done.
        let turns = Arc::clone(&self.turns);
        let entry = Entry(Arc::clone(&self.under_way), name.to_owned());
        let task = tokio::spawn(async move {
            let entry = entry;
            let _turn = turns.acquire().await;
            resolve(entry.1.clone()).await
        });
        let looking = task.map(|ended| ended.unwrap_or(Err(Unresolved::NoAddress)));
        let looking = looking.boxed().shared();
        under_way.insert(name.to_owned(), looking.clone());
        looking.boxed()
    }
}

/// A name in the table of look-ups under way, taken out at the end of its task, however it ends.
struct Entry(UnderWay, String);

impl Drop for Entry {
    fn drop(&mut self) {
        locked(&self.0).remove(&self.1);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn resolve_by_system(name: String) -> Answer {
    let found = tokio::net::lookup_host((name, 0)).await;
    let found = found.map_err(|_| Unresolved::NoAddress)?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn the_own_machine_has_addresses() {
        let found = System::default().lookup("localhost").await.unwrap();
        assert!(
            !found.is_empty() && found.iter().all(IpAddr::is_loopback),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn a_name_that_no_server_can_be_asked_for_has_none() {
        let found = System::default().lookup(&"a".repeat(64)).await;
        assert_eq!(found, Err(Unresolved::NoAddress));
    }

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static GO: Notify = Notify::const_new();

    #[tokio::test]
    async fn a_name_is_asked_for_once_however_many_wait_or_go_away() {
        async fn slow(_name: String) -> Answer {
            ASKED.fetch_add(1, Ordering::SeqCst);
            GO.notified().await;
            Ok(vec![[8, 8, 8, 8].into()])
        }
        let system = System::default();
        drop(system.joined("a.example", slow)); // went away
        let waiting: Vec<_> = (0..100).map(|_| system.joined("a.example", slow)).collect();
        tokio::task::yield_now().await; // every look-up that was begun has asked by now
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        GO.notify_one();
        for answer in futures::future::join_all(waiting).await {
            assert_eq!(answer, Ok(vec![[8, 8, 8, 8].into()]));
        }
        assert!(locked(&system.under_way).is_empty(), "an answer is not kept");
        GO.notify_one();
        system.joined("a.example", slow).await.unwrap();
        assert_eq!(ASKED.load(Ordering::SeqCst), 2, "each later attempt asks anew");
    }

    #[tokio::test]
    async fn registrations_have_fewer_threads() {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        async fn never(_name: String) -> Answer {
            BEGUN.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        }
        let system = System::of_registrations();
        for at in 0..LOOKUPS_AT_ONCE {
            drop(system.joined(&format!("n{at}.example"), never));
        }
        tokio::task::yield_now().await; // every look-up that could begin has begun by now
        assert_eq!(BEGUN.load(Ordering::SeqCst), REGISTRATIONS_AT_ONCE);
    }

    #[tokio::test]
    async fn names_are_bounded() {
        async fn never(_name: String) -> Answer {
            std::future::pending().await
        }
        async fn at_once(_name: String) -> Answer {
            Ok(Vec::new())
        }
        let system = System::default();
        for at in 0..NAMES_MAX {
            drop(system.joined(&format!("n{at}.example"), never));
        }
        assert_eq!(
            system.joined("one-more.example", at_once).await,
            Err(Unresolved::Slow)
        );
    }
}
