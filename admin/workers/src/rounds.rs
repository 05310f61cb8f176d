//! The loop of a worker.

use crate::base::Base;
use std::time::Duration;
use tokio::sync::watch;

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
    pub(super) async fn next_while_trusted(&mut self, base: &Base) -> bool {
        self.has_begun = true;
        while self.next().await {
            if base.health.is_trusted(&base.store) {
                return true;
            }
        }
        false
    }
}
