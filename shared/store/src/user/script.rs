//! Twins of `user/*.lua`: changes of a user, unsuccessful actions, password resets.

use crate::keys;
use crate::keys::AccountKeys;
use crate::script::change::{AuditEvent, Scope};
use crate::script::script;
use crate::session::forget;
use crate::user::{StoredUser, User};
use crate::{Store, StoreError};
use domain::role::Role;
use serde_json::Value;
use std::time::Duration;

script! {
    /// Changes or removes a user.
    pub static CHANGE_USER = "user_change",
    kind: Change,
    source: [include_str!("change.lua")],
    when_full: Run,
    keys: struct ChangeKeys: String { users, sessions, last_logins, reset, api_keys[..] },
    args: struct ChangeArgs<'a>: &'a str { email, old, new, needs_owner, ending, user_id },
}

script! {
    /// Records an attempt.
    pub static NOTE = "user_note",
    kind: Change,
    source: [include_str!("note.lua")],
    when_full: Refuse,
}

script! {
    /// Issues a password reset.
    pub static ISSUE_RESET = "user_issue_reset",
    kind: Change,
    source: [include_str!("issue_reset.lua")],
    when_full: Refuse,
    keys: struct IssueResetKeys: String { users, reset },
    /// `life` is in ms.
    args: struct IssueResetArgs<'a>: &'a str { email, user, token_hash, life },
}

/// Lifetime of a reset token.
pub const RESET_LIFE: Duration = Duration::from_secs(3600);

/// The sessions of a user to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsToEnd<'a> {
    /// Keep all sessions.
    None,
    /// End all sessions.
    All,
    /// End all but the session with this id.
    AllBut(&'a str),
}

/// Arguments of a change.
#[derive(Debug)]
pub struct ChangeUser<'a> {
    /// The user as read.
    pub old: &'a StoredUser,
    /// The new user; `None` removes it.
    pub new: Option<&'a User>,
    /// The sessions that end at the same time.
    pub ending: SessionsToEnd<'a>,
    /// Ids of the user's API keys that are revoked at the same time.
    pub api_keys: &'a [String],
    /// Event type in the audit log.
    pub kind: &'a str,
    /// Details for the audit log; the user's id is added.
    pub data: Value,
}

/// Outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChanged {
    /// In force from the next call on.
    Done {
        /// Number of the account's newest key at the change: those that the user makes later have higher ones.
        last_key: u64,
    },
    /// The user was changed or removed meanwhile; nothing changed.
    Changed,
    /// The account would be left without an owner.
    LastOwner,
}

impl ChangeUser<'_> {
    /// Executes the change. It never removes an account's last owner.
    pub async fn execute(self, store: &Store, scope: &Scope<'_>) -> Result<UserChanged, StoreError> {
        let (user, account) = (&self.old.user, scope.keys());
        let keys = ChangeKeys {
            users: account.users(),
            sessions: account.sessions(&user.id),
            last_logins: account.last_logins(),
            reset: account.reset(&user.id),
            api_keys: self.api_keys.iter().map(|id| account.api_key(id)).collect(),
        };
        let stays = self.new.is_some_and(|new| new.role == user.role);
        let needs_owner = user.role == Role::Owner && !stays;
        let new = self.new.map(User::to_stored).unwrap_or_default();
        let ending = match self.ending {
            SessionsToEnd::None => "",
            SessionsToEnd::All => "all",
            SessionsToEnd::AllBut(id) => id,
        };
        let args = ChangeArgs {
            email: &user.email,
            old: &self.old.text,
            new: &new,
            needs_owner: if needs_owner { "1" } else { "" },
            ending,
            user_id: &user.id,
        };
        let event = about(&user.id, self.kind, self.data);
        let mut reply = scope.execute(store, &CHANGE_USER, event, keys, args).await?;
        match reply.word()?.as_str() {
            "done" => {
                let last_key = reply.number()?;
                forget(store, reply.rest()).await;
                Ok(UserChanged::Done { last_key })
            }
            "changed" | "no_account" => Ok(UserChanged::Changed),
            "last_owner" => Ok(UserChanged::LastOwner),
            _ => reply.unexpected(),
        }
    }
}

/// Composes an event about a user.
pub(crate) fn about<'a>(user: &str, kind: &'a str, mut data: Value) -> AuditEvent<'a> {
    if let Some(fields) = data.as_object_mut() {
        fields.insert("userId".to_owned(), user.into());
    }
    AuditEvent::new(kind, data)
}

/// Records an action or attempt of the user `id`. Does nothing if the account does not exist.
pub async fn note(
    store: &Store,
    scope: &Scope<'_>,
    id: &str,
    kind: &str,
    data: Value,
) -> Result<(), StoreError> {
    let reply = scope.execute(store, &NOTE, about(id, kind, data), (), ()).await?;
    reply.expect_one_of(&["noted", "no_account"])
}

/// Stores the reset token's hash; false if the user was changed meanwhile.
pub async fn issue_reset(
    store: &Store,
    scope: &Scope<'_>,
    user: &StoredUser,
    token_hash: &str,
) -> Result<bool, StoreError> {
    let life = RESET_LIFE.as_millis().to_string();
    let id = &user.user.id;
    let mut set = redis::cmd("SET");
    set.arg(keys::reset_lookup(token_hash))
        .arg(format!("{} {id} {}", scope.account, user.user.email))
        .arg("PX")
        .arg(&life);
    store.command::<()>(&set).await?;
    let realm = scope.realm();
    let keys = IssueResetKeys {
        users: realm.keys().users(),
        reset: realm.keys().reset(id),
    };
    let args = IssueResetArgs {
        email: &user.user.email,
        user: &user.text,
        token_hash,
        life: &life,
    };
    let event = about(id, "user.reset_issued", serde_json::json!({}));
    let reply = scope.execute(store, &ISSUE_RESET, event, keys, args).await?;
    reply.is("issued", &["changed", "no_account"])
}

/// Returns whether the reset token with this hash is the one that was issued last to the user, and is not used.
pub async fn is_open_reset(
    store: &Store,
    account: &AccountKeys,
    user: &str,
    token_hash: &str,
) -> Result<bool, StoreError> {
    let issued = store.lookup(account.reset(user), "reset", |hash| Some(hash.to_owned()));
    Ok(issued.await?.as_deref() == Some(token_hash))
}

/// Finds account and e-mail of the reset token with this hash.
pub async fn find_reset(store: &Store, token_hash: &str) -> Result<Option<(String, String)>, StoreError> {
    let key = keys::reset_lookup(token_hash);
    let parse = |text: &str| {
        let mut words = text.splitn(3, ' ').map(str::to_owned);
        let (account, _user, email) = (words.next()?, words.next()?, words.next()?);
        Some((account, email))
    };
    store.lookup(key, "reset look-up", parse).await
}
