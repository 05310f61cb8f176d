//! Prices and sums in pico-USD (10⁻¹² USD), and the only conversion of a sum to nano-USD.

use super::decimal::{DecimalError, parse_scaled, print_scaled};
use crate::money::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;

/// Pico-USD in one nano-USD.
const PICOS_PER_NANO: u128 = 1_000;

/// A price in pico-USD for one unit. Its text is a decimal number of USD for 10^(12 − `DIGITS`) units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Price<const DIGITS: u32>(u64);

/// The price of one token, written in USD per million tokens.
pub type TokenPrice = Price<6>;
/// The price of one call, written in USD.
pub type CallPrice = Price<12>;

impl<const DIGITS: u32> Price<DIGITS> {
    /// Returns pico-USD per unit.
    pub const fn picos(self) -> u64 {
        self.0
    }

    /// Parses a price in USD for a single unit, such as LiteLLM's `5e-07` USD per token.
    pub(super) fn parse_usd_per_unit(text: &str) -> Result<Self, DecimalError> {
        parse_scaled(text, 12).map(Self)
    }
}

impl<const DIGITS: u32> fmt::Display for Price<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_scaled(self.0, DIGITS))
    }
}

impl<const DIGITS: u32> Serialize for Price<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Only from a string: a bare number in TOML or JSON would have passed through floating point.
impl<'de, const DIGITS: u32> Deserialize<'de> for Price<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_scaled(&text, DIGITS)
            .map(Self)
            .map_err(|error| D::Error::custom(format!("price \"{text}\" {error}")))
    }
}

/// A sum of pico-USD; `None` once it overflows.
#[derive(Debug, Clone, Copy)]
pub(super) struct PicoSum(Option<u128>);

impl PicoSum {
    pub(super) const ZERO: Self = Self(Some(0));

    /// Adds `count` units at `picos` each.
    pub(super) fn plus(self, count: u128, picos: u64) -> Self {
        let product = count.checked_mul(u128::from(picos));
        Self(
            self.0
                .zip(product)
                .and_then(|(sum, product)| sum.checked_add(product)),
        )
    }

    /// Returns the amount, rounded up to the nano (D4); `None` above [`Nanos::MAX`].
    pub(super) fn round_up(self) -> Option<Nanos> {
        let nanos = self.0?.div_ceil(PICOS_PER_NANO);
        u64::try_from(nanos).ok().and_then(Nanos::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_strings_in_both_directions() {
        let price: TokenPrice = serde_json::from_str("\"0.125\"").unwrap();
        assert_eq!(price.picos(), 125_000);
        assert_eq!(serde_json::to_string(&price).unwrap(), "\"0.125\"");
        let fee: CallPrice = serde_json::from_str("\"0.025\"").unwrap();
        assert_eq!(fee.picos(), 25_000_000_000);
        assert_eq!(fee.to_string(), "0.025");
        let error = serde_json::from_str::<TokenPrice>("\"a\"")
            .unwrap_err()
            .to_string();
        assert!(error.contains("price \"a\" is no decimal number"), "{error}");
        assert!(
            serde_json::from_str::<TokenPrice>("0.125").is_err(),
            "a number may have been a float"
        );
    }

    #[test]
    fn rounds_up_once() {
        let sum = |parts: &[(u128, u64)]| {
            parts
                .iter()
                .fold(PicoSum::ZERO, |sum, (count, picos)| sum.plus(*count, *picos))
                .round_up()
        };
        assert_eq!(sum(&[]), Some(Nanos::ZERO));
        assert_eq!(sum(&[(1, 1)]).map(Nanos::get), Some(1));
        assert_eq!(
            sum(&[(1, 1), (1, 1), (1, 998)]).map(Nanos::get),
            Some(1),
            "not once for each part"
        );
        assert_eq!(sum(&[(1, 1_000), (1, 1)]).map(Nanos::get), Some(2));
    }

    #[test]
    fn too_much_is_no_amount() {
        let most = u128::from(Nanos::MAX.get()) * PICOS_PER_NANO;
        assert_eq!(PicoSum::ZERO.plus(most, 1).round_up(), Some(Nanos::MAX));
        assert_eq!(PicoSum::ZERO.plus(most + 1, 1).round_up(), None);
        assert_eq!(
            PicoSum::ZERO.plus(u128::MAX, 2).round_up(),
            None,
            "the product overflows"
        );
        assert_eq!(
            PicoSum::ZERO.plus(u128::MAX, 1).plus(1, 1).round_up(),
            None,
            "the sum overflows"
        );
        assert_eq!(
            PicoSum::ZERO.plus(u128::MAX, 2).plus(0, 0).round_up(),
            None,
            "and stays overflowed"
        );
    }
}
