//! The guard: writes the list of refused accounts: those that use too much of the store (decision D71), and those that
//! lost acknowledged writes (decision D47). Every server does this independently; several servers write the same list.

mod lost;
mod usage;

use self::lost::LostWrites;
use self::usage::StoreUsage;
use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rounds::Rounds;
use std::sync::Arc;
use std::time::Duration;
use store::account::refused::{self, REFRESH_EVERY, RefusedCopy, RefusedLists};
use store::{Store, StoreError};
use telemetry::registrar::level;
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(2);

/// State from one round to the next.
#[derive(Debug, Default)]
struct GuardState {
    usage: StoreUsage,
    lost: LostWrites,
    /// The next list of refused accounts.
    list: RefusedLists,
    has_written_entries: bool,
}

/// Refreshes the server's copy of the list every [`REFRESH_EVERY`] until the server stops.
pub(super) async fn refresh_copy(
    context: Arc<WorkerContext>,
    refused: Arc<RefusedCopy>,
    stopping: watch::Receiver<bool>,
) {
    let mut rounds = Rounds::new(stopping, REFRESH_EVERY);
    while rounds.next().await {
        refused.refresh(&context.store).await;
    }
}

/// Runs the guard until the server stops. `guard_share` is the share of the store's memory from which on it counts as
/// nearly full.
pub(super) async fn run(context: Arc<WorkerContext>, guard_share: f64, stopping: watch::Receiver<bool>) {
    let mut state = GuardState::default();
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&context).await {
        let done = run_round(&context, guard_share, &mut state).await;
        context.record(Worker::Guard, done);
    }
}

async fn run_round(
    context: &WorkerContext,
    guard_share: f64,
    state: &mut GuardState,
) -> Result<(), StoreError> {
    // First, and written at once: the rest takes longer, and fails while a server of the store is unreachable.
    let unwitnessed = state.lost.check_next(&context.store).await;
    state.list.lost = state.lost.next();
    let metrics = &context.metrics.room;
    metrics.lost_accounts.set(level(state.lost.count() as u64));
    let written = state.write_list(&context.store).await;
    lost::update_witnesses(&context.store, unwitnessed).await;
    written?;
    let mut room = state.usage.read_next(&context.store, guard_share).await?;
    if !state.usage.is_complete() {
        // Accounts that another server refuses stay refused until this one has read them.
        let written = refused::read(&context.store).await?;
        room.extend(written.room);
    }
    state.list.room = room;
    metrics.refused_accounts.set(level(state.list.room.len() as u64));
    state.usage.set_metrics(metrics);
    state.write_list(&context.store).await
}

impl GuardState {
    /// Writes the list, unless both it and the last one are empty.
    async fn write_list(&mut self, store: &Store) -> Result<(), StoreError> {
        if !self.list.is_empty() || self.has_written_entries {
            refused::write(store, &self.list).await?;
            self.has_written_entries = !self.list.is_empty();
        }
        Ok(())
    }
}
