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
    use crate::decision::denial_kind;

    /// The specification's table: reason, status, prefix of the id, whether the plan is named.
    const SPECIFIED: [(&str, u16, &str, bool); 11] = [
        ("per_run_limit", 402, "allow_", false),
        ("daily_limit", 402, "allow_", false),
        ("monthly_limit", 402, "allow_", false),
        ("plan_limit", 402, "allow_", true),
        ("plan_agent_limit", 402, "allow_", true),
        ("plan_key_limit", 402, "deny_", true),
        ("frozen", 403, "allow_", false),
        ("cap_disabled", 403, "allow_", false),
        ("no_provider_key", 403, "deny_", false),
        ("rate_limited", 429, "deny_", false),
        ("service_unavailable", 503, "deny_", false),
    ];

    #[test]
    fn denials_are_those_of_the_specification() {
        for (reason, status, prefix, names_plan) in SPECIFIED {
            let denial = Denial::from_reason(reason).unwrap();
            let found = (denial.status(), denial_kind(denial).prefix(), denial.names_plan());
            assert_eq!(found, (status, prefix, names_plan), "{reason}");
        }
        for denial in Denial::ALL {
            assert_eq!(denial.may_retry(), matches!(denial.status(), 429 | 503));
        }
    }
}
