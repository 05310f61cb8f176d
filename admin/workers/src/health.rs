//! Checks once a second whether the store may be trusted, and the durability of its changes of money (decision D47).

use crate::context::WorkerContext;
use crate::rounds::Rounds;
use settings::durability::Durability;
use std::sync::Arc;
use std::time::Duration;
use store::durability::DurabilityStatus;
use tokio::sync::watch;

/// Pause between two checks.
const EVERY: Duration = Duration::from_secs(1);
/// Checks between two renewals of the mark that a replica follows.
const MARK_EVERY: u32 = 10;

/// Checks until the server stops.
pub(super) async fn run(context: Arc<WorkerContext>, stopping: watch::Receiver<bool>) {
    let (mut logged, mut passed) = (None, 0_u32);
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next().await {
        let sane = context.health.check(&context.store).await.is_ok();
        context.metrics.store_sane.set(i64::from(sane));
        if !sane {
            continue;
        }
        let Ok(offers) = context.store.offers().await else {
            continue;
        };
        if passed.is_multiple_of(MARK_EVERY)
            && let Err(error) = context.store.mark_followed(&offers).await
        {
            tracing::debug!(%error, "the mark of a replica that follows was not renewed");
        }
        passed = passed.wrapping_add(1);
        let status = context.store.durability_by(&offers);
        context
            .metrics
            .store_durable
            .set(i64::from(status.confirmed != Durability::Async));
        context
            .metrics
            .store_durability_required
            .set(i64::from(status.requested.is_required()));
        context.metrics.store_exposed.set(i64::from(status.exposed));
        if logged.as_ref() != Some(&status) {
            log_durability(&status);
            logged = Some(status);
        }
    }
}

fn log_durability(status: &DurabilityStatus) {
    let (asked, sentence) = (status.requested.to_string(), status.sentence());
    if status.refuses() {
        tracing::error!(asked, "{sentence}");
    } else if status.lacks.is_some() || status.exposed {
        tracing::warn!(asked, "{sentence}");
    } else {
        tracing::info!(asked, "{sentence}");
    }
}
