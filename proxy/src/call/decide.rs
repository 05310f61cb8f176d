//! Step 4: the decision. One step in the store checks key status, plan keys, rate, provider key and Cap, and charges the
//! estimate. Only this file can make an [`Approval`]; whatever is not an explicit yes is a no.

use super::Stop;
use super::chat_request::Wanted;
use super::resolve::unknown_key;
use crate::gate::{Gate, PlanLimits};
use crate::key_owners::known_key::KnownKey;
use crate::metrics::Limited;
use crate::pending::item::Origin;
use crate::reply::denied::Denied;
use crate::reply::refusal::Refusal;
use crypto::seal::SealedFor;
use domain::budget::Budget;
use domain::denial::Denial;
use domain::denial_window::DenialWindow;
use domain::entry::How;
use domain::id::Kind;
use domain::money::Nanos;
use domain::plan::Plan;
use secrecy::SecretString;
use std::error::Error;
use std::sync::Arc;
use store::call::authorize::{AccountView, Answer, Authorize, Charge, Outcome};
use store::call::hold::{HoldKeys, HoldName};
use store::call::settle::Settle;
use store::lookup::VirtualKeyOwner;
use store::virtual_key::standing::KeyStanding;

/// How often the account's plan may turn out to be another one than was thought, within one call.
const PLAN_CHANGES_MAX: usize = 3;

/// Leave to forward one call: the estimate is charged, a hold is open, the provider key is at hand. It cannot be made
/// outside this file, and [`forward`](super::forward) takes it by value, so one approval sends one request.
#[must_use = "an approval that is not forwarded leaves a hold open"]
#[derive(Debug)]
pub struct Approval {
    name: HoldName,
    keys: HoldKeys,
    origin: Origin,
    estimate: Nanos,
    provider_key: Arc<SecretString>,
}

impl Approval {
    /// Gives up the approval for its parts: the hold, to be settled, with its keys and the ledger that it belongs to; and the
    /// provider key.
    pub(super) fn into_parts(self) -> (Settle, HoldKeys, Origin, Arc<SecretString>) {
        let Self {
            name,
            keys,
            origin,
            estimate,
            provider_key,
        } = self;
        let hold = Settle {
            name,
            estimate,
            cost: estimate,
            how: How::Estimated,
        };
        (hold, keys, origin, provider_key)
    }
}

/// Decides on a well-formed call.
///
/// # Errors
/// 401, or the denial.
pub async fn decide(gate: &Gate, known: &KnownKey, wanted: &Wanted) -> Result<Approval, Stop> {
    let name = hold_name(&known.owner, &wanted.run.id)?;
    let keys = name.keys();
    let denied = |denial, plan| denied(gate, denial, &name, Some(wanted), plan);
    let Some(estimate) = wanted.estimate else {
        return Err(denied(Denial::ServiceUnavailable, None));
    };
    let charge = Charge {
        estimate,
        run_named: wanted.run.named,
        hold_life: gate.settings.hold_life(),
        price_version: wanted.prices.version(),
        model: &wanted.model,
        provider: &gate.settings.upstream.provider,
    };
    let Asked {
        outcome,
        plan,
        origin,
    } = ask(gate, known, &name, &keys, Some(&charge))
        .await
        .map_err(|()| denied(Denial::ServiceUnavailable, None))?;
    let (provider_key_id, sealed) = match outcome {
        Outcome::Charged {
            provider_key_id,
            sealed,
        } => (provider_key_id, sealed),
        Outcome::Denied(denial) => return Err(denied(denial, Some(plan))),
        Outcome::CountedIn { denial, ends_ms } => {
            let window = window(&known.owner, denial, ends_ms);
            return Err(counted(gate, window, &name, Some(wanted), plan));
        }
        Outcome::RunsFull => {
            gate.metrics.limited(Limited::Runs);
            return Err(runs_full(gate, denied(Denial::RateLimited, Some(plan))));
        }
        Outcome::Revoked => return Err(unknown_key()),
        _ => return Err(denied(Denial::ServiceUnavailable, None)),
    };
    let sealed_for = SealedFor {
        account: &name.account,
        agent: &name.agent,
        provider: &gate.settings.upstream.provider,
        key_id: &provider_key_id,
    };
    match gate.open_key(&sealed_for, &sealed) {
        Ok(provider_key) => Ok(Approval {
            name,
            keys,
            origin,
            estimate,
            provider_key,
        }),
        Err(error) => {
            tracing::error!(provider_key.id = provider_key_id, %error, "a call is denied for its provider key");
            Err(unsent(gate, name, estimate, (&keys, &origin)).await)
        }
    }
}

/// Gives an approval back that cannot be sent. The caller is denied under the id of the entry in the audit trail, which says
/// the same.
pub(super) async fn unsent(
    gate: &Gate,
    name: HoldName,
    estimate: Nanos,
    (keys, origin): (&HoldKeys, &Origin),
) -> Stop {
    let denied = Denied {
        denial: Denial::ServiceUnavailable,
        message: None,
        id: denial_id(Denial::ServiceUnavailable, &name),
        run_id: Some(name.run.clone()),
        estimate: Some(estimate),
        plan: None,
    };
    let given_back = Settle {
        name,
        estimate,
        cost: Nanos::ZERO,
        how: How::Unsent,
    };
    gate.resolve_hold(keys, origin, given_back).await;
    Stop::Denied(Box::new(denied))
}

/// Counts a malformed request against its key's rate, as every request with a known key is (decision D30); a denial of
/// the key comes before what is wrong with the body.
pub async fn count_only(gate: &Gate, known: &KnownKey, refusal: Refusal) -> Stop {
    admit(gate, known).await.err().unwrap_or_else(|| refusal.into())
}

/// Counts a request that is no call, such as the list of models.
///
/// # Errors
/// 401, or the denial.
pub async fn admit(gate: &Gate, known: &KnownKey) -> Result<(), Stop> {
    let name = hold_name(&known.owner, "")?;
    match ask(gate, known, &name, &name.keys(), None).await {
        Ok(Asked {
            outcome: Outcome::Counted,
            ..
        }) => Ok(()),
        Ok(Asked {
            outcome: Outcome::Denied(denial),
            plan,
            ..
        }) => Err(denied(gate, denial, &name, None, Some(plan))),
        Ok(Asked {
            outcome: Outcome::CountedIn { denial, ends_ms },
            plan,
            ..
        }) => Err(counted(
            gate,
            window(&known.owner, denial, ends_ms),
            &name,
            None,
            plan,
        )),
        Ok(Asked {
            outcome: Outcome::Revoked,
            ..
        }) => Err(unknown_key()),
        _ => Err(denied(gate, Denial::ServiceUnavailable, &name, None, None)),
    }
}

/// Turns away a key that was refused lately and still is, before its body is read. What the store has of the key is looked
/// at without counting the request; only when that refuses it, the request is counted, and ends here.
///
/// # Errors
/// 401, 429; 503 when the store does not answer, or when the key is fine again since the look: it was counted then.
pub async fn turn_away(gate: &Gate, known: &KnownKey) -> Result<(), Stop> {
    let unavailable = || Stop::denied(Denial::ServiceUnavailable);
    if !gate.watch.still_usable(gate).await {
        return Err(unavailable());
    }
    let owner = &known.owner;
    let plan = gate
        .plan(&gate.view(owner.account()).plan)
        .ok_or_else(unavailable)?;
    let standing = KeyStanding::read(&gate.store, owner).await.map_err(|error| {
        tracing::warn!(error = &error as &dyn Error, "a key could not be looked at");
        unavailable()
    })?;
    let limit = match gate.refused.cause(owner.account()) {
        // Then no request is within the rate.
        Some(_) => Some(0),
        None => plan.plan.proxy_requests_per_minute,
    };
    if standing.is_active && limit.is_none_or(|limit| standing.requests < limit) {
        known.forget_refusal();
        return Ok(());
    }
    Err(admit(gate, known).await.err().unwrap_or_else(unavailable))
}

fn hold_name(owner: &VirtualKeyOwner, run: &str) -> Result<HoldName, Stop> {
    let allow_id = Kind::Allow
        .mint(clock::now_ms())
        .map_err(|_| Stop::denied(Denial::ServiceUnavailable))?;
    let (account, agent) = (owner.account().to_owned(), owner.agent().to_owned());
    Ok(HoldName {
        account,
        agent,
        run: run.to_owned(),
        allow_id,
    })
}

/// What the store decided.
struct Asked {
    outcome: Outcome,
    /// The plan that it was decided by.
    plan: Arc<PlanLimits>,
    /// The ledger that decided, and how far the account has come with the decision.
    origin: Origin,
}

/// Asks the store, if it may still be used, with the limits of the plan that the account has. An answer that was lost is voided: the store may
/// have charged. `Err` means that there is no decision.
async fn ask(
    gate: &Gate,
    known: &KnownKey,
    name: &HoldName,
    keys: &HoldKeys,
    charge: Option<&Charge<'_>>,
) -> Result<Asked, ()> {
    if !gate.watch.still_usable(gate).await {
        return Err(());
    }
    let refused = gate.refused.cause(&name.account).is_some();
    let ledger = gate.watch.ledger().ok_or(())?;
    let origin = |view: &AccountView| Origin {
        ledger: Arc::clone(&ledger),
        as_of: view.as_of(),
    };
    let mut view = gate.view(&name.account);
    for _ in 0..PLAN_CHANGES_MAX {
        let limits = gate.plan(&view.plan).ok_or(())?;
        let none = refused.then(|| without_requests(&limits.plan));
        let request = Authorize {
            name,
            key_id: known.owner.key_id(),
            view: &view,
            plan: none.as_ref().unwrap_or(&limits.plan),
            charge,
        };
        let answer = request.run_with(keys, &gate.store).await;
        match answer {
            Ok(Answer {
                outcome: Outcome::OtherPlan,
                view: news,
            }) => {
                gate.heard(&name.account, &news);
                view = news;
            }
            Ok(Answer {
                outcome: Outcome::Stale,
                view: news,
            }) => {
                tracing::error!(
                    account = name.account,
                    ?view,
                    ?news,
                    "the store lost writes of this account"
                );
                return Err(());
            }
            Ok(Answer {
                outcome: Outcome::Denied(_) | Outcome::CountedIn { .. },
                ..
            }) if limits.name.is_empty() => {
                tracing::error!(account = name.account, "the account's record names no plan");
                return Err(());
            }
            Ok(Answer { outcome, view: news }) => {
                gate.heard(&name.account, &news);
                let origin = origin(&news);
                match outcome {
                    Outcome::KnownId => gate.pending.void(name.clone(), &origin),
                    Outcome::Revoked
                    | Outcome::Denied(Denial::RateLimited)
                    | Outcome::CountedIn {
                        denial: Denial::RateLimited,
                        ..
                    } => known.refused(),
                    _ => {}
                }
                return Ok(Asked {
                    outcome,
                    plan: limits,
                    origin,
                });
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "the store gave no decision");
                if charge.is_some() && error.may_have_run() {
                    gate.pending.void(name.clone(), &origin(&view));
                }
                return Err(());
            }
        }
    }
    Err(())
}

/// The plan of an account that is refused what makes records (decision D71): none of its calls is within the rate. So each is
/// denied by the same step as any other, and leaves as little as a denial for its rate does.
fn without_requests(plan: &Plan) -> Plan {
    Plan {
        proxy_requests_per_minute: Some(0),
        ..plan.clone()
    }
}

/// A new run beyond the account's budget of runs says so to people.
fn runs_full(gate: &Gate, mut stop: Stop) -> Stop {
    if let Stop::Denied(denied) = &mut stop {
        let most = gate.store.budgets().of(Budget::Runs);
        denied.message = Some(Budget::runs_used_up(most));
    }
    stop
}

fn window(owner: &VirtualKeyOwner, denial: Denial, ends_ms: u64) -> DenialWindow<'_> {
    DenialWindow {
        key_id: owner.key_id(),
        denial,
        ends_ms,
    }
}

/// A denial that its rate window counts: its id leads to the record of the window (decision D70).
fn counted(
    gate: &Gate,
    window: DenialWindow<'_>,
    name: &HoldName,
    wanted: Option<&Wanted>,
    plan: Arc<PlanLimits>,
) -> Stop {
    let mut stop = denied(gate, window.denial, name, wanted, Some(plan));
    if let (Stop::Denied(denied), Ok(id)) = (&mut stop, window.mint(clock::now_ms())) {
        denied.id = id;
    }
    stop
}

fn denied(
    gate: &Gate,
    denial: Denial,
    name: &HoldName,
    wanted: Option<&Wanted>,
    plan: Option<Arc<PlanLimits>>,
) -> Stop {
    let refused = (denial == Denial::RateLimited).then(|| gate.refused.cause(&name.account));
    let message = refused.flatten().map(|cause| {
        gate.metrics.limited(Limited::StoreShare);
        cause.message().to_owned()
    });
    Stop::Denied(Box::new(Denied {
        denial,
        message,
        id: denial_id(denial, name),
        run_id: wanted.map(|wanted| wanted.run.id.clone()),
        estimate: wanted.and_then(|wanted| wanted.estimate),
        plan,
    }))
}

/// The id of a denial: that of the hold, with the prefix `deny_` where Cap did not decide.
fn denial_id(denial: Denial, name: &HoldName) -> String {
    let kind = if Denied::by_cap(denial) {
        Kind::Allow
    } else {
        Kind::Deny
    };
    name.allow_id.replacen(Kind::Allow.prefix(), kind.prefix(), 1)
}

#[cfg(test)]
mod tests;
