//! The loops of workers: [`Rounds`] while the store is sound, [`Ticks`] whatever its state.

use crate::base::Base;
use crate::metrics::Worker;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use telemetry::error_chain;
use tokio::sync::watch;

/// The rounds of a worker.
pub(super) struct Rounds {
    base: Arc<Base>,
    stopping: watch::Receiver<bool>,
    every: Duration,
}

impl Rounds {
    /// Creates rounds with a pause of `every` before each.
    pub(super) fn new(base: &Arc<Base>, stopping: watch::Receiver<bool>, every: Duration) -> Self {
        Self {
            base: Arc::clone(base),
            stopping,
            every,
        }
    }

    /// Waits for the next round. Returns false if the server stops. There is no round while the store cannot be trusted:
    /// writes at that time could contradict the data that an operator restores.
    pub(super) async fn next(&mut self) -> bool {
        while pause(&mut self.stopping, self.every).await {
            if self.base.health.is_sound(&self.base.store) {
                return true;
            }
        }
        false
    }

    /// Records that a round was completed, or logs that it failed. The store's own alerts report a store that fails.
    pub(super) fn record<E: Error>(&self, worker: Worker, outcome: Result<(), E>) {
        match outcome {
            Ok(()) => self.base.metrics.round(worker),
            Err(error) => {
                tracing::error!(worker = worker.as_str(), error = %error_chain(&error), "a worker's round failed");
            }
        }
    }
}

/// Repetitions of an action until the server stops. The first is at once.
pub(super) struct Ticks {
    stopping: watch::Receiver<bool>,
    every: Duration,
    has_begun: bool,
}

impl Ticks {
    /// Creates ticks with a pause of `every` between them.
    pub(super) const fn new(stopping: watch::Receiver<bool>, every: Duration) -> Self {
        Self {
            stopping,
            every,
            has_begun: false,
        }
    }

    /// Waits for the next tick. Returns false if the server stops.
    pub(super) async fn next(&mut self) -> bool {
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        !has_begun || pause(&mut self.stopping, self.every).await
    }
}

/// Waits. Returns false if the server stops.
async fn pause(stopping: &mut watch::Receiver<bool>, time: Duration) -> bool {
    tokio::time::timeout(time, stopping.wait_for(|stop| *stop))
        .await
        .is_err()
}
