//! Limit on attempts at one address: an account has a bounded number of attempts under way at one address, however many
//! webhooks lead there. Else its webhooks would make of one event as many requests at once to somebody else's server.

use keyed_limit::{KeyedLimiter, Queued};
use std::net::SocketAddr;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

type AccountAddress = (String, SocketAddr);

/// Permission for one attempt, until it is dropped.
#[derive(Debug)]
pub(super) struct AddressPermit {
    _permit: OwnedSemaphorePermit,
    _queued: Queued<AccountAddress>,
}

#[derive(Debug)]
pub(super) struct AddressLimiter(KeyedLimiter<AccountAddress>);

impl AddressLimiter {
    /// `at_once` is the number of attempts of an account at one address. How many wait is bounded by the attempts that
    /// a server has under way.
    pub(super) fn new(at_once: usize) -> Self {
        Self(KeyedLimiter::new(at_once, usize::MAX))
    }

    /// Waits for a permit, in the order of the callers; `None` if there is none until then.
    pub(super) async fn enter(
        &self,
        account: &str,
        address: SocketAddr,
        until: Instant,
    ) -> Option<AddressPermit> {
        let queued = self.0.enter((account.to_owned(), address)).ok()?;
        let permit = timeout_at(until, queued.acquire()).await.ok()??;
        Some(AddressPermit {
            _permit: permit,
            _queued: queued,
        })
    }

    /// Takes a permit if one is free.
    pub(super) fn try_enter(&self, account: &str, address: SocketAddr) -> Option<AddressPermit> {
        let queued = self.0.enter((account.to_owned(), address)).ok()?;
        let permit = queued.try_acquire()?;
        Some(AddressPermit {
            _permit: permit,
            _queued: queued,
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
        let limiter = AddressLimiter::new(2);
        let soon = || Instant::now() + Duration::from_millis(50);
        let first = limiter.enter("a", address(443), soon()).await.unwrap();
        let _second = limiter.try_enter("a", address(443)).unwrap();
        assert!(limiter.try_enter("a", address(443)).is_none());
        assert!(limiter.enter("a", address(443), soon()).await.is_none());
        assert!(limiter.try_enter("b", address(443)).is_some(), "another account");
        assert!(limiter.try_enter("a", address(444)).is_some(), "another address");
        let (third, ()) = tokio::join!(limiter.enter("a", address(443), soon()), async { drop(first) });
        assert!(third.is_some(), "a turn that ended is free");
    }

    #[test]
    fn addresses_without_attempts_are_forgotten() {
        let limiter = AddressLimiter::new(1);
        let held = limiter.try_enter("a", address(0)).unwrap();
        for port in 1..=3000 {
            assert!(limiter.try_enter("a", address(port)).is_some());
            assert_eq!(limiter.0.names(), 1);
        }
        assert!(limiter.try_enter("a", address(0)).is_none(), "it is under way");
        drop(held);
        assert!(limiter.try_enter("a", address(0)).is_some());
    }
}
