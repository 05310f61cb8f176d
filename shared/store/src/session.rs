//! Sessions of dashboard users.
//!
//! The look-up of a token's hash is outside the account's bucket, and is written first. It counts only while the
//! account has the session. It is removed when the session ends, and expires with it at the latest.

pub mod script;

use crate::keys::{self, AccountKeys};
use crate::{Store, StoreError};
use futures::future::join_all;
use std::collections::HashMap;

/// Maximum number of sessions of a user; a new one ends the oldest.
pub const SESSIONS_MAX: usize = 20;
/// Characters of the user agent that are stored.
const AGENT_MAX: usize = 200;

/// Location of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    /// Account id, `acct_…`.
    pub account: String,
    /// `usr_…`
    pub user: String,
    /// `ses_…`
    pub id: String,
}

impl SessionPlace {
    /// Returns the stored text. No part may contain a space.
    pub fn to_stored(&self) -> String {
        format!("{} {} {}", self.account, self.user, self.id)
    }

    /// Finds the location of the session of the token with this hash.
    pub async fn find(store: &Store, token_hash: &str) -> Result<Option<Self>, StoreError> {
        let key = keys::session_lookup(token_hash);
        let parse = |text: &str| {
            let mut words = text.split(' ').map(str::to_owned);
            let (account, user, id) = (words.next()?, words.next()?, words.next()?);
            words.next().is_none().then_some(Self { account, user, id })
        };
        store.lookup(key, "session look-up", parse).await
    }
}

/// Removes the look-ups of these token hashes, whose sessions have ended, so that look-ups are bounded by sessions.
/// Best effort: a remaining one is inert and expires.
pub(crate) async fn forget(store: &Store, token_hashes: impl IntoIterator<Item = impl AsRef<str>>) {
    let removed = token_hashes.into_iter().map(|hash| async move {
        let lookup = keys::session_lookup(hash.as_ref());
        drop(store.command::<i64>(redis::cmd("DEL").arg(lookup)).await);
    });
    join_all(removed).await;
}

/// Normalises a `User-Agent` for storage: short, and one line.
pub fn user_agent(text: &str) -> String {
    let text = text.chars().filter(|c| !c.is_control());
    text.take(AGENT_MAX).collect()
}

/// A stored sign-in of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// `ses_…`
    pub id: String,
    /// Start, in ms since 1970.
    pub created_at_ms: u64,
    /// Latest expiry, in ms since 1970.
    pub expires_at_ms: u64,
    /// Last use, in ms since 1970, to the minute.
    pub last_seen_ms: u64,
    /// Client address at sign-in, if known.
    pub ip: Option<String>,
    /// `User-Agent` of the browser.
    pub user_agent: String,
}

impl Session {
    /// Parses the stored text: `<created> <end> <hash of the token> <address> <e-mail> <browser>`.
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

    /// Returns whether it is open at `now_ms`, as `session/use.lua` decides it.
    fn is_open(&self, idle_ms: u64, now_ms: u64) -> bool {
        let is_ahead = self.created_at_ms.max(self.last_seen_ms) > now_ms + AHEAD_MAX_MS;
        self.expires_at_ms > now_ms && self.last_seen_ms + idle_ms > now_ms && !is_ahead
    }

    /// Lists the sessions of a user that are open at `now_ms`, newest first.
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
            open.push(session.ok_or_else(|| StoreError::unexpected("session"))?);
        }
        open.retain(|session| session.is_open(idle_ms, now_ms));
        open.sort_by(|a, b| (b.created_at_ms, &b.id).cmp(&(a.created_at_ms, &a.id)));
        Ok(open)
    }
}

/// As far as the times of a session may be ahead: `MINUTE` of `session/use.lua`.
const AHEAD_MAX_MS: u64 = 60_000;
/// Prefix of the fields with the last use of a session.
const SEEN: &str = "seen:";
/// Represents an unknown address.
pub(super) const NO_ADDRESS: &str = "-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_from_a_clock_that_was_ahead_is_not_listed() {
        const IDLE_MS: u64 = 600_000;
        const NOW_MS: u64 = 1_000_000;
        for (created, ends, seen, is_open) in [
            (5, NOW_MS + 1, NOW_MS, true),
            (5, NOW_MS, NOW_MS, false),
            (5, NOW_MS + 1, NOW_MS - IDLE_MS, false),
            (NOW_MS + 60_000, 9 * NOW_MS, NOW_MS, true),
            (NOW_MS + 60_001, 9 * NOW_MS, NOW_MS, false),
            (5, 9 * NOW_MS, NOW_MS + 60_000, true),
            (5, 9 * NOW_MS, NOW_MS + 60_001, false),
        ] {
            let text = format!("{created} {ends} 0f ::1 a@example.com Fire fox");
            let session = Session::parse("ses_1", &text, seen).unwrap();
            assert_eq!(session.is_open(IDLE_MS, NOW_MS), is_open, "{text} {seen}");
        }
    }

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
