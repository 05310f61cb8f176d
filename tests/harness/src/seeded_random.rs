//! Reproducible random numbers. `TOLLGATE_TORTURE_SEED` repeats a schedule, but not the timing of threads.

use entropy::random_bytes;
use std::time::Duration;

/// A generator of pseudo-random numbers, xorshift64*.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

/// A new seed, or that of `TOLLGATE_TORTURE_SEED`.
pub fn torture_seed() -> u64 {
    let given = std::env::var("TOLLGATE_TORTURE_SEED").ok();
    given.map_or_else(
        || u64::from_be_bytes(random_bytes().expect("randomness")),
        |text| text.parse().expect("TOLLGATE_TORTURE_SEED is a number"),
    )
}

impl SeededRandom {
    /// The generator of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    /// True in `chance` of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Sleeps for some milliseconds from `from` up to, not including, `to`.
    pub async fn sleep(&mut self, from: u64, to: u64) {
        let time = from + self.below(to - from);
        tokio::time::sleep(Duration::from_millis(time)).await;
    }

    /// Picks a random item.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        let at = self.below(items.len() as u64);
        items[usize::try_from(at).expect("an index")]
    }
}
