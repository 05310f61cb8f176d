//! `/policies`: limits on agents' spending (decisions D20, D21, D60).

mod doc;
mod precondition;

pub(crate) use doc::section;

use crate::state::{ApiState, Call};
use clock::now_ms;
use domain::id::IdKind;
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{
    Answer, CURRENCIES, Code, Fields, Problem, Reply, TextForm, missing, operations, require_new_agent_id,
};
use serde::Serialize;
use store::page::Order;
use store::policy::PolicyRecord;
use store::policy::script as policy;
use store::policy::script::{ACCOUNT_POLICIES_MAX, PolicyDeleted, PolicySet, SetPolicy};
use store::script::change::FieldChange;
use utoipa::ToSchema;

operations! {
    /// Operations on policies.
    ROUTES: ApiState, Management;

    POST   "/policies",      key(Write, Admin), Both, PerMinute, set, Budgeted;
    GET    "/policies",      key(Read, Viewer), Both, PerMinute, list, Query;
    POST   "/policies/{id}", key(Write, Admin), Both, PerDay,    set_for_agent, Budgeted;
    DELETE "/policies/{id}", key(Write, Admin), Both, PerMinute, delete;
}

/// Longest name.
const NAME_MAX: usize = 200;
/// Default name of a policy created by `POST /policies/{agentId}`.
const NAME_DEFAULT: &str = "default";
/// The limits in a body, and the fields of the record that store them.
const LIMITS: [(&str, &str); 6] = [
    ("maxSpendPerDay", "day"),
    ("maxSpendPerTransaction", "transaction"),
    ("maxSpendPerRun", "run"),
    ("maxSpendPerMonth", "month"),
    ("approvalThreshold", "approval"),
    ("lowBalanceThreshold", "low_balance"),
];
const OTHER_FIELDS: [&str; 4] = ["name", "agentId", "currency", "capEnabled"];

/// The record as returned (decision D20).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Policy)]
struct PolicyView<'a> {
    #[schema(value_type = is::PolicyId)]
    id: &'a str,
    #[schema(example = "Research budget")]
    name: &'a str,
    /// The agent that the policy belongs to; null for an account-wide one.
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<&'a str>,
    /// Of calls and spends in a UTC day.
    max_spend_per_day: Option<Nanos>,
    /// Limit of one `POST /spend`.
    max_spend_per_transaction: Option<Nanos>,
    /// Limit of all calls and spends with the same run id.
    max_spend_per_run: Option<Nanos>,
    /// Of calls and spends in a UTC month.
    max_spend_per_month: Option<Nanos>,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    /// True if Cap allows the agent to spend at all.
    cap_enabled: bool,
    /// A spend above this amount waits for approval.
    approval_threshold: Option<Nanos>,
    /// A wallet that falls below this amount is reported by `wallet.low_balance`.
    low_balance_threshold: Option<Nanos>,
    /// Counts its changes; `If-Match` names it.
    #[schema(minimum = 1, example = 3)]
    revision: u64,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = is::Time)]
    updated_at: String,
}

endpoint::answer! { PolicyAnswer<'a>, policy: PolicyView<'a> }

impl<'a> PolicyView<'a> {
    fn new(policy: &'a PolicyRecord) -> Self {
        Self {
            id: &policy.id,
            name: &policy.name,
            agent_id: policy.agent.as_deref(),
            max_spend_per_day: policy.per_day,
            max_spend_per_transaction: policy.per_transaction,
            max_spend_per_run: policy.per_run,
            max_spend_per_month: policy.per_month,
            currency: &policy.currency,
            cap_enabled: policy.cap_enabled,
            approval_threshold: policy.approval_threshold,
            low_balance_threshold: policy.low_balance_threshold,
            revision: policy.revision,
            created_at: iso_from_ms(policy.created_at_ms),
            updated_at: iso_from_ms(policy.updated_at_ms),
        }
    }
}

/// `POST /policies`
///
/// # Errors
/// 400, 409, 412 if the precondition of `If-Match` or `If-None-Match` fails, 503.
pub async fn set(call: Call) -> Answer {
    let body = call.body()?;
    let changes = changes(&body)?;
    if !changes.iter().any(|(field, _)| *field == "name") {
        return Err(missing("name"));
    }
    let agent = agent_id(&body)?;
    store(&call, agent.as_deref(), &changes).await
}

/// `POST /policies/{agentId}`
///
/// # Errors
/// 400, 412 if the precondition of `If-Match` or `If-None-Match` fails, 503.
pub async fn set_for_agent(call: Call) -> Answer {
    let agent = call.new_agent()?;
    let body = call.body()?;
    let changes = changes(&body)?;
    if agent_id(&body)?.is_some_and(|other| other != agent) {
        return Err(Problem::validation("agentId must be the one in the path."));
    }
    store(&call, Some(agent), &changes).await
}

fn agent_id(body: &Fields<'_>) -> Result<Option<String>, Problem> {
    let agent = body.string("agentId")?.value();
    if let Some(agent) = &agent {
        require_new_agent_id("agentId", agent)?;
    }
    Ok(agent)
}

/// Returns the changes of a body. `null` clears a field; a name cannot be cleared.
fn changes(body: &Fields<'_>) -> Result<Vec<FieldChange>, Problem> {
    let known: Vec<&str> = OTHER_FIELDS
        .into_iter()
        .chain(LIMITS.map(|(name, _)| name))
        .collect();
    body.require_only(&known)?;
    let mut changes: Vec<FieldChange> = Vec::new();
    let name = body.text("name", TextForm::Line, NAME_MAX)?.not_null("name")?;
    changes.extend(name.map(|name| ("name", Some(name))));
    if body.contains("currency") {
        changes.push(("currency", Some(body.currency()?.to_owned())));
    }
    let cap = body.flag("capEnabled")?.nullable();
    changes.extend(cap.map(|cap| ("cap", Some(u8::from(cap.unwrap_or(true)).to_string()))));
    for (name, field) in LIMITS {
        let limit = body.limit(name)?.nullable();
        changes.extend(limit.map(|limit| (field, limit.map(|limit| limit.get().to_string()))));
    }
    Ok(changes)
}

async fn store(call: &Call, agent: Option<&str>, changes: &[FieldChange]) -> Answer {
    let mut defaults: Vec<FieldChange> = vec![
        ("name", Some(NAME_DEFAULT.to_owned())),
        ("currency", Some(CURRENCIES[0].to_owned())),
        ("cap", Some("1".to_owned())),
    ];
    defaults.extend(agent.map(|agent| ("agent", Some(agent.to_owned()))));
    let new_id = IdKind::Policy.mint(now_ms())?;
    let scope = call.scope();
    let set = SetPolicy {
        agent,
        changes,
        defaults: &defaults,
        new_id: &new_id,
        expected: &precondition::expected(call.headers())?,
    };
    match set.execute(&call.state.store, &scope).await? {
        PolicySet::Done(policy) => {
            let reply = Reply::ok(&PolicyAnswer::new(PolicyView::new(&policy)))?;
            Ok(reply.header("etag", &format!("\"{}\"", policy.revision)))
        }
        PolicySet::Unexpected => Err(Code::PreconditionFailed.into()),
        PolicySet::TooMany => {
            let message = format!(
                "An account can have {ACCOUNT_POLICIES_MAX} account-wide policies; delete one first."
            );
            Err(Problem::new(Code::Conflict, message))
        }
    }
}

/// `GET /policies`
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["agentId"])?;
    let paging = call.paging(&query, "policies")?;
    let page = paging.page();
    let (store, realm) = (&call.state.store, call.realm());
    let part = match query.agent_id("agentId")? {
        None => PolicyRecord::list(store, &realm, page).await?,
        Some(agent) => {
            let policy = PolicyRecord::find_by_agent(store, &realm, agent).await?;
            page.of_all(policy.into_iter().collect(), Order::Descending, |policy| {
                (policy.created_at_ms, &policy.id)
            })?
        }
    };
    Reply::ok(&paging.listing(&part, PolicyView::new))
}

/// `DELETE /policies/{id}`
///
/// # Errors
/// 404, 412 if the precondition of `If-Match` fails, 503.
pub async fn delete(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::Policy)?;
    let expected = precondition::expected(call.headers())?;
    match policy::delete(&call.state.store, &call.scope(), id, &expected).await? {
        PolicyDeleted::Done => Reply::done(),
        PolicyDeleted::Missing => Err(Problem::new(
            Code::NotFound,
            format!("There is no policy `{id}`."),
        )),
        PolicyDeleted::Unexpected => Err(Code::PreconditionFailed.into()),
    }
}
