//! Step 4: the decision. One step in the store checks key status, plan keys, rate, provider key and Cap, and charges the
//! estimate. Only this file can make an [`Approval`]; whatever is not an explicit yes is a no.

use super::Stop;
use super::known_key::KnownKey;
use super::request::Wanted;
use super::resolve::unknown_key;
use crate::gate::{Gate, PlanLimits};
use crate::metrics::Limited;
use crate::pending::item::Origin;
use crate::reply::denied::Denied;
use crate::reply::refusal::Refusal;
use secrecy::SecretString;
use shared::clock;
use shared::crypto::seal::SealedFor;
use shared::domain::budget::Budget;
use shared::domain::denial::Denial;
use shared::domain::denial_window::DenialWindow;
use shared::domain::entry::How;
use shared::domain::id::Kind;
use shared::domain::money::Nanos;
use shared::domain::plan::Plan;
use shared::store::key_standing::KeyStanding;
use shared::store::lookup::VirtualKeyOwner;
use shared::store::script::authorize::{AccountView, Answer, Authorize, Charge, Outcome};
use shared::store::script::hold::{HoldKeys, HoldName};
use shared::store::script::settle::Settle;
use std::error::Error;
use std::sync::Arc;

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
mod tests {
    use super::*;
    use crate::stand::{Does, ESTIMATE, Stand, runs, text};
    use shared::domain::denial_window::record_of;
    use shared::store::script::authorize::AUTHORIZE;
    use shared::store::script::settle::SETTLE;

    /// The account was heard of before: an account without a plan gets no denial of its own.
    fn knows_the_plan(gate: &Gate) {
        let view = AccountView {
            generation: 1,
            version: 7,
            plan: "free".to_owned(),
        };
        gate.heard("acct_1", &view);
    }

    /// What is decided where the store answers so, and how many voids wait then.
    async fn decided(answer: Does) -> (Result<Approval, Stop>, usize) {
        let stand = Stand::new().await;
        assert!(stand.gate.watch.usable(&stand.gate).await);
        knows_the_plan(&stand.gate);
        stand.store_says(move |command| runs(command, &AUTHORIZE).then(|| answer.clone()));
        let decided = decide(&stand.gate, &stand.known(), &stand.wanted()).await;
        (decided, stand.gate.pending.len())
    }

    fn denial(decided: Result<Approval, Stop>) -> Option<Denial> {
        match decided {
            Err(Stop::Denied(denied)) => Some(denied.denial),
            _ => None,
        }
    }

    /// The id is random: who finds it taken has asked before, and was not heard.
    #[tokio::test]
    async fn an_id_that_is_known_is_voided() {
        let (decided, voids) = decided(text("known 1 7 free")).await;
        assert_eq!((denial(decided), voids), (Some(Denial::ServiceUnavailable), 1));
    }

    #[tokio::test]
    async fn what_may_have_charged_is_voided_and_nothing_else() {
        for (answer, voids) in [
            (Does::HangsUp, 1),
            (text("yes 1 7 free"), 1),
            (text("stale 1 7 free"), 0),
            (text("too_much 1 7 free"), 0),
            (Does::Answers("-OOM no memory\r\n".to_owned()), 0),
        ] {
            let (decided, waits) = decided(answer.clone()).await;
            assert_eq!(denial(decided), Some(Denial::ServiceUnavailable), "{answer:?}");
            assert_eq!(waits, voids, "{answer:?}");
        }
    }

    /// A gate on a store that answers `authorize` so, and how the key stands: its score among the active keys and its requests.
    async fn stands(authorize: &'static str, is_active: bool, requests: u64) -> Stand {
        let stand = Stand::new().await;
        assert!(stand.gate.watch.usable(&stand.gate).await);
        knows_the_plan(&stand.gate);
        stand.store_says(move |command| match command[0].as_str() {
            "ZSCORE" => is_active
                .then(|| text("1"))
                .or(Some(Does::Answers("$-1\r\n".to_owned()))),
            "GET" => Some(text(&requests.to_string())),
            _ => runs(command, &AUTHORIZE).then(|| text(authorize)),
        });
        stand
    }

    fn stopped(stop: Stop) -> Denied {
        match stop {
            Stop::Denied(denied) => *denied,
            Stop::Refused(refusal) => panic!("{refusal:?}"),
        }
    }

    /// The plan of the key's account has room for ten requests a minute.
    #[tokio::test]
    async fn a_key_that_was_refused_is_turned_away_only_while_it_still_would_be() {
        for (is_active, requests, is_over) in [
            (true, 9, true),
            (true, 10, false),
            (true, 11, false),
            (false, 0, false),
        ] {
            let stand = stands("rate_limited 1 8 free", is_active, requests).await;
            let gate = &stand.gate;
            let limit = gate.plan("free").unwrap().plan.proxy_requests_per_minute;
            assert_eq!(limit, Some(10), "what the test's numbers stand for");
            let known = stand.known();
            known.refused();
            let turned_away = turn_away(gate, &known).await;
            assert_eq!(turned_away.is_ok(), is_over, "{is_active} {requests}");
            assert_eq!(known.was_refused_lately(), !is_over, "{is_active} {requests}");
            // Who stays is not counted here: the call itself is.
            assert_eq!(stand.arguments(&AUTHORIZE).len(), usize::from(!is_over));
            if let Err(stop) = turned_away {
                assert_eq!(stopped(stop).denial, Denial::RateLimited);
            }
        }
    }

    #[tokio::test]
    async fn a_key_that_is_fine_again_since_the_look_is_not_let_through() {
        let stand = stands("counted 1 8 free", false, 0).await;
        let stop = turn_away(&stand.gate, &stand.known()).await.unwrap_err();
        assert_eq!(stopped(stop).denial, Denial::ServiceUnavailable);
    }

    #[tokio::test]
    async fn a_request_that_is_no_call_is_counted_or_denied() {
        for (answer, denial) in [
            ("counted 1 8 free", None),
            ("rate_limited 1 8 free", Some(Denial::RateLimited)),
            (
                "counted_in 1 8 1795000060000 rate_limited free",
                Some(Denial::RateLimited),
            ),
            ("ok 1 8 pk_1 c2VhbGVk free", Some(Denial::ServiceUnavailable)),
            ("too_much 1 8 free", Some(Denial::ServiceUnavailable)),
        ] {
            let stand = stands(answer, true, 0).await;
            let admitted = admit(&stand.gate, &stand.known()).await;
            assert_eq!(
                admitted.err().map(|stop| stopped(stop).denial),
                denial,
                "{answer}"
            );
            // Nothing of it can have been charged, so nothing is given back.
            assert_eq!(stand.gate.pending.len(), 0, "{answer}");
            assert_eq!(stand.arguments(&AUTHORIZE)[0].last().unwrap(), "", "no estimate");
        }
        let revoked = stands("revoked 1 8 free", true, 0).await;
        let known = revoked.known();
        assert!(matches!(
            admit(&revoked.gate, &known).await,
            Err(Stop::Refused(_))
        ));
        assert!(known.was_refused_lately());
    }

    /// Each denial is told under the id that leads to its entry: Cap's under `allow_`, the others under `deny_`, and one that
    /// its rate window counts under one that leads to the record of the window.
    #[tokio::test]
    async fn a_denial_has_the_id_and_the_plan_that_it_was_made_with() {
        for (answer, denial, prefix) in [
            ("daily_limit 1 8 free", Denial::DailyLimit, "allow_"),
            ("rate_limited 1 8 free", Denial::RateLimited, "deny_"),
            (
                "counted_in 1 8 1795000060000 rate_limited free",
                Denial::RateLimited,
                "deny_",
            ),
        ] {
            let (decided, voids) = decided(text(answer)).await;
            let denied = stopped(decided.unwrap_err());
            assert_eq!((denied.denial, voids), (denial, 0), "{answer}");
            assert!(denied.id.starts_with(prefix), "{answer}: {}", denied.id);
            assert_eq!(denied.run_id.as_deref(), Some("r"));
            assert_eq!(denied.estimate, Nanos::new(ESTIMATE));
            assert_eq!(denied.message, None);
            assert!(denied.plan.is_some(), "{answer}");
        }
        let owner = VirtualKeyOwner::new("acct_1", "bot", "vk_1");
        let ends_ms = clock::now_ms() + 30_000;
        let counted = decided(text(&format!("counted_in 1 8 {ends_ms} rate_limited free")))
            .await
            .0;
        let record = window(&owner, Denial::RateLimited, ends_ms).record_id();
        assert_eq!(record_of(&stopped(counted.unwrap_err()).id), Some(record));
    }

    #[tokio::test]
    async fn a_run_too_many_says_so() {
        let (decided, voids) = decided(text("runs_full 1 8 free")).await;
        let denied = stopped(decided.unwrap_err());
        assert_eq!((denied.denial, voids), (Denial::RateLimited, 0));
        assert!(denied.message.unwrap().contains("budget of"));
    }

    /// The account's plan is learned from the store, at most so often within one call.
    #[tokio::test]
    async fn another_plan_is_asked_with_and_not_for_ever() {
        let stand = stands("other_plan 1 8 builder", true, 0).await;
        let stop = admit(&stand.gate, &stand.known()).await.unwrap_err();
        assert_eq!(stopped(stop).denial, Denial::ServiceUnavailable);
        let plans: Vec<String> = stand
            .arguments(&AUTHORIZE)
            .into_iter()
            .map(|args| args[1].clone())
            .collect();
        assert_eq!(plans, ["free", "builder", "builder"]);
    }

    /// The key was sealed for another agent, or by another master key.
    #[tokio::test]
    async fn a_provider_key_that_does_not_open_gives_the_estimate_back() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        assert!(gate.watch.usable(gate).await);
        stand.store_says(|command| match () {
            () if runs(command, &AUTHORIZE) => Some(text("ok 1 8 pk_1 c2VhbGVk free")),
            () => runs(command, &SETTLE).then(|| text("settled")),
        });
        let denied = stopped(decide(gate, &stand.known(), &stand.wanted()).await.unwrap_err());
        assert_eq!(denied.denial, Denial::ServiceUnavailable);
        assert_eq!(denied.estimate, Nanos::new(ESTIMATE));
        let settled = stand.arguments(&SETTLE);
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0][1..], [ESTIMATE.to_string().as_str(), "0", "unsent"]);
        // The entry in the audit trail has the same id, with the other prefix.
        assert_eq!(settled[0][0].replacen("allow_", "deny_", 1), denied.id);
    }

    /// A call whose price is beyond what can be counted is not asked for at all.
    #[tokio::test]
    async fn a_call_without_an_estimate_is_denied_without_asking() {
        let stand = stands("ok 1 8 pk_1 c2VhbGVk free", true, 0).await;
        let wanted = Wanted {
            estimate: None,
            ..stand.wanted()
        };
        let stop = decide(&stand.gate, &stand.known(), &wanted).await.unwrap_err();
        assert_eq!(stopped(stop).denial, Denial::ServiceUnavailable);
        assert!(stand.arguments(&AUTHORIZE).is_empty());
    }

    /// Of an account that is refused what makes records no call is within the rate.
    #[test]
    fn whoever_is_refused_has_no_request_left() {
        let plan = Plan {
            proxy_requests_per_minute: Some(30_000),
            cap_agents_per_month: Some(7),
            ..Plan::default()
        };
        let refused = without_requests(&plan);
        assert_eq!(refused.proxy_requests_per_minute, Some(0));
        assert_eq!(refused.cap_agents_per_month, plan.cap_agents_per_month);
    }
}
