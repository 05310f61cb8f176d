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
mod blocked;
mod checkpointer;
mod context;
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
use checkpointer::Checkpointer;
use context::WorkerContext;
use crypto::seal::Keyring;
use domain::plan::Plans;
use futures::FutureExt;
use futures::future::BoxFuture;
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
use telemetry::background::keep_running;
use tokio::sync::watch;
use tokio::task::JoinSet;
use webhooks::Webhooks;

/// The parts that the workers of a server share.
pub struct Workers {
    /// Records on which the workers act.
    pub store: Store,
    /// State of the store; a separate worker updates it.
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

struct WorkerComponents {
    context: Arc<WorkerContext>,
    guard_share: f64,
    refused: Arc<RefusedCopy>,
    blocked: Arc<BlockedCopy>,
    plans: Arc<ArcSwap<Plans>>,
    archive: Arc<Archive>,
    webhooks: Arc<Webhooks>,
    sealer: TrailSealer,
    checkpointer: Checkpointer,
    archiver: Archiver,
    intent_archiver: IntentArchiver,
}

/// Creates the future of a worker, which ends after its round once the server stops.
type RunWorker = fn(&WorkerComponents, watch::Receiver<bool>) -> BoxFuture<'static, ()>;

const WORKERS: [(&str, RunWorker); 15] = [
    ("health", |with, stopping| {
        health::run(with.context(), stopping).boxed()
    }),
    ("blocked", |with, stopping| {
        blocked::run(with.context(), Arc::clone(&with.blocked), stopping).boxed()
    }),
    ("refused", |with, stopping| {
        guard::refresh_copy(with.context(), Arc::clone(&with.refused), stopping).boxed()
    }),
    ("guard", |with, stopping| {
        guard::run(with.context(), with.guard_share, stopping).boxed()
    }),
    ("reaper", |with, stopping| {
        reaper::run(with.context(), stopping).boxed()
    }),
    ("transit", |with, stopping| {
        transit::run(with.context(), stopping).boxed()
    }),
    ("sealer", |with, stopping| {
        sealer::run(with.sealer.clone(), stopping).boxed()
    }),
    ("checkpointer", |with, stopping| {
        checkpointer::run(with.checkpointer.clone(), stopping).boxed()
    }),
    ("archiver", |with, stopping| {
        archiver::run(with.archiver.clone(), stopping).boxed()
    }),
    ("intent_archiver", |with, stopping| {
        intent_archiver::run(with.intent_archiver.clone(), stopping).boxed()
    }),
    ("price_keeper", |with, stopping| {
        price_keeper::run(with.context(), Arc::clone(&with.archive), stopping).boxed()
    }),
    ("dispatch_archived", |with, stopping| {
        dispatch_archived::run(with.context(), Arc::clone(&with.webhooks), stopping).boxed()
    }),
    ("deliverer", |with, stopping| {
        deliverer::run(with.context(), Arc::clone(&with.webhooks), stopping).boxed()
    }),
    ("threshold_watcher", |with, stopping| {
        threshold_watcher::run(with.context(), Arc::clone(&with.plans), stopping).boxed()
    }),
    ("gauge_collector", |with, stopping| {
        gauge_collector::run(with.context(), Arc::clone(&with.webhooks), stopping).boxed()
    }),
];

impl Workers {
    /// Starts all workers; one that panics starts again. When `stopping` becomes true, each worker ends after its
    /// round; the returned set is then empty.
    pub fn start(self, stopping: &watch::Receiver<bool>) -> JoinSet<()> {
        let with = Arc::new(WorkerComponents::from(self));
        let mut workers = JoinSet::new();
        for (name, run) in WORKERS {
            let (with, stopping) = (Arc::clone(&with), stopping.clone());
            workers.spawn(keep_running(name, move || run(&with, stopping.clone())));
        }
        workers
    }
}

impl WorkerComponents {
    fn context(&self) -> Arc<WorkerContext> {
        Arc::clone(&self.context)
    }
}

impl From<Workers> for WorkerComponents {
    fn from(workers: Workers) -> Self {
        let Workers {
            store,
            health,
            archive,
            audit,
            webhooks,
            metrics,
            ..
        } = workers;
        let context = Arc::new(WorkerContext {
            store,
            health,
            metrics,
        });
        Self {
            guard_share: workers.guard_share,
            refused: workers.refused,
            blocked: workers.blocked,
            plans: workers.plans,
            sealer: TrailSealer {
                context: Arc::clone(&context),
                webhooks: Arc::clone(&webhooks),
                every: Duration::from_millis(audit.seal_every_ms),
            },
            checkpointer: Checkpointer {
                context: Arc::clone(&context),
                archive: Arc::clone(&archive),
                keyring: workers.keyring,
                every: Duration::from_millis(audit.checkpoint_every_ms),
            },
            intent_archiver: IntentArchiver {
                context: Arc::clone(&context),
                archive: Arc::clone(&archive),
                after_days: audit.archive_intents_after_days,
            },
            archiver: Archiver {
                context: Arc::clone(&context),
                archive: Arc::clone(&archive),
                audit,
            },
            context,
            archive,
            webhooks,
        }
    }
}
