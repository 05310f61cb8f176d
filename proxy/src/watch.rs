//! Watching what changes behind the edge: the store's sanity (decision D47), the blocked addresses, the prices and plans
//! in force, the provider's address.

pub mod tables;

use crate::gate::Gate;
use crate::upstream::target::RESOLVE_EVERY;
use arc_swap::ArcSwapOption;
use shared::crypto::virtual_key::WellFormed;
use shared::store::Store;
use shared::store::blocked::REFRESH_EVERY;
use shared::store::sanity::{self, Insane, StoreRecord};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::interval;

/// Between two looks at the store. A store that turns insane is noticed within it; a wiped one by the next script.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two readings of the imported prices.
const PRICES_EVERY: Duration = Duration::from_secs(5);

/// What is known of the store.
#[derive(Debug, Default)]
pub struct Watch {
    record: ArcSwapOption<StoreRecord>,
    insane: AtomicBool,
    reachable: AtomicBool,
}

impl Watch {
    /// Whether the store may be used at all. Asks it when nothing is known yet.
    pub async fn usable(&self, store: &Store) -> bool {
        if self.record.load().is_none() {
            self.ask_now(store).await;
        }
        self.record.load().is_some() && !self.insane.load(Ordering::Acquire)
    }

    /// Whether this installation can have issued the key.
    pub fn can_have_issued(&self, key: &WellFormed<'_>) -> bool {
        self.record
            .load()
            .as_ref()
            .is_some_and(|record| record.check_secret.issued(key))
    }

    /// Whether the store answers and is this ledger, asked now.
    pub async fn ask_now(&self, store: &Store) -> bool {
        self.learn(sanity::record(store).await) && !self.insane.load(Ordering::Acquire)
    }

    /// Whether calls can be decided, as far as the last look goes.
    pub fn is_ready(&self) -> bool {
        self.reachable.load(Ordering::Acquire)
            && !self.insane.load(Ordering::Acquire)
            && self.record.load().is_some()
    }

    /// Takes in a look; whether it was good.
    fn learn(&self, seen: Result<StoreRecord, Insane>) -> bool {
        let reachable = !matches!(seen, Err(Insane::Store(_)));
        self.reachable.store(reachable, Ordering::Release);
        match seen {
            Ok(record) => {
                self.record.store(Some(Arc::new(record)));
                true
            }
            Err(Insane::Store(_)) => false,
            Err(error) => {
                if !self.insane.swap(true, Ordering::AcqRel) {
                    tracing::error!(%error, "every call is denied");
                }
                false
            }
        }
    }

    /// A full look: epoch and eviction policy. Only this one can end a denial of everything.
    async fn look(&self, gate: &Gate) {
        let before = self.record.load_full();
        let seen = sanity::check(&gate.store).await;
        if !self.learn(seen) {
            return;
        }
        if self.insane.swap(false, Ordering::AcqRel) {
            tracing::info!("the store may be used again");
        }
        let epoch = |record: &Option<Arc<StoreRecord>>| record.as_ref().map(|record| record.epoch.clone());
        if before.is_some() && epoch(&before) != epoch(&self.record.load_full()) {
            tracing::warn!("the store is another ledger than before");
            gate.owners.clear();
            gate.unknown.clear();
        }
    }
}

/// Runs all watchers of a gate in the current runtime.
pub fn start(gate: &Arc<Gate>) {
    let watched = Arc::clone(gate);
    tokio::spawn(async move {
        let mut ticks = interval(LOOK_EVERY);
        loop {
            ticks.tick().await;
            watched.watch.look(&watched).await;
        }
    });
    let watched = Arc::clone(gate);
    tokio::spawn(async move {
        let mut ticks = interval(REFRESH_EVERY);
        loop {
            ticks.tick().await;
            watched.blocked.follow(&watched.store).await;
        }
    });
    let watched = Arc::clone(gate);
    tokio::spawn(async move {
        let mut ticks = interval(RESOLVE_EVERY);
        loop {
            ticks.tick().await;
            watched.upstream.target().resolve().await;
        }
    });
    let watched = Arc::clone(gate);
    tokio::spawn(async move { tables::follow(&watched, PRICES_EVERY).await });
    let watched = Arc::clone(gate);
    tokio::spawn(async move { watched.pending.run(&watched).await });
}
