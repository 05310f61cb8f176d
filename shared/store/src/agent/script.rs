//! Twins of `agent/*.lua`: create, change and delete an agent with its wallet row.

use crate::keys::{AccountKeys, Realm, TRANSACTION_LISTS, closed_holder};
use crate::script::change::{
    AuditEvent, BUDGET, CHANGE_ATTEMPTS, FIELDS, FieldChange, KEPT_TEXT, Scope, ShownField, field_args,
    shown, unexpected_reply,
};
use crate::script::plan_limit::PlanLimit;
use crate::script::replaced::{self, replaced};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::virtual_key;
use crate::wallet::NewWalletPlace;
use crate::{Store, StoreError};
use domain::mode::Mode;
use serde_json::json;

script! {
    /// Creates an agent.
    pub static CREATE = "agent_create",
    kind: Change,
    source: [BUDGET, KEPT_TEXT, include_str!("create.lua")],
    when_full: Refuse,
    marks: [with_budgets, confirmed],
    keys: struct CreateKeys: String { agent, agents, place },
    args: struct CreateArgs<'a>: &'a str { agent, plan, agents_max, place, fields[..] },
}

script! {
    /// Changes its wallet row.
    pub static UPDATE = "agent_update",
    kind: Change,
    source: [FIELDS, KEPT_TEXT, include_str!("update.lua")],
    when_full: Refuse,
    keys: struct UpdateKeys: String { agent },
    /// `fields` are for `fields.lua`.
    args: struct UpdateArgs<'a>: &'a str { changed, fields[..] },
}

script! {
    /// Deletes it.
    pub static DELETE = "agent_delete",
    kind: Change,
    source: [KEPT_TEXT, include_str!("delete.lua")],
    when_full: Run,
    keys: struct DeleteKeys: String {
        agent, agents, policies, policy, active_keys, agent_keys, sealed_agents, closed_wallet, open_escrows,
        lists[TRANSACTION_LISTS], closed_lists[TRANSACTION_LISTS], virtual_keys[..]
    },
    args: struct DeleteArgs<'a>: &'a str { agent, policy, wallet_number },
}

/// Maximum number of virtual keys that the audit entry of a deletion names.
const KEYS_LOGGED_MAX: usize = 100;
/// Maximum number of virtual keys that one deletion removes. If there are more, revoked ones are removed beforehand. An
/// agent with more active ones is not deleted, since the script would block the server for too long.
pub const KEYS_AT_ONCE: usize = 1000;

/// Arguments of a new agent.
#[derive(Debug)]
pub struct NewAgent<'a> {
    /// Agent id, of 1 to 128 characters.
    pub id: &'a str,
    /// Display name.
    pub name: &'a str,
    /// The kind of agent, as the owner describes it.
    pub kind: &'a str,
    /// The owner's description.
    pub description: Option<&'a str>,
    /// The plan's limit of agents; `None` where no plan applies.
    pub limit: Option<PlanLimit<'a>>,
}

/// Outcome of creating an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCreated {
    /// The agent exists.
    Done,
    /// The plan allows no more agents.
    TierLimit,
    /// An agent with this id already has a wallet.
    Exists,
    /// The account has this other plan; nothing changed. Retry with its limit.
    OtherPlan(String),
}

/// Outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The agent and its virtual keys are deleted.
    Done,
    /// No agent with this id has a wallet row.
    Missing,
    /// Its wallet holds money; nothing changed.
    HoldsMoney,
    /// Its wallet has a pending deposit; nothing changed.
    AwaitsDeposit,
    /// A funded or disputed escrow that the account pays names its wallet; nothing changed.
    OpenEscrows,
    /// It has this many active virtual keys, more than one deletion can remove; nothing changed.
    TooManyKeys(usize),
}

impl NewAgent<'_> {
    /// Creates the agent with its wallet.
    ///
    /// # Errors
    /// [`StoreError`]; if the script may have run, the agent may exist.
    pub async fn create(&self, store: &Store, scope: &Scope<'_>) -> Result<AgentCreated, StoreError> {
        for _ in 0..CHANGE_ATTEMPTS {
            let new = NewWalletPlace::draw(store, scope, self.id).await?;
            let mut reply = self.attempt(store, scope, &new).await?;
            return match reply.word()?.as_str() {
                "created" => Ok(AgentCreated::Done),
                "tier_limit" => Ok(AgentCreated::TierLimit),
                "exists" => Ok(AgentCreated::Exists),
                "other_plan" => reply.word().map(AgentCreated::OtherPlan),
                "taken" => continue,
                _ => reply.unexpected(),
            };
        }
        unexpected_reply(&CREATE)
    }

    async fn attempt(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        new: &NewWalletPlace,
    ) -> Result<ScriptReply, StoreError> {
        let realm = scope.realm();
        let keys = CreateKeys {
            agent: realm.agent(self.id),
            agents: realm.agents(),
            place: new.place_key.clone(),
        };
        let data = json!({ "name": self.name, "type": self.kind, "wallet": new.id,
            "walletId": new.number.get() });
        let event = AuditEvent::new("agent.created", data).with_agent(self.id);
        let number = new.number.to_string();
        let most = self.limit.and_then(|limit| limit.most);
        let most = most.map(|most| most.to_string()).unwrap_or_default();
        let fields = [
            Some(("wallet_number", number.as_str())),
            Some(("wallet", &new.id)),
            Some(("name", self.name)),
            Some(("type", self.kind)),
            self.description.map(|text| ("description", text)),
        ];
        let fields = fields.into_iter().flatten();
        let args = CreateArgs {
            agent: self.id,
            plan: self.limit.map_or("", |limit| limit.plan),
            agents_max: &most,
            place: &new.place_text,
            fields: fields.flat_map(|(name, value)| [name, value]).collect(),
        };
        scope.execute(store, &CREATE, event, keys, args).await
    }
}

/// Changes fields of the wallet row. Returns false if no agent with this id has one. The entry names the replaced
/// values, unless others change the same fields all the time.
/// Safe to retry.
pub async fn update(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    changes: &[FieldChange],
) -> Result<bool, StoreError> {
    let names = replaced::names(changes);
    for _ in 0..replaced::COMPARED_ATTEMPTS {
        let read = replaced::read(store, &scope.realm().agent(agent), &names).await?;
        if let Some(updated) = try_update(store, scope, agent, changes, Some(&read)).await? {
            return Ok(updated);
        }
    }
    let updated = try_update(store, scope, agent, changes, None).await?;
    updated.map_or_else(|| unexpected_reply(&UPDATE), Ok)
}

/// Makes one attempt; `None` if the fields do not have the values `read` any more.
async fn try_update(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    changes: &[FieldChange],
    read: Option<&[FieldChange]>,
) -> Result<Option<bool>, StoreError> {
    let keys = UpdateKeys {
        agent: scope.realm().agent(agent),
    };
    let form = |field| match field {
        "spend_limit" => ShownField::Amount("spendLimit"),
        other => ShownField::Text(other),
    };
    let mut data = shown(changes, form);
    if let Some(read) = read {
        let previous = shown(&replaced(changes, read), form);
        data.insert("previous".to_owned(), previous.into());
    }
    let event = AuditEvent::new("agent.updated", data.into()).with_agent(agent);
    let args = UpdateArgs {
        changed: &changes.len().to_string(),
        fields: [field_args(changes), field_args(read.unwrap_or_default())].concat(),
    };
    let mut reply = scope.execute(store, &UPDATE, event, keys, args).await?;
    match reply.word()?.as_str() {
        "updated" => Ok(Some(true)),
        "missing" => Ok(Some(false)),
        "changed" => Ok(None),
        _ => reply.unexpected(),
    }
}

/// Deletes the agent with everything that can act or spend for it (decision D15), and closes its wallet.
///
/// # Errors
/// [`StoreError`]; safe to retry. Also if others keep changing the agent's keys meanwhile.
pub async fn delete(store: &Store, scope: &Scope<'_>, agent: &str) -> Result<Deleted, StoreError> {
    let forgotten = match forget_keys(store, scope, agent).await? {
        Ok(forgotten) => forgotten,
        Err(active) => return Ok(Deleted::TooManyKeys(active)),
    };
    for _ in 0..CHANGE_ATTEMPTS {
        if let Some(deleted) = try_delete(store, scope, agent, &forgotten).await? {
            return Ok(deleted);
        }
    }
    Err(StoreError::unexpected("an agent that changes all the time"))
}

const _: () = assert!(TRANSACTION_LISTS == 8, "agent/delete.lua renames eight lists");

/// Removes the revoked virtual keys of an agent with very many keys, unless something prevents its deletion. Returns
/// the removed keys, or the number of active ones if those alone are too many.
async fn forget_keys(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
) -> Result<Result<Vec<String>, usize>, StoreError> {
    let realm = scope.realm();
    let mut query = redis::pipe();
    query
        .cmd("HMGET")
        .arg(realm.agent(agent))
        .arg(&["wallet", "balance", "pending"]);
    query.cmd("SCARD").arg(realm.open_escrows(agent));
    query.cmd("ZCARD").arg(realm.keys().agent_keys(agent));
    let (row, open, count): (Vec<Option<String>>, u64, usize) = store.pipeline(&query).await?;
    let [Some(_), balance, pending] = row.as_slice() else {
        return Ok(Ok(Vec::new()));
    };
    let holds = |amount: &Option<String>| amount.as_deref().is_some_and(|amount| amount != "0");
    let stays = holds(balance) || holds(pending) || open > 0;
    if scope.mode == Mode::Test || stays || count <= KEYS_AT_ONCE {
        return Ok(Ok(Vec::new()));
    }
    let (mut revoked, mut active) = (Vec::new(), 0);
    for first in (0..count).step_by(KEYS_AT_ONCE) {
        let ids = keys_at(realm.keys(), agent, first, KEYS_AT_ONCE);
        let ids: Vec<String> = store.command(&ids).await?;
        if ids.is_empty() {
            break;
        }
        let places = redis::Cmd::zscore_multiple(realm.keys().active_keys(), &ids);
        let places: Vec<Option<f64>> = store.command(&places).await?;
        active += places.iter().flatten().count();
        let both = ids.into_iter().zip(places);
        revoked.extend(both.filter(|(_, place)| place.is_none()).map(|(id, _)| id));
    }
    if active > KEYS_AT_ONCE {
        return Ok(Err(active));
    }
    virtual_key::script::forget_revoked(store, scope, agent, &revoked).await?;
    Ok(Ok(revoked))
}

/// Reads `count` virtual keys of an agent from rank `first` on.
fn keys_at(account: &AccountKeys, agent: &str, first: usize, count: usize) -> redis::Cmd {
    let mut range = redis::cmd("ZRANGE");
    range
        .arg(account.agent_keys(agent))
        .arg(first)
        .arg(first + count - 1);
    range
}

/// Returns the keys of the deletion of an agent that has this policy, this wallet and these virtual keys.
fn delete_keys(
    realm: &Realm,
    agent: &str,
    (policy, number): (Option<&str>, u64),
    virtual_keys: &[String],
) -> DeleteKeys {
    let policies = realm.policies();
    DeleteKeys {
        agent: realm.agent(agent),
        agents: realm.agents(),
        policy: policy.map_or_else(|| policies.clone(), |id| realm.policy(id)),
        policies,
        active_keys: realm.keys().active_keys(),
        agent_keys: realm.keys().agent_keys(agent),
        sealed_agents: realm.keys().sealed_agents(),
        closed_wallet: realm.closed_wallet(number),
        open_escrows: realm.open_escrows(agent),
        lists: realm.transaction_lists(agent),
        closed_lists: realm.transaction_lists(&closed_holder(number)),
        virtual_keys: virtual_keys
            .iter()
            .map(|id| realm.keys().virtual_key(id))
            .collect(),
    }
}

/// Makes one attempt; `None` if policy, wallet or virtual keys changed between read and script. `forgotten` are keys
/// that were removed beforehand.
async fn try_delete(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    forgotten: &[String],
) -> Result<Option<Deleted>, StoreError> {
    let realm = scope.realm();
    let mut query = redis::pipe();
    query
        .cmd("HMGET")
        .arg(realm.agent(agent))
        .arg(&["policy_id", "wallet_number"]);
    // Reading one key more than the limit makes the script detect keys that it was not given.
    query.add_command(keys_at(realm.keys(), agent, 0, KEYS_AT_ONCE + 1));
    let ((policy, number), virtual_keys): ((Option<String>, Option<u64>), Vec<String>) =
        store.pipeline(&query).await?;
    let Some(number) = number else {
        return Ok(Some(Deleted::Missing));
    };
    let virtual_keys = match scope.mode {
        Mode::Live => virtual_keys,
        Mode::Test => Vec::new(),
    };
    let keys = delete_keys(&realm, agent, (policy.as_deref(), number), &virtual_keys);
    let all = virtual_keys.iter().chain(forgotten);
    let logged: Vec<&String> = all.take(KEYS_LOGGED_MAX).collect();
    let count = virtual_keys.len() + forgotten.len();
    let data = json!({ "policyId": policy, "virtualKeys": logged, "virtualKeyCount": count,
        "walletId": number });
    let event = AuditEvent::new("agent.deleted", data).with_agent(agent);
    let number = number.to_string();
    let args = DeleteArgs {
        agent,
        policy: policy.as_deref().unwrap_or_default(),
        wallet_number: &number,
    };
    let mut reply = scope.execute(store, &DELETE, event, keys, args).await?;
    match reply.word()?.as_str() {
        "deleted" => Ok(Some(Deleted::Done)),
        "missing" => Ok(Some(Deleted::Missing)),
        "holds_money" => Ok(Some(Deleted::HoldsMoney)),
        "awaits_deposit" => Ok(Some(Deleted::AwaitsDeposit)),
        "open_escrows" => Ok(Some(Deleted::OpenEscrows)),
        "changed" => Ok(None),
        _ => reply.unexpected(),
    }
}
