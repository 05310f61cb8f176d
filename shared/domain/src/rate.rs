//! Rates of the management API: the plan limit that a request counts against (decisions D10, D53), and the technical
//! limits (decision D71).

use super::plan::Plan;
use std::time::Duration;

crate::words! {
    /// A rate. Each API key has one counter per rate; the counter's store key contains the rate's word.
    pub enum Rate {
        /// The operations of specification §4.1.
        WalletMinute = "rate-wallet",
        /// The operations of specification §4.2.
        PerDay = "rate-day",
        /// All others.
        PerMinute = "rate-minute",
        /// Every operation with a test-mode API key, whatever the plan.
        Test = "rate-test",
        /// Every operation in a session, whatever the plan and mode.
        Session = "rate-session",
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Rate {
    /// Returns the duration of a window. A window opens at the first request after the end of the previous one.
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
