//! The measured kinds of calls, each through the product's own twins.

use crate::Outcome;
use crate::actor::Actor;
use domain::denial::Denial;
use domain::entry::HoldOutcome;
use domain::measured::{Billing, CallEnd, Endpoint, Measured};
use domain::money::Nanos;
use domain::plan::Plan;
use std::time::Duration;
use store::Store;
use store::call::authorize::{Authorize, AuthorizeOutcome, Charge};
use store::call::hold::HoldName;
use store::call::settle::{Settle, Settled};

/// Estimate of a call.
pub const ESTIMATE: Nanos = Nanos::from_stored(750_000);
/// Real cost of a call.
pub const COST: Nanos = Nanos::from_stored(432_100);
/// A limit that is checked and never reached, in nano-USD or as a count.
const NEVER: u64 = 4_000_000_000_000_000;
const HOLD_LIFE: Duration = Duration::from_secs(3600);

/// Kind of a call, by its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// Approved, in a named run.
    Named,
    /// Approved, without a run.
    Unnamed,
    /// Denied by the key's rate.
    Rate,
    /// Denied since the agent is frozen.
    Frozen,
    /// Denied by the limit of a run.
    Run,
    /// Denied by the limit of a day.
    Daily,
    Plan,
    /// Refused, since the key is revoked.
    Revoked,
}

impl CallKind {
    pub const ALL: [Self; 8] = [
        Self::Named,
        Self::Unnamed,
        Self::Rate,
        Self::Frozen,
        Self::Run,
        Self::Daily,
        Self::Plan,
        Self::Revoked,
    ];

    /// Name of the kind in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named => "approved, named run",
            Self::Unnamed => "approved, no run",
            Self::Rate => "denied: rate",
            Self::Frozen => "denied: frozen, named run",
            Self::Run => "denied: run limit",
            Self::Daily => "denied: daily limit, named run",
            Self::Plan => "denied: plan, named run",
            Self::Revoked => "refused: key revoked",
        }
    }

    /// Denial of a call of this kind; `None` for an approved call and for [`Self::Revoked`].
    const fn denial(self) -> Option<Denial> {
        match self {
            Self::Rate => Some(Denial::RateLimited),
            Self::Frozen => Some(Denial::Frozen),
            Self::Run => Some(Denial::PerRunLimit),
            Self::Daily => Some(Denial::DailyLimit),
            Self::Plan => Some(Denial::PlanLimit),
            Self::Named | Self::Unnamed | Self::Revoked => None,
        }
    }

    /// Limits of the plan; each is checked.
    fn plan(self) -> Plan {
        Plan {
            active_virtual_keys: Some(NEVER),
            proxy_requests_per_minute: Some(if self == Self::Rate { 0 } else { NEVER }),
            cap_agents_per_month: Some(NEVER),
            tracked_usd_per_month: Some(Nanos::from_stored(if self == Self::Plan { 0 } else { NEVER })),
            ..Plan::default()
        }
    }

    /// Calls once as `actor`, under the decision id given.
    pub async fn call(self, store: &Store, actor: &Actor, allow_id: String) -> Outcome<()> {
        let name = HoldName {
            account: actor.account.clone(),
            agent: actor.agent.clone(),
            run: match self {
                Self::Unnamed => allow_id.replacen("allow_", "req_", 1),
                _ => actor.run.clone(),
            },
            allow_id,
        };
        let charge = Charge {
            estimate: Some(ESTIMATE),
            run_named: self != Self::Unnamed,
            hold_life: HOLD_LIFE,
            price_version: "9f8e7d6c5b4a",
            model: "gpt-4o-mini",
            provider: "openai",
        };
        let request = Authorize {
            name: &name,
            key_id: if self == Self::Revoked {
                "vk_revoked"
            } else {
                &actor.key_id
            },
            view: &actor.view,
            plan: &self.plan(),
            charge: Some(&charge),
        };
        let decided = request.execute(&name.keys(), store).await?.outcome;
        let expected = match &decided {
            AuthorizeOutcome::Charged { .. } => matches!(self, Self::Named | Self::Unnamed),
            AuthorizeOutcome::Denied(denial) | AuthorizeOutcome::DeniedUnrecorded { denial, .. } => {
                self.denial() == Some(*denial)
            }
            AuthorizeOutcome::Revoked => self == Self::Revoked,
            _ => false,
        };
        if !expected {
            return Err(format!("{}: {decided:?}", self.name()).into());
        }
        if !matches!(decided, AuthorizeOutcome::Charged { .. }) {
            return Ok(());
        }
        let settle = Settle {
            name,
            estimate: ESTIMATE,
            cost: COST,
            outcome: HoldOutcome::Settled,
            extension: None,
            measured: Some(measured()),
            ended_by: None,
        };
        match settle.execute(&settle.name.keys(), None, store).await? {
            Settled::Done => Ok(()),
            other => Err(format!("{}: {other:?}", self.name()).into()),
        }
    }
}

/// Measurements of a call, as an edge sends them.
fn measured() -> Measured {
    Measured {
        endpoint: Endpoint::Chat,
        streamed: false,
        upstream: None,
        input_tokens: Some(250),
        cached_tokens: Some(0),
        output_tokens: Some(180),
        latency_ms: Some(1_250),
        first_byte_ms: Some(1_240),
        end: CallEnd::Completed,
        extensions: 0,
        billing: Billing::default(),
    }
}
