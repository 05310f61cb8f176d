//! Refreshes the server's copy of the blocked addresses every [`REFRESH_EVERY`].

use crate::base::{Base, pause};
use std::sync::Arc;
use store::blocked::{BlockedCopy, REFRESH_EVERY};
use telemetry::registrar::level;
use tokio::sync::watch;

/// Follows the list until the server stops.
pub(super) async fn run(base: Arc<Base>, blocked: Arc<BlockedCopy>, mut stopping: watch::Receiver<bool>) {
    loop {
        blocked.refresh(&base.store).await;
        base.metrics.room.blocked_kept.set(level(blocked.kept()));
        if !pause(&mut stopping, REFRESH_EVERY).await {
            return;
        }
    }
}
