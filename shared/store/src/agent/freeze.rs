//! Twin of `freeze.lua`: freeze and unfreeze an agent.

use crate::script::change::{AGENT_EXISTS, AuditEvent, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use serde_json::json;

script! {
    /// Freezes or unfreezes an agent.
    pub static AGENT_FREEZE = "agent_freeze",
    kind: Change,
    source: [AGENT_EXISTS, include_str!("freeze.lua")],
    when_full: Run,
    keys: struct FreezeKeys: String { agent, agent_keys, frozen_agents },
    args: struct FreezeArgs<'a>: &'a str { change, authority, agent },
}

domain::words! {
    /// The actor that freezes an agent. Only the operator can lift the operator's freeze (decision D22).
    pub enum FrozenBy {
        /// A user or an API key of the account.
        User = "user",
        /// The operator of this installation.
        Operator = "operator",
    }
}

/// The requested change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    /// Freeze the agent.
    By(FrozenBy),
    /// Make it active again.
    Lift(FrozenBy),
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// In force from the next call on.
    Done,
    /// The agent was already in that state; nothing changed.
    AlreadySo,
    /// The operator froze it, and users may not lift that freeze.
    NotPermitted,
    /// The account has no such agent: no wallet row, policy, provider key or virtual key.
    NotFound,
}

/// Freezes or unfreezes `agent` of the account and mode in `scope`.
/// Safe to retry.
pub async fn set_frozen(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    freeze: Freeze,
) -> Result<Frozen, StoreError> {
    let (change, authority, kind) = match freeze {
        Freeze::By(authority) => ("freeze", authority.as_str(), "agent.frozen"),
        Freeze::Lift(authority) => ("lift", authority.as_str(), "agent.unfrozen"),
    };
    let event = AuditEvent::new(kind, json!({ "authority": authority })).with_agent(agent);
    let realm = scope.realm();
    let keys = FreezeKeys {
        agent: realm.agent(agent),
        agent_keys: realm.keys().agent_keys(agent),
        frozen_agents: realm.frozen_agents(),
    };
    let args = FreezeArgs {
        change,
        authority,
        agent,
    };
    let mut reply = scope.execute(store, &AGENT_FREEZE, event, keys, args).await?;
    match reply.word()?.as_str() {
        "done" => Ok(Frozen::Done),
        "already" => Ok(Frozen::AlreadySo),
        "not_permitted" => Ok(Frozen::NotPermitted),
        "not_found" | "no_account" => Ok(Frozen::NotFound),
        _ => reply.unexpected(),
    }
}
