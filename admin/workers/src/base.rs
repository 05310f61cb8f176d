//! Parts that every worker gets at its start (store, health, metrics), and the wait for the next round.

use crate::metrics::WorkerMetrics;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store_health::StoreHealth;
use tokio::sync::watch;

/// The parts that all workers share.
pub(super) struct Base {
    pub(super) store: Store,
    pub(super) health: Arc<StoreHealth>,
    pub(super) metrics: WorkerMetrics,
}

/// Waits for a worker's next round. Returns false if the server stops. There is no round while the store cannot be
/// trusted: writes at that time could contradict the data that an operator restores.
pub(super) async fn next_round(base: &Base, stopping: &mut watch::Receiver<bool>, every: Duration) -> bool {
    while pause(stopping, every).await {
        if base.health.is_sound(&base.store) {
            return true;
        }
    }
    false
}

/// Waits. Returns false when the worker must stop.
pub(super) async fn pause(stopping: &mut watch::Receiver<bool>, time: Duration) -> bool {
    tokio::time::timeout(time, stopping.wait_for(|stop| *stop))
        .await
        .is_err()
}
