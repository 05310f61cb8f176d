//! Every reason for which a call is denied, declared once, in order of precedence (specification "Errors", decision D29).
//!
//! Response body, headers, metric labels and tests iterate [`Denial::ALL`]; nothing else lists the reasons.

/// The moment at which a denial is decided. It picks the prefix of the decision id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Before Cap ran: the id starts `deny_`.
    BeforeCap,
    /// Cap itself: the id is the Cap decision's and starts `allow_`.
    Cap,
    /// The plan's limits at the end of Cap: id as for Cap, and the body names the plan.
    Plan,
}

macro_rules! denials {
    ($($(#[$doc:meta])+ $name:ident = $reason:literal, $status:literal, $stage:ident, $message:literal;)+) => {
        /// Why a call is denied. The order is the order in which the reasons are checked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Denial { $($(#[$doc])+ $name,)+ }

        impl Denial {
            /// Every denial, in order of precedence.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The value of `reason`, `error.code` and `X-Service-Reason`.
            #[must_use]
            pub const fn reason(self) -> &'static str { match self { $(Self::$name => $reason,)+ } }

            /// The HTTP status.
            #[must_use]
            pub const fn status(self) -> u16 { match self { $(Self::$name => $status,)+ } }

            /// When it is decided.
            #[must_use]
            pub const fn stage(self) -> Stage { match self { $(Self::$name => Stage::$stage,)+ } }

            /// The sentence for people.
            #[must_use]
            pub const fn message(self) -> &'static str { match self { $(Self::$name => $message,)+ } }
        }
    };
}

denials! {
    /// The service could not decide: store, plan lookup or stored key failed. Nothing was forwarded.
    ServiceUnavailable = "service_unavailable", 503, BeforeCap,
        "Tollgate could not decide on this call, so it was not forwarded. Try again shortly.";
    /// The key is beyond the plan's active-key count; the oldest keys win.
    PlanKeyLimit = "plan_key_limit", 402, BeforeCap,
        "This virtual key is beyond the number of active keys that the plan allows; the oldest keys keep working.";
    /// Over the key's requests per minute.
    RateLimited = "rate_limited", 429, BeforeCap,
        "This virtual key has used up its requests for this minute. Wait 60 seconds.";
    /// No provider key is stored for the agent.
    NoProviderKey = "no_provider_key", 403, BeforeCap,
        "No provider key is stored for this agent.";
    /// The agent is frozen.
    Frozen = "frozen", 403, Cap,
        "This agent is frozen.";
    /// No policy with Cap enabled holds for the agent.
    CapDisabled = "cap_disabled", 403, Cap,
        "Cap is not enabled on this agent: set a policy for it first.";
    /// The call would push the run over its cap.
    PerRunLimit = "per_run_limit", 402, Cap,
        "This call would push the run over its per-run cap.";
    /// Over the agent's cap of the UTC day.
    DailyLimit = "daily_limit", 402, Cap,
        "This call would push the agent over its daily cap. The day ends at 00:00 UTC.";
    /// Over the agent's cap of the UTC month.
    MonthlyLimit = "monthly_limit", 402, Cap,
        "This call would push the agent over its monthly cap. The month ends on the 1st at 00:00 UTC.";
    /// A new agent while all of the plan's Cap agents of the month are in use.
    PlanAgentLimit = "plan_agent_limit", 402, Plan,
        "All agents that the plan allows this month are in use.";
    /// The account's tracked USD of the month would pass the plan's limit.
    PlanLimit = "plan_limit", 402, Plan,
        "This call would push the account over the USD that the plan tracks in a month.";
}

/// The seconds of `Retry-After` on `rate_limited`: the window is a minute that opened at the key's first request,
/// so this wait always helps (decision D30).
pub const RATE_RETRY_AFTER_S: u32 = 60;

impl Denial {
    /// The denial of a reason word, as the store's scripts return it.
    #[must_use]
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|denial| denial.reason() == reason)
    }

    /// Whether the body names the plan, its limit and the way up.
    #[must_use]
    pub const fn names_plan(self) -> bool {
        matches!(self.stage(), Stage::Plan) || matches!(self, Self::PlanKeyLimit)
    }

    /// Whether an SDK may repeat the call by itself: only where nothing was charged and waiting helps (decision D46).
    #[must_use]
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
