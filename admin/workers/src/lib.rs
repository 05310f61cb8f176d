//! The background workers of the management server, each a module with a loop. [`Workers::start`] starts them all.
//!
//! [`health`](self) checks the store, `blocked` and `guard` maintain the lists of blocked addresses and refused
//! accounts, `reaper` ends overdue holds, `transit` delivers money in transit between accounts, `sealer` seals the
//! audit trail, `checkpointer` signs its end, `archiver` and `intent_archiver` move old data to the archive,
//! `price_keeper` keeps price tables there, `catch_up` dispatches events of archived entries, `deliverer` delivers
//! webhooks, `threshold_watcher` detects limits that are nearly reached, and `gauge_collector` counts open items for
//! the metrics.
//!
//! Uses the store, the archive, readers of the trail, and webhooks. Contains no HTTP of the management API.

mod archiver;
mod base;
mod blocked;
mod catch_up;
mod checkpointer;
mod deliverer;
mod gauge_collector;
mod guard;
mod health;
mod intent_archiver;
pub mod metrics;
mod price_keeper;
mod reaper;
mod rotation;
mod sealer;
mod threshold_watcher;
mod transit;

use arc_swap::ArcSwap;
use archive::Archive;
use base::Base;
use crypto::seal::Keyring;
use domain::plan::Plans;
use metrics::WorkerMetrics;
use settings::AuditSettings;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::account::refused::RefusedCopy;
use store::blocked::BlockedCopy;
use store_health::StoreHealth;
use tokio::sync::watch;
use tokio::task::JoinSet;
use webhooks::Webhooks;

/// The parts that the workers of a server share.
pub struct Workers {
    /// The store.
    pub store: Store,
    /// Whether the store can be trusted; a separate worker updates it.
    pub health: Arc<StoreHealth>,
    /// Archive for old entries and intents, and for checkpoints.
    pub archive: Arc<Archive>,
    /// Settings of sealing and archiving the audit trail.
    pub audit: AuditSettings,
    /// Opens the key of checkpoints.
    pub keyring: Arc<Keyring>,
    /// Share of the store's memory from which on it counts as nearly full (`limits.guard_share`).
    pub guard_share: f64,
    /// The server's copy of the list of refused accounts.
    pub refused: Arc<RefusedCopy>,
    /// The server's copy of the list of blocked addresses.
    pub blocked: Arc<BlockedCopy>,
    /// The plans in force.
    pub plans: Arc<ArcSwap<Plans>>,
    /// Webhooks: dispatch and delivery.
    pub webhooks: Arc<Webhooks>,
    /// Metrics of the workers.
    pub metrics: WorkerMetrics,
}

impl Workers {
    /// Starts all workers. When `stopping` becomes true, each worker ends after its round; the returned set is then
    /// empty.
    pub fn start(self, stopping: &watch::Receiver<bool>) -> JoinSet<()> {
        let Self {
            store,
            archive,
            audit,
            keyring,
            webhooks,
            ..
        } = self;
        let base = Arc::new(Base {
            store: store.clone(),
            health: self.health,
            metrics: self.metrics,
        });
        let mut workers = JoinSet::new();
        workers.spawn(blocked::run(Arc::clone(&base), self.blocked, stopping.clone()));
        workers.spawn(guard::follow(store, self.refused, stopping.clone()));
        workers.spawn(health::run(Arc::clone(&base), stopping.clone()));
        workers.spawn(reaper::run(Arc::clone(&base), stopping.clone()));
        workers.spawn(transit::run(Arc::clone(&base), stopping.clone()));
        let guard = guard::Guard {
            base: Arc::clone(&base),
            guard_share: self.guard_share,
        };
        workers.spawn(guard::run(guard, stopping.clone()));
        let gauge_collector = gauge_collector::GaugeCollector {
            base: Arc::clone(&base),
            webhooks: Arc::clone(&webhooks),
        };
        workers.spawn(gauge_collector::run(gauge_collector, stopping.clone()));
        let watcher = threshold_watcher::ThresholdWatcher {
            base: Arc::clone(&base),
            plans: self.plans,
        };
        workers.spawn(threshold_watcher::run(watcher, stopping.clone()));
        let checkpointer = checkpointer::Checkpointer {
            base: Arc::clone(&base),
            archive: Arc::clone(&archive),
            keyring,
            every: Duration::from_millis(audit.checkpoint_every_ms),
        };
        workers.spawn(checkpointer::run(checkpointer, stopping.clone()));
        let intent_archiver = intent_archiver::IntentArchiver {
            base: Arc::clone(&base),
            archive: Arc::clone(&archive),
            after_days: audit.archive_intents_after_days,
        };
        workers.spawn(intent_archiver::run(intent_archiver, stopping.clone()));
        let price_keeper = price_keeper::PriceKeeper {
            base: Arc::clone(&base),
            archive: Arc::clone(&archive),
        };
        workers.spawn(price_keeper::run(price_keeper, stopping.clone()));
        let trail_sealer = sealer::TrailSealer {
            base: Arc::clone(&base),
            webhooks: Arc::clone(&webhooks),
            every: Duration::from_millis(audit.seal_every_ms),
        };
        workers.spawn(sealer::run(trail_sealer, stopping.clone()));
        let archiver = archiver::Archiver {
            base: Arc::clone(&base),
            archive,
            audit,
        };
        workers.spawn(archiver::run(archiver, stopping.clone()));
        let catch_up = catch_up::CatchUp {
            base: Arc::clone(&base),
            webhooks: Arc::clone(&webhooks),
        };
        workers.spawn(catch_up::run(catch_up, stopping.clone()));
        workers.spawn(deliverer::run(
            deliverer::Deliverer { base, webhooks },
            stopping.clone(),
        ));
        workers
    }
}
