//! Money: an integer count of nano-USD everywhere (decision D4). No floating point, no silent overflow.

use crate::schema::Usd;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::AddAssign;
use utoipa::{PartialSchema, ToSchema};

/// Nano-USD in one USD.
pub const NANOS_PER_USD: u64 = 1_000_000_000;
/// Characters of the longest single amount, `8999999.999999999`.
const USD_CHARS: usize = 17;

/// An amount of money in nano-USD (10⁻⁹ USD), never negative, at most [`Nanos::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(u64);

impl Nanos {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// The largest single amount: 9,000,000 USD (D4). It is less than 2⁵³, so the scripts compare it exactly.
    pub const MAX: Self = Self(9_000_000 * NANOS_PER_USD);

    /// Returns `nanos` nano-USD; `None` above [`Nanos::MAX`].
    pub const fn new(nanos: u64) -> Option<Self> {
        if nanos <= Self::MAX.0 {
            Some(Self(nanos))
        } else {
            None
        }
    }

    /// Creates a sum that the store keeps, such as an account's spending in a month; it may exceed [`Nanos::MAX`].
    pub const fn from_stored(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the count of nano-USD.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the sum, or the largest representable amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the double nearest to the number of USD, for hashing: JCS writes numbers as doubles (decision D50).
    /// Nothing is ever computed from it.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "the exact amount stands beside it wherever this one does"
    )]
    pub fn as_double(self) -> f64 {
        self.0 as f64 / NANOS_PER_USD as f64
    }

    /// Returns what `Display` writes, in one allocation: each approved call has four of them.
    pub fn usd(self) -> String {
        usd(self.0 / NANOS_PER_USD, self.0 % NANOS_PER_USD)
    }

    /// Formats the amount with exactly two fraction digits, rounded down, as in `Wallet.balance` (specification §4.1).
    pub fn two_digits(self) -> String {
        format!(
            "{}.{:02}",
            self.0 / NANOS_PER_USD,
            self.0 % NANOS_PER_USD / 10_000_000
        )
    }
}

/// A sum of any number of amounts, exact beyond the limit of [`Nanos`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NanosSum(u128);

impl AddAssign<Nanos> for NanosSum {
    fn add_assign(&mut self, amount: Nanos) {
        self.0 += u128::from(amount.0);
    }
}

/// Returns the exact decimal number of USD, without exponent and without trailing zeros: `0.00012`, `5`.
fn usd(whole: impl itoa::Integer, fraction: u64) -> String {
    let mut text = String::with_capacity(USD_CHARS);
    let mut digits = itoa::Buffer::new();
    text.push_str(digits.format(whole));
    if fraction > 0 {
        // The added 1 keeps leading zeros: nine digits follow it.
        let fraction = &digits.format(NANOS_PER_USD + fraction)[1..];
        let zeros = fraction.bytes().rev().take_while(|digit| *digit == b'0').count();
        text.push('.');
        text.push_str(&fraction[..fraction.len() - zeros]);
    }
    text
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.usd())
    }
}

impl fmt::Display for NanosSum {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a billion")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = u128::from(NANOS_PER_USD);
        f.write_str(&self::usd(self.0 / usd, (self.0 % usd) as u64))
    }
}

/// Implements the answer form of a type of money: an exact JSON number of USD, which never passes through floating
/// point, and the schema [`Usd`].
macro_rules! answered_as_usd {
    ($($name:ident)+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = serde_json::value::RawValue::from_string(self.to_string());
                text.map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                Usd::schema()
            }
        }

        impl ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                Usd::name()
            }
        }
    )+};
}

answered_as_usd! { Nanos NanosSum }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_exactly() {
        for (nanos, text, two) in [
            (0, "0", "0.00"),
            (1, "0.000000001", "0.00"),
            (9_999_999, "0.009999999", "0.00"),
            (10_000_000, "0.01", "0.01"),
            (1_500_000_000, "1.5", "1.50"),
            (8_999_999_999_999_999, "8999999.999999999", "8999999.99"),
        ] {
            let amount = Nanos::new(nanos).unwrap();
            assert_eq!(amount.to_string(), text);
            assert_eq!(amount.two_digits(), two);
            assert_eq!(serde_json::to_string(&amount).unwrap(), text);
        }
    }

    #[test]
    fn a_sum_is_exact_beyond_what_one_amount_can_be() {
        let mut sum = NanosSum::default();
        assert_eq!(sum.to_string(), "0");
        for _ in 0..3 {
            sum += Nanos::from_stored(8_999_999_999_999_999_999);
        }
        sum += Nanos::from_stored(u64::MAX);
        assert_eq!(sum.to_string(), "45446744073.709551612");
        assert_eq!(serde_json::to_string(&sum).unwrap(), "45446744073.709551612");
    }

    #[test]
    fn is_bounded() {
        assert_eq!(Nanos::new(Nanos::MAX.get() + 1), None);
        assert!(Nanos::MAX.get() < 1 << 53, "a double holds every amount");
    }
}
