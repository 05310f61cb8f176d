//! `/agents`: agents with their wallet rows, freeze and unfreeze (decisions D6, D14, D15, D22, D67).

mod doc;
mod list;

pub(crate) use doc::section;
pub use list::list;

use crate::state::{ApiState, Call};
use clock::now_ms;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, Fields, Problem, Reply, TextForm, missing, operations};
use serde::Serialize;
use store::agent::freeze::{Freeze, Frozen, FrozenBy, set_frozen};
use store::agent::script as agent;
use store::agent::script::{AgentCreated, Deleted, KEYS_AT_ONCE, NewAgent};
use store::agent::{AgentRecord, WalletRow};
use store::script::change::FieldChange;
use store::script::plan_limit::{EXECUTIONS_MAX, PlanLimit};
use utoipa::ToSchema;

operations! {
    /// Operations on agents.
    ROUTES: ApiState, Management;

    POST   "/agents",               key(Write, Admin),   Both, PerDay,    create, Confirmed, Budgeted;
    GET    "/agents",               key(Read, Viewer),   Both, PerMinute, list, Query;
    GET    "/agents/{id}",          key(Read, Viewer),   Both, PerMinute, get;
    PATCH  "/agents/{id}",          key(Write, Admin),   Both, PerMinute, update;
    DELETE "/agents/{id}",          key(Write, Admin),   Both, PerMinute, delete;
    POST   "/agents/{id}/freeze",   key(Write, Manager), Both, PerMinute, freeze, AlwaysAllowed;
    POST   "/agents/{id}/unfreeze", key(Write, Manager), Both, PerMinute, unfreeze, AlwaysAllowed;
}

/// Longest name.
pub(super) const NAME_MAX: usize = 200;
/// Longest type.
const TYPE_MAX: usize = 64;
/// Longest description.
const DESCRIPTION_MAX: usize = 2000;
const TYPE_DEFAULT: &str = "custom";
/// Agents of this type appear in the list as marketplace subscriptions.
const MARKETPLACE: &str = "marketplace";

/// The record as returned (decision D15). Without a wallet row, all fields of one are null.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Agent)]
struct AgentView<'a> {
    #[schema(value_type = is::AgentId)]
    id: &'a str,
    #[schema(example = "Research bot")]
    name: Option<&'a str>,
    /// Free text, `custom` by default.
    #[serde(rename = "type")]
    #[schema(example = "custom")]
    kind: Option<&'a str>,
    #[schema(example = "Reads papers at night.")]
    description: Option<&'a str>,
    /// Origin of the agent: a marketplace subscription or custom.
    #[schema(value_type = Option<is::AgentSource>)]
    source: Option<&'static str>,
    #[schema(value_type = is::AgentState)]
    status: &'static str,
    /// Maximum amount that `POST /spend` may take from its wallet in a UTC day.
    spend_limit: Option<Nanos>,
    /// Number of its wallet.
    #[schema(value_type = Option<is::WalletNumber>)]
    wallet_id: Option<u64>,
    /// Id of its wallet.
    #[schema(value_type = Option<is::WalletId>)]
    wallet: Option<&'a str>,
    #[schema(value_type = Option<is::Time>)]
    created_at: Option<String>,
    #[schema(value_type = Option<is::Time>)]
    updated_at: Option<String>,
}

endpoint::answer! { AgentAnswer<'a>, agent: AgentView<'a> }

impl<'a> AgentView<'a> {
    fn new(agent: &'a AgentRecord) -> Self {
        let row = agent.row.as_ref();
        Self {
            id: &agent.id,
            name: row.map(|row| row.name.as_str()),
            kind: row.map(|row| row.kind.as_str()),
            description: row.and_then(|row| row.description.as_deref()),
            source: row.map(source),
            status: if agent.frozen { "frozen" } else { "active" },
            spend_limit: row.and_then(|row| row.spend_limit),
            wallet_id: row.map(|row| row.number),
            wallet: row.map(|row| row.wallet.as_str()),
            created_at: row.map(|row| iso_from_ms(row.created_at_ms)),
            updated_at: row.map(|row| iso_from_ms(row.updated_at_ms)),
        }
    }
}

fn source(row: &WalletRow) -> &'static str {
    if row.kind == MARKETPLACE {
        MARKETPLACE
    } else {
        TYPE_DEFAULT
    }
}

/// `POST /agents`
pub async fn create(call: Call) -> Answer {
    let body = call.body()?.only(&["name", "type", "description"])?;
    let name = body.text("name", TextForm::Line, NAME_MAX)?.not_null("name")?;
    let name = name.ok_or_else(|| missing("name"))?;
    let kind = body.text("type", TextForm::Line, TYPE_MAX)?.value();
    let description = body
        .text("description", TextForm::Lines, DESCRIPTION_MAX)?
        .value();
    let id = IdKind::Agent.mint(now_ms())?;
    create_agent(&call, &id, &name, kind.as_deref(), description.as_deref()).await?;
    show(&call, &id).await
}

/// Creates the agent `id` with its wallet, within the plan.
///
/// # Errors
/// 403 `TIER_LIMIT`, 409 if it already has a wallet, 503.
pub(super) async fn create_agent(
    call: &Call,
    id: &str,
    name: &str,
    kind: Option<&str>,
    description: Option<&str>,
) -> Result<(), Problem> {
    let mut plan_name = call.caller.plan.clone();
    for _ in 0..EXECUTIONS_MAX {
        let plan = call.plan(&plan_name)?;
        // Test mode counts against no plan limit (decision D53).
        let limit = (call.caller.mode == Mode::Live).then_some(PlanLimit {
            plan: &plan_name,
            most: plan.custom_agents,
        });
        let new = NewAgent {
            id,
            name,
            kind: kind.unwrap_or(TYPE_DEFAULT),
            description,
            limit,
        };
        match new.create(&call.state.store, &call.scope()).await? {
            AgentCreated::Done => return Ok(()),
            AgentCreated::TierLimit => return Err(tier_limit(&plan_name, plan.custom_agents)),
            AgentCreated::Exists => {
                return Err(Problem::new(Code::Conflict, "This agent has a wallet already."));
            }
            AgentCreated::OtherPlan(other) => plan_name = other,
        }
    }
    Err(Code::ServiceUnavailable.into())
}

fn tier_limit(plan: &str, limit: Option<u64>) -> Problem {
    let limit = limit.unwrap_or_default();
    let message = format!(
        "The plan `{plan}` limits agents to {limit}, and the account has as many: delete one, or move to a larger plan."
    );
    Problem::new(Code::TierLimit, message)
}

/// `GET /agents/{id}`
pub async fn get(call: Call) -> Answer {
    show(&call, call.agent()?).await
}

/// `PATCH /agents/{id}`
pub async fn update(call: Call) -> Answer {
    let id = call.agent()?;
    let changes = changes(&call.body()?)?;
    if changes.is_empty() {
        require_row(&call, id).await?;
        return show(&call, id).await;
    }
    match agent::update(&call.state.store, &call.scope(), id, &changes).await? {
        true => show(&call, id).await,
        false => Err(no_wallet(id)),
    }
}

/// Returns the changes of a PATCH. `null` clears a field; the type returns to the default, and a name cannot be
/// cleared.
fn changes(body: &Fields<'_>) -> Result<Vec<FieldChange>, Problem> {
    body.require_only(&["name", "type", "description", "spendLimit"])?;
    let mut changes = Vec::new();
    let name = body.text("name", TextForm::Line, NAME_MAX)?.not_null("name")?;
    changes.extend(name.map(|name| ("name", Some(name))));
    let kind = body.text("type", TextForm::Line, TYPE_MAX)?.nullable();
    let default = || TYPE_DEFAULT.to_owned();
    changes.extend(kind.map(|kind| ("type", Some(kind.unwrap_or_else(default)))));
    let description = body.text("description", TextForm::Lines, DESCRIPTION_MAX)?;
    changes.extend(description.nullable().map(|text| ("description", text)));
    let limit = body.limit("spendLimit")?.nullable();
    changes.extend(limit.map(|limit| ("spend_limit", limit.map(|limit| limit.get().to_string()))));
    Ok(changes)
}

/// `DELETE /agents/{id}`
pub async fn delete(call: Call) -> Answer {
    let id = call.agent()?;
    match agent::delete(&call.state.store, &call.scope(), id).await? {
        Deleted::Done => Reply::done(),
        Deleted::Missing => Err(no_wallet(id)),
        Deleted::HoldsMoney => Err(Problem::new(
            Code::Conflict,
            format!("The wallet of agent `{id}` holds money; move it first."),
        )),
        Deleted::AwaitsDeposit => Err(Problem::new(
            Code::Conflict,
            format!(
                "The wallet of agent `{id}` waits for a pending deposit; confirm it, or have the operator cancel it."
            ),
        )),
        Deleted::OpenEscrows => Err(Problem::new(
            Code::Conflict,
            format!("The wallet of agent `{id}` is a party to an escrow that is funded or disputed."),
        )),
        Deleted::TooManyKeys(active) => Err(Problem::new(
            Code::Conflict,
            format!(
                "Agent `{id}` has {active} active virtual keys; revoke them first, until it has {KEYS_AT_ONCE} at most."
            ),
        )),
    }
}

/// `POST /agents/{id}/freeze`
pub async fn freeze(call: Call) -> Answer {
    change_freeze(&call, Freeze::By(FrozenBy::User)).await
}

/// `POST /agents/{id}/unfreeze`
pub async fn unfreeze(call: Call) -> Answer {
    change_freeze(&call, Freeze::Lift(FrozenBy::User)).await
}

async fn change_freeze(call: &Call, freeze: Freeze) -> Answer {
    let id = call.agent()?;
    match set_frozen(&call.state.store, &call.scope(), id, freeze).await? {
        Frozen::Done | Frozen::AlreadySo => show(call, id).await,
        Frozen::NotPermitted => Err(Code::OperatorFreeze.into()),
        Frozen::NotFound => Err(not_found(id)),
    }
}

/// Answers with the current state of the agent.
async fn show(call: &Call, id: &str) -> Answer {
    let agent = require(call, id).await?;
    Reply::ok(&AgentAnswer::new(AgentView::new(&agent)))
}

/// Reads the agent `id` of the caller's account and mode.
///
/// # Errors
/// 404 if there is none (decision D22), 503.
pub(super) async fn require(call: &Call, id: &str) -> Result<AgentRecord, Problem> {
    let agent = AgentRecord::read(&call.state.store, &call.realm(), id).await?;
    agent.ok_or_else(|| not_found(id))
}

async fn require_row(call: &Call, id: &str) -> Result<(), Problem> {
    let agent = AgentRecord::read(&call.state.store, &call.realm(), id).await?;
    match agent {
        Some(AgentRecord { row: Some(_), .. }) => Ok(()),
        _ => Err(no_wallet(id)),
    }
}

fn not_found(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("There is no agent `{id}`."))
}

/// Returns the complaint about an agent without a wallet row.
pub(super) fn no_wallet(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("There is no agent `{id}` with a wallet."))
}
