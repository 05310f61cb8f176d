//! Why the store cannot be used now, for `/readyz`. Each reason is logged once, and so is the end.

use parking_lot::{Mutex, MutexGuard};
use std::mem::discriminant;
use store::sanity::UntrustedStore;
use telemetry::error_chain;

/// Maximum number of logged reasons in one outage, so that a store with changing faults does not fill the log.
const LOGGED_MAX: usize = 16;

/// The outage of the store, if there is one.
#[derive(Debug, Default)]
pub struct Outage {
    /// Address of the store without user and password; `None` if it is unknown.
    address: Option<String>,
    state: Mutex<OutageState>,
}

#[derive(Debug, Default)]
struct OutageState {
    /// `None` while the store may be used, and before the first check.
    reason: Option<String>,
    /// Reasons of this outage that were logged.
    logged: Vec<String>,
}

impl Outage {
    /// Creates the state without an outage, for the store at `address`.
    pub fn new(address: Option<String>) -> Self {
        Self {
            address,
            state: Mutex::default(),
        }
    }

    /// Returns why the store cannot be used now, with its address.
    pub fn reason(&self) -> Option<String> {
        self.state().reason.clone()
    }

    /// Records why the store cannot be used. Logs a reason that is new in this outage.
    pub fn record(&self, error: &UntrustedStore) {
        let mut reason = error_chain(error);
        // The other reasons contain numbers that change with each check.
        let kind = match error.is_unreachable() {
            true => reason.clone(),
            false => format!("{:?}", discriminant(error)),
        };
        if let Some(address) = &self.address {
            reason = format!("{reason}; the store's address is {address}");
        }
        let mut state = self.state();
        if !state.logged.contains(&kind) && state.logged.len() < LOGGED_MAX {
            tracing::error!(error = reason, "every call is denied");
            state.logged.push(kind);
        }
        state.reason = Some(reason);
    }

    /// Ends the outage.
    pub fn end(&self) {
        let mut state = self.state();
        if state.reason.is_some() {
            *state = OutageState::default();
            tracing::info!("the store may be used again");
        }
    }

    fn state(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::StoreError;

    fn logged(outage: &Outage) -> usize {
        outage.state().logged.len()
    }

    #[test]
    fn the_last_reason_is_shown_and_each_is_logged_once() {
        let outage = Outage::new(Some("redis://s:1".to_owned()));
        assert_eq!(outage.reason(), None);
        let refused = || StoreError::NotConnected(std::io::Error::other("refused").into());
        for _ in 0..3 {
            outage.record(&refused().into());
            assert!(outage.reason().unwrap().contains("refused"));
            assert!(outage.reason().unwrap().ends_with("address is redis://s:1"));
            outage.record(&StoreError::NoAnswer(None).into());
            assert!(!outage.reason().unwrap().contains("refused"));
        }
        assert_eq!(logged(&outage), 2);
        for lost in 1..5 {
            outage.record(&UntrustedStore::RejectedWrites(lost));
        }
        assert_eq!(logged(&outage), 3, "one for all counts");
        for at in 0..2 * LOGGED_MAX {
            outage.record(&StoreError::unexpected(at).into());
        }
        assert_eq!(logged(&outage), LOGGED_MAX);
        outage.end();
        assert_eq!((outage.reason(), logged(&outage)), (None, 0));
    }
}
