//! The background workers of the management server, each a module with a loop. [`Workers::start`] starts them all.
//!
//! `health` checks the store, `blocked` and `guard` maintain the lists of blocked addresses and refused accounts,
//! `reaper` ends overdue holds, `transit` delivers money in transit between accounts, `sealer` seals the audit trail,
//! `checkpointer` signs its end, `archiver` and `intent_archiver` move old data to the archive, `price_keeper` keeps
//! price tables there, `dispatch_archived` dispatches events of archived entries, `deliverer` delivers webhooks,
//! `threshold_watcher` detects limits that are nearly reached, and `gauge_collector` counts open items for the metrics.
//!
//! Uses the store, the archive, readers of the trail, and webhooks. Contains no HTTP of the management API.

mod archiver;
mod base;
mod blocked;
mod checkpointer;
mod deliverer;
mod dispatch_archived;
mod gauge_collector;
mod guard;
mod health;
mod intent_archiver;
pub mod metrics;
mod paused;
mod price_keeper;
mod reaper;
mod rotation;
mod rounds;
mod sealer;
mod threshold_watcher;
mod transit;

use arc_swap::ArcSwap;
use archive::Archive;
use archiver::Archiver;
use base::Base;
use checkpointer::Checkpointer;
use crypto::seal::Keyring;
use domain::plan::Plans;
use intent_archiver::IntentArchiver;
use metrics::WorkerMetrics;
use sealer::TrailSealer;
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
    /// Records on which the workers act.
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
            health,
            archive,
            audit,
            webhooks,
            metrics,
            ..
        } = self;
        let base = Arc::new(Base {
            store,
            health,
            metrics,
        });
        let checkpointer = Checkpointer {
            base: Arc::clone(&base),
            archive: Arc::clone(&archive),
            keyring: self.keyring,
            every: Duration::from_millis(audit.checkpoint_every_ms),
        };
        let intent_archiver = IntentArchiver {
            base: Arc::clone(&base),
            archive: Arc::clone(&archive),
            after_days: audit.archive_intents_after_days,
        };
        let sealer = TrailSealer {
            base: Arc::clone(&base),
            webhooks: Arc::clone(&webhooks),
            every: Duration::from_millis(audit.seal_every_ms),
        };
        let archiver = Archiver {
            base: Arc::clone(&base),
            archive: Arc::clone(&archive),
            audit,
        };
        let base = || Arc::clone(&base);
        let webhooks = || Arc::clone(&webhooks);
        let stopping = || stopping.clone();
        let mut workers = JoinSet::new();
        workers.spawn(health::run(base(), stopping()));
        workers.spawn(blocked::run(base(), self.blocked, stopping()));
        workers.spawn(guard::refresh_copy(base(), self.refused, stopping()));
        workers.spawn(guard::run(base(), self.guard_share, stopping()));
        workers.spawn(reaper::run(base(), stopping()));
        workers.spawn(transit::run(base(), stopping()));
        workers.spawn(sealer::run(sealer, stopping()));
        workers.spawn(checkpointer::run(checkpointer, stopping()));
        workers.spawn(archiver::run(archiver, stopping()));
        workers.spawn(intent_archiver::run(intent_archiver, stopping()));
        workers.spawn(price_keeper::run(base(), archive, stopping()));
        workers.spawn(dispatch_archived::run(base(), webhooks(), stopping()));
        workers.spawn(deliverer::run(base(), webhooks(), stopping()));
        workers.spawn(threshold_watcher::run(base(), self.plans, stopping()));
        workers.spawn(gauge_collector::run(base(), webhooks(), stopping()));
        workers
    }
}
