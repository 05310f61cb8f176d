//! Twins of `session/*.lua`: open, use and end sessions of dashboard users.

use crate::keys::{self, AccountKeys};
use crate::script::change::{AuditEvent, Scope, unexpected_reply};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::session::{NO_ADDRESS, SESSIONS_MAX, Session, SessionPlace, forget};
use crate::user::script::about;
use crate::user::{StoredUser, User};
use crate::{Store, StoreError};
use crypto::token::Token;
use domain::id::IdKind;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;

script! {
    /// Reads a session and records its use.
    pub static USE = "session_use",
    kind: Timed,
    source: [include_str!("use.lua")],
    when_full: Run,
    keys: struct UseKeys: String { account, sessions, users },
    /// Times are in ms.
    args: struct UseArgs<'a>: &'a str { session_id, token_hash, idle, note_every },
}

script! {
    /// Creates a session, and ends the oldest one beyond the maximum of the user.
    pub static OPEN = "session_open",
    kind: Change,
    source: [include_str!("open.lua")],
    when_full: Refuse,
    keys: struct OpenKeys: String { users, sessions, last_logins, reset },
    /// `life` is in ms.
    args: struct OpenArgs<'a>: &'a str {
        email, old, new, user_id, ending, reset_hash, session_id, session, life, sessions_max, is_login
    },
}

script! {
    /// Ends sessions.
    pub static END = "session_end",
    kind: Change,
    source: [include_str!("end.lua")],
    when_full: Run,
    keys: struct EndKeys: String { sessions },
    args: struct EndArgs<'a>: &'a str { session_id, which },
}

/// A session in use, with the current user and account.
#[derive(Debug, Clone)]
pub struct InUse {
    /// As stored, after this use.
    pub session: Session,
    /// The user as currently stored.
    pub user: StoredUser,
    /// Display name of the account.
    pub account_name: String,
    /// The account's plan.
    pub plan: String,
    /// Creation time of the account, in ms since 1970.
    pub account_created_at_ms: u64,
    /// Incremented by `store accept`.
    pub generation: u64,
    /// Incremented by every change of the account.
    pub version: u64,
}

/// Reads the session at `place` and records its use; `None` if it is not open or its user is gone.
pub async fn in_use(
    store: &Store,
    place: &SessionPlace,
    token_hash: &str,
    idle: Duration,
    note_every: Duration,
) -> Result<Option<InUse>, StoreError> {
    let account = AccountKeys::new(&place.account);
    let keys = UseKeys {
        account: account.record(),
        sessions: account.sessions(&place.user),
        users: account.users(),
    };
    let args = UseArgs {
        session_id: &place.id,
        token_hash,
        idle: &idle.as_millis().to_string(),
        note_every: &note_every.as_millis().to_string(),
    };
    let keys = keys.into_values();
    let reply: Vec<Option<String>> = store
        .script(&USE, &keys.each_ref().map(String::as_str), &args.into_values())
        .await?;
    if reply.is_empty() {
        return Ok(None);
    }
    let mut words = reply.into_iter();
    let mut next = || words.next().flatten();
    let parsed = (|| {
        let (text, seen, user) = (next()?, next()?.parse().ok()?, next()?);
        Some(InUse {
            session: Session::parse(&place.id, &text, seen)?,
            user: StoredUser::parse(user).ok()?,
            account_name: next()?,
            plan: next()?,
            account_created_at_ms: next()?.parse().ok()?,
            generation: next()?.parse().ok()?,
            version: next()?.parse().ok()?,
        })
    })();
    match parsed {
        // The e-mail belongs to another user now.
        Some(found) if found.user.user.id != place.user => Ok(None),
        Some(found) => Ok(Some(found)),
        None => unexpected_reply(&USE),
    }
}

/// Arguments of a new session.
#[derive(Debug)]
pub struct NewSession<'a> {
    /// Id of the session, `ses_…`.
    pub id: &'a str,
    /// Token; only its hash is stored.
    pub token: &'a Token,
    /// Client address, if known.
    pub client: Option<IpAddr>,
    /// `User-Agent`, as returned by [`crate::session::user_agent`].
    pub user_agent: &'a str,
    /// Longest lifetime.
    pub life: Duration,
}

impl NewSession<'_> {
    /// Writes the look-up for the session's whole lifetime. Without a session it is inert; a retry writes it again.
    pub(crate) async fn announce(&self, store: &Store, account: &str, user: &str) -> Result<(), StoreError> {
        let place = SessionPlace {
            account: account.to_owned(),
            user: user.to_owned(),
            id: self.id.to_owned(),
        };
        let mut set = redis::cmd("SET");
        set.arg(keys::session_lookup(&self.token.hash()))
            .arg(place.to_stored())
            .arg("PX")
            .arg(self.life_ms());
        store.command(&set).await
    }

    /// Returns the text that is stored after the times. Only the last part may contain a space.
    pub(crate) fn text(&self, email: &str) -> String {
        let address = self.client.map(|client| client.to_string());
        let address = address.as_deref().unwrap_or(NO_ADDRESS);
        format!("{} {address} {email} {}", self.token.hash(), self.user_agent)
    }

    pub(crate) fn life_ms(&self) -> String {
        self.life.as_millis().to_string()
    }

    /// Reads the session's times from a script's reply.
    pub(crate) fn opened(&self, reply: &mut ScriptReply) -> Result<Session, StoreError> {
        let created_at_ms = reply.number()?;
        Ok(Session {
            id: self.id.to_owned(),
            created_at_ms,
            expires_at_ms: reply.number()?,
            last_seen_ms: created_at_ms,
            ip: self.client.map(|client| client.to_string()),
            user_agent: self.user_agent.to_owned(),
        })
    }
}

/// Arguments of opening a session.
#[derive(Debug)]
pub struct SessionOpening<'a> {
    /// The user as read.
    pub old: &'a StoredUser,
    /// The new user record: unchanged, or with a new password or a used code.
    pub new: &'a User,
    /// True if the user's other sessions end.
    pub ends_others: bool,
    /// Hash of the reset token that this uses up.
    pub reset: Option<&'a str>,
    /// True if it counts as a login.
    pub is_login: bool,
    /// Event type in the audit log.
    pub kind: &'a str,
    /// Details for the audit log; the ids of user and session are added.
    pub data: Value,
}

/// Outcome of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOpened {
    /// The session, as stored.
    Done(Session),
    /// The user was changed or removed meanwhile; nothing changed.
    Changed,
    /// The reset token is no longer valid.
    Used,
}

impl SessionOpening<'_> {
    /// Opens the session.
    ///
    /// # Errors
    /// [`StoreError`]: the token must then not be returned to the caller.
    pub async fn execute(
        mut self,
        store: &Store,
        scope: &Scope<'_>,
        session: &NewSession<'_>,
    ) -> Result<SessionOpened, StoreError> {
        let user = &self.old.user;
        session.announce(store, scope.account, &user.id).await?;
        let account = scope.keys();
        let keys = OpenKeys {
            users: account.users(),
            sessions: account.sessions(&user.id),
            last_logins: account.last_logins(),
            reset: account.reset(&user.id),
        };
        let args = OpenArgs {
            email: &user.email,
            old: &self.old.text,
            new: &self.new.to_stored(),
            user_id: &user.id,
            ending: if self.ends_others { "all" } else { "" },
            reset_hash: self.reset.unwrap_or_default(),
            session_id: session.id,
            session: &session.text(&user.email),
            life: &session.life_ms(),
            sessions_max: &SESSIONS_MAX.to_string(),
            is_login: if self.is_login { "1" } else { "" },
        };
        if let Some(data) = self.data.as_object_mut() {
            data.insert("sessionId".to_owned(), session.id.into());
        }
        let event = about(&user.id, self.kind, self.data);
        let mut reply = scope.execute(store, &OPEN, event, keys, args).await?;
        let refused = match reply.word()?.as_str() {
            "opened" => {
                let opened = session.opened(&mut reply)?;
                forget(store, reply.rest()).await;
                return Ok(SessionOpened::Done(opened));
            }
            "changed" | "no_account" => SessionOpened::Changed,
            "used" => SessionOpened::Used,
            _ => return reply.unexpected(),
        };
        forget(store, [session.token.hash()]).await;
        Ok(refused)
    }
}

/// The sessions to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd<'a> {
    /// This one.
    One(&'a str),
    /// All except this one.
    AllBut(&'a str),
}

/// Ends sessions of `user`, with the event type `kind`. Returns false if there was none.
/// Safe to retry.
pub async fn end(
    store: &Store,
    scope: &Scope<'_>,
    user: &str,
    end: SessionEnd<'_>,
    kind: &str,
) -> Result<bool, StoreError> {
    let (id, which, data) = match end {
        SessionEnd::One(id) => (id, "one", json!({ "sessionId": id })),
        SessionEnd::AllBut(id) => (id, "others", json!({ "allBut": id })),
    };
    let event: AuditEvent<'_> = about(user, kind, data);
    let keys = EndKeys {
        sessions: scope.keys().sessions(user),
    };
    let args = EndArgs {
        session_id: id,
        which,
    };
    let mut reply = scope.execute(store, &END, event, keys, args).await?;
    match reply.word()?.as_str() {
        "ended" => {
            forget(store, reply.rest()).await;
            Ok(true)
        }
        "missing" | "no_account" => Ok(false),
        _ => reply.unexpected(),
    }
}

/// Returns a new session id.
pub fn mint_id(at_ms: u64) -> Result<String, entropy::NoEntropy> {
    IdKind::Session.mint(at_ms)
}
