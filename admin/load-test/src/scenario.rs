//! The course of the load: scenarios, and their phases with a steady rate.

use super::mix::WHOLE;
use std::time::Duration;

/// The course of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// One rate all the time
    Steady,
    /// The rate rises in steps, until a bound is exceeded: finds the knee
    Ramp,
    /// The rate, then a multiple of it, then the rate again
    Spike,
    /// Half of the calls are to be denied
    Denials,
    /// A tenth of the calls are to be denied
    Mixed,
    /// With --stream: half of the callers leave in the middle
    Leaving,
    /// With --stream and --events: calls without max_tokens, whose holds grow
    Growing,
}

impl Scenario {
    /// Returns the default share of calls that should be denied, in parts per million.
    pub const fn deny_share(self) -> u64 {
        match self {
            Self::Steady | Self::Ramp | Self::Spike | Self::Leaving | Self::Growing => 0,
            Self::Denials => WHOLE / 2,
            Self::Mixed => WHOLE / 10,
        }
    }

    /// Returns the default share of streams whose callers leave in the middle, in parts per million.
    pub const fn leave_share(self) -> u64 {
        match self {
            Self::Leaving => WHOLE / 2,
            _ => 0,
        }
    }
}

/// A time of steady rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Label in the report.
    pub name: String,
    /// Calls a second.
    pub rate: u32,
    /// Time in which its calls begin.
    pub time: Duration,
    /// Its results are reported.
    pub measured: bool,
    /// It is a step of a ramp.
    pub is_step: bool,
}

impl Phase {
    /// Returns the rate times the duration, rounded down.
    pub fn calls(&self) -> u64 {
        let calls = u128::from(self.rate) * self.time.as_millis() / 1000;
        u64::try_from(calls).unwrap_or(u64::MAX)
    }
}
