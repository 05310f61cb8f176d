//! Log lines of requests that no limit of a plan bounds: a source has a number of them a second, and its next line says
//! how many were left out. Otherwise a stranger, or a key over its rate, fills the disk with lines.

use parking_lot::Mutex;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Lines of one source in a second.
pub const LINES_PER_SECOND: u32 = 50;
/// Slots that all sources share, so that their number costs no memory. Which ones meet in a slot is random.
const SLOTS: usize = 1024;
const SECOND: Duration = Duration::from_secs(1);

/// Log lines that each source may still write.
#[derive(Debug)]
pub struct LineAllowance {
    slots: [Mutex<Slot>; SLOTS],
    hasher: OnceLock<RandomState>,
}

#[derive(Debug)]
struct Slot {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Default for LineAllowance {
    fn default() -> Self {
        Self::new()
    }
}

impl LineAllowance {
    /// Creates an allowance of which nothing is used.
    #[must_use]
    pub const fn new() -> Self {
        const UNUSED: Slot = Slot {
            since: None,
            lines: 0,
            left_out: 0,
        };
        Self {
            slots: [const { Mutex::new(UNUSED) }; SLOTS],
            hasher: OnceLock::new(),
        }
    }

    /// Returns the number of lines of `source` that were left out since its last one; `None` if this one is, too.
    pub fn due(&self, source: impl Hash) -> Option<u64> {
        self.due_at(source, Instant::now())
    }

    fn due_at(&self, source: impl Hash, now: Instant) -> Option<u64> {
        let hash = self.hasher.get_or_init(RandomState::new).hash_one(source);
        let mut slot = self.slots.get(hash as usize % SLOTS)?.lock();
        let is_over = slot
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= SECOND);
        if is_over {
            (slot.since, slot.lines) = (Some(now), 0);
        }
        if slot.lines == LINES_PER_SECOND {
            slot.left_out += 1;
            return None;
        }
        slot.lines += 1;
        Some(std::mem::take(&mut slot.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_some_lines_a_second_and_others_have_theirs() {
        let (allowance, start) = (LineAllowance::new(), Instant::now());
        let at = |source: &str, millis| allowance.due_at(source, start + Duration::from_millis(millis));
        for _ in 0..LINES_PER_SECOND {
            assert_eq!(at("one", 0), Some(0));
        }
        assert_eq!([at("one", 0), at("one", 999)], [None; 2]);
        // Of a hundred others, hardly one meets it in its slot.
        let met = (0..100).filter(|number| at(&format!("other {number}"), 0).is_none());
        let met = met.count() as u64;
        assert!(met < 10, "{met}");
        assert_eq!(
            at("one", 1000),
            Some(2 + met),
            "the next line counts those before"
        );
        assert_eq!(at("one", 1000), Some(0));
    }
}
