//! A check that decides on a call or a spend, with its numbers. Dry runs list the checks, and explanations are built
//! from them.
//!
//! A check passes if the amount spent and the requested amount together stay within the limit. The table of reasons
//! ([`reason`](crate::reason)) defines the checks and their order.

mod sentence;

pub use crate::reason::{CheckName, Reset, Unit};
pub use sentence::{CheckedAmount, amount_in, usd};

/// A check for one call or spend, before the charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Name of the check, as in the API.
    pub name: CheckName,
    /// The limit; `None` if there is none.
    pub limit: Option<u64>,
    /// The amount used up; `None` if the check counts nothing.
    pub spent: Option<u64>,
    /// The part of `spent` that belongs to calls in flight; `None` if the check has no such part.
    pub held: Option<u64>,
    /// True if the call or spend passes the check.
    pub passes: bool,
}

impl Check {
    /// Creates a check without numbers.
    pub const fn state(name: CheckName, passes: bool) -> Self {
        Self {
            name,
            limit: None,
            spent: None,
            held: None,
            passes,
        }
    }

    /// Creates the check that `spent` and `more` together stay within `limit`. Passes if `more` is zero.
    pub fn within(name: CheckName, limit: Option<u64>, spent: u64, more: u64) -> Self {
        let over = limit.is_some_and(|limit| spent.saturating_add(more) > limit);
        Self {
            name,
            limit,
            spent: Some(spent),
            held: None,
            passes: !over || more == 0,
        }
    }

    /// Sets the part of the spent amount that belongs to calls in flight.
    #[must_use]
    pub fn with_held(mut self, held: u64) -> Self {
        // A call in flight since yesterday is not part of today's spending.
        self.held = self.spent.map(|spent| held.min(spent));
        self
    }
}

/// Returns the check that decides: the first that does not pass.
pub fn deciding(checks: &[Check]) -> Option<&Check> {
    checks.iter().find(|check| !check.passes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::{iso_from_ms, ms_from_iso};

    #[test]
    fn a_limit_is_reached_exactly_and_not_passed() {
        let passes = |limit, spent, more| Check::within(CheckName::DailyLimit, limit, spent, more).passes;
        assert!(passes(Some(100), 60, 40) && !passes(Some(100), 60, 41));
        assert!(passes(None, u64::MAX, 1) && !passes(Some(u64::MAX - 1), u64::MAX, 1));
        assert!(passes(Some(0), 5, 0), "nothing is always let through");
        let check = Check::within(CheckName::DailyLimit, None, 60, 1).with_held(70);
        assert_eq!(check.held, Some(60), "a part is never more than the whole");
    }

    #[test]
    fn periods_end_at_midnight_utc() {
        let after = |reset: Reset, at: &str| reset.after(ms_from_iso(at).unwrap()).map(iso_from_ms);
        let text = |at: &str| Some(at.to_owned());
        assert_eq!(
            after(Reset::Day, "2026-12-31T23:59:59.999Z"),
            text("2027-01-01T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Day, "2027-01-01T00:00:00Z"),
            text("2027-01-02T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Month, "2026-12-31T12:00:00Z"),
            text("2027-01-01T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Month, "2028-02-01T00:00:00Z"),
            text("2028-03-01T00:00:00.000Z")
        );
        assert_eq!(
            after(Reset::Month, "2026-10-01T00:00:00Z"),
            text("2026-11-01T00:00:00.000Z")
        );
        assert_eq!(after(Reset::Minute, "2026-10-01T00:00:00Z"), None);
    }
}
