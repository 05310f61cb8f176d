//! Checks in answers: `{check, limit, spent, held, passes}` (decision D56), with exact nano amounts and the time at
//! which the counter restarts.

use domain::check::{Check, Unit};
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use serde::Serialize;
use utoipa::ToSchema;

/// A number in the unit of its check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Measure {
    Usd(Nanos),
    Count(u64),
}

/// A check of a call or a spend: its limit, the amount used before, and whether it passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Check)]
pub(super) struct CheckView {
    #[schema(value_type = is::CheckWord)]
    check: &'static str,
    /// USD or a count; null if there is no limit.
    #[schema(value_type = Option<f64>, example = 10)]
    limit: Option<Measure>,
    #[schema(value_type = Option<f64>, example = 4.5)]
    spent: Option<Measure>,
    /// The part of the spent amount held by calls in flight.
    #[schema(value_type = Option<f64>, example = 0.25)]
    held: Option<Measure>,
    #[serde(flatten)]
    exact: Option<Exact>,
    passes: bool,
    /// Time at which its counter restarts.
    #[schema(value_type = Option<is::Time>)]
    resets_at: Option<String>,
}

/// The same amounts in exact form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CheckNanos)]
struct Exact {
    #[schema(value_type = Option<is::NanoUsd>)]
    limit_nanos: Option<String>,
    #[schema(value_type = Option<is::NanoUsd>)]
    spent_nanos: Option<String>,
    #[schema(value_type = Option<is::NanoUsd>)]
    held_nanos: Option<String>,
}

impl CheckView {
    /// Returns the view of a check whose counter restarts at `resets_at_ms`.
    pub(super) fn new(check: &Check, resets_at_ms: Option<u64>) -> Self {
        let usd = check.name.unit() == Unit::Usd;
        let measure = |number: Option<u64>| match usd {
            true => number.map(|nanos| Measure::Usd(Nanos::from_stored(nanos))),
            false => number.map(Measure::Count),
        };
        let text = |number: Option<u64>| number.map(|nanos| nanos.to_string());
        Self {
            check: check.name.as_str(),
            limit: measure(check.limit),
            spent: measure(check.spent),
            held: measure(check.held),
            exact: usd.then(|| Exact {
                limit_nanos: text(check.limit),
                spent_nanos: text(check.spent),
                held_nanos: text(check.held),
            }),
            passes: check.passes,
            resets_at: resets_at_ms.map(iso_from_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::check::CheckName;
    use serde_json::json;

    #[test]
    fn amounts_are_exact_twice_and_counts_are_counts() {
        let check = Check::within(CheckName::DailyLimit, Some(10_000_000_000), 9_500_000_001, 1).with_held(5);
        assert_eq!(
            serde_json::to_string(&CheckView::new(&check, Some(0))).unwrap(),
            "{\"check\":\"daily_limit\",\"limit\":10,\"spent\":9.500000001,\"held\":0.000000005,\
             \"limitNanos\":\"10000000000\",\"spentNanos\":\"9500000001\",\"heldNanos\":\"5\",\"passes\":true,\
             \"resetsAt\":\"1970-01-01T00:00:00.000Z\"}"
        );
        let check = Check::within(CheckName::RateLimited, None, 3, 1);
        assert_eq!(
            serde_json::to_value(CheckView::new(&check, None)).unwrap(),
            json!({ "check": "rate_limited", "limit": null, "spent": 3, "held": null, "passes": true, "resetsAt": null })
        );
    }
}
