//! Turns at addresses: an account has a bounded number of attempts under way at one address, however many webhooks lead
//! there. Else its webhooks would make of one event as many requests at once to somebody else's server.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Number of addresses from which on those without attempts are forgotten.
const PLACES_MAX: usize = 1024;

/// The turn of one attempt; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct AddressTurn {
    _permit: OwnedSemaphorePermit,
}

/// The turns of all accounts.
#[derive(Debug)]
pub(super) struct AddressTurns {
    at_once: usize,
    places: Mutex<HashMap<(String, SocketAddr), Weak<Semaphore>>>,
}

impl AddressTurns {
    /// `at_once` is the number of attempts of an account at one address.
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            at_once,
            places: Mutex::default(),
        }
    }

    /// Waits for a turn, in the order of the callers; `None` if there is none until then.
    pub(super) async fn enter(
        &self,
        account: &str,
        address: SocketAddr,
        until: Instant,
    ) -> Option<AddressTurn> {
        let turn = self.place(account, address).acquire_owned();
        let turn = timeout_at(until, turn).await.ok()?;
        turn.ok().map(|permit| AddressTurn { _permit: permit })
    }

    /// Takes a turn if one is free.
    pub(super) fn try_enter(&self, account: &str, address: SocketAddr) -> Option<AddressTurn> {
        let turn = self.place(account, address).try_acquire_owned();
        turn.ok().map(|permit| AddressTurn { _permit: permit })
    }

    fn place(&self, account: &str, address: SocketAddr) -> Arc<Semaphore> {
        let mut places = self.places.lock();
        let name = (account.to_owned(), address);
        if let Some(place) = places.get(&name).and_then(Weak::upgrade) {
            return place;
        }
        if places.len() >= PLACES_MAX {
            places.retain(|_, place| place.strong_count() > 0);
        }
        let place = Arc::new(Semaphore::new(self.at_once));
        places.insert(name, Arc::downgrade(&place));
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([203, 0, 113, 7], port))
    }

    #[tokio::test]
    async fn an_account_has_a_bounded_number_of_turns_at_an_address() {
        let turns = AddressTurns::new(2);
        let soon = || Instant::now() + Duration::from_millis(50);
        let first = turns.enter("a", address(443), soon()).await.unwrap();
        let _second = turns.try_enter("a", address(443)).unwrap();
        assert!(turns.try_enter("a", address(443)).is_none());
        assert!(turns.enter("a", address(443), soon()).await.is_none());
        assert!(turns.try_enter("b", address(443)).is_some(), "another account");
        assert!(turns.try_enter("a", address(444)).is_some(), "another address");
        let (third, ()) = tokio::join!(turns.enter("a", address(443), soon()), async { drop(first) });
        assert!(third.is_some(), "a turn that ended is free");
    }

    #[test]
    fn addresses_without_attempts_are_forgotten() {
        let turns = AddressTurns::new(1);
        let held = turns.try_enter("a", address(0)).unwrap();
        for port in 1..=3 * PLACES_MAX as u16 {
            assert!(turns.try_enter("a", address(port)).is_some());
            assert!(turns.places.lock().len() <= PLACES_MAX);
        }
        assert!(turns.try_enter("a", address(0)).is_none(), "it is under way");
        drop(held);
        assert!(turns.try_enter("a", address(0)).is_some());
    }
}
