//! Twins of `account/*.lua`: create an account, change its plan, accept it after lost writes, add a user.

use crate::keys::{self, AccountKeys};
use crate::lookup::script::note;
use crate::script::change::{AuditEvent, CHANGE_ATTEMPTS, Scope, unexpected_reply};
use crate::script::script;
use crate::user::User;
use crate::user::email::EmailOwner;
use crate::versions::AccountVersion;
use crate::{Store, StoreError, audit};
use serde_json::json;

script! {
    /// Creates an account.
    pub static CREATE = "account_create",
    kind: Timed,
    source: [include_str!("create.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct CreateKeys: String { account, audit_log, users },
    args: struct CreateArgs<'a>: &'a str { account_id, entry, name, plan, email, owner },
}

script! {
    /// Changes the plan.
    pub static SET_PLAN = "account_set_plan",
    kind: Change,
    source: [include_str!("set_plan.lua")],
    when_full: Refuse,
    args: struct SetPlanArgs<'a>: &'a str { plan, expected },
}

script! {
    /// Accepts an account after a failover.
    pub static ACCEPT = "account_accept",
    kind: Change,
    source: [include_str!("accept.lua")],
    when_full: Refuse,
}

script! {
    /// Adds a user to an account, up to [`USERS_MAX`].
    pub static ADD_USER = "account_add_user",
    kind: Change,
    source: [include_str!("add_user.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct AddUserKeys: String { users },
    args: struct AddUserArgs<'a>: &'a str { email, user, users_max },
}

/// Maximum number of users of an account.
pub const USERS_MAX: usize = 1000;

/// Version of a new account, as written by `account/create.lua`.
const BORN: AccountVersion = AccountVersion {
    generation: 1,
    version: 1,
};

/// Outcome of a change of plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanSet {
    /// In force from the next call on.
    Done,
    /// The account already had that plan.
    AlreadySo,
    /// The account does not exist.
    NoAccount,
}

/// Outcome of adding a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAdded {
    /// The user exists.
    Done,
    /// The account does not exist.
    NoAccount,
    /// Another user of the account has this e-mail address.
    EmailTaken,
    /// The account has [`USERS_MAX`] users.
    TooMany,
}

/// Arguments of a new account.
#[derive(Debug)]
pub struct NewAccount<'a> {
    /// Account id, `acct_…`.
    pub id: &'a str,
    /// Display name.
    pub name: &'a str,
    /// Name of the plan.
    pub plan: &'a str,
    /// The first user.
    pub owner: Option<&'a User>,
}

/// Creates the account.
///
/// The list of accounts is in another slot than the account, so two commands write them. The list is written first: a
/// crash between the two leaves a listed id without a record, which every reader skips. The opposite order could leave
/// a working account that neither a rotation of the master key nor `store accept` visits. The look-up of the owner's
/// e-mail address is written before both, and removed if the account was certainly not created.
pub async fn create(store: &Store, new: &NewAccount<'_>, actor: &str) -> Result<(), StoreError> {
    let NewAccount { id, owner, .. } = *new;
    if let Err(error) = announce(store, id, owner).await {
        retract(store, id, owner).await;
        return Err(error);
    }
    if let Err(error) = make(store, new, actor).await {
        if !error.may_have_run() {
            retract(store, id, owner).await;
        }
        return Err(error);
    }
    join_owner(store, id, owner).await
}

/// Adds the owner, if there is one, to the look-up of the e-mail.
async fn join_owner(store: &Store, id: &str, owner: Option<&User>) -> Result<(), StoreError> {
    match owner {
        Some(owner) => owner_of(id, owner).join(store, &owner.email).await,
        None => Ok(()),
    }
}

/// Writes the look-ups before the record.
async fn announce(store: &Store, id: &str, owner: Option<&User>) -> Result<(), StoreError> {
    join_owner(store, id, owner).await?;
    note(store, keys::ACCOUNTS, id).await
}

/// Removes the e-mail look-up of an account that was not created. Best effort: a repeated creation has another id, and
/// `ledger check` reports leftovers.
async fn retract(store: &Store, id: &str, owner: Option<&User>) {
    if let Some(owner) = owner
        && let Err(error) = owner_of(id, owner).leave(store, &owner.email).await
    {
        tracing::warn!(account = id, %error, "the look-up of an e-mail still names an account that was not created");
    }
}

/// Writes the record of the account.
async fn make(store: &Store, new: &NewAccount<'_>, actor: &str) -> Result<(), StoreError> {
    let NewAccount {
        id,
        name,
        plan,
        owner,
    } = *new;
    let account = AccountKeys::new(id);
    let keys = CreateKeys {
        account: account.record(),
        audit_log: account.live().audit(),
        users: account.users(),
    };
    let data = json!({ "name": name, "plan": plan, "ownerUserId": owner.map(|owner| &owner.id) });
    let (email, record) = owner
        .map(|owner| (owner.email.as_str(), owner.to_stored()))
        .unwrap_or_default();
    let args = CreateArgs {
        account_id: id,
        entry: &audit::entry(audit::ACCOUNT_CREATED, None, actor, &data),
        name,
        plan,
        email,
        owner: &record,
    };
    let mut reply = store.reply(&CREATE, keys, args).await?;
    match reply.word()?.as_str() {
        "created" => {
            store.versions().record(id, BORN);
            Ok(())
        }
        _ => reply.unexpected(),
    }
}

/// Changes the account's plan, whatever the current one is.
///
/// # Errors
/// [`StoreError`], also if others keep changing the plan. Safe to retry.
pub async fn set_plan(store: &Store, id: &str, plan: &str, actor: &str) -> Result<PlanSet, StoreError> {
    for _ in 0..CHANGE_ATTEMPTS {
        let mut query = redis::cmd("HGET");
        query.arg(AccountKeys::new(id).record()).arg("plan");
        let current: Option<String> = store.command(&query).await?;
        let plans = PlanMove {
            // The script detects an account that is not there, and whether it was lost.
            from: &current.unwrap_or_default(),
            to: plan,
        };
        if let Some(set) = move_plan(store, id, plans, actor).await? {
            return Ok(set);
        }
    }
    unexpected_reply(&SET_PLAN)
}

/// A change of plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanMove<'a> {
    /// The required current plan.
    pub from: &'a str,
    /// The new plan.
    pub to: &'a str,
}

/// Moves the account to another plan. `None` if its current plan is not `from`; nothing changed then.
/// Safe to retry.
pub async fn move_plan(
    store: &Store,
    id: &str,
    plans: PlanMove<'_>,
    actor: &str,
) -> Result<Option<PlanSet>, StoreError> {
    let data = json!({ "plan": plans.to, "previous": { "plan": plans.from } });
    let event = AuditEvent::new("account.plan_set", data);
    let args = SetPlanArgs {
        plan: plans.to,
        expected: plans.from,
    };
    let mut reply = Scope::live(id, actor)
        .execute(store, &SET_PLAN, event, (), args)
        .await?;
    match reply.word()?.as_str() {
        "set" => Ok(Some(PlanSet::Done)),
        "same" => Ok(Some(PlanSet::AlreadySo)),
        "other_plan" => Ok(None),
        "no_account" => Ok(Some(PlanSet::NoAccount)),
        _ => reply.unexpected(),
    }
}

/// Accepts the account as it is now, although its version decreased. Returns false if it does not exist.
/// Safe to retry.
pub async fn accept(store: &Store, id: &str, actor: &str) -> Result<bool, StoreError> {
    let event = AuditEvent::new("store.accepted", json!({}));
    store.versions().forget(id);
    let reply = Scope::live(id, actor)
        .execute(store, &ACCEPT, event, (), ())
        .await?;
    reply.is("accepted", &["no_account"])
}

/// Adds a user to the account.
pub async fn add_user(store: &Store, id: &str, user: &User, actor: &str) -> Result<UserAdded, StoreError> {
    let owner = owner_of(id, user);
    owner.join(store, &user.email).await?;
    let data = json!({ "userId": user.id, "role": user.role.as_str() });
    let event = AuditEvent::new("user.created", data);
    let scope = Scope::live(id, actor);
    let keys = AddUserKeys {
        users: scope.keys().users(),
    };
    let args = AddUserArgs {
        email: &user.email,
        user: &user.to_stored(),
        users_max: &USERS_MAX.to_string(),
    };
    let mut reply = scope.execute(store, &ADD_USER, event, keys, args).await?;
    let refused = match reply.word()?.as_str() {
        "added" => return owner.join(store, &user.email).await.map(|()| UserAdded::Done),
        "exists" => UserAdded::EmailTaken,
        "no_account" => UserAdded::NoAccount,
        "too_many" => UserAdded::TooMany,
        _ => return reply.unexpected(),
    };
    owner.leave_to_another(store, &user.email).await?;
    Ok(refused)
}

fn owner_of(account: &str, user: &User) -> EmailOwner {
    EmailOwner {
        account: account.to_owned(),
        user: user.id.clone(),
    }
}
