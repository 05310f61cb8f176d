//! Between whoever makes deliveries and the deliverer of the same process: which webhooks have something to deliver now. What
//! gets lost here is found by the deliverer's next look at the store.

use shared::store::script::webhook::Endpoint;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Webhooks remembered at most.
const HINTS_MAX: usize = 10_000;

/// Hints for the deliverer.
#[derive(Debug, Default)]
pub struct Wake {
    hints: Mutex<VecDeque<Endpoint>>,
    notify: Notify,
}

impl Wake {
    /// These have something to deliver.
    pub fn these(&self, endpoints: impl Iterator<Item = Endpoint>) {
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HINTS_MAX.saturating_sub(hints.len());
        hints.extend(endpoints.take(room));
        drop(hints);
        self.notify.notify_one();
    }

    /// Everything said since the last time.
    pub fn take(&self) -> VecDeque<Endpoint> {
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *hints)
    }

    /// Waits until something is said.
    pub async fn said(&self) {
        self.notify.notified().await;
    }
}
