//! `/team`: the users of the account. An account with owners keeps at least one, even if two demote each other
//! concurrently.

use super::person::UserView;
use crate::state::{CHANGE_ATTEMPTS, Call, PeopleState};
use api::ApiKeyView;
use clock::now_ms;
use domain::id::IdKind;
use domain::role::Role;
use endpoint::{Answer, Code, Fields, PAGING, Problem, Reply, operations};
use serde::Serialize;
use serde_json::json;
use store::api_key::ApiKey;
use store::api_key::script::revoke_made_by;
use store::authority::completing;
use store::page::Order;
use store::script::change::Scope;
use store::user::email::EmailOwner;
use store::user::script::{ChangeUser, SessionsToEnd, UserChanged};
use store::user::{StoredUser, User, last_logins};
use utoipa::ToSchema;

operations! {
    /// Operations on the team.
    ROUTES: PeopleState, User;

    GET    "/team",      session(Viewer), Both, Uncounted, list, Query, AlwaysAllowed;
    PATCH  "/team/{id}", session(Owner),  Both, Uncounted, change, Query, AlwaysAllowed;
    DELETE "/team/{id}", session(Owner),  Both, Uncounted, remove, Query, AlwaysAllowed;
}

/// `GET /team`
pub async fn list(call: Call) -> Answer {
    let paging = call.paging(&call.query(&PAGING)?, "users")?;
    let (store, keys) = (&call.state.store, call.keys());
    let (users, logins) = tokio::try_join!(User::list(store, &keys), last_logins(store, &keys))?;
    let newest_first = users.into_iter().rev().collect();
    let part = paging
        .page()
        .of_all(newest_first, Order::Descending, |user: &User| (0, &user.id))?;
    Reply::ok(&paging.listing(&part, |user| UserView::new(user, &logins)))
}

/// Parses the role of a body.
///
/// # Errors
/// 400 if it is missing or unknown.
pub(super) fn given_role(body: &Fields<'_>) -> Result<Role, Problem> {
    let bad = || Problem::validation("role must be owner, admin, manager or viewer.");
    Role::parse(&body.string("role")?.required("role")?).ok_or_else(bad)
}

async fn member(call: &Call, id: &str) -> Result<StoredUser, Problem> {
    let team = StoredUser::list(&call.state.store, &call.keys()).await?;
    let found = team.into_iter().find(|stored| stored.user.id == id);
    found.ok_or_else(|| Problem::new(Code::NotFound, "The account has no such user."))
}

/// A user with another role, and the consequence for the API keys that the user made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RoleChanged)]
pub(super) struct RoleChanged<'a> {
    success: bool,
    user: UserView<'a>,
    /// The API keys that the user made and that were not revoked before, where the new role can make none: revoked now,
    /// unless they were to be kept.
    api_keys: Vec<ApiKeyView<'a>>,
}

/// Returns whether the API keys that a user made are to be kept.
fn keeps_api_keys(call: &Call) -> Result<bool, Problem> {
    let query = call.query(&["keepApiKeys"])?;
    match query.get("keepApiKeys") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::validation("keepApiKeys must be true or false.")),
    }
}

/// `PATCH /team/{id}`
pub async fn change(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::User)?;
    let keeps = keeps_api_keys(&call)?;
    let role = given_role(&call.body()?.only(&["role"])?)?;
    let (store, keys) = (&call.state.store, call.keys());
    for _ in 0..CHANGE_ATTEMPTS {
        // Read before the user: the keys up to this one were made before the user was seen in the role.
        let last_key = ApiKey::last_number(store, &keys).await?;
        let old = member(&call, id).await?;
        let user = User {
            role,
            ..old.user.clone()
        };
        // Whatever the role was: a change that was cut off, or kept the keys, is made whole by a repetition.
        let loses_keys = !role.makes_keys();
        let made = match loses_keys {
            true => ApiKey::made_by(store, &keys, id).await?,
            false => Vec::new(),
        };
        let ending: Vec<String> = made.iter().filter(|_| !keeps).map(|key| key.id.clone()).collect();
        let change = ChangeUser {
            old: &old,
            new: Some(&user),
            ending: SessionsToEnd::None,
            api_keys: &ending,
            kind: "user.role_changed",
            data: json!({ "from": old.user.role.as_str(), "to": role.as_str(), "revokedApiKeys": ending }),
        };
        let revokes_until = |last_key| (loses_keys && !keeps).then_some(last_key);
        if old.user.role == role {
            // Nothing was changed yet, so the caller's authority is still checked.
            return changed(&call, &user, &made, revokes_until(last_key)).await;
        }
        if let Some(last_key) = done(&call, change).await? {
            // A user who demotes oneself has no authority any more.
            return completing(changed(&call, &user, &made, revokes_until(last_key))).await;
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// The answer to a change of the role.
async fn changed(call: &Call, user: &User, made: &[ApiKey], revokes_until: Option<u64>) -> Answer {
    let shown = keys_of(call, &user.id, made, revokes_until).await?;
    let logins = last_logins(&call.state.store, &call.keys()).await?;
    let now = now_ms();
    Reply::ok(&RoleChanged {
        success: true,
        user: UserView::new(user, &logins),
        api_keys: shown.iter().map(|key| ApiKeyView::new(key, now)).collect(),
    })
}

/// A user who is removed, and the consequence for the API keys that the user made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserRemoved)]
pub(super) struct Removed<'a> {
    success: bool,
    /// The API keys that the user created and that were not revoked before. They are revoked now unless they were to be
    /// kept.
    api_keys: Vec<ApiKeyView<'a>>,
}

/// `DELETE /team/{id}`
pub async fn remove(call: Call) -> Answer {
    let id = call.record_id("id", IdKind::User)?;
    let keeps = keeps_api_keys(&call)?;
    let (store, keys) = (&call.state.store, call.keys());
    for _ in 0..CHANGE_ATTEMPTS {
        let old = member(&call, id).await?;
        let made = ApiKey::made_by(store, &keys, id).await?;
        let ending: Vec<String> = made.iter().filter(|_| !keeps).map(|key| key.id.clone()).collect();
        let change = ChangeUser {
            old: &old,
            new: None,
            ending: SessionsToEnd::All,
            api_keys: &ending,
            kind: "user.removed",
            data: json!({ "role": old.user.role.as_str(), "revokedApiKeys": ending }),
        };
        if let Some(last_key) = done(&call, change).await? {
            let owner = EmailOwner {
                account: call.caller.account.clone(),
                user: old.user.id.clone(),
            };
            owner.leave(store, &old.user.email).await?;
            // Users who remove themselves no longer have authority.
            return completing(removed(&call, &made, (!keeps).then_some(last_key))).await;
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// The answer to a removal.
async fn removed(call: &Call, made: &[ApiKey], revokes_until: Option<u64>) -> Answer {
    let id = call.record_id("id", IdKind::User)?;
    let shown = keys_of(call, id, made, revokes_until).await?;
    let now = now_ms();
    Reply::ok(&Removed {
        success: true,
        api_keys: shown.iter().map(|key| ApiKeyView::new(key, now)).collect(),
    })
}

/// The keys that a user made, after a change of the user that revokes them up to the number `revokes_until`, that of
/// the account's newest key at the change. A key that the user made before it, and that was not there yet when the keys
/// were read, is revoked like the others.
async fn keys_of(
    call: &Call,
    id: &str,
    made: &[ApiKey],
    revokes_until: Option<u64>,
) -> Result<Vec<ApiKey>, Problem> {
    let (store, keys) = (&call.state.store, call.keys());
    let mut ids: Vec<String> = made.iter().map(|key| key.id.clone()).collect();
    if let Some(until) = revokes_until {
        let scope = Scope::live(&call.caller.account, &call.caller.actor);
        revoke_made_by(store, &scope, id, until, &mut ids).await?;
    }
    let mut shown = Vec::with_capacity(ids.len());
    for id in &ids {
        shown.extend(ApiKey::read(store, &keys, id).await?);
    }
    Ok(shown)
}

/// Makes a change. Returns the number of the account's newest key at it; `None` when the user was changed meanwhile.
async fn done(call: &Call, change: ChangeUser<'_>) -> Result<Option<u64>, Problem> {
    let scope = Scope::live(&call.caller.account, &call.caller.actor);
    match change.execute(&call.state.store, &scope).await? {
        UserChanged::Done { last_key } => Ok(Some(last_key)),
        UserChanged::Changed => Ok(None),
        UserChanged::LastOwner => Err(Code::LastOwner.into()),
    }
}
