//! Ends the streams of frozen agents and revoked keys (`proxy.stop_frozen_streams`). Queries the store twice a second
//! for each key with open streams.

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::lookup::VirtualKeyOwner;
use store::virtual_key::stopped::is_stopped;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Longest documented time from a freeze to the end of the streams.
const STOPPED_WITHIN: Duration = Duration::from_secs(1);
/// Interval of the queries.
const QUERY_EVERY: Duration = Duration::from_millis(500);
/// Maximum of concurrent queries.
const QUERIES_AT_ONCE: usize = 32;

/// The keys with open streams.
#[derive(Default)]
pub struct StopWatcher(Mutex<HashMap<String, WatchedKey>>);

struct WatchedKey {
    owner: VirtualKeyOwner,
    stopped: watch::Sender<bool>,
}

/// Resolves when the streams of a key must stop. One future serves the whole stream: a new one for each event would
/// register with the sender each time.
pub type StopSignal = BoxFuture<'static, ()>;

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // The sender is dropped only when no stream waits any more.
    if stopped.wait_for(|stopped| *stopped).await.is_err() {
        std::future::pending().await
    }
}

impl StopWatcher {
    /// Watches the key of a stream, until the returned value is dropped.
    pub fn watch(&self, owner: &VirtualKeyOwner) -> StopSignal {
        let mut all = self.0.lock();
        let watched = all
            .entry(owner.key_id().to_owned())
            .or_insert_with(|| WatchedKey {
                owner: owner.clone(),
                stopped: watch::Sender::new(false),
            });
        until_stopped(watched.stopped.subscribe()).boxed()
    }

    /// Queries the store at each interval, forever.
    pub async fn follow(self: Arc<Self>, store: Store) {
        let mut ticks = interval(QUERY_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.query(&store).await;
        }
    }

    /// Queries the store once. If the store does not reply, no stream stops: their holds are already charged.
    async fn query(&self, store: &Store) {
        let owners = self.in_use();
        let queries = owners.iter().map(async |owner| {
            if matches!(is_stopped(store, owner).await, Ok(true)) {
                self.stop(owner);
            }
        });
        stream::iter(queries)
            .for_each_concurrent(QUERIES_AT_ONCE, |query| query)
            .await;
    }

    /// Returns the owners of keys whose streams are not stopped yet. Forgets those without streams.
    fn in_use(&self) -> Vec<VirtualKeyOwner> {
        let mut all = self.0.lock();
        all.retain(|_, watched| watched.stopped.receiver_count() > 0);
        all.values().map(|watched| watched.owner.clone()).collect()
    }

    /// Stops the streams of a key. Later streams of the same key are watched again.
    fn stop(&self, owner: &VirtualKeyOwner) {
        if let Some(watched) = self.0.lock().remove(owner.key_id()) {
            watched.stopped.send_replace(true);
        }
    }
}

const _: () = assert!(
    QUERY_EVERY.as_millis() * 2 <= STOPPED_WITHIN.as_millis(),
    "a freeze right after a query is found by the next one, which has the other half of the time to complete"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_reaches_all_streams_of_a_key_and_no_other() {
        let stops = StopWatcher::default();
        let owner = |key| VirtualKeyOwner::new("acct_1", "bot", key);
        let [mut first, mut second, mut other] = ["vk_1", "vk_1", "vk_2"].map(|key| stops.watch(&owner(key)));
        assert_eq!(stops.in_use().len(), 2);
        stops.stop(&owner("vk_1"));
        (&mut first).await;
        (&mut second).await;
        assert!((&mut other).now_or_never().is_none());
        let mut later = stops.watch(&owner("vk_1"));
        assert!((&mut later).now_or_never().is_none());
        drop((later, other));
        assert!(
            stops.in_use().is_empty(),
            "nothing is kept of keys without streams"
        );
    }
}
