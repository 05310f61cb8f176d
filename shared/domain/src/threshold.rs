//! Shares of a limit at which people are told: long before the limit denies anything.

use super::money::Nanos;
use super::reason::Reset;

/// A share of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threshold {
    /// Half of it.
    Half,
    /// From here on it needs attention.
    Most,
    /// Nearly all of it.
    Nearly,
}

/// A limit that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    /// The daily limit of an agent's policy.
    Day,
    /// The monthly limit of an agent's policy.
    Month,
    /// The tracked USD a month of the account's plan.
    Plan,
}

impl Threshold {
    /// Every threshold, the lowest first.
    pub const ALL: [Self; 3] = [Self::Half, Self::Most, Self::Nearly];

    /// The share, in percent.
    pub const fn percent(self) -> u64 {
        match self {
            Self::Half => 50,
            Self::Most => 80,
            Self::Nearly => 95,
        }
    }

    /// The share, as labels and queries write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Half => "50",
            Self::Most => "80",
            Self::Nearly => "95",
        }
    }

    /// The threshold of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|threshold| threshold.as_str() == word)
    }

    /// Returns the highest threshold that `spent` has reached. A limit of zero has none: it denies from the start.
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
    /// Every limit.
    pub const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Plan];

    /// The word in labels and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Plan => "plan",
        }
    }

    /// The limit of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|watched| watched.as_str() == word)
    }

    /// When it counts anew.
    pub const fn reset(self) -> Reset {
        match self {
            Self::Day => Reset::Day,
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
    fn words_are_read_back() {
        for threshold in Threshold::ALL {
            assert_eq!(Threshold::parse(threshold.as_str()), Some(threshold));
            assert_eq!(threshold.as_str(), threshold.percent().to_string());
        }
        for watched in Watched::ALL {
            assert_eq!(Watched::parse(watched.as_str()), Some(watched));
        }
        assert_eq!((Threshold::parse("60"), Watched::parse("run")), (None, None));
    }
}
