//! Sessions of dashboard users, as the store keeps them.
//!
//! The look-up of a token's hash lies outside the account and is written first; it holds only while the account has the
//! session, and ends with it at the latest.

pub mod script;

use crate::keys::{self, AccountKeys};
use crate::{Store, StoreError};
use std::collections::HashMap;

/// Sessions that a user can have; the oldest one ends when there is another.
pub const SESSIONS_MAX: usize = 20;
/// Characters of the browser's name that are kept.
const AGENT_MAX: usize = 200;

/// Where a session is to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    /// Account id, `acct_…`.
    pub account: String,
    /// The user.
    pub user: String,
    /// The session.
    pub id: String,
}

impl SessionPlace {
    /// The stored text. No part can contain a space.
    #[must_use]
    pub fn to_stored(&self) -> String {
        format!("{} {} {}", self.account, self.user, self.id)
    }

    /// Where the session of the token with this hash is, if there is one.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed look-up.
    pub async fn find(store: &Store, token_hash: &str) -> Result<Option<Self>, StoreError> {
        let key = keys::session_lookup(token_hash);
        let text: Option<String> = store.command(redis::cmd("GET").arg(key)).await?;
        let Some(text) = text else { return Ok(None) };
        let mut words = text.split(' ').map(str::to_owned);
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(account), Some(user), Some(id), None) => Ok(Some(Self { account, user, id })),
            _ => Err(StoreError::UnexpectedReply("session look-up".to_owned())),
        }
    }
}

/// What a browser said of itself, as it is kept: short, and one line.
#[must_use]
pub fn user_agent(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_control());
    text.take(AGENT_MAX).collect()
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// `ses_…`
    pub id: String,
    /// Start, in ms since 1970.
    pub created_at_ms: u64,
    /// When it ends at the latest.
    pub expires_at_ms: u64,
    /// When it was last used, to the minute.
    pub last_seen_ms: u64,
    /// The client's address when it began, as far as that was known.
    pub ip: Option<String>,
    /// What the browser said of itself.
    pub user_agent: String,
}

impl Session {
    /// Reads the stored text: `<created> <end> <hash of the token> <address> <e-mail> <browser>`.
    #[must_use]
    pub fn parse(id: &str, text: &str, last_seen_ms: u64) -> Option<Self> {
        let mut words = text.splitn(6, ' ');
        let mut next = || words.next();
        let (created_at_ms, expires_at_ms) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let (_hash, ip, _email) = (next()?, next()?, next()?);
        Some(Self {
            id: id.to_owned(),
            created_at_ms,
            expires_at_ms,
            last_seen_ms,
            ip: (ip != NO_ADDRESS).then(|| ip.to_owned()),
            user_agent: next()?.to_owned(),
        })
    }

    /// The sessions of a user that are open at `now_ms`, newest first.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed session.
    pub async fn list(
        store: &Store,
        account: &AccountKeys,
        user: &str,
        idle_ms: u64,
        now_ms: u64,
    ) -> Result<Vec<Self>, StoreError> {
        let fields: HashMap<String, String> = store
            .command(redis::cmd("HGETALL").arg(account.sessions(user)))
            .await?;
        let mut open = Vec::new();
        for (id, text) in fields.iter().filter(|(name, _)| !name.starts_with(SEEN)) {
            let seen = fields.get(&format!("{SEEN}{id}")).and_then(|ms| ms.parse().ok());
            let session = seen.and_then(|seen| Self::parse(id, text, seen));
            open.push(session.ok_or_else(|| StoreError::UnexpectedReply("session".to_owned()))?);
        }
        open.retain(|session| session.expires_at_ms > now_ms && session.last_seen_ms + idle_ms > now_ms);
        open.sort_by(|a, b| (b.created_at_ms, &b.id).cmp(&(a.created_at_ms, &a.id)));
        Ok(open)
    }
}

/// What the fields start with that hold when a session was last seen.
const SEEN: &str = "seen:";
/// Stands for an address that is not known.
pub(super) const NO_ADDRESS: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_read_back() {
        let read = Session::parse("ses_1", "5 9 0f ::1 a@example.com Fire fox", 7).unwrap();
        assert_eq!(
            (read.created_at_ms, read.expires_at_ms, read.last_seen_ms),
            (5, 9, 7)
        );
        assert_eq!(
            (read.ip.as_deref(), read.user_agent.as_str()),
            (Some("::1"), "Fire fox")
        );
        let unknown = Session::parse("ses_1", "5 9 0f - a@example.com ", 7).unwrap();
        assert_eq!((unknown.ip, unknown.user_agent.as_str()), (None, ""));
        assert_eq!(Session::parse("ses_1", "5 9 0f -", 7), None);
        assert_eq!(user_agent("a\nb\u{7f}c"), "abc");
        assert_eq!(user_agent(&"é".repeat(500)).chars().count(), AGENT_MAX);
    }
}
