//! The memory that request bodies may take together, and what each of them has of it.
//!
//! * An eighth is for small bodies: a small call never waits for large ones, and takes its part with two additions.
//! * What the longest body can need is set aside for one body at a time. A share grows while its body arrives; two bodies
//!   that both have a part and wait for more would wait for each other until they are cut off. Whoever gets what is set
//!   aside gives back what it had, and never waits again.
//! * The rest is common. Of this and of the small part no account has more than a quarter: its other bodies wait for what is
//!   set aside, or for its own, and not the bodies of others for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

/// A body up to this size, its head included, takes from the part for small ones. Beyond it the share grows with what has
/// arrived, not with what was announced, so that callers who send nothing hold nothing.
pub const SMALL_BYTES: usize = 64 << 10;
/// The part for small bodies is one in so many of the whole.
const SMALL_PART: usize = 8;
/// An account has one in so many of the common and of the small part.
const ACCOUNT_PART: usize = 4;
/// Bytes that one permit stands for.
const UNIT: usize = 1024;

/// The memory that bodies may take.
#[derive(Debug)]
pub struct Room {
    small: AtomicUsize,
    small_max: usize,
    /// What large ones share, in units.
    common: Arc<Semaphore>,
    common_units: usize,
    /// One permit: all that the longest body can need.
    set_aside: Arc<Semaphore>,
    longest: usize,
}

/// What an account has taken of what all accounts share: memory for bodies, and connections with the provider.
#[derive(Debug, Default)]
pub struct AccountPart {
    small: AtomicUsize,
    large: AtomicUsize,
    /// Calls that are under way to the provider.
    calls: AtomicUsize,
    /// Told when some of the large part is given back.
    freed: Notify,
}

/// What one body may take, given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    room: Arc<Room>,
    account: Arc<AccountPart>,
    bytes: usize,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// `bytes` of the part for small bodies.
    Small,
    /// `bytes` of the common part.
    Common(Common),
    /// What is set aside.
    SetAside { _all: OwnedSemaphorePermit },
}

#[derive(Debug)]
struct Common {
    permit: OwnedSemaphorePermit,
    of_account: Taken,
}

/// A call of an account that is under way to the provider, until it is dropped.
#[derive(Debug)]
pub struct CallUnderWay(Arc<AccountPart>);

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AccountPart {
    /// Counts one more call, unless `max` of the account's are under way.
    pub fn begin_call(self: &Arc<Self>, max: usize) -> Option<CallUnderWay> {
        take(&self.calls, 1, max).then(|| CallUnderWay(Arc::clone(self)))
    }
}

/// Bytes that count for an account's large part.
#[derive(Debug)]
struct Taken {
    account: Arc<AccountPart>,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.account.large.fetch_sub(self.bytes, Ordering::SeqCst);
            self.account.freed.notify_waiters();
        }
    }
}

/// Adds, unless it would be more than `max` then.
fn take(taken: &AtomicUsize, bytes: usize, max: usize) -> bool {
    if taken.fetch_add(bytes, Ordering::SeqCst).saturating_add(bytes) <= max {
        return true;
    }
    taken.fetch_sub(bytes, Ordering::SeqCst);
    false
}

impl Room {
    /// Room for `most` bytes, of which the longest body takes no more than `longest` with its head: about half at most.
    #[must_use]
    pub fn new(most: usize, longest: usize) -> Self {
        let small_max = most / SMALL_PART;
        let common = most.saturating_sub(longest).saturating_sub(small_max);
        let common_units = (common / UNIT).min(Semaphore::MAX_PERMITS);
        Self {
            small: AtomicUsize::new(0),
            small_max,
            common: Arc::new(Semaphore::new(common_units)),
            common_units,
            set_aside: Arc::new(Semaphore::new(1)),
            longest,
        }
    }

    /// What bodies have taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        let common = self.common_units.saturating_sub(self.common.available_permits());
        let set_aside = 1_usize.saturating_sub(self.set_aside.available_permits());
        self.small.load(Ordering::Relaxed) + common * UNIT + set_aside * self.longest
    }

    /// Takes from the large part of an account.
    fn take_for(&self, account: &Arc<AccountPart>, bytes: usize) -> Option<Taken> {
        let max = self.common_units * UNIT / ACCOUNT_PART;
        take(&account.large, bytes, max).then(|| Taken {
            account: Arc::clone(account),
            bytes,
        })
    }
}

impl Share {
    /// Nothing yet, for a body of this account.
    #[must_use]
    pub const fn new(room: Arc<Room>, account: Arc<AccountPart>) -> Self {
        Self {
            room,
            account,
            bytes: 0,
            held: Held::Small,
        }
    }

    /// Whose body it is.
    #[must_use]
    pub const fn account(&self) -> &Arc<AccountPart> {
        &self.account
    }

    /// Grows so that `needed` bytes fit, and `hoped` ones where there is room for them now.
    ///
    /// # Errors
    /// When the room is closed, which it never is.
    pub async fn grow(&mut self, needed: usize, hoped: usize) -> Result<(), AcquireError> {
        let is_enough = needed <= self.bytes || matches!(self.held, Held::SetAside { .. });
        if is_enough || self.grow_small(needed) {
            return Ok(());
        }
        self.grow_large(needed, hoped).await
    }

    fn grow_small(&mut self, needed: usize) -> bool {
        if needed > SMALL_BYTES || !matches!(self.held, Held::Small) {
            return false;
        }
        let (more, room) = (needed - self.bytes, &self.room);
        if !take(&self.account.small, more, room.small_max / ACCOUNT_PART) {
            return false;
        }
        if !take(&room.small, more, room.small_max) {
            self.account.small.fetch_sub(more, Ordering::SeqCst);
            return false;
        }
        self.bytes = needed;
        true
    }

    async fn grow_large(&mut self, needed: usize, hoped: usize) -> Result<(), AcquireError> {
        let (room, account) = (Arc::clone(&self.room), Arc::clone(&self.account));
        let has = match self.held {
            Held::Small => 0,
            _ => self.bytes,
        };
        let (missing, wished) = (units(needed - has), units(hoped.max(needed) - has));
        if let Some(taken) = room.take_for(&account, in_bytes(wished))
            && let Ok(permit) = Arc::clone(&room.common).try_acquire_many_owned(wished)
        {
            self.add(permit, taken);
            return Ok(());
        }
        loop {
            let mut freed = std::pin::pin!(account.freed.notified());
            freed.as_mut().enable();
            let all = Arc::clone(&room.set_aside).acquire_owned();
            let Some(taken) = room.take_for(&account, in_bytes(missing)) else {
                tokio::select! {
                    biased;
                    () = freed => continue,
                    all = all => self.take_all(all?),
                }
                return Ok(());
            };
            tokio::select! {
                biased;
                permit = Arc::clone(&room.common).acquire_many_owned(missing) => self.add(permit?, taken),
                all = all => self.take_all(all?),
            }
            return Ok(());
        }
    }

    /// Adds to the common part; what it had of the small one is given back.
    fn add(&mut self, more: OwnedSemaphorePermit, mut taken: Taken) {
        self.give_back_small();
        self.bytes += taken.bytes;
        match &mut self.held {
            Held::Common(common) => {
                common.permit.merge(more);
                common.of_account.bytes += std::mem::take(&mut taken.bytes);
            }
            held => {
                *held = Held::Common(Common {
                    permit: more,
                    of_account: taken,
                });
            }
        }
    }

    /// Takes what is set aside in place of what it had.
    fn take_all(&mut self, all: OwnedSemaphorePermit) {
        self.give_back_small();
        self.bytes = self.room.longest;
        self.held = Held::SetAside { _all: all };
    }

    fn give_back_small(&mut self) {
        if matches!(self.held, Held::Small) && self.bytes > 0 {
            self.account.small.fetch_sub(self.bytes, Ordering::SeqCst);
            self.room.small.fetch_sub(self.bytes, Ordering::SeqCst);
            self.bytes = 0;
        }
    }

    /// Leaves what is set aside to the next body, now that this one is complete with `length` bytes, where there is other room
    /// for it: its call may take long.
    pub fn complete(&mut self, length: usize) {
        let units = units(length);
        if matches!(self.held, Held::SetAside { .. })
            && let Some(of_account) = self.room.take_for(&self.account, in_bytes(units))
            && let Ok(permit) = Arc::clone(&self.room.common).try_acquire_many_owned(units)
        {
            self.bytes = in_bytes(units);
            self.held = Held::Common(Common { permit, of_account });
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back_small();
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

    struct Scene {
        room: Arc<Room>,
        accounts: [Arc<AccountPart>; 2],
    }

    impl Scene {
        fn new(most: usize) -> Self {
            Self {
                room: Arc::new(Room::new(most, LONGEST)),
                accounts: Default::default(),
            }
        }

        /// A share of this many bytes of an account; `None` when it has to wait.
        fn share(&self, account: usize, bytes: usize) -> Option<Share> {
            let mut share = Share::new(Arc::clone(&self.room), Arc::clone(&self.accounts[account]));
            share.grow(bytes, bytes).now_or_never()?.unwrap();
            Some(share)
        }

        fn nothing_is_taken(&self) {
            let of_accounts = self
                .accounts
                .iter()
                .map(|account| account.small.load(Ordering::SeqCst) + account.large.load(Ordering::SeqCst));
            assert_eq!((self.room.taken(), of_accounts.sum::<usize>()), (0, 0));
        }
    }

    #[test]
    fn every_body_is_counted_and_small_ones_have_a_part_of_their_own() {
        let scene = Scene::new(16 * LONGEST);
        let large: Vec<_> = (0..8).map_while(|_| scene.share(0, LONGEST)).collect();
        assert!(scene.share(0, LONGEST).is_none(), "{} large ones", large.len());
        let before = scene.room.taken();
        let small = scene.share(0, 1000).unwrap();
        assert_eq!(scene.room.taken() - before, 1000);
        drop((small, large));
        scene.nothing_is_taken();
    }

    #[test]
    fn an_account_has_a_quarter_and_leaves_the_rest_to_others() {
        let scene = Scene::new(16 * LONGEST);
        // 13 MiB are common, 3.25 of them for an account; what is set aside takes one more.
        let held: Vec<_> = (0..8).map_while(|_| scene.share(0, LONGEST)).collect();
        assert_eq!(held.len(), 4);
        let others: Vec<_> = (0..3).map(|_| scene.share(1, LONGEST).unwrap()).collect();
        drop((held, others));
        // 2 MiB are for small bodies, half a MiB for those of an account; then it has some of the common part.
        let small: Vec<_> = (0..8).map(|_| scene.share(0, SMALL_BYTES).unwrap()).collect();
        assert_eq!(scene.accounts[0].large.load(Ordering::SeqCst), 0);
        let _more = scene.share(0, SMALL_BYTES).unwrap();
        assert_eq!(scene.accounts[0].large.load(Ordering::SeqCst), SMALL_BYTES);
        let _other = scene.share(1, SMALL_BYTES).unwrap();
        assert_eq!(scene.accounts[1].large.load(Ordering::SeqCst), 0);
        drop((small, _more, _other));
        scene.nothing_is_taken();
    }

    #[test]
    fn an_account_has_no_more_calls_under_way_than_its_part() {
        let scene = Scene::new(16 * LONGEST);
        let [one, other] = &scene.accounts;
        let mut under_way: Vec<_> = (0..3).map(|_| one.begin_call(3).unwrap()).collect();
        assert!(one.begin_call(3).is_none());
        assert!(other.begin_call(3).is_some());
        under_way.pop();
        assert!(one.begin_call(3).is_some(), "one has ended");
        drop(under_way);
        assert_eq!(one.calls.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_body_that_grows_gives_back_its_small_part() {
        let scene = Scene::new(16 * LONGEST);
        let mut share = scene.share(0, SMALL_BYTES).unwrap();
        assert_eq!(scene.room.small.load(Ordering::SeqCst), SMALL_BYTES);
        assert!(
            share
                .grow(SMALL_BYTES + 1, 2 * SMALL_BYTES)
                .now_or_never()
                .is_some()
        );
        assert_eq!(scene.room.small.load(Ordering::SeqCst), 0);
        assert_eq!(scene.room.taken(), 2 * SMALL_BYTES);
        drop(share);
        scene.nothing_is_taken();
    }

    #[test]
    fn a_small_body_that_grows_takes_only_what_is_added() {
        let scene = Scene::new(16 * LONGEST);
        let mut share = scene.share(0, 1000).unwrap();
        for (needed, taken) in [(3000, 3000), (2000, 3000), (SMALL_BYTES, SMALL_BYTES)] {
            share.grow(needed, needed).now_or_never().unwrap().unwrap();
            assert_eq!(scene.room.taken(), taken, "{needed}");
            assert_eq!(scene.accounts[0].small.load(Ordering::SeqCst), taken, "{needed}");
        }
        drop(share);
        scene.nothing_is_taken();
    }

    #[test]
    fn who_has_a_part_and_finds_no_more_takes_what_is_set_aside_and_gives_its_part_back() {
        // 0.75 MiB are common, 192 KiB of them for an account.
        let scene = Scene::new(2 * LONGEST);
        let (mut first, mut second) = (
            scene.share(0, 96 << 10).unwrap(),
            scene.share(0, 96 << 10).unwrap(),
        );
        assert!(first.grow(LONGEST, LONGEST).now_or_never().is_some(), "set aside");
        assert!(
            second.grow(192 << 10, LONGEST).now_or_never().is_some(),
            "what the first gave back"
        );
        assert!(scene.share(0, LONGEST).is_none(), "no room for a third");
        assert!(
            first.grow(LONGEST, LONGEST).now_or_never().is_some(),
            "never again"
        );
        assert!(scene.room.taken() <= 2 * LONGEST);
        drop(second);
        first.complete(128 << 10);
        assert_eq!(scene.room.taken(), 128 << 10, "it is set aside again");
        assert!(scene.share(0, LONGEST).is_some());
        drop(first);
        scene.nothing_is_taken();
    }

    #[tokio::test]
    async fn who_waits_gets_what_its_account_gives_back_and_leaves_nothing_when_it_gives_up() {
        let scene = Scene::new(16 * LONGEST);
        let mut held: Vec<_> = (0..8).map_while(|_| scene.share(0, LONGEST)).collect();
        let waiting = scene.share(0, LONGEST);
        assert!(waiting.is_none(), "and it gave up");
        let mut late = Share::new(Arc::clone(&scene.room), Arc::clone(&scene.accounts[0]));
        let mut grown = Box::pin(late.grow(LONGEST, LONGEST));
        assert!(futures::poll!(&mut grown).is_pending());
        held.remove(0);
        grown.await.unwrap();
        drop((held, late));
        scene.nothing_is_taken();
    }
}
