//! `POST /decisions/dry-run`: predicts the decision on a proxied call or a spend (decisions D48, D56). It parses the
//! body with the code of the edge and of `POST /spend`, and reads the store with one script that cannot write.

mod doc;

pub(crate) use doc::section;

mod call;
mod spend;

use super::checks::CheckView;
use crate::state::{ApiState, Call};
use domain::check::{self, Check, CheckName, CheckedAmount, Reset};
use domain::denial::no_named_provider_key;
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Fields, Problem, Reply, operations, require_new_agent_id};
use serde::Serialize;
use settings::upstreams::Served;
use store::account::refused::Cause;
use store::call::snapshot::{CallSnapshot, KeySnapshot, SnapshotQuery};
use utoipa::ToSchema;

operations! {
    /// Operations on predictions.
    ROUTES: ApiState, Management;

    POST "/decisions/dry-run", key(Write, Viewer), Both, PerMinute, predict, AlwaysAllowed;
}

/// Largest value of the store's counters, as in the scripts.
const CEILING_NANOS: u64 = 9_000_000_000_000_000_000;

/// A prediction, as returned.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Prediction)]
struct Prediction<'a> {
    success: bool,
    would_approve: bool,
    /// Reason of the denial; null if it would be approved.
    #[schema(example = json!(null))]
    reason: Option<&'static str>,
    #[schema(example = "It would be approved: its estimate is 0.00042 USD.")]
    message: String,
    #[schema(value_type = is::AgentId)]
    agent_id: &'a str,
    #[schema(value_type = Option<is::RunId>)]
    run_id: Option<&'a str>,
    #[schema(value_type = Option<is::VirtualKeyId>)]
    key_id: Option<&'a str>,
    #[schema(example = "gpt-4o-mini")]
    model: Option<&'a str>,
    /// Name of the upstream that serves the model; null for the default one, and for a spend.
    #[schema(example = json!(null))]
    upstream: Option<&'a str>,
    estimate_usd: Option<Nanos>,
    #[schema(value_type = Option<is::NanoUsd>)]
    estimate_nanos: Option<String>,
    /// The version of the price table; null for a spend.
    #[schema(example = "3f1c9a0b")]
    price_version: Option<&'a str>,
    /// In order of precedence; the first that fails decides.
    checks: Vec<CheckView>,
    /// Time at which the counter of the check that decided restarts.
    #[schema(value_type = Option<is::Time>)]
    resets_at: Option<String>,
    #[schema(value_type = is::Time)]
    at: String,
}

/// The call or spend that is predicted.
#[derive(Debug, Clone, Copy)]
struct DryRunSubject<'a> {
    agent: &'a str,
    run: Option<&'a str>,
    key_id: Option<&'a str>,
    model: Option<&'a str>,
    price_version: Option<&'a str>,
    /// The upstream that serves the model; `None` for a spend.
    served: Option<Served<'a>>,
    /// Why the account may not create records, if so.
    refused: Option<Cause>,
}

/// `POST /decisions/dry-run`
///
/// # Errors
/// 400, 404 for an agent or virtual key that does not exist, 503.
pub async fn predict(call: Call) -> Answer {
    let body = call.body()?;
    let agent = agent(&body)?;
    match (body.has_value("model"), body.has_value("amount")) {
        (true, false) => call::predict(&call, &body, &agent).await,
        (false, true) => spend::predict(&call, &body).await,
        _ => Err(Problem::validation(
            "Give either model, with the other fields of a chat-completions body, or amount, with those of a spend.",
        )),
    }
}

fn agent(body: &Fields<'_>) -> Result<String, Problem> {
    let agent = body.string("agent")?.required("agent")?;
    require_new_agent_id("agent", &agent)?;
    Ok(agent)
}

/// Reads the state that the checks depend on; 503 if the account is gone.
async fn read_snapshot(call: &Call, subject: &DryRunSubject<'_>) -> Result<CallSnapshot, Problem> {
    let query = SnapshotQuery {
        realm: &call.realm(),
        agent: subject.agent,
        run: subject.run,
        key_id: subject.key_id,
        provider: subject
            .served
            .map_or(call.state.edge.providers.default_name(), |served| served.provider),
    };
    let snapshot = query.read(&call.state.store).await?;
    let snapshot = snapshot.ok_or(endpoint::problem::Code::ServiceUnavailable)?;
    if !snapshot.agent_exists {
        return Err(super::spend::no_agent(subject.agent));
    }
    Ok(snapshot)
}

impl<'a> DryRunSubject<'a> {
    /// Returns the name of the upstream, unless it is the default one.
    fn upstream(&self) -> Option<&'a str> {
        self.served?.upstream
    }

    /// Builds the answer from `checks`, and from the refusals before and after them.
    fn answer(
        &self,
        snapshot: &CallSnapshot,
        amount: CheckedAmount,
        checks: &[Check],
        others: OtherRefusals,
    ) -> Answer {
        let estimate = amount.amount();
        let resets = |check: &Check| match (check.name, self.refused) {
            (CheckName::RateLimited, Some(_)) => None,
            (name, _) => resets_at_ms(name, snapshot),
        };
        let deciding = check::deciding(checks).filter(|_| others.before.is_none());
        let (reason, message) = match (others.before, deciding, others.after) {
            (Some(other), ..) | (None, None, Some(other)) => (Some(other.reason), other.message),
            (None, Some(check), _) => {
                let guard = self.refused.filter(|_| check.name == CheckName::RateLimited);
                let sentence = || check.sentence(amount, resets(check));
                let upstream = self.upstream().filter(|_| check.name == CheckName::NoProviderKey);
                let message = match (guard, upstream) {
                    (Some(cause), _) => cause.message().to_owned(),
                    (None, Some(upstream)) => no_named_provider_key(upstream),
                    (None, None) => sentence(),
                };
                (Some(check.name.as_str()), message)
            }
            (None, None, None) => (None, amount.approved()),
        };
        Reply::ok(&Prediction {
            success: true,
            would_approve: reason.is_none(),
            reason,
            message,
            agent_id: self.agent,
            run_id: self.run,
            key_id: self.key_id,
            model: self.model,
            upstream: self.upstream(),
            estimate_usd: estimate,
            estimate_nanos: estimate.map(|estimate| estimate.get().to_string()),
            price_version: self.price_version,
            checks: checks
                .iter()
                .map(|check| CheckView::new(check, resets(check)))
                .collect(),
            resets_at: deciding.and_then(resets).map(iso_from_ms),
            at: iso_from_ms(snapshot.at_ms),
        })
    }
}

/// A refusal that no check makes.
#[derive(Debug)]
struct OtherRefusal {
    reason: &'static str,
    message: String,
}

/// Refusals that are not checks: one before them, and one although all checks pass.
#[derive(Debug, Default)]
struct OtherRefusals {
    before: Option<OtherRefusal>,
    after: Option<OtherRefusal>,
}

/// Returns whether adding `amount` to any of `spent` exceeds the ceiling of the counters.
fn is_too_much(spent: &[Nanos], amount: Nanos) -> bool {
    let most = spent.iter().copied().max().unwrap_or_default();
    most.saturating_add(amount).get() > CEILING_NANOS
}

fn resets_at_ms(name: CheckName, snapshot: &CallSnapshot) -> Option<u64> {
    match name.reset() {
        Reset::Minute => snapshot
            .key
            .as_ref()
            .and_then(|key: &KeySnapshot| key.resets_at_ms),
        reset => reset.after(snapshot.at_ms),
    }
}
