//! Properties of denials. The reasons are rows of the table in [`reason`](crate::reason).

pub use crate::reason::{Denial, DenialStage};

/// Seconds of `Retry-After` on `rate_limited`. The window is one minute from the key's first request, so this wait is
/// always long enough (decision D30).
pub const RATE_RETRY_AFTER_S: u32 = 60;

/// Returns the message of [`Denial::NoProviderKey`] for a call to a named upstream: it says which name is missing.
pub fn no_named_provider_key(upstream: &str) -> String {
    format!(
        "No provider key is stored for this agent under the name `{upstream}`, the upstream of this model."
    )
}

impl Denial {
    /// Returns whether the body names the plan, its limit and the upgrade.
    pub const fn names_plan(self) -> bool {
        matches!(self.stage(), DenialStage::Plan) || matches!(self, Self::PlanKeyLimit)
    }

    /// Returns whether an SDK may retry the call automatically: only if nothing was charged and waiting helps (decision
    /// D46).
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
