//! `/agents/{id}/virtual-keys`: the keys that agents call the proxy with (specification "Virtual keys").

mod doc;

pub(crate) use doc::section;

use super::agent;
use crate::state::{ApiState, Call};
use clock::now_ms;
use crypto::virtual_key::{self as secret, WellFormed};
use domain::id::IdKind;
use domain::plan::Plan;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, PAGING, Problem, Reply, TextForm, operations};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use store::agent::AgentRecord;
use store::sanity;
use store::script::plan_limit::{EXECUTIONS_MAX, PlanLimit};
use store::virtual_key::script as virtual_key;
use store::virtual_key::script::{NewVirtualKey, VirtualKeyCreated};
use store::virtual_key::{VirtualKeyRecord, active_agents};
use utoipa::ToSchema;

operations! {
    /// Operations on virtual keys.
    ROUTES: ApiState, Management;

    POST   "/agents/{id}/virtual-keys",         key(Write, Admin), LiveOnly, PerMinute, create, Confirmed, Budgeted;
    GET    "/agents/{id}/virtual-keys",         key(Read, Viewer), LiveOnly, PerMinute, list, Query;
    DELETE "/agents/{id}/virtual-keys/{keyId}", key(Write, Admin), LiveOnly, PerMinute, revoke, AlwaysAllowed;
}

/// Longest name.
const NAME_MAX: usize = 200;
const NAME_DEFAULT: &str = "default";
/// Note for the caller about the secret.
const NOTE: &str = "Store this secret now: it is shown only once and cannot be recovered.";

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = VirtualKey)]
struct VirtualKeyView<'a> {
    #[schema(value_type = is::VirtualKeyId)]
    key_id: &'a str,
    #[schema(value_type = is::AgentId)]
    agent_id: &'a str,
    #[schema(example = "default")]
    name: &'a str,
    /// The first characters of the secret, to identify the key.
    #[schema(example = "vk_live_9f86")]
    prefix: &'a str,
    #[schema(value_type = is::KeyState)]
    status: &'static str,
    #[schema(value_type = is::Time)]
    created_at: String,
    /// Null until the first call.
    #[schema(value_type = Option<is::Time>)]
    last_used_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = VirtualKeyIssued)]
struct VirtualKeyIssued<'a> {
    success: bool,
    virtual_key: VirtualKeyView<'a>,
    /// Shown only in this answer.
    #[schema(value_type = is::VirtualKeySecret)]
    secret: &'a str,
    #[schema(example = "Store this secret now: it is shown only once and cannot be recovered.")]
    note: String,
    /// Present and true if no agent had this id: the key made it, without a wallet and a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    new_agent: Option<bool>,
}

impl<'a> VirtualKeyView<'a> {
    fn new(key: &'a VirtualKeyRecord) -> Self {
        Self {
            key_id: &key.key_id,
            agent_id: &key.agent,
            name: &key.name,
            prefix: &key.prefix,
            status: if key.active { "active" } else { "revoked" },
            created_at: iso_from_ms(key.created_at_ms),
            last_used_at: key.last_used_ms.map(iso_from_ms),
        }
    }
}

/// `POST /agents/{id}/virtual-keys`
pub async fn create(call: Call) -> Answer {
    let agent = call.new_agent()?;
    let body = call.body()?.only(&["name"])?;
    let name = body.text("name", TextForm::Line, NAME_MAX)?.value();
    let name = name.as_deref().unwrap_or(NAME_DEFAULT);
    let store = &call.state.store;
    // Best effort: of two requests for the same new id, both can say that it is new.
    let is_new_agent = AgentRecord::read(store, &call.realm(), agent).await?.is_none();
    let secret: SecretString = secret::mint(&sanity::record(store).await?.check_secret)?;
    let well_formed = WellFormed::parse(secret.expose_secret().as_bytes()).ok_or(Code::Internal)?;
    let key_id = IdKind::VirtualKey.mint(now_ms())?;
    let mut plan_name = call.caller.plan.clone();
    for _ in 0..EXECUTIONS_MAX {
        let plan = call.plan(&plan_name)?;
        let limit = PlanLimit {
            plan: &plan_name,
            most: plan.active_virtual_keys,
        };
        let new = NewVirtualKey {
            agent,
            key_id: &key_id,
            name,
            secret: well_formed,
            limit,
        };
        match new.create(store, &call.scope()).await? {
            VirtualKeyCreated::Done { created_at_ms } => {
                return Reply::created(&VirtualKeyIssued {
                    success: true,
                    virtual_key: VirtualKeyView {
                        key_id: &key_id,
                        agent_id: agent,
                        name,
                        prefix: well_formed.shown(),
                        status: "active",
                        created_at: iso_from_ms(created_at_ms),
                        last_used_at: None,
                    },
                    secret: secret.expose_secret(),
                    note: match is_new_agent {
                        true => format!("{NOTE} {}", of_new_agent(agent)),
                        false => NOTE.to_owned(),
                    },
                    new_agent: is_new_agent.then_some(true),
                });
            }
            VirtualKeyCreated::PlanLimit => return Err(limit_reached(&call, &plan_name, &plan).await),
            VirtualKeyCreated::OtherPlan(other) => plan_name = other,
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// Returns the sentence about an id that may be mistyped.
fn of_new_agent(agent: &str) -> String {
    format!("There was no agent `{agent}`: this key made it, without a wallet and a policy.")
}

/// Returns 402 with all fields that the specification requires in its body.
async fn limit_reached(call: &Call, plan_name: &str, plan: &Plan) -> Problem {
    let agents = match active_agents(&call.state.store, &call.keys()).await {
        Ok(agents) => agents,
        Err(error) => return error.into(),
    };
    let limit = plan.active_virtual_keys.unwrap_or_default();
    let message = format!(
        "The plan `{plan_name}` limits the account's active virtual keys to {limit}, and all are in use: revoke one, or \
         move to a larger plan."
    );
    Problem::new(Code::PlanVirtualKeyLimit, message)
        .with("activeKeyAgents", agents)
        .with("plan", plan_name)
        .with("limit", limit.to_string())
        .with("upgradeTo", plan.upgrade_to.as_deref())
        .with("upgradeUrl", call.upgrade_url(plan))
}

/// `GET /agents/{id}/virtual-keys`
pub async fn list(call: Call) -> Answer {
    let paging = call.paging(&call.query(&PAGING)?, "virtualKeys")?;
    let agent = agent::require(&call, call.agent()?).await?;
    let (store, keys) = (&call.state.store, call.keys());
    let part = VirtualKeyRecord::list(store, &keys, &agent.id, paging.page()).await?;
    Reply::ok(&paging.listing(&part, VirtualKeyView::new))
}

/// `DELETE /agents/{id}/virtual-keys/{keyId}`
pub async fn revoke(call: Call) -> Answer {
    let agent = call.agent()?;
    let key_id = call.record_id("keyId", IdKind::VirtualKey)?;
    match virtual_key::revoke(&call.state.store, &call.scope(), agent, key_id).await? {
        true => Reply::done(),
        false => {
            let message = format!("Agent `{agent}` has no active virtual key `{key_id}`.");
            Err(Problem::new(Code::NotFound, message))
        }
    }
}
