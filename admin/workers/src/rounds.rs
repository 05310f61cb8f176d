//! The loop of a worker.

use crate::context::WorkerContext;
use crate::metrics::Worker;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Interval in which a worker with a long pause is recorded as working. Far less than the alert about a stalled worker
/// allows.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// The rounds of a worker until the server stops.
pub(super) struct Rounds {
    stopping: watch::Receiver<bool>,
    every: Duration,
    has_begun: bool,
}

impl Rounds {
    /// Creates rounds with a pause of `every` between them.
    pub(super) const fn new(stopping: watch::Receiver<bool>, every: Duration) -> Self {
        Self {
            stopping,
            every,
            has_begun: false,
        }
    }

    /// Waits for the next round, whatever the state of the store. The first is at once. Returns false if the server
    /// stops.
    pub(super) async fn next(&mut self) -> bool {
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        let stop = self.stopping.wait_for(|stop| *stop);
        !has_begun || tokio::time::timeout(self.every, stop).await.is_err()
    }

    /// Waits for the next round in which the store can be trusted: other writes could contradict the data that an
    /// operator restores. The first is after a pause, in which the store is checked. Returns false if the server stops.
    pub(super) async fn next_while_trusted(&mut self, context: &WorkerContext) -> bool {
        self.has_begun = true;
        while self.next().await {
            if context.health.is_trusted(&context.store) {
                return true;
            }
        }
        false
    }

    /// Like [`Self::next_while_trusted`], for a worker whose pause is a setting and may be days long. While it waits,
    /// the worker is recorded as if it had just completed a round, unless its last one failed (`is_well` is false) or
    /// the store cannot be trusted.
    pub(super) async fn next_of(&mut self, context: &WorkerContext, worker: Worker, is_well: bool) -> bool {
        let mut due = Instant::now() + self.every;
        loop {
            let pause = due.saturating_duration_since(Instant::now()).min(NOTE_EVERY);
            let stop = self.stopping.wait_for(|stop| *stop);
            if tokio::time::timeout(pause, stop).await.is_ok() {
                return false;
            }
            let is_trusted = context.health.is_trusted(&context.store);
            let is_due = Instant::now() >= due;
            match (is_trusted, is_due) {
                (true, true) => return true,
                (true, false) if is_well => context.metrics.record_round(worker),
                (_, false) => {}
                (false, true) => due = Instant::now() + self.every,
            }
        }
    }
}
