//! Denials as callers receive them: the store's outcome with the ids, plan and message of the answer.

use super::authorize::Decision;
use super::call_request::CallRequest;
use super::rejection::Rejection;
use crate::metrics::{Metrics, RateLimitedBy};
use crate::refused_accounts::RefusedAccounts;
use crate::reply::denied::Denied;
use crate::tables::plans::PlanLimits;
use domain::budget::Budget;
use domain::check::CheckedAmount;
use domain::decision::denial_id;
use domain::denial::{Denial, no_named_provider_key};
use domain::denial_window::DenialWindow;
use std::sync::Arc;
use store::call::authorize::AuthorizeOutcome;
use store::call::hold::HoldName;
use store::lookup::VirtualKeyOwner;

/// Subject of a denial: the ids of the decision, and the call unless the request is only counted.
#[derive(Debug, Clone, Copy)]
pub struct DenialSubject<'a> {
    /// Owner of the key.
    pub owner: &'a VirtualKeyOwner,
    /// Names the decision.
    pub name: &'a HoldName,
    /// Run and estimate.
    pub request: Option<&'a CallRequest>,
}

/// Builds denials.
pub struct DenialBuilder {
    /// Accounts that may not create records.
    pub refused: Arc<RefusedAccounts>,
    /// Counts denials by limits that apply to every plan.
    pub metrics: Arc<Metrics>,
    /// Budget of runs of an account.
    pub runs_max: u64,
}

impl DenialBuilder {
    /// Builds the rejection for any outcome except approval. An unknown outcome is a denial.
    pub fn rejection(&self, subject: DenialSubject<'_>, decision: Decision) -> Rejection {
        let Decision { outcome, plan, .. } = decision;
        match outcome {
            AuthorizeOutcome::Denied(denial) => self.denied(denial, subject, Some(plan)).into(),
            AuthorizeOutcome::DeniedUnrecorded { denial, ends_ms } => {
                let window = window(subject.owner, denial, ends_ms);
                self.unrecorded(window, subject, plan).into()
            }
            AuthorizeOutcome::RunsFull if subject.request.is_some() => self.runs_full(subject, plan).into(),
            AuthorizeOutcome::TooMuch => self.too_much(subject).into(),
            AuthorizeOutcome::Revoked => Rejection::unknown_key(),
            _ => self.unavailable(subject),
        }
    }

    /// Builds the denial of a request without a decision.
    pub fn unavailable(&self, subject: DenialSubject<'_>) -> Rejection {
        self.denied(Denial::ServiceUnavailable, subject, None).into()
    }

    fn denied(
        &self,
        denial: Denial,
        subject: DenialSubject<'_>,
        plan: Option<Arc<PlanLimits>>,
    ) -> Box<Denied> {
        let message = match denial {
            Denial::RateLimited => self.refused.cause(&subject.name.account).map(|cause| {
                self.metrics.limited(RateLimitedBy::StoreShare);
                cause.message().to_owned()
            }),
            Denial::NoProviderKey => {
                let identity = subject.request.map(|request| request.upstream.identity());
                let upstream = identity.and_then(|identity| identity.name.as_deref());
                upstream.map(no_named_provider_key)
            }
            _ => None,
        };
        Box::new(Denied {
            denial,
            message,
            id: denial_id(denial, &subject.name.allow_id),
            is_unrecorded: false,
            run_id: subject.request.map(|request| request.run.id.clone()),
            estimate: subject.request.and_then(|request| request.estimate),
            plan,
        })
    }

    /// Builds a denial without a record of its own: its id leads to the record of its rate window (decision D70).
    fn unrecorded(
        &self,
        window: DenialWindow<'_>,
        subject: DenialSubject<'_>,
        plan: Arc<PlanLimits>,
    ) -> Box<Denied> {
        let mut denied = self.denied(window.denial, subject, Some(plan));
        denied.is_unrecorded = true;
        if let Ok(id) = window.mint(clock::now_ms()) {
            denied.id = id;
        }
        denied
    }

    /// Builds the denial of a call that no limit denies but that cannot be charged. The message says so.
    fn too_much(&self, subject: DenialSubject<'_>) -> Box<Denied> {
        let mut denied = self.denied(Denial::ServiceUnavailable, subject, None);
        let amount = subject.request.map(|request| {
            let estimate = request.estimate;
            estimate.map_or(CheckedAmount::Beyond, CheckedAmount::Call)
        });
        denied.message = amount.map(|amount| amount.cannot_be_charged().to_owned());
        denied
    }

    /// Builds the denial of a new run beyond the account's budget of runs. The message says so.
    fn runs_full(&self, subject: DenialSubject<'_>, plan: Arc<PlanLimits>) -> Box<Denied> {
        self.metrics.limited(RateLimitedBy::Runs);
        let mut denied = self.denied(Denial::RateLimited, subject, Some(plan));
        denied.message = Some(Budget::runs_used_up(self.runs_max));
        denied
    }
}

/// Returns the rate window that counts the denials of a key.
pub(super) fn window(owner: &VirtualKeyOwner, denial: Denial, ends_ms: u64) -> DenialWindow<'_> {
    DenialWindow {
        key_id: owner.key_id(),
        denial,
        ends_ms,
    }
}
