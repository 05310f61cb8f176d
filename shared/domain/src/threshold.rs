//! Shares of a limit at which users are notified, well before the limit denies anything.

use super::money::Nanos;
use super::reason::Reset;

crate::words! {
    /// A share of a limit.
    #[derive(PartialOrd, Ord)]
    pub enum Threshold {
        /// Half of the limit.
        Half = "50",
        /// From this share on, the limit needs attention.
        Most = "80",
        /// Nearly all of the limit.
        Nearly = "95",
    }
}

crate::words! {
    /// A watched limit.
    #[derive(PartialOrd, Ord)]
    pub enum Watched {
        /// The daily limit of an agent's policy.
        Day = "day",
        /// The monthly limit of an agent's policy.
        Month = "month",
        /// The tracked USD a month of the account's plan.
        Plan = "plan",
        /// The `spendLimit` of an agent's wallet, of a day.
        Spend = "spend",
    }
}

impl Threshold {
    /// Returns the share, in percent.
    pub const fn percent(self) -> u64 {
        match self {
            Self::Half => 50,
            Self::Most => 80,
            Self::Nearly => 95,
        }
    }

    /// Returns the highest threshold that `spent` has reached. A limit of zero has none, since it denies everything.
    pub fn reached(spent: Nanos, limit: Nanos) -> Option<Self> {
        if limit == Nanos::ZERO {
            return None;
        }
        let (spent, limit) = (u128::from(spent.get()) * 100, u128::from(limit.get()));
        let reached = |threshold: &Self| spent >= limit * u128::from(threshold.percent());
        Self::ALL.into_iter().rev().find(reached)
    }
}

impl Watched {
    /// Returns when its counter restarts.
    pub const fn reset(self) -> Reset {
        match self {
            Self::Day | Self::Spend => Reset::Day,
            Self::Month | Self::Plan => Reset::Month,
        }
    }
}

/// Returns the share of a limit in tenths of a percent, rounded down.
pub fn permille(spent: Nanos, limit: Nanos) -> u64 {
    let share = (u128::from(spent.get()) * 1000).checked_div(u128::from(limit.get()));
    share.map_or(0, |share| u64::try_from(share).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_reached_exactly_at_its_share() {
        let reached =
            |spent: u64, limit: u64| Threshold::reached(Nanos::from_stored(spent), Nanos::from_stored(limit));
        let limit = 1_000_000_000;
        for (spent, expected) in [
            (0, None),
            (499_999_999, None),
            (500_000_000, Some(Threshold::Half)),
            (799_999_999, Some(Threshold::Half)),
            (800_000_000, Some(Threshold::Most)),
            (949_999_999, Some(Threshold::Most)),
            (950_000_000, Some(Threshold::Nearly)),
            (limit, Some(Threshold::Nearly)),
            (u64::MAX, Some(Threshold::Nearly)),
        ] {
            assert_eq!(reached(spent, limit), expected, "{spent}");
        }
        assert_eq!(reached(0, 0), None);
        assert_eq!(reached(5, 0), None);
        assert_eq!(reached(u64::MAX, u64::MAX), Some(Threshold::Nearly));
        assert_eq!(reached(1, 1), Some(Threshold::Nearly));
    }

    #[test]
    fn shares_are_rounded_down() {
        let share = |spent: u64, limit: u64| permille(Nanos::from_stored(spent), Nanos::from_stored(limit));
        assert_eq!(share(4_820, 5_000), 964);
        assert_eq!(share(999_999, 1_000_000), 999);
        assert_eq!((share(7, 0), share(0, 7)), (0, 0));
        assert_eq!(share(6, 5), 1200, "a limit that was lowered");
    }

    #[test]
    fn a_threshold_is_called_by_its_share() {
        for threshold in Threshold::ALL {
            assert_eq!(threshold.as_str(), threshold.percent().to_string());
        }
    }
}
