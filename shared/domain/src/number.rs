//! Numbers of wallets and escrows (decision D3). Each contains the bucket of its record.
//!
//! `number = count * 1024 + bucket`. A count is a number of milliseconds since 2026, and is used once in each bucket.
//! So no two accounts draw the same number, even after the store lost data, and numbers sort by the time of drawing.
//! All stay below 2^53, the largest integer that every JSON reader supports.

use std::fmt;

/// Number of buckets, and thus of numbers for one count.
pub const BUCKETS: u16 = 1024;
/// The lowest number.
pub const FIRST: u64 = 1 << 40;
/// Count of [`FIRST`].
pub const LOWEST_COUNT: u64 = FIRST / BUCKETS as u64;
/// The largest number: JSON readers lose digits of larger ones.
pub const LAST: u64 = (1 << 53) - 1;
/// The time of count 0 in Unix milliseconds: the beginning of 2026.
pub const EPOCH_MS: u64 = 1_767_225_600_000;
/// Bits of the largest number.
pub(super) const BITS: u32 = 53;

/// A number that contains its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u64);

impl Number {
    /// Returns the number of a count in a bucket; `None` if out of range.
    pub fn new(count: u64, bucket: u16) -> Option<Self> {
        let number = count
            .checked_mul(u64::from(BUCKETS))?
            .checked_add(u64::from(bucket))?;
        Self::from_u64(number).filter(|number| number.bucket() == bucket)
    }

    /// Converts a number; `None` if it is out of range.
    pub fn from_u64(number: u64) -> Option<Self> {
        (FIRST..=LAST).contains(&number).then_some(Self(number))
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the bucket of the record with this number.
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below 1024")]
    pub const fn bucket(self) -> u16 {
        (self.0 % BUCKETS as u64) as u16
    }

    /// Returns the count of the number in its bucket.
    pub const fn count(self) -> u64 {
        self.0 / BUCKETS as u64
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_contains_its_bucket_and_is_unique() {
        let mut seen = std::collections::HashSet::new();
        for count in LOWEST_COUNT..LOWEST_COUNT + 3 {
            for bucket in 0..BUCKETS {
                let number = Number::new(count, bucket).unwrap();
                assert_eq!((number.count(), number.bucket()), (count, bucket));
                assert_eq!(Number::from_u64(number.get()), Some(number));
                assert!(seen.insert(number));
            }
        }
    }

    #[test]
    fn numbers_below_the_first_are_none() {
        assert_eq!(Number::new(LOWEST_COUNT, 0).map(Number::get), Some(FIRST));
        for below in [0, 1, 17, FIRST - 1] {
            assert_eq!(Number::from_u64(below), None, "{below}");
        }
        assert_eq!(Number::new(LOWEST_COUNT - 1, 1023), None);
        assert_eq!(Number::new(LOWEST_COUNT, 1024), None, "the next count");
    }

    #[test]
    fn none_loses_a_digit_in_json() {
        let last = (1 << 43) - 1;
        assert_eq!(Number::new(last, 1023).map(Number::get), Some(LAST));
        for beyond in [last + 1, u64::MAX] {
            assert_eq!(Number::new(beyond, 0), None, "{beyond}");
        }
        assert_eq!(Number::from_u64(LAST + 1), None);
        // The numbers last for centuries.
        const YEAR_MS: u64 = 366 * 24 * 3_600_000;
        assert!(last / YEAR_MS > 250);
    }
}
