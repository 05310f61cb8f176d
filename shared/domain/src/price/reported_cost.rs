//! The cost of a call as reported by the provider: `cost` in its `usage`, in USD, as OpenRouter reports it.

use super::decimal::{DecimalError, parse_scaled_up};
use crate::money::{NANOS_PER_USD, Nanos};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Decimal digits of a nano-USD.
const NANO_DIGITS: u32 = 9;
/// The largest plausible cost of one call: 10,000 USD.
pub const CALL_COST_MAX: Nanos = Nanos::from_stored(10_000 * NANOS_PER_USD);

/// Why a reported cost is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reported cost {0}")]
pub struct BadCost(DecimalError);

/// Parses `cost` in a `usage` object: a number or a decimal string of USD, rounded up to the nano. `Ok(None)` if there
/// is none. Of several, which parsers read differently, the largest valid one.
///
/// # Errors
/// [`BadCost`] for a cost that is not a number, is negative, or exceeds 10,000 USD.
pub fn reported_cost(usage: &[u8]) -> Result<Option<Nanos>, BadCost> {
    serde_json::from_slice::<Costs>(usage).map_or(Ok(None), |costs| costs.0)
}

/// The costs in a `usage` object.
struct Costs(Result<Option<Nanos>, BadCost>);

/// The keys of a `usage` object that are read; the others are skipped.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum UsageKey {
    Cost,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Costs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CostsVisitor)
    }
}

struct CostsVisitor;

impl<'de> Visitor<'de> for CostsVisitor {
    type Value = Costs;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut largest, mut bad) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                UsageKey::Cost => match cost_of(map.next_value()?) {
                    Ok(cost) => largest = largest.max(cost),
                    Err(error) => bad = Some(error),
                },
                UsageKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Costs(match (largest, bad) {
            (None, Some(error)) => Err(error),
            _ => Ok(largest),
        }))
    }
}

/// Parses one cost; `Ok(None)` for `null`.
fn cost_of(cost: &RawValue) -> Result<Option<Nanos>, BadCost> {
    let text = match cost.get() {
        "null" => return Ok(None),
        text if text.starts_with('"') => {
            serde_json::from_str(text).map_err(|_| BadCost(DecimalError::NotANumber))?
        }
        text => text.to_owned(),
    };
    let nanos = parse_scaled_up(&text, NANO_DIGITS).map_err(BadCost)?;
    let cost = Nanos::new(nanos).filter(|cost| *cost <= CALL_COST_MAX);
    cost.map(Some).ok_or(BadCost(DecimalError::TooLarge))
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
            ("10000", CALL_COST_MAX.get()),
        ] {
            assert_eq!(read(cost), Ok(Some(nanos)), "{cost}");
        }
        assert_eq!(read("null"), Ok(None));
        for usage in ["{}", "[]", "", "{\"cost\":1", "null"] {
            assert_eq!(reported_cost(usage.as_bytes()), Ok(None), "{usage}");
        }
    }

    #[test]
    fn an_invalid_cost_does_not_count() {
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

    /// Parsers differ in which of several costs they take. No reading is charged less.
    #[test]
    fn of_several_costs_the_largest_counts() {
        for (usage, nanos) in [
            (r#"{"cost":0.2,"cost":0.1}"#, Some(200_000_000)),
            (r#"{"cost":0.1,"cost":0.2}"#, Some(200_000_000)),
            (r#"{"cost":null,"cost":"0.2"}"#, Some(200_000_000)),
            (r#"{"cost":0.2,"c\u006fst":0.3}"#, Some(300_000_000)),
            (r#"{"cost":0.2,"cost":-1}"#, Some(200_000_000)),
            (r#"{"cost_details":{"cost":0.2}}"#, None),
            (r#"[0.2]"#, None),
        ] {
            let cost = reported_cost(usage.as_bytes()).map(|cost| cost.map(Nanos::get));
            assert_eq!(cost, Ok(nanos), "{usage}");
        }
        assert!(reported_cost(br#"{"cost":-1,"cost":true}"#).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+0-9eE.\"]{0,60}") {
            let _ = read(&text);
        }

        /// The charge is never below the reported cost, and less than one nano above it.
        #[test]
        fn the_text_of_picos_is_rounded_up(picos in 0..=CALL_COST_MAX.get() * 1_000) {
            let text = format!("{}.{:012}", picos / 1_000_000_000_000, picos % 1_000_000_000_000);
            prop_assert_eq!(read(&text), Ok(Some(picos.div_ceil(1_000))));
        }
    }
}
