//! Parts that every worker gets at its start: store, health, metrics.

use crate::metrics::{Worker, WorkerMetrics};
use std::error::Error;
use std::sync::Arc;
use store::Store;
use store_health::StoreHealth;
use telemetry::error_chain;

/// The parts that all workers share.
pub(super) struct WorkerContext {
    pub(super) store: Store,
    pub(super) health: Arc<StoreHealth>,
    pub(super) metrics: WorkerMetrics,
}

impl WorkerContext {
    /// Records a completed round, or logs a failed one. A store that fails has alerts of its own.
    pub(super) fn record<E: Error>(&self, worker: Worker, round: Result<(), E>) {
        match round {
            Ok(()) => self.metrics.record_round(worker),
            Err(error) => {
                tracing::error!(worker = worker.as_str(), error = %error_chain(&error), "a worker's round failed");
            }
        }
    }
}
