//! The archiver of intents: moves old settled and blocked intents that are final to the archive. All accounts are
//! checked in turn, at a bounded rate.

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rotation::Rotation;
use crate::rounds::Rounds;
use archive::Archive;
use archive::intents::Age;
use domain::mode::Mode;
use domain::period::DAY_MS;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::connection::batch::Batch;
use store::keys::Realm;
use store::{StoreError, server_clock};
use telemetry::error_chain;
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(10);
/// Number of accounts checked in one round.
const ACCOUNTS: usize = 100;
/// Maximum number of segments of one account and mode in one round.
const SEGMENTS: usize = 10;
/// Number of days that intents which do not fill a segment wait for others.
const GATHER_DAYS: u64 = 7;

/// The archiver of intents, with its components.
#[derive(Clone)]
pub(super) struct IntentArchiver {
    pub(super) context: Arc<WorkerContext>,
    pub(super) archive: Arc<Archive>,
    pub(super) after_days: u64,
}

/// State from one round to the next.
#[derive(Debug, Default)]
struct IntentArchiverState {
    rotation: Rotation,
    /// For accounts and modes with many intents that must stay: how many of the oldest were already checked. After a
    /// restart the checks begin at the oldest again.
    passed: HashMap<Realm, usize>,
}

/// Archives until the server stops. Several servers may do so concurrently: of those that move the same intents, one
/// succeeds.
pub(super) async fn run(worker: IntentArchiver, stopping: watch::Receiver<bool>) {
    let mut state = IntentArchiverState::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&worker.context).await {
        let archived = run_round(&worker, &mut state).await;
        worker.context.record(Worker::IntentArchiver, archived);
    }
}

/// Fails only because of the store. An archive that fails is logged and counted.
async fn run_round(worker: &IntentArchiver, state: &mut IntentArchiverState) -> Result<(), StoreError> {
    let batch = Batch::new(&worker.context.store);
    batch.note(state.rotation.renew(&worker.context.store).await);
    let age = Age {
        now_ms: server_clock::now_ms(&worker.context.store).await?,
        after_ms: worker.after_days.saturating_mul(DAY_MS),
        gather_ms: GATHER_DAYS * DAY_MS,
    };
    for account in &state.rotation.next(ACCOUNTS) {
        for realm in Mode::ALL.map(|mode| Realm::new(account, mode)) {
            let (bucket, mode) = (realm.bucket(), realm.mode());
            if batch.is_unreachable(bucket) {
                continue;
            }
            match archive(worker, &mut state.passed, &realm, age).await {
                Ok(()) => {}
                Err(error) if error.is_server_failure() => batch.failed(Some(bucket), error),
                Err(error) => {
                    worker.context.metrics.archiving_failed.inc();
                    tracing::error!(account, %mode, error = %error_chain(&error), "intents cannot be archived; none left the store");
                }
            }
        }
    }
    batch.end()
}

/// Moves the old intents of an account and mode, and records where the next round continues.
async fn archive(
    worker: &IntentArchiver,
    passed: &mut HashMap<Realm, usize>,
    realm: &Realm,
    age: Age,
) -> Result<(), StoreError> {
    for _ in 0..SEGMENTS {
        let from = passed.remove(realm).unwrap_or(0);
        let moved = worker
            .archive
            .move_intents(&worker.context.store, realm, age, from)
            .await?;
        if moved.next > 0 {
            passed.insert(realm.clone(), moved.next);
        }
        if moved.intents == 0 {
            return Ok(());
        }
        let (account, mode) = (realm.account(), realm.mode());
        tracing::info!(account, %mode, intents = moved.intents, "archived intents");
    }
    Ok(())
}
