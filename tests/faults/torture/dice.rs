//! Reproducible random numbers. `TOLLGATE_TORTURE_SEED` repeats a schedule, but not the timing of threads.

use entropy::random_bytes;

/// xorshift64*
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

pub fn seed() -> u64 {
    let given = std::env::var("TOLLGATE_TORTURE_SEED").ok();
    given.map_or_else(
        || u64::from_be_bytes(random_bytes().expect("randomness")),
        |text| text.parse().expect("TOLLGATE_TORTURE_SEED is a number"),
    )
}

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
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

    /// Picks a random item.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        let at = self.below(items.len() as u64);
        items[usize::try_from(at).expect("an index")]
    }
}
