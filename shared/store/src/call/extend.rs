//! Twin of `extend.lua`: raises the estimate of an open hold while its call is in flight.

use crate::call::authorize::AccountView;
use crate::call::hold::{HoldKeys, HoldName};
use crate::script::change::CAP;
use crate::script::script;
use crate::versions::AccountVersion;
use crate::{Store, StoreError};
use domain::denial::Denial;
use domain::money::Nanos;
use domain::plan::Plan;
use std::time::Duration;

script! {
    /// Raises the estimate of an open hold.
    pub static EXTEND = "extend",
    kind: Timed,
    source: [CAP, include_str!("extend.lua")],
    when_full: Refuse,
    keys: struct ExtendKeys<'a>: &'a str { account, active_keys, agent, hold, due, run },
    /// The key, the known view of the account, the limit of its plan, and the estimates before and after in nano-USD.
    /// `hold_life` is in ms.
    args: struct ExtendArgs<'a>: &'a str {
        key_id, plan, generation, version, tracked, allow_id, from, to, hold_life
    },
}

/// One extension of a hold, from the estimate `from` to the estimate `to`.
#[derive(Debug, Clone)]
pub struct Extend<'a> {
    /// The names of the call in the ledger.
    pub name: &'a HoldName,
    /// Id of the call's virtual key.
    pub key_id: &'a str,
    /// Last known version and plan of the account.
    pub view: &'a AccountView,
    /// Limits of the plan in `view`; only tracked USD per month is used here.
    pub plan: &'a Plan,
    /// Charged estimate.
    pub from: Nanos,
    /// The new estimate. An amount below `from` counts as `from`, and changes nothing.
    pub to: Nanos,
    /// Time from now until the reaper may turn the hold into a kept one.
    pub hold_life: Duration,
}

/// Outcome of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extended {
    /// The hold is at `to`. A later store with a version older than `as_of` lacks this extension.
    Extended {
        /// Version of the account with the extension.
        as_of: AccountVersion,
    },
    /// Cap or the plan denies it. Nothing changed.
    Denied(Denial),
    /// The key is revoked. Nothing changed.
    Revoked,
    /// The account has this plan, not that of `view`; nothing changed. Retry with the limits of this plan.
    OtherPlan {
        /// The account's plan.
        plan: String,
    },
    /// There is no open hold with this name: it was settled, voided or reaped.
    Missing,
    /// The hold is at neither `from` nor `to`; nothing changed.
    Mismatch,
    /// A counter would overflow; nothing changed.
    TooMuch,
}

impl Extend<'_> {
    /// Executes the script. `hold` has the keys of `name`. Safe to retry after a lost reply: a hold at `to` is not
    /// raised again.
    ///
    /// # Errors
    /// [`StoreError::LacksWrites`] if the account is older than `view`, or does not exist; nothing changed then. After
    /// any other error that [may have run](StoreError::may_have_run) the hold is at `from` or `to`.
    pub async fn execute(&self, hold: &HoldKeys, store: &Store) -> Result<Extended, StoreError> {
        debug_assert_eq!(hold, &self.name.keys(), "the keys are of this hold");
        let keys = ExtendKeys {
            account: hold.realm.keys().name(),
            active_keys: &hold.realm.keys().active_keys(),
            agent: &hold.agent,
            hold: &hold.hold,
            due: &hold.realm.bucket().single_keys().due,
            run: &hold.run,
        };
        let [generation, version] = self.view.as_of().to_args();
        let tracked = self.plan.tracked_usd_per_month;
        let to = self.to.max(self.from);
        let args = ExtendArgs {
            key_id: self.key_id,
            plan: &self.view.plan,
            generation: &generation,
            version: &version,
            tracked: &tracked.map(|limit| limit.get().to_string()).unwrap_or_default(),
            allow_id: &self.name.allow_id,
            from: &self.from.get().to_string(),
            to: &to.get().to_string(),
            hold_life: &self.hold_life.as_millis().to_string(),
        };
        let reply: String = store
            .script(&EXTEND, &keys.into_values(), &args.into_values())
            .await?;
        parse(&reply)
    }
}

/// Parses `word generation version plan`. The plan is last, since it may contain spaces. An unknown word is an error,
/// so that an unexpected reply never extends.
fn parse(reply: &str) -> Result<Extended, StoreError> {
    let unexpected_reply = || StoreError::unexpected("extend");
    let mut words = reply.splitn(4, ' ');
    let mut next = || words.next().ok_or_else(unexpected_reply);
    let (word, generation, version, plan) = (next()?, next()?, next()?, next()?);
    let as_of = AccountVersion {
        generation: generation.parse().map_err(|_| unexpected_reply())?,
        version: version.parse().map_err(|_| unexpected_reply())?,
    };
    match word {
        "extended" => Ok(Extended::Extended { as_of }),
        "revoked" => Ok(Extended::Revoked),
        "other_plan" => Ok(Extended::OtherPlan {
            plan: plan.to_owned(),
        }),
        "missing" => Ok(Extended::Missing),
        "mismatch" => Ok(Extended::Mismatch),
        "too_much" => Ok(Extended::TooMuch),
        "lost_writes" | "no_account" => Err(StoreError::LacksWrites),
        reason => Denial::from_reason(reason)
            .map(Extended::Denied)
            .ok_or_else(unexpected_reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        let as_of = AccountVersion {
            generation: 1,
            version: 12,
        };
        let plan = "a plan".to_owned();
        for (reply, outcome) in [
            ("extended 1 12 a plan", Extended::Extended { as_of }),
            ("other_plan 1 12 a plan", Extended::OtherPlan { plan }),
            ("revoked 1 12 free", Extended::Revoked),
            ("missing 1 12 free", Extended::Missing),
            ("mismatch 1 12 free", Extended::Mismatch),
            ("too_much 1 12 free", Extended::TooMuch),
            ("frozen 1 12 free", Extended::Denied(Denial::Frozen)),
            ("plan_limit 1 12 free", Extended::Denied(Denial::PlanLimit)),
        ] {
            assert_eq!(parse(reply).unwrap(), outcome, "{reply}");
        }
        for reply in ["lost_writes 1 12 free", "no_account 0 0 "] {
            assert!(matches!(parse(reply), Err(StoreError::LacksWrites)), "{reply}");
        }
    }

    #[test]
    fn an_unknown_reply_never_extends() {
        for reply in [
            "",
            "extended",
            "extended 1 12",
            "extended x 12 free",
            "extended 1 -2 free",
            "ok 1 12 free",
            "Extended 1 12 free",
        ] {
            let read = parse(reply);
            assert!(
                matches!(read, Err(StoreError::UnexpectedReply(_))),
                "{reply}: {read:?}"
            );
        }
    }
}
