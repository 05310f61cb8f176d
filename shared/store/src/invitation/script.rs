//! Twins of `invitation/*.lua`: invite, revoke, accept.

use crate::account::script::USERS_MAX;
use crate::invitation::{INVITATIONS_MAX, Invitation, InvitationBody};
use crate::keys;
use crate::script::change::{AuditEvent, Scope};
use crate::script::script;
use crate::session::script::NewSession;
use crate::session::{self, Session};
use crate::user::User;
use crate::user::email::EmailOwner;
use crate::user::script::about;
use crate::{Store, StoreError};
use serde_json::json;
use std::time::Duration;

script! {
    /// Creates an invitation.
    pub static CREATE = "invitation_create",
    kind: Change,
    source: [include_str!("create.lua")],
    when_full: Refuse,
    keys: struct CreateKeys: String { users, invitations },
    /// `life` is in ms.
    args: struct CreateArgs<'a>: &'a str { email, invitation, life, invitations_max },
}

script! {
    /// Revokes an invitation.
    pub static REVOKE = "invitation_revoke",
    kind: Change,
    source: [include_str!("revoke.lua")],
    when_full: Run,
    keys: struct RevokeKeys: String { invitations },
    args: struct RevokeArgs<'a>: &'a str { email, invitation },
}

script! {
    /// Accepts an invitation.
    pub static ACCEPT = "invitation_accept",
    kind: Change,
    source: [include_str!("accept.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct AcceptKeys: String { users, invitations, sessions, last_logins },
    /// `life` is in ms.
    args: struct AcceptArgs<'a>: &'a str {
        email, invitation, user, users_max, user_id, session_id, session, life, inviter
    },
}

/// Lifetime of an invitation.
const LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Outcome of an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invited {
    /// Open; creation and expiry, in ms since 1970.
    Done(u64, u64),
    /// The account has a user with this e-mail address.
    Member,
    /// An open invitation for that e-mail exists.
    Exists,
    /// The account has [`INVITATIONS_MAX`] open invitations.
    TooMany,
}

/// Invites `email`; the token of the body's hash accepts. Writes the look-up first: without an invitation it is inert.
///
/// # Errors
/// [`StoreError`]: the token must then not be returned to the caller.
pub async fn create(
    store: &Store,
    scope: &Scope<'_>,
    email: &str,
    body: &InvitationBody,
) -> Result<Invited, StoreError> {
    let life = LIFE.as_millis().to_string();
    let mut set = redis::cmd("SET");
    set.arg(keys::invitation_lookup(&body.token_hash))
        .arg(format!("{} {}", scope.account, body.id))
        .arg("PX")
        .arg(&life);
    store.command::<()>(&set).await?;
    let data = json!({ "invitationId": body.id, "role": body.role.as_str() });
    let event = AuditEvent::new("user.invited", data);
    let account = scope.keys();
    let keys = CreateKeys {
        users: account.users(),
        invitations: account.invitations(),
    };
    let text = serde_json::to_string(body).map_err(StoreError::unexpected)?;
    let args = CreateArgs {
        email,
        invitation: &text,
        life: &life,
        invitations_max: &INVITATIONS_MAX.to_string(),
    };
    let mut reply = scope.execute(store, &CREATE, event, keys, args).await?;
    let refused = match reply.word()?.as_str() {
        "created" => return Ok(Invited::Done(reply.number()?, reply.number()?)),
        "member" => Invited::Member,
        "exists" => Invited::Exists,
        "too_many" => Invited::TooMany,
        _ => return reply.unexpected(),
    };
    forget(store, body).await;
    Ok(refused)
}

/// Removes the look-up of an invitation that was not created, so that look-ups are bounded by open invitations. Best
/// effort: a remaining one is inert and expires.
async fn forget(store: &Store, body: &InvitationBody) {
    let lookup = keys::invitation_lookup(&body.token_hash);
    drop(store.command::<i64>(redis::cmd("DEL").arg(lookup)).await);
}

/// Revokes an invitation; false if it is no longer open.
/// Safe to retry.
pub async fn revoke(store: &Store, scope: &Scope<'_>, invitation: &Invitation) -> Result<bool, StoreError> {
    let data = json!({ "invitationId": invitation.body.id });
    let event = AuditEvent::new("user.invitation_revoked", data);
    let keys = RevokeKeys {
        invitations: scope.keys().invitations(),
    };
    let args = RevokeArgs {
        email: &invitation.email,
        invitation: &invitation.text,
    };
    let mut reply = scope.execute(store, &REVOKE, event, keys, args).await?;
    match reply.word()?.as_str() {
        "revoked" => {
            forget(store, &invitation.body).await;
            Ok(true)
        }
        "missing" | "no_account" => Ok(false),
        _ => reply.unexpected(),
    }
}

/// Outcome of accepting an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// The user exists and has a session.
    Done(Session),
    /// The invitation was used, revoked or has expired, or its inviter is not an owner any more.
    Missing,
    /// A user of the account has the e-mail address.
    EmailTaken,
    /// The account has the maximum number of users.
    TooMany,
}

/// Creates the invited `user` and opens a session.
///
/// # Errors
/// [`StoreError`]: the token must then not be returned to the caller.
pub async fn accept(
    store: &Store,
    scope: &Scope<'_>,
    invitation: &Invitation,
    user: &User,
    session: &NewSession<'_>,
) -> Result<Joined, StoreError> {
    let owner = EmailOwner {
        account: scope.account.to_owned(),
        user: user.id.clone(),
    };
    owner.join(store, &user.email).await?;
    session.announce(store, scope.account, &user.id).await?;
    let data =
        json!({ "invitationId": invitation.body.id, "role": user.role.as_str(), "sessionId": session.id });
    let account = scope.keys();
    let keys = AcceptKeys {
        users: account.users(),
        invitations: account.invitations(),
        sessions: account.sessions(&user.id),
        last_logins: account.last_logins(),
    };
    let args = AcceptArgs {
        email: &user.email,
        invitation: &invitation.text,
        user: &user.to_stored(),
        users_max: &USERS_MAX.to_string(),
        user_id: &user.id,
        session_id: session.id,
        session: &session.text(&user.email),
        life: &session.life_ms(),
        inviter: &User::stored_start(&invitation.body.invited_by),
    };
    let event = about(&user.id, "user.joined", data);
    let mut reply = scope.execute(store, &ACCEPT, event, keys, args).await?;
    let refused = match reply.word()?.as_str() {
        "joined" => {
            owner.join(store, &user.email).await?;
            forget(store, &invitation.body).await;
            return session.opened(&mut reply).map(Joined::Done);
        }
        "missing" | "no_account" => Joined::Missing,
        "exists" => Joined::EmailTaken,
        "too_many" => Joined::TooMany,
        _ => return reply.unexpected(),
    };
    session::forget(store, [session.token.hash()]).await;
    owner.leave_to_another(store, &user.email).await?;
    Ok(refused)
}
