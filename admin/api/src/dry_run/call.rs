//! Predicts a proxied call: parses and prices the body as the edge does, then runs the edge's checks.

use super::{DryRunSubject, OtherRefusal, OtherRefusals, is_too_much, read_snapshot};
use crate::state::Call;
use chat::{self, BodyError};
use domain::budget::Budget;
use domain::cap::{self, CapChecks};
use domain::check::{self, Check, CheckName, CheckedAmount};
use domain::denial::Denial;
use domain::id::IdKind;
use domain::measured::Endpoint;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::plan::{Plan, no_streaming};
use endpoint::{Answer, Code, Fields, Problem};
use store::call::snapshot::{CallSnapshot, KeySnapshot};

/// Fields of the body that are not the provider's.
const OURS: [&str; 4] = ["agent", "runId", "keyId", "endpoint"];
/// Replaces a missing prompt by an empty one. The edge accepts no empty input, so this one has [`NO_INPUT_BYTES`].
const NO_MESSAGES: &str = r#""messages":[{}]"#;
const NO_INPUT: &str = r#""input":"-""#;
const NO_INPUT_BYTES: u64 = 1;

/// Predicts the edge's answer to this body.
pub(super) async fn predict(call: &Call, body: &Fields<'_>, agent: &str) -> Answer {
    if call.caller.mode == Mode::Test {
        let message =
            "Proxied calls are live only: predict one with a live-mode API key, or a spend by its amount.";
        return Err(Problem::new(Code::LiveModeRequired, message));
    }
    let run = body.run_id()?;
    let key_id = key_id(body)?;
    let endpoint = endpoint(body)?;
    let more = match endpoint {
        Endpoint::Chat if !body.contains("messages") => NO_MESSAGES,
        Endpoint::Responses if !body.contains("input") => NO_INPUT,
        Endpoint::Chat | Endpoint::Responses | Endpoint::Embeddings => "",
    };
    let text = body.without(&OURS, more);
    let chat = chat::parse_call(endpoint, call.state.edge.streaming, text.as_bytes());
    let chat = chat.map_err(|error| bad_body(&error))?;
    let served = call.state.edge.providers.serving(&chat.model);
    chat.check_choice()
        .and_then(|()| chat.check_token_limit(call.state.edge.require_token_limit))
        .map_err(|error| bad_body(&error))?;
    let prices = call.state.edge.prices.table(&call.state.store).await?;
    let price_name = [served.price_prefix, &chat.model].concat();
    let subject = DryRunSubject {
        agent,
        run: run.as_deref(),
        key_id: key_id.as_deref(),
        model: Some(&chat.model),
        price_version: Some(prices.version()),
        served: Some(served),
        refused: call.admission.refused.cause(&call.caller.account),
    };
    let snapshot = read_snapshot(call, &subject).await?;
    let plan = call.plan(&snapshot.plan)?;
    let mut shape = chat.named_shape();
    shape.model = &price_name;
    shape.tier_is_reported = served.reports_tier();
    if !more.is_empty() {
        // The inserted prompt counts neither as a message nor by its length.
        shape.framed = 0;
        if endpoint == Endpoint::Responses {
            shape.prompt_bytes -= NO_INPUT_BYTES.min(shape.prompt_bytes);
        }
    }
    let estimate = prices
        .estimate(&shape)
        .map_or(CheckedAmount::Beyond, CheckedAmount::Call);
    let mut checks = before_cap(&subject, &snapshot, &plan)?;
    if check::deciding(&checks).is_none() && !plan.admits(chat.stream) {
        let code = BodyError::StreamNotSupported.code();
        return Err(refused(code, &no_streaming(&snapshot.plan)));
    }
    checks.push(Check::state(CheckName::NoProviderKey, snapshot.has_provider_key));
    checks.extend(of_cap(&snapshot, &plan, estimate.compared()));
    let others = OtherRefusals {
        before: None,
        after: after_checks(call, &snapshot, estimate),
    };
    subject.answer(&snapshot, estimate, &checks, others)
}

/// Returns why a call that passes all checks would be refused.
fn after_checks(call: &Call, snapshot: &CallSnapshot, estimate: CheckedAmount) -> Option<OtherRefusal> {
    let budgets = call.state.store.budgets();
    if snapshot.records.is_run_too_many(&budgets) {
        return Some(OtherRefusal {
            reason: Denial::RateLimited.reason(),
            message: Budget::runs_used_up(budgets.limit(Budget::Runs)),
        });
    }
    let spent = &snapshot.spend.cap;
    let spent = [
        spent.run_spent,
        spent.day_spent,
        spent.month_spent,
        spent.tracked_spent,
    ];
    is_too_much(&spent, estimate.compared()).then(|| OtherRefusal {
        reason: Denial::ServiceUnavailable.reason(),
        message: estimate.cannot_be_charged().to_owned(),
    })
}

/// Returns the checks of the virtual key, and of the rate of an account that is refused.
fn before_cap(
    subject: &DryRunSubject<'_>,
    snapshot: &CallSnapshot,
    plan: &Plan,
) -> Result<Vec<Check>, Problem> {
    let limit = match subject.refused {
        Some(_) => Some(0), // no request is within this rate
        None => plan.proxy_requests_per_minute,
    };
    match &snapshot.key {
        None if subject.refused.is_some() => Ok(vec![Check::within(CheckName::RateLimited, limit, 0, 1)]),
        None => Ok(Vec::new()),
        Some(key) => of_key(key, (plan, limit), subject.agent, subject.key_id),
    }
}

fn of_cap(snapshot: &CallSnapshot, plan: &Plan, estimate: Nanos) -> CapChecks {
    let inputs = &snapshot.spend;
    let policy = inputs.policy.as_ref();
    cap::checks(policy, &plan.cap(), &inputs.cap, inputs.held, estimate)
}

/// Returns the checks of the key itself. 404 for a key that is not active, which the edge would answer with 401.
fn of_key(
    key: &KeySnapshot,
    (plan, requests): (&Plan, Option<u64>),
    agent: &str,
    id: Option<&str>,
) -> Result<Vec<Check>, Problem> {
    let older_keys = key.older_keys.filter(|_| key.agent.as_deref() == Some(agent));
    let older_keys = older_keys.ok_or_else(|| {
        let id = id.unwrap_or_default();
        Problem::new(
            Code::NotFound,
            format!("keyId: the agent has no active virtual key `{id}`."),
        )
    })?;
    Ok(vec![
        Check::within(CheckName::PlanKeyLimit, plan.active_virtual_keys, older_keys, 1),
        Check::within(CheckName::RateLimited, requests, key.requests, 1),
    ])
}

/// Returns the endpoint of the call; chat completions if none is named.
fn endpoint(body: &Fields<'_>) -> Result<Endpoint, Problem> {
    let word = body.string("endpoint")?.value();
    let known = Endpoint::ALL.iter().copied();
    match word {
        None if body.contains("input") && !body.contains("messages") => Err(Problem::validation(
            "input belongs to `responses` and `embeddings`: say with `endpoint` which of them is called.",
        )),
        None => Ok(Endpoint::Chat),
        Some(word) => Endpoint::parse(&word).ok_or_else(|| {
            let words: Vec<&str> = known.map(Endpoint::as_str).collect();
            Problem::validation(format!("endpoint must be one of {}.", words.join(", ")))
        }),
    }
}

/// Returns the virtual key whose own checks are requested.
fn key_id(body: &Fields<'_>) -> Result<Option<String>, Problem> {
    let Some(id) = body.string("keyId")?.value() else {
        return Ok(None);
    };
    if IdKind::VirtualKey.has_form(&id) {
        return Ok(Some(id));
    }
    let message = "keyId must be the id of a virtual key: `vk_` and 26 letters and digits.";
    Err(Problem::validation(message))
}

fn bad_body(error: &BodyError) -> Problem {
    refused(error.code(), &format!("{error}."))
}

/// Returns the answer to a call that the edge would refuse with 400.
fn refused(code: &str, sentence: &str) -> Problem {
    Problem::validation(format!("The edge would answer 400 {code}: {sentence}"))
}
