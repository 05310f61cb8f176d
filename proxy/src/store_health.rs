//! Watching what changes behind the edge: the store's sanity (decision D47), the blocked addresses, the prices and plans
//! in force, the provider's address.

use crate::gate::Gate;
use crate::pending::Pending;
use crate::tables::prices;
use crate::upstream::target::RESOLVE_EVERY;
use crate::{allocator, refused_accounts};
use arc_swap::ArcSwapOption;
use crypto::virtual_key::WellFormed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::blocked::REFRESH_EVERY;
use store::pulse;
use store::sanity::{self, Insane, StoreRecord};
use tokio::time::{interval, timeout};

/// Between two looks at the store. A store that turns insane is noticed within it; a wiped one by the next script.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two readings of the imported prices.
const PRICES_EVERY: Duration = Duration::from_secs(5);

/// How long a call waits for the node of the ledger's record when that was away at the last look. A node that is back answers
/// sooner; one that is not holds up one call at a time, and by no more than this.
const ASK_WITHIN: Duration = Duration::from_millis(50);

/// What is known of the store.
#[derive(Debug, Default)]
pub struct Watch {
    record: ArcSwapOption<StoreRecord>,
    insane: AtomicBool,
    reachable: AtomicBool,
    /// How often the way to the server had been lost before the last full look.
    cuts: AtomicU64,
    /// Of a cluster, the node of the ledger's record was away at the last look, and others were not. It may come back
    /// restored from a backup.
    record_away: AtomicBool,
    /// Held by the one who asks for that node.
    asking: Arc<tokio::sync::Mutex<()>>,
    /// It is another ledger than before, and what is remembered of keys belongs to that one.
    moved: AtomicBool,
}

impl Watch {
    /// Whether the store may be used at all. Looks at it when nothing is known yet, and when it was away since the last look: it
    /// may have been restored from a backup meanwhile, or have lost writes when it started again.
    pub async fn usable(self: &Arc<Self>, gate: &Gate) -> bool {
        if self.reachable.load(Ordering::Acquire) && self.record.load().is_some() && !self.was_cut(gate) {
            if self.record_away.load(Ordering::Acquire) {
                self.ask_for_record(gate).await;
            }
            return !self.insane.load(Ordering::Acquire);
        }
        let cuts = pulse::cuts();
        let seen = sanity::check(&gate.store).await;
        self.take_in(gate, seen, Some(cuts))
    }

    /// The same right before the decision on a call that asked [`Watch::usable`] before its body came, which takes as long as its
    /// caller likes. The store is asked only where it was away meanwhile.
    pub async fn still_usable(self: &Arc<Self>, gate: &Gate) -> bool {
        if self.was_cut(gate) {
            return Box::pin(self.usable(gate)).await;
        }
        !self.insane.load(Ordering::Acquire)
    }

    /// The ledger that the store was at the last look.
    pub fn ledger(&self) -> Option<Arc<StoreRecord>> {
        self.record.load_full()
    }

    /// The ledger that the store is, where it may be trusted with what waits for it, asked now. It is looked at in full where it
    /// was away.
    pub async fn ledger_now(self: &Arc<Self>, gate: &Gate) -> Option<Arc<StoreRecord>> {
        if self.usable(gate).await && self.can_decide_now(gate).await {
            self.ledger()
        } else {
            None
        }
    }

    /// Whether the store that has just answered is this ledger. It is looked at only where the way to it was lost.
    pub async fn is_still(self: &Arc<Self>, gate: &Gate, ledger: &StoreRecord) -> bool {
        if self.was_cut(gate) && !Box::pin(self.usable(gate)).await {
            return false;
        }
        let now = self.record.load();
        now.as_ref().is_some_and(|now| now.epoch == ledger.epoch)
    }

    /// Whether a connection broke since the last full look. Of a cluster the next one is soon enough: a node that is away must
    /// not hold up the accounts of the others.
    fn was_cut(&self, gate: &Gate) -> bool {
        self.cuts.load(Ordering::Acquire) != pulse::cuts() && !gate.store.is_cluster()
    }

    /// Whether this installation can have issued the key.
    pub fn can_have_issued(&self, key: &WellFormed<'_>) -> bool {
        self.record
            .load()
            .as_ref()
            .is_some_and(|record| record.check_secret.issued(key))
    }

    /// Whether the store answers and is this ledger, asked now.
    pub async fn ask_now(&self, gate: &Gate) -> bool {
        let seen = sanity::record(&gate.store).await;
        self.take_in(gate, seen, None)
    }

    /// Whether calls can be decided, asked now: of a cluster also those of the nodes that answer, when that of the ledger's record
    /// does not.
    pub async fn can_decide_now(&self, gate: &Gate) -> bool {
        let seen = sanity::record(&gate.store).await;
        if gate.store.is_cluster() && matches!(seen, Err(Insane::Store(_))) {
            let is_known = self.record.load().is_some() && !self.insane.load(Ordering::Acquire);
            return is_known && gate.store.is_partly_there().await;
        }
        self.take_in(gate, seen, None)
    }

    /// Takes in what was asked for a call's sake; `cuts` were counted before it when it was a full look.
    fn take_in(&self, gate: &Gate, seen: Result<StoreRecord, Insane>, cuts: Option<u64>) -> bool {
        if gate.store.is_cluster() && matches!(seen, Err(Insane::Store(_))) {
            // One node of several is away; whether that is all, the next look tells.
            return false;
        }
        let is_good = self.learn(seen);
        self.forget_another_ledger(gate);
        if let Some(cuts) = cuts
            && is_good
        {
            self.cuts.store(cuts, Ordering::Release);
        }
        is_good && !self.insane.load(Ordering::Acquire)
    }

    /// Whether calls can be decided, as far as the last look goes.
    pub fn is_ready(&self) -> bool {
        self.reachable.load(Ordering::Acquire)
            && !self.insane.load(Ordering::Acquire)
            && self.record.load().is_some()
    }

    /// Asks for the ledger's record, whose node was away, unless somebody does: then the others go on with what is known.
    async fn ask_for_record(self: &Arc<Self>, gate: &Gate) {
        let Ok(turn) = Arc::clone(&self.asking).try_lock_owned() else {
            return;
        };
        let (watch, store) = (Arc::clone(self), gate.store.clone());
        // In a task of its own, so that an answer counts also when it comes late.
        let asked = tokio::spawn(async move {
            let seen = sanity::record(&store).await;
            if !matches!(seen, Err(Insane::Store(_))) {
                watch.learn(seen);
            }
            drop(turn);
        });
        drop(timeout(ASK_WITHIN, asked).await);
    }

    /// Takes in a look; whether it was good.
    fn learn(&self, seen: Result<StoreRecord, Insane>) -> bool {
        let reachable = !matches!(seen, Err(Insane::Store(_)));
        self.reachable.store(reachable, Ordering::Release);
        match seen {
            Ok(record) => {
                let record = Arc::new(record);
                let before = self.record.swap(Some(Arc::clone(&record)));
                if before.is_some_and(|before| before.epoch != record.epoch) {
                    tracing::warn!("the store is another ledger than before");
                    self.moved.store(true, Ordering::Release);
                }
                self.record_away.store(false, Ordering::Release);
                true
            }
            Err(Insane::Store(_)) => false,
            Err(error) => {
                if !self.insane.swap(true, Ordering::AcqRel) {
                    tracing::error!(%error, "every call is denied");
                }
                self.record_away.store(false, Ordering::Release);
                false
            }
        }
    }

    /// Whose key it is was learned from the ledger before.
    fn forget_another_ledger(&self, gate: &Gate) {
        if self.moved.swap(false, Ordering::AcqRel) {
            gate.owners.clear();
            gate.unknown.clear();
        }
    }

    /// The watcher's look. Only this one can end a denial of everything.
    async fn look(&self, gate: &Gate) {
        let is_known = self.record.load().is_some();
        let cuts = pulse::cuts();
        let seen = sanity::check(&gate.store).await;
        let away = gate.store.is_cluster() && is_known && matches!(seen, Err(Insane::Store(_)));
        if away && gate.store.is_partly_there().await {
            // The accounts of the nodes that are there can be decided, also without the node of the ledger's record.
            self.record_away.store(true, Ordering::Release);
            self.reachable.store(true, Ordering::Release);
            return;
        }
        let is_good = self.learn(seen);
        self.forget_another_ledger(gate);
        if is_good {
            self.cuts.store(cuts, Ordering::Release);
            if self.insane.swap(false, Ordering::AcqRel) {
                tracing::info!("the store may be used again");
            }
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
            // At once: the server of one list may be away.
            tokio::join!(
                watched.blocked.follow(&watched.store),
                refused_accounts::follow(&watched)
            );
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
    tokio::spawn(async move { watched.upstream.keep_idle_fresh().await });
    tokio::spawn(allocator::give_back());
    let watched = Arc::clone(gate);
    tokio::spawn(async move { prices::follow(&watched, PRICES_EVERY).await });
    let watched = Arc::clone(gate);
    tokio::spawn(async move { watched.pending.run(&watched).await });
    tokio::spawn(Pending::follow_others(Arc::clone(gate)));
    tokio::spawn(gate.metrics.state.store.clone().follow(gate.store.clone()));
    telemetry::export(&gate.settings.telemetry, "tollgate-proxy");
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Does, EPOCH, Stand, info, record};
    use std::sync::Arc;
    use tokio::sync::Notify;

    /// Calls are sent here while the store answers, is sane and is known.
    #[tokio::test]
    async fn calls_can_be_decided_while_nothing_speaks_against_the_store() {
        let stand = Stand::new().await;
        let (gate, watch) = (&stand.gate, &stand.gate.watch);
        assert!(!watch.is_ready(), "nothing is known");
        watch.look(gate).await;
        assert!(watch.is_ready());
        stand.store_says(|_| Some(Does::HangsUp));
        watch.look(gate).await;
        assert!(!watch.is_ready(), "away");
        stand.store_says(|command| (command[0] == "INFO").then(|| info(1)));
        watch.look(gate).await;
        assert!(!watch.is_ready(), "it lost writes");
        stand.store_says(|_| None);
        watch.look(gate).await;
        assert!(watch.is_ready());
    }

    #[tokio::test]
    async fn a_store_that_was_away_while_the_body_came_is_looked_at_before_the_decision() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        assert!(gate.watch.usable(gate).await);
        // It starts again, without its last writes.
        stand.store_says(|command| (command[0] == "INFO").then(|| info(1)));
        assert!(gate.watch.still_usable(gate).await, "nobody has missed it");
        assert_eq!(stand.count("INFO"), 1);
        stand.lose_a_connection().await;
        assert!(!gate.watch.still_usable(gate).await);
        assert!(!gate.watch.usable(gate).await, "only the watcher ends that");
    }

    /// A look that began before a connection broke does not tell what is behind the next one.
    #[tokio::test]
    async fn a_connection_that_breaks_during_a_look_calls_for_another() {
        for is_watcher in [false, true] {
            let stand = Stand::new().await;
            let (go, mut held) = (Arc::new(Notify::new()), false);
            let until = Arc::clone(&go);
            stand.store_says(move |command| {
                let is_first = command[0] == "INFO" && !std::mem::replace(&mut held, true);
                is_first.then(|| Does::Waits(Arc::clone(&until)))
            });
            let gate = Arc::clone(&stand.gate);
            let looking = tokio::spawn(async move {
                match is_watcher {
                    true => gate.watch.look(&gate).await,
                    false => assert!(gate.watch.usable(&gate).await),
                }
            });
            stand.asked_for("INFO").await;
            stand.lose_a_connection().await;
            go.notify_one();
            looking.await.unwrap();
            let gate = &stand.gate;
            assert!(gate.watch.usable(gate).await);
            assert_eq!(stand.count("INFO"), 2, "looked at again, watcher: {is_watcher}");
            assert!(gate.watch.usable(gate).await);
            assert_eq!(stand.count("INFO"), 2, "once");
        }
    }

    #[tokio::test]
    async fn the_ledger_is_the_one_that_the_store_is_now() {
        let stand = Stand::new().await;
        let (gate, watch) = (&stand.gate, &stand.gate.watch);
        assert!(watch.ledger().is_none());
        let ledger = watch.ledger_now(gate).await.unwrap();
        assert_eq!(ledger.epoch, EPOCH);
        let looks = stand.count("INFO");
        assert!(watch.is_still(gate, &ledger).await);
        assert_eq!(stand.count("INFO"), looks, "it was not away");
        // Another one answers.
        stand.store_says(|command| (command[0] == "HGETALL").then(|| record("another")));
        assert!(watch.is_still(gate, &ledger).await, "not known yet");
        stand.lose_a_connection().await;
        assert!(!watch.is_still(gate, &ledger).await);
        assert_eq!(watch.ledger_now(gate).await.unwrap().epoch, "another");
        assert!(!watch.is_still(gate, &ledger).await);
        // None answers.
        stand.store_says(|command| (command[0] == "HGETALL").then(|| Does::Answers("*0\r\n".to_owned())));
        assert!(watch.ledger_now(gate).await.is_none());
    }
}
