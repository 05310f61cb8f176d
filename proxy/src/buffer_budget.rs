//! Memory budget of request bodies, in three parts:
//!
//! * One eighth is for small bodies: a small call never waits for large ones, and reserves with two atomic additions.
//! * The reserve fits the longest body and is held by one body at a time. Reservations grow while their bodies arrive,
//!   so two bodies that hold memory and wait for more would deadlock until they time out. A body that gets the reserve
//!   returns what it held, and never waits again.
//!
//! The rest is common. An account gets at most a quarter of the common part and of the small part. Beyond that, its
//! bodies wait for the reserve or for its own earlier bodies; bodies of other accounts never wait for them.

use crate::account_usage::{AccountUsage, add_within};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Longest small body, its head included, in bytes. The reservation of a longer body grows with the bytes received, not
/// with the declared length, so that callers who send nothing hold nothing.
pub const SMALL_BYTES: usize = 64 << 10;
/// Share of small bodies in the budget: one eighth.
const SMALL_DIVISOR: usize = 8;
/// Share of one account in the common and in the small part: one quarter.
const ACCOUNT_DIVISOR: usize = 4;
/// Bytes per permit of the common part.
const UNIT: usize = 1024;

/// Memory budget of all request bodies.
#[derive(Debug)]
pub struct BufferBudget {
    small: AtomicUsize,
    small_max: usize,
    common: Arc<Semaphore>,
    common_units: usize,
    /// A semaphore of one permit. The permit stands for `longest` bytes.
    reserve: Arc<Semaphore>,
    longest: usize,
}

/// Reserved memory of one body, returned on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<BufferBudget>,
    account: Arc<AccountUsage>,
    bytes: usize,
    held: HeldMemory,
}

#[derive(Debug)]
enum HeldMemory {
    /// `bytes` of the small part.
    Small,
    /// `bytes` of the common part.
    Common(CommonMemory),
    /// The reserve. It replaces anything that the reservation held before.
    Reserve { _permit: OwnedSemaphorePermit },
}

#[derive(Debug)]
struct CommonMemory {
    permit: OwnedSemaphorePermit,
    account_bytes: AccountBytes,
}

/// Large memory of an account, returned on drop.
#[derive(Debug)]
struct AccountBytes {
    account: Arc<AccountUsage>,
    bytes: usize,
}

impl Drop for AccountBytes {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.account.large.fetch_sub(self.bytes, Ordering::SeqCst);
            self.account.freed.notify_waiters();
        }
    }
}

impl BufferBudget {
    /// Creates a budget of `most` bytes. `longest` is the length of the longest body with its head, at most about half
    /// of `most`.
    pub fn new(most: usize, longest: usize) -> Self {
        let small_max = most / SMALL_DIVISOR;
        let common = most.saturating_sub(longest).saturating_sub(small_max);
        let common_units = (common / UNIT).min(Semaphore::MAX_PERMITS);
        Self {
            small: AtomicUsize::new(0),
            small_max,
            common: Arc::new(Semaphore::new(common_units)),
            common_units,
            reserve: Arc::new(Semaphore::new(1)),
            longest,
        }
    }

    /// Returns the number of reserved bytes.
    pub fn taken(&self) -> usize {
        let common = self.common_units.saturating_sub(self.common.available_permits());
        let reserve = 1_usize.saturating_sub(self.reserve.available_permits());
        self.small.load(Ordering::Relaxed) + common * UNIT + reserve * self.longest
    }

    /// Counts `bytes` for an account; `None` beyond its share of the common part.
    fn take_large(&self, account: &Arc<AccountUsage>, bytes: usize) -> Option<AccountBytes> {
        let max = self.common_units * UNIT / ACCOUNT_DIVISOR;
        add_within(&account.large, bytes, max).then(|| AccountBytes {
            account: Arc::clone(account),
            bytes,
        })
    }
}

impl Reservation {
    /// Creates an empty reservation for a body of `account`.
    pub const fn new(budget: Arc<BufferBudget>, account: Arc<AccountUsage>) -> Self {
        Self {
            budget,
            account,
            bytes: 0,
            held: HeldMemory::Small,
        }
    }

    /// Returns the usage of the account that sent the body.
    pub const fn account(&self) -> &Arc<AccountUsage> {
        &self.account
    }

    /// Grows to at least `needed` bytes, and to `wanted` bytes if they are free now. Waits for memory otherwise.
    ///
    /// # Errors
    /// [`AcquireError`] if a semaphore is closed. No code closes one.
    pub async fn grow(&mut self, needed: usize, wanted: usize) -> Result<(), AcquireError> {
        let is_enough = needed <= self.bytes || matches!(self.held, HeldMemory::Reserve { .. });
        if is_enough || self.grow_small(needed) {
            return Ok(());
        }
        self.grow_large(needed, wanted).await
    }

    fn grow_small(&mut self, needed: usize) -> bool {
        if needed > SMALL_BYTES || !matches!(self.held, HeldMemory::Small) {
            return false;
        }
        let (more, budget) = (needed - self.bytes, &self.budget);
        if !add_within(&self.account.small, more, budget.small_max / ACCOUNT_DIVISOR) {
            return false;
        }
        if !add_within(&budget.small, more, budget.small_max) {
            self.account.small.fetch_sub(more, Ordering::SeqCst);
            return false;
        }
        self.bytes = needed;
        true
    }

    async fn grow_large(&mut self, needed: usize, wanted: usize) -> Result<(), AcquireError> {
        let (budget, account) = (Arc::clone(&self.budget), Arc::clone(&self.account));
        let has = match self.held {
            HeldMemory::Small => 0,
            _ => self.bytes,
        };
        let (missing, wished) = (units(needed - has), units(wanted.max(needed) - has));
        if let Some(taken) = budget.take_large(&account, in_bytes(wished))
            && let Ok(permit) = Arc::clone(&budget.common).try_acquire_many_owned(wished)
        {
            self.add(permit, taken);
            return Ok(());
        }
        // Created once: it has the place of this body among those that wait for the reserve.
        let mut reserve = std::pin::pin!(Arc::clone(&budget.reserve).acquire_owned());
        loop {
            let mut freed = std::pin::pin!(account.freed.notified());
            freed.as_mut().enable();
            let Some(taken) = budget.take_large(&account, in_bytes(missing)) else {
                tokio::select! {
                    biased;
                    () = freed => continue,
                    permit = &mut reserve => self.take_reserve(permit?),
                }
                return Ok(());
            };
            tokio::select! {
                biased;
                permit = Arc::clone(&budget.common).acquire_many_owned(missing) => self.add(permit?, taken),
                permit = &mut reserve => self.take_reserve(permit?),
            }
            return Ok(());
        }
    }

    /// Adds common memory, and returns any small memory that the reservation held.
    fn add(&mut self, more: OwnedSemaphorePermit, mut taken: AccountBytes) {
        self.return_small();
        self.bytes += taken.bytes;
        match &mut self.held {
            HeldMemory::Common(common) => {
                common.permit.merge(more);
                common.account_bytes.bytes += std::mem::take(&mut taken.bytes);
            }
            held => {
                *held = HeldMemory::Common(CommonMemory {
                    permit: more,
                    account_bytes: taken,
                });
            }
        }
    }

    /// Takes the reserve, and returns any other memory that the reservation held.
    fn take_reserve(&mut self, permit: OwnedSemaphorePermit) {
        self.return_small();
        self.bytes = self.budget.longest;
        self.held = HeldMemory::Reserve { _permit: permit };
    }

    fn return_small(&mut self) {
        if matches!(self.held, HeldMemory::Small) && self.bytes > 0 {
            self.account.small.fetch_sub(self.bytes, Ordering::SeqCst);
            self.budget.small.fetch_sub(self.bytes, Ordering::SeqCst);
            self.bytes = 0;
        }
    }

    /// Moves a complete body of `length` bytes from the reserve to the common part if that has room. The call may take
    /// long, and the next long body needs the reserve.
    pub fn leave_reserve(&mut self, length: usize) {
        let units = units(length);
        if matches!(self.held, HeldMemory::Reserve { .. })
            && let Some(account_bytes) = self.budget.take_large(&self.account, in_bytes(units))
            && let Ok(permit) = Arc::clone(&self.budget.common).try_acquire_many_owned(units)
        {
            self.bytes = in_bytes(units);
            self.held = HeldMemory::Common(CommonMemory {
                permit,
                account_bytes,
            });
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.return_small();
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

const fn in_bytes(units: u32) -> usize {
    units as usize * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const LONGEST: usize = 1 << 20;

    struct Fixture {
        budget: Arc<BufferBudget>,
        accounts: [Arc<AccountUsage>; 2],
    }

    impl Fixture {
        fn new(most: usize) -> Self {
            Self {
                budget: Arc::new(BufferBudget::new(most, LONGEST)),
                accounts: Default::default(),
            }
        }

        /// Returns a reservation of `bytes` bytes for an account; `None` if it has to wait.
        fn reservation(&self, account: usize, bytes: usize) -> Option<Reservation> {
            let mut reservation =
                Reservation::new(Arc::clone(&self.budget), Arc::clone(&self.accounts[account]));
            reservation.grow(bytes, bytes).now_or_never()?.unwrap();
            Some(reservation)
        }

        fn assert_nothing_taken(&self) {
            let of_accounts = self
                .accounts
                .iter()
                .map(|account| account.small.load(Ordering::SeqCst) + account.large.load(Ordering::SeqCst));
            assert_eq!((self.budget.taken(), of_accounts.sum::<usize>()), (0, 0));
        }
    }

    #[test]
    fn every_body_is_counted_and_small_ones_have_a_part_of_their_own() {
        let fixture = Fixture::new(16 * LONGEST);
        let large: Vec<_> = (0..8).map_while(|_| fixture.reservation(0, LONGEST)).collect();
        assert!(
            fixture.reservation(0, LONGEST).is_none(),
            "{} large ones",
            large.len()
        );
        let before = fixture.budget.taken();
        let small = fixture.reservation(0, 1000).unwrap();
        assert_eq!(fixture.budget.taken() - before, 1000);
        drop((small, large));
        fixture.assert_nothing_taken();
    }

    #[test]
    fn an_account_gets_a_quarter_and_leaves_the_rest_to_others() {
        let fixture = Fixture::new(16 * LONGEST);
        // The common part has 13 MiB, of which one account may take 3.25 MiB. One more body fits into the reserve.
        let held: Vec<_> = (0..8).map_while(|_| fixture.reservation(0, LONGEST)).collect();
        assert_eq!(held.len(), 4);
        let others: Vec<_> = (0..3).map(|_| fixture.reservation(1, LONGEST).unwrap()).collect();
        drop((held, others));
        // The small part has 2 MiB, of which one account may take 512 KiB. Further bodies take common memory.
        let small: Vec<_> = (0..8)
            .map(|_| fixture.reservation(0, SMALL_BYTES).unwrap())
            .collect();
        assert_eq!(fixture.accounts[0].large.load(Ordering::SeqCst), 0);
        let _more = fixture.reservation(0, SMALL_BYTES).unwrap();
        assert_eq!(fixture.accounts[0].large.load(Ordering::SeqCst), SMALL_BYTES);
        let _other = fixture.reservation(1, SMALL_BYTES).unwrap();
        assert_eq!(fixture.accounts[1].large.load(Ordering::SeqCst), 0);
        drop((small, _more, _other));
        fixture.assert_nothing_taken();
    }

    #[test]
    fn a_body_that_grows_returns_its_small_memory() {
        let fixture = Fixture::new(16 * LONGEST);
        let mut reservation = fixture.reservation(0, SMALL_BYTES).unwrap();
        assert_eq!(fixture.budget.small.load(Ordering::SeqCst), SMALL_BYTES);
        assert!(
            reservation
                .grow(SMALL_BYTES + 1, 2 * SMALL_BYTES)
                .now_or_never()
                .is_some()
        );
        assert_eq!(fixture.budget.small.load(Ordering::SeqCst), 0);
        assert_eq!(fixture.budget.taken(), 2 * SMALL_BYTES);
        let grown = reservation.grow(3 * SMALL_BYTES, 4 * SMALL_BYTES).now_or_never();
        grown.unwrap().unwrap();
        assert_eq!(fixture.budget.taken(), 4 * SMALL_BYTES, "what it has counts");
        drop(reservation);
        fixture.assert_nothing_taken();
    }

    #[test]
    fn a_small_body_reserves_only_what_is_added() {
        let fixture = Fixture::new(16 * LONGEST);
        let mut reservation = fixture.reservation(0, 1000).unwrap();
        for (needed, taken) in [(3000, 3000), (2000, 3000), (SMALL_BYTES, SMALL_BYTES)] {
            reservation.grow(needed, needed).now_or_never().unwrap().unwrap();
            assert_eq!(fixture.budget.taken(), taken, "{needed}");
            assert_eq!(
                fixture.accounts[0].small.load(Ordering::SeqCst),
                taken,
                "{needed}"
            );
        }
        drop(reservation);
        fixture.assert_nothing_taken();
    }

    #[test]
    fn a_body_that_finds_no_more_memory_gets_the_reserve_and_returns_what_it_held() {
        // The common part has 0.75 MiB, of which one account may take 192 KiB.
        let fixture = Fixture::new(2 * LONGEST);
        let (mut first, mut second) = (
            fixture.reservation(0, 96 << 10).unwrap(),
            fixture.reservation(0, 96 << 10).unwrap(),
        );
        assert!(
            first.grow(LONGEST, LONGEST).now_or_never().is_some(),
            "the reserve"
        );
        assert!(
            second.grow(192 << 10, LONGEST).now_or_never().is_some(),
            "what the first returned"
        );
        assert!(fixture.reservation(0, LONGEST).is_none(), "no budget for a third");
        assert!(
            first.grow(LONGEST, LONGEST).now_or_never().is_some(),
            "never waits again"
        );
        assert!(fixture.budget.taken() <= 2 * LONGEST);
        drop(second);
        first.leave_reserve(128 << 10);
        assert_eq!(fixture.budget.taken(), 128 << 10, "the reserve is free again");
        assert!(fixture.reservation(0, LONGEST).is_some());
        drop(first);
        fixture.assert_nothing_taken();
    }

    #[tokio::test]
    async fn a_waiting_body_gets_what_its_account_returns_and_leaves_nothing_when_it_gives_up() {
        let fixture = Fixture::new(16 * LONGEST);
        let mut held: Vec<_> = (0..8).map_while(|_| fixture.reservation(0, LONGEST)).collect();
        let waiting = fixture.reservation(0, LONGEST);
        assert!(waiting.is_none(), "and it gave up");
        let mut late = Reservation::new(Arc::clone(&fixture.budget), Arc::clone(&fixture.accounts[0]));
        let mut grown = Box::pin(late.grow(LONGEST, LONGEST));
        assert!(futures::poll!(&mut grown).is_pending());
        held.remove(0);
        grown.await.unwrap();
        drop((held, late));
        fixture.assert_nothing_taken();
    }

    /// Each end of a body wakes the waiting bodies of its account, and may free too little for them.
    #[tokio::test]
    async fn a_waiting_body_keeps_its_place_for_the_reserve_while_others_of_its_account_end() {
        let fixture = Fixture::new(16 * LONGEST);
        let held: Vec<_> = (0..3).map(|_| fixture.reservation(0, LONGEST).unwrap()).collect();
        let short = fixture.reservation(0, 2 * SMALL_BYTES).unwrap();
        let reserve = fixture.reservation(0, LONGEST).unwrap();
        let others: Vec<_> = (0..3).map(|_| fixture.reservation(1, LONGEST).unwrap()).collect();
        let new = |account: usize| {
            Reservation::new(
                Arc::clone(&fixture.budget),
                Arc::clone(&fixture.accounts[account]),
            )
        };
        let (mut first, mut second) = (new(0), new(1));
        let mut first_grown = Box::pin(first.grow(LONGEST, LONGEST));
        let mut second_grown = Box::pin(second.grow(LONGEST, LONGEST));
        assert!(futures::poll!(&mut first_grown).is_pending());
        assert!(futures::poll!(&mut second_grown).is_pending());
        drop(short);
        assert!(futures::poll!(&mut first_grown).is_pending(), "too little");
        drop(reserve);
        assert!(futures::poll!(&mut second_grown).is_pending(), "it came later");
        assert!(futures::poll!(&mut first_grown).is_ready());
        drop(first_grown);
        drop(first);
        assert!(futures::poll!(&mut second_grown).is_ready());
        drop(second_grown);
        drop((second, held, others));
        fixture.assert_nothing_taken();
    }
}
