//! Limit on connections to providers: one for all upstreams together and, if there are several, one for each, so that a
//! slow upstream leaves connections to the others.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// If there are several upstreams, each gets at most this many quarters of all connections.
const QUARTERS_MAX: usize = 3;

/// Connections that an upstream may still open.
#[derive(Debug, Clone)]
pub struct ConnectionBudget {
    /// Connections left for all upstreams together.
    all: Arc<Semaphore>,
    /// Connections left for this upstream.
    own: Arc<Semaphore>,
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl ConnectionBudget {
    /// Divides `max` connections among `upstreams`. A single upstream gets all of them.
    pub fn divide(max: usize, upstreams: usize) -> impl Iterator<Item = Self> {
        let max = max.min(Semaphore::MAX_PERMITS);
        let own = match upstreams {
            0 | 1 => max,
            _ => (max / 4 * QUARTERS_MAX).max(1),
        };
        let all = Arc::new(Semaphore::new(max));
        (0..upstreams).map(move |_| Self {
            all: Arc::clone(&all),
            own: Arc::new(Semaphore::new(own)),
        })
    }

    /// Takes one connection, if one is left.
    pub fn try_take(&self) -> Option<ConnectionPermit> {
        let take = |from: &Arc<Semaphore>| Arc::clone(from).try_acquire_owned().ok();
        Some(ConnectionPermit {
            _own: take(&self.own)?,
            _all: take(&self.all)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all connections that are left.
    fn drain(budget: &ConnectionBudget) -> Vec<ConnectionPermit> {
        std::iter::from_fn(|| budget.try_take()).collect()
    }

    #[test]
    fn a_single_upstream_has_all_connections() {
        let budgets: Vec<_> = ConnectionBudget::divide(8, 1).collect();
        assert_eq!((budgets.len(), drain(&budgets[0]).len()), (1, 8));
    }

    #[test]
    fn one_of_several_leaves_a_quarter_and_all_together_are_bounded() {
        let budgets: Vec<_> = ConnectionBudget::divide(8, 3).collect();
        let slow = drain(&budgets[0]);
        let rest = drain(&budgets[1]);
        assert_eq!((slow.len(), rest.len(), drain(&budgets[2]).len()), (6, 2, 0));
        drop(slow);
        assert_eq!(drain(&budgets[2]).len(), 6, "they are returned");
        assert_eq!(drain(&budgets[1]).len(), 4, "with its two");
        let least: Vec<_> = ConnectionBudget::divide(1, 2).collect();
        let only = least[0].try_take();
        assert!(only.is_some() && least[1].try_take().is_none());
    }
}
