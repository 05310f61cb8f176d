//! How a call is denied. The reasons themselves are rows of the one table in [`reason`](crate::reason).

pub use crate::reason::{Denial, Stage};

/// The seconds of `Retry-After` on `rate_limited`: the window is a minute that opened at the key's first request,
/// so this wait always helps (decision D30).
pub const RATE_RETRY_AFTER_S: u32 = 60;

/// The message of [`Denial::NoProviderKey`] for a call to a named upstream, which says what name is missing.
pub fn no_named_provider_key(upstream: &str) -> String {
    format!(
        "No provider key is stored for this agent under the name `{upstream}`, the upstream of this model."
    )
}

impl Denial {
    /// Whether the body names the plan, its limit and the way up.
    pub const fn names_plan(self) -> bool {
        matches!(self.stage(), Stage::Plan) || matches!(self, Self::PlanKeyLimit)
    }

    /// Whether an SDK may repeat the call by itself: only where nothing was charged and waiting helps (decision D46).
    pub const fn may_retry(self) -> bool {
        matches!(self, Self::ServiceUnavailable | Self::RateLimited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_the_specification() {
        for denial in Denial::ALL {
            let expected = match denial.reason() {
                "frozen" | "cap_disabled" | "no_provider_key" => 403,
                "rate_limited" => 429,
                "service_unavailable" => 503,
                _ => 402,
            };
            assert_eq!(denial.status(), expected, "{denial:?}");
            assert_eq!(Denial::from_reason(denial.reason()), Some(*denial));
            assert_eq!(denial.may_retry(), matches!(denial.status(), 429 | 503));
        }
        assert_eq!(Denial::ALL.len(), 11, "the specification's table has eleven rows");
    }
}
