//! The memory that request bodies may take together, and what each of them has of it.
//!
//! A share grows while its body arrives. Two bodies that both have a part and wait for more would wait for each other until
//! they are cut off, so what the longest body can need is set aside for one body at a time: whoever gets it gives back what
//! it had, and never waits again.

use std::sync::Arc;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// A body up to this size takes no share of the memory for bodies: a small call never waits for large ones. Beyond it the
/// share grows with what has arrived, not with what was announced, so that callers who send nothing hold nothing.
pub const FREE_BYTES: usize = 64 << 10;
/// Bytes that one permit stands for.
const UNIT: usize = 1024;

/// The memory that bodies may take.
#[derive(Debug)]
pub struct Room {
    /// What they share, in units.
    common: Arc<Semaphore>,
    common_units: usize,
    /// One permit: all that the longest body can need.
    set_aside: Arc<Semaphore>,
    longest: usize,
}

/// What one body may take.
#[derive(Debug)]
pub struct Share {
    bytes: usize,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Nothing,
    Part(OwnedSemaphorePermit),
    SetAside { _all: OwnedSemaphorePermit },
}

impl Room {
    /// Room for this many bytes, of which the longest body takes no more than `longest`.
    #[must_use]
    pub fn new(most: usize, longest: usize) -> Self {
        let common_units = (most.saturating_sub(longest) / UNIT).min(Semaphore::MAX_PERMITS);
        Self {
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
        common * UNIT + set_aside * self.longest
    }
}

impl Share {
    /// What every body may take.
    #[must_use]
    pub const fn free() -> Self {
        Self {
            bytes: FREE_BYTES,
            held: Held::Nothing,
        }
    }

    /// Whether it is of what every body may take.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        matches!(self.held, Held::Nothing)
    }

    /// Grows so that `needed` bytes fit, and `hoped` ones where there is room for them now.
    ///
    /// # Errors
    /// When the room is closed, which it never is.
    pub async fn grow(&mut self, room: &Room, needed: usize, hoped: usize) -> Result<(), AcquireError> {
        if needed <= self.bytes {
            return Ok(());
        }
        let at_once =
            Arc::clone(&room.common).try_acquire_many_owned(units(hoped.saturating_sub(self.bytes)));
        if let Ok(more) = at_once {
            self.add(more, hoped);
            return Ok(());
        }
        let missing = units(needed - self.bytes);
        tokio::select! {
            biased;
            more = Arc::clone(&room.common).acquire_many_owned(missing) => self.add(more?, needed),
            all = Arc::clone(&room.set_aside).acquire_owned() => {
                *self = Self { bytes: room.longest, held: Held::SetAside { _all: all? } };
            }
        }
        Ok(())
    }

    fn add(&mut self, more: OwnedSemaphorePermit, bytes: usize) {
        match &mut self.held {
            Held::Part(part) => part.merge(more),
            held => *held = Held::Part(more),
        }
        self.bytes = bytes;
    }

    /// Leaves what is set aside to the next body, now that this one is complete with `length` bytes, where there is other room
    /// for it: its call may take long.
    pub fn complete(&mut self, room: &Room, length: usize) {
        if matches!(self.held, Held::SetAside { .. })
            && let Ok(part) = Arc::clone(&room.common).try_acquire_many_owned(units(length))
        {
            *self = Self {
                bytes: length,
                held: Held::Part(part),
            };
        }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const LONGEST: usize = 1 << 20;

    /// A share of this many bytes; `None` when it has to wait.
    fn share(room: &Room, bytes: usize) -> Option<Share> {
        let mut share = Share::free();
        let grown = share.grow(room, bytes, bytes).now_or_never()?;
        grown.unwrap();
        Some(share)
    }

    #[test]
    fn a_small_body_takes_nothing() {
        let room = Room::new(LONGEST, LONGEST);
        let held: Vec<_> = (0..1000).map(|_| share(&room, FREE_BYTES).unwrap()).collect();
        assert_eq!((room.taken(), held.len()), (0, 1000));
    }

    #[test]
    fn who_has_a_part_and_finds_no_more_takes_what_is_set_aside_and_gives_its_part_back() {
        let room = Room::new(2 * LONGEST, LONGEST);
        let (mut first, mut second) = (
            share(&room, LONGEST / 2).unwrap(),
            share(&room, LONGEST / 2).unwrap(),
        );
        let more = LONGEST - FREE_BYTES;
        assert!(
            first.grow(&room, more, more).now_or_never().is_some(),
            "set aside"
        );
        assert!(
            second.grow(&room, more, more).now_or_never().is_some(),
            "what the first gave back"
        );
        assert!(share(&room, LONGEST).is_none(), "no room for a third");
        assert!(
            first.grow(&room, LONGEST, LONGEST).now_or_never().is_some(),
            "never again"
        );
        assert!(room.taken() <= 2 * LONGEST);
        drop(second);
        first.complete(&room, LONGEST);
        assert_eq!(room.taken(), LONGEST, "it is set aside again");
        assert!(share(&room, LONGEST).is_some());
        drop(first);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn where_room_is_scarce_one_takes_no_more_than_it_needs() {
        let room = Room::new(2 * LONGEST, LONGEST);
        let full = share(&room, LONGEST + FREE_BYTES).unwrap();
        let _set_aside = share(&room, LONGEST).unwrap();
        drop(full);
        let mut large = Share::free();
        let grown = large.grow(&room, 2 * FREE_BYTES, 2 * LONGEST).now_or_never();
        assert!(grown.is_some() && large.bytes == 2 * FREE_BYTES);
        assert!(share(&room, LONGEST / 2).is_some());
    }
}
