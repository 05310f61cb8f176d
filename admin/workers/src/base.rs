//! Parts that every worker gets at its start: store, health, metrics.

use crate::metrics::WorkerMetrics;
use std::sync::Arc;
use store::Store;
use store_health::StoreHealth;

/// The parts that all workers share.
pub(super) struct Base {
    pub(super) store: Store,
    pub(super) health: Arc<StoreHealth>,
    pub(super) metrics: WorkerMetrics,
}
