//! Refreshes the server's copy of the blocked addresses every [`REFRESH_EVERY`].

use crate::context::WorkerContext;
use crate::rounds::Rounds;
use std::sync::Arc;
use store::blocked::{BlockedCopy, REFRESH_EVERY};
use telemetry::registrar::level;
use tokio::sync::watch;

/// Follows the list until the server stops.
pub(super) async fn run(
    context: Arc<WorkerContext>,
    blocked: Arc<BlockedCopy>,
    stopping: watch::Receiver<bool>,
) {
    let mut rounds = Rounds::new(stopping, REFRESH_EVERY);
    while rounds.next().await {
        blocked.refresh(&context.store).await;
        context.metrics.room.blocked_kept.set(level(blocked.kept()));
    }
}
