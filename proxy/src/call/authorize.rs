//! Execution of `authorize.lua`, for calls and for other requests with a key. Every failure is no decision, and
//! without a decision nothing is sent.

use crate::account_views::AccountViews;
use crate::call::lost_writes_log::LostWritesLog;
use crate::key_owners::known_key::KnownKey;
use crate::refused_accounts::RefusedAccounts;
use crate::retry_queue::RetryQueue;
use crate::retry_queue::item::HoldOrigin;
use crate::store_health::EdgeStoreHealth;
use crate::tables::plans::{PlanLimits, PlanTable};
use domain::denial::Denial;
use domain::plan::Plan;
use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;
use store::call::authorize::{AccountView, Authorize, AuthorizeOutcome, AuthorizeReply, Charge};
use store::call::hold::{HoldKeys, HoldName};
use store::script::plan_limit::EXECUTIONS_MAX;
use store::virtual_key::state::KeyState;
use store::{Store, StoreError};
use telemetry::PacedLine;

/// The store's decision.
#[derive(Debug)]
pub struct Decision {
    /// The script's reply.
    pub outcome: AuthorizeOutcome,
    /// The plan whose limits were compared.
    pub plan: Arc<PlanLimits>,
    /// The ledger that decided, and the account's version after the decision.
    pub origin: HoldOrigin,
}

/// No decision was made: the request must be denied.
#[derive(Debug)]
pub struct NoDecision;

/// The charge of a call that needs an approval.
#[derive(Debug, Clone, Copy)]
pub struct ChargeRequest<'a> {
    /// Charged if every check passes.
    pub charge: &'a Charge<'a>,
    /// True if the caller requested a stream. A plan can exclude streams.
    pub is_stream: bool,
}

/// Executes `authorize.lua`.
pub struct Authorizer {
    /// Executes the script.
    pub store: Store,
    /// Checked right before each decision.
    pub health: Arc<EdgeStoreHealth>,
    /// Limits to send.
    pub plans: Arc<PlanTable>,
    /// Plan and version of each account.
    pub views: Arc<AccountViews>,
    /// Accounts that may not create records.
    pub refused: Arc<RefusedAccounts>,
    /// Queue of voids.
    pub retry_queue: Arc<RetryQueue>,
    /// Accounts of which the store lost writes.
    pub lost_writes: Arc<LostWritesLog>,
}

impl Authorizer {
    /// Executes `authorize.lua` with the account's plan limits, again if the plan changed meanwhile. `requested` is
    /// `None` for a request that is only counted; a stream that the plan excludes is only counted too. Voids the hold
    /// if the reply is lost, since the script may have run.
    ///
    /// # Errors
    /// [`NoDecision`]: the store is untrusted, unreachable, or lost writes of the account; or the account's plan is
    /// unknown.
    pub async fn authorize(
        &self,
        key: &KnownKey,
        name: &HoldName,
        keys: &HoldKeys,
        requested: Option<ChargeRequest<'_>>,
    ) -> Result<Decision, NoDecision> {
        if !self.health.is_still_trusted().await {
            return Err(NoDecision);
        }
        let ledger = self.health.ledger().ok_or(NoDecision)?;
        let mut view = self.views.get(&name.account);
        for _ in 0..EXECUTIONS_MAX {
            let plan = self.plans.get(&view.plan, &name.account).ok_or(NoDecision)?;
            // A plan without streams counts the request and charges nothing.
            let is_admitted = |requested: &ChargeRequest<'_>| plan.plan.admits(requested.is_stream);
            let charge = requested.filter(is_admitted).map(|requested| requested.charge);
            let request = Authorize {
                name,
                key_id: key.owner.key_id(),
                view: &view,
                plan: &self.limits(&name.account, &plan.plan),
                charge,
            };
            let origin_at = |view: &AccountView| HoldOrigin {
                ledger: Arc::clone(&ledger),
                as_of: view.as_of(),
            };
            let reply = match request.execute(keys, &self.store).await {
                Ok(reply) => reply,
                Err(error) => return Err(self.void_lost(&error, charge, name, origin_at(&view)).await),
            };
            self.require_decision(&reply, &view, &plan, &name.account)?;
            let AuthorizeReply { outcome, view: seen } = reply;
            self.views.record(&name.account, &seen);
            let origin = origin_at(&seen);
            match outcome {
                AuthorizeOutcome::OtherPlan => {
                    view = seen;
                    continue;
                }
                // Ids are random, so a known id means that an earlier execution of this call used it and its reply was
                // lost.
                AuthorizeOutcome::KnownId => Box::pin(self.retry_queue.void(name.clone(), &origin)).await,
                _ if is_rejection_of_key(&outcome) => key.record_rejection(),
                _ => {}
            }
            return Ok(Decision {
                outcome,
                plan,
                origin,
            });
        }
        Err(NoDecision)
    }

    /// Returns whether the store would now reject the key because it is revoked or over its rate. Reads the state of
    /// the key without counting the request.
    ///
    /// # Errors
    /// [`NoDecision`]: the store is untrusted or unreachable, or the account's plan is unknown.
    pub async fn would_reject(&self, key: &KnownKey) -> Result<bool, NoDecision> {
        if !self.health.is_still_trusted().await {
            return Err(NoDecision);
        }
        let owner = &key.owner;
        let view = self.views.get(owner.account());
        let plan = self.plans.get(&view.plan, owner.account()).ok_or(NoDecision)?;
        let state = KeyState::read(&self.store, owner).await.map_err(|error| {
            static LINE: PacedLine = PacedLine::new();
            if let Some(left_out) = LINE.due() {
                tracing::warn!(
                    error = &error as &dyn Error,
                    left_out,
                    "a key could not be looked at"
                );
            }
            NoDecision
        })?;
        let limit = self.limits(owner.account(), &plan.plan).proxy_requests_per_minute;
        Ok(!state.is_active || limit.is_some_and(|limit| state.requests >= limit))
    }

    /// Returns the limits of an account on `plan`. For an account that may not create records (decision D71) the rate
    /// is zero: the script then denies each call as any call over its rate, and stores no more than for one.
    fn limits<'a>(&self, account: &str, plan: &'a Plan) -> Cow<'a, Plan> {
        match self.refused.cause(account) {
            None => Cow::Borrowed(plan),
            Some(_) => Cow::Owned(Plan {
                proxy_requests_per_minute: Some(0),
                ..plan.clone()
            }),
        }
    }

    /// Queues a void if the failed execution may have charged.
    async fn void_lost(
        &self,
        error: &StoreError,
        charge: Option<&Charge<'_>>,
        name: &HoldName,
        origin: HoldOrigin,
    ) -> NoDecision {
        static LINE: PacedLine = PacedLine::new();
        if let Some(left_out) = LINE.due() {
            tracing::warn!(
                error = error as &dyn Error,
                left_out,
                "the store gave no decision"
            );
        }
        if charge.is_some() && error.may_have_run() {
            Box::pin(self.retry_queue.void(name.clone(), &origin)).await;
        }
        NoDecision
    }

    /// Checks that the reply counts as a decision: the store did not lose writes of the account, and a denial followed
    /// the limits of a plan, since those of an account without a plan belong to none. Logs the fault.
    fn require_decision(
        &self,
        reply: &AuthorizeReply,
        known: &AccountView,
        plan: &PlanLimits,
        account: &str,
    ) -> Result<(), NoDecision> {
        if matches!(reply.outcome, AuthorizeOutcome::LostWrites) {
            self.lost_writes.record_refusal(account, known, &reply.view);
            return Err(NoDecision);
        }
        self.lost_writes.record_decision(account);
        match reply.outcome {
            AuthorizeOutcome::Denied(_) | AuthorizeOutcome::DeniedUnrecorded { .. }
                if plan.name.is_empty() =>
            {
                tracing::error!(account, "the account's record names no plan");
                Err(NoDecision)
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether the next request with the same key will probably be rejected too.
const fn is_rejection_of_key(outcome: &AuthorizeOutcome) -> bool {
    matches!(
        outcome,
        AuthorizeOutcome::Revoked
            | AuthorizeOutcome::Denied(Denial::RateLimited)
            | AuthorizeOutcome::DeniedUnrecorded {
                denial: Denial::RateLimited,
                ..
            }
    )
}

#[cfg(test)]
mod tests;
