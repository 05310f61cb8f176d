//! Turns at addresses: an account has a bounded number of attempts under way at one address, however many webhooks lead
//! there. Else its webhooks would make of one event as many requests at once to somebody else's server.

use std::net::SocketAddr;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use turns::{Turn, Turns};

/// An account and an address.
type Place = (String, SocketAddr);

/// The turn of one attempt; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct AddressTurn {
    _permit: OwnedSemaphorePermit,
    _turn: Turn<Place>,
}

/// The turns of all accounts.
#[derive(Debug)]
pub(super) struct AddressTurns(Turns<Place>);

impl AddressTurns {
    /// `at_once` is the number of attempts of an account at one address. How many wait is bounded by the attempts that
    /// a server has under way.
    pub(super) fn new(at_once: usize) -> Self {
        Self(Turns::new(at_once, usize::MAX))
    }

    /// Waits for a turn, in the order of the callers; `None` if there is none until then.
    pub(super) async fn enter(
        &self,
        account: &str,
        address: SocketAddr,
        until: Instant,
    ) -> Option<AddressTurn> {
        let turn = self.0.enter((account.to_owned(), address)).ok()?;
        let permit = timeout_at(until, turn.acquire()).await.ok()??;
        Some(AddressTurn {
            _permit: permit,
            _turn: turn,
        })
    }

    /// Takes a turn if one is free.
    pub(super) fn try_enter(&self, account: &str, address: SocketAddr) -> Option<AddressTurn> {
        let turn = self.0.enter((account.to_owned(), address)).ok()?;
        let permit = turn.try_acquire()?;
        Some(AddressTurn {
            _permit: permit,
            _turn: turn,
        })
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
        for port in 1..=3000 {
            assert!(turns.try_enter("a", address(port)).is_some());
            assert_eq!(turns.0.names(), 1);
        }
        assert!(turns.try_enter("a", address(0)).is_none(), "it is under way");
        drop(held);
        assert!(turns.try_enter("a", address(0)).is_some());
    }
}
