//! The cost of a call as reported by the provider: `cost` in its `usage`, in USD, as OpenRouter reports it.

use super::decimal::{DecimalError, parse_scaled_up};
use crate::money::Nanos;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Decimal digits of a nano-USD.
const NANO_DIGITS: u32 = 9;
/// The largest plausible cost of one call: 10,000 USD.
const MAX_NANOS: u64 = 10_000_000_000_000;

/// Why a reported cost is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reported cost {0}")]
pub struct BadCost(DecimalError);

/// The part of `usage` with the cost.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    cost: Option<&'a RawValue>,
}

/// Parses `cost` in a `usage` object: a number or a decimal string of USD, rounded up to the nano. `Ok(None)` if there
/// is none.
///
/// # Errors
/// [`BadCost`] for a cost that is not a number, is negative, or exceeds 10,000 USD.
pub fn reported_cost(usage: &[u8]) -> Result<Option<Nanos>, BadCost> {
    let wire: Option<Wire<'_>> = serde_json::from_slice(usage).ok();
    let Some(cost) = wire.and_then(|wire| wire.cost) else {
        return Ok(None);
    };
    let text = match cost.get().starts_with('"') {
        true => serde_json::from_str(cost.get()).map_err(|_| BadCost(DecimalError::NotANumber))?,
        false => cost.get().to_owned(),
    };
    let nanos = parse_scaled_up(&text, NANO_DIGITS).map_err(BadCost)?;
    let believed = Some(nanos).filter(|nanos| *nanos <= MAX_NANOS);
    let cost = believed
        .and_then(Nanos::new)
        .ok_or(BadCost(DecimalError::TooLarge))?;
    Ok(Some(cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(cost: &str) -> Result<Option<u64>, BadCost> {
        let usage = format!(r#"{{"prompt_tokens":9,"cost":{cost},"cost_details":{{"x":1}}}}"#);
        reported_cost(usage.as_bytes()).map(|cost| cost.map(Nanos::get))
    }

    #[test]
    fn a_cost_is_exact_to_the_nano_and_rounded_up() {
        for (cost, nanos) in [
            ("0.2", 200_000_000),
            ("\"0.2\"", 200_000_000),
            ("2e-1", 200_000_000),
            ("0", 0),
            ("0.0", 0),
            ("\"0e-99\"", 0),
            ("1e-9", 1),
            ("1.0000e-9", 1),
            ("1e-10", 1),
            ("1e-9999", 1),
            ("0.0000000011", 2),
            ("0.00014999999999999999", 150_000),
            ("0.123456789", 123_456_789),
            ("0.1234567891", 123_456_790),
            ("10000", MAX_NANOS),
        ] {
            assert_eq!(read(cost), Ok(Some(nanos)), "{cost}");
        }
        assert_eq!(read("null"), Ok(None));
        for usage in ["{}", "[]", "", "{\"cost\":1", "null"] {
            assert_eq!(reported_cost(usage.as_bytes()), Ok(None), "{usage}");
        }
    }

    #[test]
    fn what_is_no_cost_does_not_count() {
        for (cost, error) in [
            ("-0.2", DecimalError::Negative),
            ("\"-1\"", DecimalError::Negative),
            ("\"\"", DecimalError::NotANumber),
            ("\"free\"", DecimalError::NotANumber),
            ("\" 1\"", DecimalError::NotANumber),
            ("true", DecimalError::NotANumber),
            ("{}", DecimalError::NotANumber),
            ("[1]", DecimalError::NotANumber),
            ("10000.000000001", DecimalError::TooLarge),
            ("1e12", DecimalError::TooLarge),
            ("1e9999", DecimalError::TooLarge),
            ("99999999999999999999999", DecimalError::TooLarge),
        ] {
            assert_eq!(read(cost), Err(BadCost(error)), "{cost}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+0-9eE.\"]{0,60}") {
            let _ = read(&text);
        }

        /// The charge is never below the reported cost, and less than one nano above it.
        #[test]
        fn the_text_of_picos_is_rounded_up(picos in 0..=MAX_NANOS * 1_000) {
            let text = format!("{}.{:012}", picos / 1_000_000_000_000, picos % 1_000_000_000_000);
            prop_assert_eq!(read(&text), Ok(Some(picos.div_ceil(1_000))));
        }
    }
}
