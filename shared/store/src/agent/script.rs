//! Twins of `agent/*.lua`: create, change and delete an agent with its wallet row.

use crate::escrow::open_escrows;
use crate::keys::{AccountKeys, closed_holder};
use crate::script::change::{
    ATTEMPTS, BUDGET, CHANGE, Event, FIELDS, FieldChange, Scope, Shown, field_args, shown, unexpected_reply,
};
use crate::script::plan_limit::PlanLimit;
use crate::script::{Script, WhenFull};
use crate::transaction::TransactionType;
use crate::virtual_key;
use crate::wallet::NewPlace;
use crate::{Store, StoreError};
use domain::mode::Mode;
use serde_json::json;
use std::sync::LazyLock;

/// Creates an agent.
pub static CREATE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "agent_create",
        WhenFull::Refuse,
        &[CHANGE, BUDGET, include_str!("create.lua")],
    )
    .with_budgets()
    .of_names()
});

/// Changes its wallet row.
pub static UPDATE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "agent_update",
        WhenFull::Refuse,
        &[CHANGE, FIELDS, include_str!("update.lua")],
    )
});

/// Deletes it.
pub static DELETE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "agent_delete",
        WhenFull::Run,
        &[CHANGE, include_str!("delete.lua")],
    )
});

/// Most virtual keys that the audit entry of a deletion names.
const KEYS_LOGGED_MAX: usize = 100;
/// Most virtual keys that one deletion removes. Of more, revoked ones are removed beforehand; an agent with more active
/// ones is not deleted, since the script would block the server for too long.
pub const KEYS_AT_ONCE: usize = 1000;

/// Arguments of a new agent.
#[derive(Debug)]
pub struct NewAgent<'a> {
    /// Its id.
    pub id: &'a str,
    /// Display name.
    pub name: &'a str,
    /// The owner's own word for what kind of agent it is.
    pub kind: &'a str,
    /// The owner's description.
    pub description: Option<&'a str>,
    /// The plan's limit of agents; `None` where no plan applies.
    pub limit: Option<PlanLimit<'a>>,
}

/// Outcome of creating an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// The agent exists.
    Done,
    /// The plan allows no more agents.
    TierLimit,
    /// An agent of this id already has a wallet.
    Exists,
    /// The account has this other plan; nothing changed. Retry with its limit.
    OtherPlan(String),
}

/// Outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updated {
    /// The fields are changed.
    Done,
    /// No agent of this id has a wallet row.
    Missing,
}

/// Outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The agent and its virtual keys are deleted.
    Done,
    /// No agent of this id has a wallet row.
    Missing,
    /// Its wallet holds money or has a pending deposit; nothing changed.
    HoldsMoney,
    /// A funded or disputed escrow may still pay its wallet; nothing changed.
    OpenEscrows,
    /// It has this many active virtual keys, more than one deletion removes; nothing changed.
    TooManyKeys(usize),
}

impl NewAgent<'_> {
    /// Creates the agent with its wallet.
    ///
    /// # Errors
    /// [`StoreError`]; if the script may have run, the agent may exist.
    pub async fn create(&self, store: &Store, scope: &Scope<'_>) -> Result<Created, StoreError> {
        for _ in 0..ATTEMPTS {
            let new = NewPlace::draw(store, scope, self.id).await?;
            let reply = self.attempt(store, scope, &new).await?;
            return match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["created"] => Ok(Created::Done),
                ["tier_limit"] => Ok(Created::TierLimit),
                ["exists"] => Ok(Created::Exists),
                ["other_plan", plan] => Ok(Created::OtherPlan((*plan).to_owned())),
                ["taken"] => continue,
                _ => unexpected_reply(&CREATE),
            };
        }
        unexpected_reply(&CREATE)
    }

    async fn attempt(
        &self,
        store: &Store,
        scope: &Scope<'_>,
        new: &NewPlace,
    ) -> Result<Vec<String>, StoreError> {
        let account = scope.keys();
        let keys = [
            account.agent(scope.mode, self.id),
            account.agents(scope.mode),
            new.key.clone(),
        ];
        let event = Event {
            kind: "agent.created",
            agent: Some(self.id),
            data: json!({ "name": self.name, "type": self.kind, "wallet": new.id,
                "walletId": new.number.get() }),
        };
        let number = new.number.to_string();
        let most = self.limit.and_then(|limit| limit.most);
        let most = most.map(|most| most.to_string()).unwrap_or_default();
        let plan = self.limit.map_or("", |limit| limit.plan);
        let mut args = vec![self.id, plan, &most, &new.text];
        args.extend(["wallet_number", &number, "wallet", &new.id]);
        args.extend(["name", self.name, "type", self.kind]);
        args.extend(
            self.description
                .map(|text| ["description", text])
                .into_iter()
                .flatten(),
        );
        scope.execute(store, &CREATE, event, &keys, &args).await
    }
}

/// Changes fields of the wallet row.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn update(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    changes: &[FieldChange],
) -> Result<Updated, StoreError> {
    let form = |field| match field {
        "spend_limit" => Shown::Amount("spendLimit"),
        other => Shown::Text(other),
    };
    let event = Event {
        kind: "agent.updated",
        agent: Some(agent),
        data: shown(changes, form).into(),
    };
    let keys = [scope.keys().agent(scope.mode, agent)];
    let reply = scope
        .execute(store, &UPDATE, event, &keys, &field_args(changes))
        .await?;
    match reply.first().map(String::as_str) {
        Some("updated") => Ok(Updated::Done),
        Some("missing") => Ok(Updated::Missing),
        _ => unexpected_reply(&UPDATE),
    }
}

/// Deletes the agent with everything that can act or spend for it (decision D15), and closes its wallet.
///
/// # Errors
/// [`StoreError`]; it may be repeated. Also when others keep changing the agent's keys meanwhile.
pub async fn delete(store: &Store, scope: &Scope<'_>, agent: &str) -> Result<Deleted, StoreError> {
    let forgotten = match forget_keys(store, scope, agent).await? {
        Ok(forgotten) => forgotten,
        Err(active) => return Ok(Deleted::TooManyKeys(active)),
    };
    for _ in 0..ATTEMPTS {
        match try_delete(store, scope, agent, &forgotten).await? {
            None => {}
            // A noted escrow may be over, or may never have been funded.
            Some(Deleted::OpenEscrows) if open_escrows::forget_over(store, scope, agent).await? => {}
            Some(deleted) => return Ok(deleted),
        }
    }
    Err(StoreError::UnexpectedReply(
        "an agent that changes all the time".to_owned(),
    ))
}

const _: () = assert!(
    TransactionType::ALL.len() + 1 == 8,
    "agent/delete.lua renames eight lists"
);

/// Removes the revoked virtual keys of an agent with very many keys, unless something prevents its deletion. Returns
/// the keys, or the count of active ones if those alone are too many.
async fn forget_keys(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
) -> Result<Result<Vec<String>, usize>, StoreError> {
    let account = scope.keys();
    let mut look = redis::pipe();
    look.cmd("HMGET")
        .arg(account.agent(scope.mode, agent))
        .arg(&["wallet", "balance", "pending"]);
    look.cmd("SCARD").arg(account.open_escrows(scope.mode, agent));
    look.cmd("ZCARD").arg(account.agent_keys(agent));
    let (row, open, count): (Vec<Option<String>>, u64, usize) = store.pipeline(&look).await?;
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
        let ids = keys_at(&account, agent, first, KEYS_AT_ONCE);
        let ids: Vec<String> = store.command(&ids).await?;
        if ids.is_empty() {
            break;
        }
        let places = redis::Cmd::zscore_multiple(account.active_keys(), &ids);
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

/// Makes one attempt; `None` if policy, wallet or virtual keys changed between read and script. `forgotten` are keys
/// that the agent had before.
async fn try_delete(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    forgotten: &[String],
) -> Result<Option<Deleted>, StoreError> {
    let account = scope.keys();
    let record = account.agent(scope.mode, agent);
    let mut look = redis::pipe();
    look.cmd("HMGET")
        .arg(&record)
        .arg(&["policy_id", "wallet_number"]);
    // One key more than the limit makes the script notice a key that it was not given.
    look.add_command(keys_at(&account, agent, 0, KEYS_AT_ONCE + 1));
    let ((policy, number), virtual_keys): ((Option<String>, Option<u64>), Vec<String>) =
        store.pipeline(&look).await?;
    let Some(number) = number else {
        return Ok(Some(Deleted::Missing));
    };
    let virtual_keys = match scope.mode {
        Mode::Live => virtual_keys,
        Mode::Test => Vec::new(),
    };
    let policies = account.policies(scope.mode);
    let policy_key = policy
        .as_ref()
        .map_or_else(|| policies.clone(), |id| account.policy(scope.mode, id));
    let mut keys = vec![record, account.agents(scope.mode), policies, policy_key];
    keys.extend([
        account.active_keys(),
        account.agent_keys(agent),
        account.sealed_agents(),
    ]);
    keys.extend([
        account.closed_wallet(scope.mode, number),
        account.open_escrows(scope.mode, agent),
    ]);
    keys.extend(account.transaction_lists(scope.mode, agent));
    keys.extend(account.transaction_lists(scope.mode, &closed_holder(number)));
    keys.extend(virtual_keys.iter().map(|id| account.virtual_key(id)));
    let all = virtual_keys.iter().chain(forgotten);
    let logged: Vec<&String> = all.take(KEYS_LOGGED_MAX).collect();
    let count = virtual_keys.len() + forgotten.len();
    let event = Event {
        kind: "agent.deleted",
        agent: Some(agent),
        data: json!({ "policyId": policy, "virtualKeys": logged, "virtualKeyCount": count,
            "walletId": number }),
    };
    let number = number.to_string();
    let args = [agent, policy.as_deref().unwrap_or_default(), &number];
    let reply = scope.execute(store, &DELETE, event, &keys, &args).await?;
    match reply.first().map(String::as_str) {
        Some("deleted") => Ok(Some(Deleted::Done)),
        Some("missing") => Ok(Some(Deleted::Missing)),
        Some("holds_money") => Ok(Some(Deleted::HoldsMoney)),
        Some("open_escrows") => Ok(Some(Deleted::OpenEscrows)),
        Some("changed") => Ok(None),
        _ => unexpected_reply(&DELETE),
    }
}
