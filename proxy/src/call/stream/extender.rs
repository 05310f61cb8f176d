//! Raises holds while their answers are streamed. The same checks apply as for an approval.

use crate::account_views::AccountViews;
use crate::call::hold::OpenHold;
use crate::metrics::streams::Extension;
use crate::store_health::EdgeStoreHealth;
use crate::tables::plans::PlanTable;
use domain::denial::Denial;
use domain::money::Nanos;
use std::sync::Arc;
use std::time::Duration;
use store::call::authorize::AccountView;
use store::call::extend::{Extend, Extended};
use store::lookup::VirtualKeyOwner;
use store::script::plan_limit::EXECUTIONS_MAX;
use store::{Store, StoreError};

/// Raises holds.
pub struct Extender {
    /// Executes the script.
    pub store: Store,
    /// Checked right before each extension.
    pub health: Arc<EdgeStoreHealth>,
    /// Limits to send.
    pub plans: Arc<PlanTable>,
    /// Plan and version of each account.
    pub views: Arc<AccountViews>,
    /// Time that a hold without a settlement stays open before the reaper may end it.
    pub hold_life: Duration,
}

/// Why a hold was not raised, or may not have been. The stream must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotExtended {
    /// Cap or the plan denied it.
    Denied(Denial),
    /// The key was revoked.
    Revoked,
    /// No decision was made.
    NoDecision,
}

impl NotExtended {
    /// Returns the result, as counted in metrics.
    pub const fn result(self) -> Extension {
        match self {
            Self::Denied(_) | Self::Revoked => Extension::Refused,
            Self::NoDecision => Extension::Failed,
        }
    }
}

impl Extender {
    /// Raises the hold of a call with this key to `to`.
    ///
    /// # Errors
    /// [`NotExtended`]. The hold must still be settled. If the reply was lost, the settlement names both estimates.
    pub async fn extend(
        &self,
        owner: &VirtualKeyOwner,
        hold: &mut OpenHold,
        to: Nanos,
    ) -> Result<(), NotExtended> {
        let health = &self.health;
        if !health.is_still_trusted().await || !health.is_same_ledger(&hold.origin.ledger).await {
            return Err(NotExtended::NoDecision);
        }
        let mut view = self.views.get(&hold.name.account);
        for _ in 0..EXECUTIONS_MAX {
            let plan = self.plans.get(&view.plan, &hold.name.account);
            let plan = plan.ok_or(NotExtended::NoDecision)?;
            let extend = Extend {
                name: &hold.name,
                key_id: owner.key_id(),
                view: &view,
                plan: &plan.plan,
                from: hold.estimate,
                to,
                hold_life: self.hold_life,
            };
            let outcome = extend.execute(&hold.keys, &self.store).await;
            match outcome.map_err(|error| reply_lost(&error, hold, to))? {
                Extended::Extended { as_of } => {
                    hold.estimate = to;
                    hold.origin.as_of = as_of;
                    let seen = AccountView {
                        generation: as_of.generation,
                        version: as_of.version,
                        plan: view.plan,
                    };
                    self.views.record(&hold.name.account, &seen);
                    return Ok(());
                }
                Extended::OtherPlan { plan } => view.plan = plan,
                Extended::Denied(denial) => return Err(NotExtended::Denied(denial)),
                Extended::Revoked => return Err(NotExtended::Revoked),
                outcome => {
                    tracing::error!(
                        decision.id = hold.name.allow_id,
                        ?outcome,
                        "a hold could not be raised"
                    );
                    return Err(NotExtended::NoDecision);
                }
            }
        }
        Err(NotExtended::NoDecision)
    }
}

/// Records that the script may have raised the hold to `to`.
fn reply_lost(error: &StoreError, hold: &mut OpenHold, to: Nanos) -> NotExtended {
    tracing::warn!(
        decision.id = hold.name.allow_id,
        error = error as &dyn std::error::Error,
        "the store did not say whether a hold was raised"
    );
    if error.may_have_run() {
        hold.extension = Some(to);
    }
    NotExtended::NoDecision
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{ESTIMATE, Fixture, StoreReaction, info, record, runs, text};
    use store::call::extend::EXTEND;

    /// Raises a hold while the store gives these replies, after a background check if `is_checked`. Returns how often
    /// the script was executed, too.
    async fn extended(
        on_command: fn(&[String]) -> Option<StoreReaction>,
        is_checked: bool,
    ) -> (Result<(), NotExtended>, usize) {
        let fixture = Fixture::with_decision(text("unused")).await;
        let extender = Extender {
            store: fixture.store.clone(),
            health: Arc::clone(&fixture.health),
            plans: Arc::clone(&fixture.plans),
            views: Arc::clone(&fixture.views),
            hold_life: Duration::from_secs(1),
        };
        fixture.health.check().await;
        let mut hold = fixture.open_hold().await;
        fixture.on_command(on_command);
        if is_checked {
            fixture.health.check().await;
        }
        let key = fixture.key();
        let to = Nanos::from_stored(2 * ESTIMATE);
        let result = extender.extend(&key.owner, &mut hold, to).await;
        let is_raised = hold.estimate == to;
        assert_eq!(is_raised, result.is_ok());
        (result, fixture.arguments(&EXTEND).len())
    }

    #[tokio::test]
    async fn a_hold_is_raised_in_the_ledger_that_has_it_while_that_is_trusted() {
        let raises = |command: &[String]| runs(command, &EXTEND).then(|| text("extended 1 9 free"));
        assert_eq!(extended(raises, true).await, (Ok(()), 1));
        let has_lost_writes = |command: &[String]| match command[0].as_str() {
            "INFO" => Some(info(1)),
            _ => runs(command, &EXTEND).then(|| text("extended 1 9 free")),
        };
        let not_executed = (Err(NotExtended::NoDecision), 0);
        assert_eq!(
            extended(has_lost_writes, true).await,
            not_executed,
            "known to be untrusted"
        );
        assert_eq!(
            extended(has_lost_writes, false).await,
            (Ok(()), 1),
            "not known yet"
        );
        let other = |command: &[String]| match command[0].as_str() {
            "HGETALL" => Some(record("another")),
            _ => runs(command, &EXTEND).then(|| text("extended 1 9 free")),
        };
        assert_eq!(extended(other, true).await, not_executed, "another ledger");
    }
}
