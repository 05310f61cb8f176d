//! In-process hints for the deliverer: which webhooks have pending deliveries. Best effort: the deliverer's next scan
//! of the store finds the deliveries that a hint missed.

use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use store::webhook::script::WebhookLocation;
use tokio::sync::Notify;

/// Maximum number of webhooks remembered.
const HINTS_MAX: usize = 10_000;

/// Webhooks in the order of their hints, without duplicates, at most [`HINTS_MAX`].
#[derive(Debug, Default)]
pub struct Hints {
    order: VecDeque<WebhookLocation>,
    known: HashSet<WebhookLocation>,
}

impl Hints {
    /// Appends a webhook, unless it is already present or there is no room: then the next scan of the store finds it.
    pub fn push(&mut self, endpoint: WebhookLocation) {
        if self.order.len() < HINTS_MAX && self.known.insert(endpoint.clone()) {
            self.order.push_back(endpoint);
        }
    }

    /// Removes and returns the first one.
    pub fn pop(&mut self) -> Option<WebhookLocation> {
        let first = self.order.pop_front()?;
        self.known.remove(&first);
        Some(first)
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// Hints for the deliverer of the same process.
#[derive(Debug, Default)]
pub struct PendingHints {
    hints: Mutex<Hints>,
    notify: Notify,
}

impl PendingHints {
    /// Adds webhooks that have something to deliver.
    pub fn add(&self, endpoints: impl Iterator<Item = WebhookLocation>) {
        let mut hints = self.hints.lock();
        for endpoint in endpoints {
            hints.push(endpoint);
        }
        drop(hints);
        self.notify.notify_one();
    }

    /// Takes everything added since the last call.
    pub fn take(&self) -> Hints {
        let mut hints = self.hints.lock();
        std::mem::take(&mut *hints)
    }

    /// Waits until something is added.
    pub async fn added(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::mode::Mode;
    use store::keys::Realm;

    fn endpoint(number: usize) -> WebhookLocation {
        WebhookLocation {
            realm: Realm::new("acct_1", Mode::Live),
            webhook: format!("wh_{number}"),
        }
    }

    #[test]
    fn a_webhook_waits_once_and_their_number_is_bounded() {
        let mut hints = Hints::default();
        for number in [1, 2, 1] {
            hints.push(endpoint(number));
        }
        assert_eq!(hints.len(), 2);
        assert_eq!(hints.pop(), Some(endpoint(1)));
        hints.push(endpoint(1));
        assert_eq!((hints.pop(), hints.pop()), (Some(endpoint(2)), Some(endpoint(1))));
        for number in 0..HINTS_MAX + 5 {
            hints.push(endpoint(number));
        }
        assert_eq!(hints.len(), HINTS_MAX);
    }
}
