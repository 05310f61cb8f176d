//! Rates of the management API: which plan limit a request counts against (decisions D10, D53), and the technical
//! limits (decision D71).

use super::plan::Plan;
use std::time::Duration;

/// A rate; each API key has one counter per rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rate {
    /// The operations of specification §4.1.
    WalletMinute,
    /// The operations of specification §4.2.
    PerDay,
    /// All others.
    PerMinute,
    /// Every operation with a test-mode API key, whatever the plan.
    Test,
    /// Every operation in a session, whatever the plan and mode.
    Session,
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Rate {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::WalletMinute,
        Self::PerDay,
        Self::PerMinute,
        Self::Test,
        Self::Session,
    ];

    /// The word in a counter's key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WalletMinute => "rate-wallet",
            Self::PerDay => "rate-day",
            Self::PerMinute => "rate-minute",
            Self::Test => "rate-test",
            Self::Session => "rate-session",
        }
    }

    /// Duration of a window. A window opens at the first request after the previous one's end.
    pub const fn window(self) -> Duration {
        match self {
            Self::WalletMinute | Self::PerMinute | Self::Test | Self::Session => MINUTE,
            Self::PerDay => DAY,
        }
    }

    /// Returns the window's name in messages.
    pub const fn window_name(self) -> &'static str {
        match self {
            Self::WalletMinute | Self::PerMinute | Self::Test | Self::Session => "minute",
            Self::PerDay => "day",
        }
    }

    /// Returns the plan's limit per window; `None`: unlimited by the plan.
    pub const fn limit(self, plan: &Plan) -> Option<u64> {
        match self {
            Self::WalletMinute => plan.wallet_requests_per_minute,
            Self::PerDay => plan.agent_requests_per_day,
            Self::PerMinute => plan.management_requests_per_minute,
            Self::Test | Self::Session => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DEFAULT_PLANS, Plans};

    #[test]
    fn the_limits_are_those_of_the_specification_and_decision_d53() {
        let plans = Plans::parse(DEFAULT_PLANS).unwrap();
        let limits = |rate: Rate| {
            ["free", "builder", "startup", "enterprise"].map(|name| rate.limit(plans.get(name).unwrap()))
        };
        assert_eq!(
            limits(Rate::WalletMinute),
            [Some(100), Some(1000), Some(1000), None]
        );
        assert_eq!(limits(Rate::PerDay), [Some(100), Some(1000), Some(10_000), None]);
        assert_eq!(
            limits(Rate::PerMinute),
            [Some(100), Some(1000), Some(10_000), None]
        );
    }
}
