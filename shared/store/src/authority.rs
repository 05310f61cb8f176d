//! The authority for a change of an account: an API key or a session. The script that makes the change also checks
//! whether the caller is still allowed to make it (`script/versioned.lua`), so no change takes place after a
//! revocation.
//!
//! The authority belongs to the task that serves a request, not to the arguments of a change, so no change in a request
//! can omit it. Workers and the command line have none.

use crate::keys::AccountKeys;
use crate::user::User;
use domain::role::Role;
use std::sync::Arc;

tokio::task_local! {
    static CALLER: Option<Arc<Authority>>;
}

/// The authority of one caller. It applies to changes of the caller's own account; scripts of another account cannot
/// read it.
#[derive(Debug)]
pub struct Authority {
    record: String,
    keys: Vec<String>,
    words: String,
}

/// A session and its user.
#[derive(Debug, Clone, Copy)]
pub struct SessionOfUser<'a> {
    /// Session id, `ses_…`.
    pub session: &'a str,
    /// User id, `usr_…`.
    pub user: &'a str,
    /// The user's address.
    pub email: &'a str,
}

/// Why a change was refused although its caller was allowed to make it when the request arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// The API key was revoked.
    Key,
    /// The session has ended, or its user was removed.
    Session,
    /// The user has a lower role.
    Role,
}

impl Authority {
    /// Creates the authority of the API key `key_id`, which lasts until the key is revoked.
    pub fn from_key(account: &str, key_id: &str) -> Self {
        let account = AccountKeys::new(account);
        Self {
            record: account.record(),
            keys: vec![account.api_key(key_id)],
            words: "key".to_owned(),
        }
    }

    /// Creates the authority of a session. It lasts while the session exists and its user has at least the role
    /// `least`.
    pub fn from_session(account: &str, session: &SessionOfUser<'_>, least: Role) -> Self {
        let SessionOfUser { session, user, email } = session;
        let account = AccountKeys::new(account);
        let roles = Role::ALL.iter().rev().filter(|role| **role >= least);
        let roles: Vec<&str> = roles.map(|role| role.as_str()).collect();
        let start = User::stored_start(user);
        Self {
            record: account.record(),
            keys: vec![account.sessions(user), account.users()],
            words: format!("session {session} {email} {start} {}", roles.join(",")),
        }
    }

    /// Runs `serving` on this authority.
    pub async fn scope<F: Future>(self, serving: F) -> F::Output {
        CALLER.scope(Some(Arc::new(self)), serving).await
    }

    /// Returns the authority of this task, if the account with the record `record` can check it.
    pub(crate) fn current(record: &str) -> Option<Arc<Self>> {
        let caller = CALLER.try_with(Clone::clone).ok().flatten();
        caller.filter(|authority| authority.record == record)
    }

    /// Returns the keys that the script reads after its own.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Returns the argument after the script's own.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }
}

/// Runs the completion of a permitted change without authority, since the change may have removed its caller's
/// authority.
pub async fn completing<F: Future>(completing: F) -> F::Output {
    CALLER.scope(None, completing).await
}

impl Lack {
    /// Parses the first word of a reply of a versioned script.
    pub(crate) fn parse(word: &[u8]) -> Option<Self> {
        match word {
            b"no_key" => Some(Self::Key),
            b"no_session" => Some(Self::Session),
            b"no_role" => Some(Self::Role),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_authority_binds_changes_of_its_own_account_while_it_is_in_force() {
        let [own, other] = ["acct_1", "acct_2"].map(|id| AccountKeys::new(id).record());
        let authority = Authority::from_session(
            "acct_1",
            &SessionOfUser {
                session: "ses_1",
                user: "usr_1",
                email: "a@example.com",
            },
            Role::Admin,
        );
        assert!(Authority::current(&own).is_none());
        authority
            .scope(async {
                let found = Authority::current(&own).unwrap();
                assert_eq!(
                    found.words(),
                    "session ses_1 a@example.com {\"id\":\"usr_1\", owner,admin"
                );
                assert_eq!(found.keys().count(), 2);
                assert!(Authority::current(&other).is_none());
                assert!(completing(async { Authority::current(&own) }).await.is_none());
            })
            .await;
    }
}
