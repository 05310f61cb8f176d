//! Dashboard users: JSON records by e-mail address in the hash of the account's users.
//!
//! A change replaces the text that was read, and fails if the text has changed meanwhile.

pub mod email;
pub mod script;

use crate::keys::AccountKeys;
use crate::{Store, StoreError};
use domain::role::Role;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// A user. Only an argon2id hash of the password is stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// `usr_…`. The stored text starts with it, see [`User::stored_start`].
    pub id: String,
    /// Lower case; unique in the account (decision D74).
    pub email: String,
    /// Role. Scripts search for it in the text.
    pub role: Role,
    /// The argon2id hash of the password, in PHC form.
    pub password: String,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// The second factor, if the user has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totp: Option<Totp>,
    /// The sealed secret of a second factor that the user has not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totp_pending: Option<String>,
    /// When that was begun by the store's clock, in ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totp_begun_at_ms: Option<u64>,
}

/// Time within which a second factor that was begun can be confirmed.
pub const TOTP_BEGUN_LIFE: Duration = Duration::from_secs(15 * 60);

/// A user's second factor.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totp {
    /// The sealed secret.
    pub sealed: String,
    /// Step of the last used code; it and earlier ones are invalid.
    pub last_step: u64,
    /// Hashes of the unused recovery codes.
    pub recovery: Vec<String>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("id", &self.id)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl User {
    /// Returns the stored text.
    pub fn to_stored(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the start of the stored text of the user with this id, by which scripts find it.
    pub fn stored_start(id: &str) -> String {
        format!("{{\"id\":{},", serde_json::Value::from(id))
    }

    /// Removes and returns the sealed secret of a second factor that was begun at most [`TOTP_BEGUN_LIFE`] ago.
    pub fn take_begun_totp(&mut self, now_ms: u64) -> Option<String> {
        let begun_at_ms = self.totp_begun_at_ms.take();
        let is_open = |begun: u64| u128::from(now_ms.saturating_sub(begun)) < TOTP_BEGUN_LIFE.as_millis();
        let sealed = self.totp_pending.take();
        sealed.filter(|_| begun_at_ms.is_some_and(is_open))
    }

    /// Lists all users of `account`, oldest first.
    pub async fn list(store: &Store, account: &AccountKeys) -> Result<Vec<Self>, StoreError> {
        let users = StoredUser::list(store, account).await?;
        Ok(users.into_iter().map(|stored| stored.user).collect())
    }
}

/// A user with its stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUser {
    /// The parsed user.
    pub user: User,
    /// The stored text, to be compared by a change.
    pub text: String,
}

impl StoredUser {
    /// Parses a stored text.
    pub fn parse(text: String) -> Result<Self, StoreError> {
        let user = serde_json::from_str(&text).map_err(|_| StoreError::unexpected("user record"))?;
        Ok(Self { user, text })
    }

    /// Lists all users of `account`, oldest first.
    pub async fn list(store: &Store, account: &AccountKeys) -> Result<Vec<Self>, StoreError> {
        let records: HashMap<String, String> =
            store.command(redis::cmd("HGETALL").arg(account.users())).await?;
        let mut users: Vec<Self> = records.into_values().map(Self::parse).collect::<Result<_, _>>()?;
        users.sort_by(|a, b| a.user.id.cmp(&b.user.id));
        Ok(users)
    }

    /// Finds the user of `account` with this e-mail.
    pub async fn find(store: &Store, account: &AccountKeys, email: &str) -> Result<Option<Self>, StoreError> {
        let text: Option<String> = store
            .command(redis::cmd("HGET").arg(account.users()).arg(email))
            .await?;
        text.map(Self::parse).transpose()
    }
}

/// Returns the last sign-in of each user of `account`, by user id.
pub async fn last_logins(store: &Store, account: &AccountKeys) -> Result<HashMap<String, u64>, StoreError> {
    store
        .command(redis::cmd("HGETALL").arg(account.last_logins()))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_hide_the_hash() {
        let mut user = User {
            id: "usr_1".into(),
            email: "a@example.com".into(),
            role: Role::Owner,
            password: "$argon2id$v=19$hash".into(),
            created_at_ms: 5,
            totp: None,
            totp_pending: None,
            totp_begun_at_ms: None,
        };
        assert_eq!(StoredUser::parse(user.to_stored()).unwrap().user, user);
        assert!(!format!("{user:?}").contains("argon2"));
        user.totp = Some(Totp {
            sealed: "v1.a.b".to_owned(),
            last_step: 7,
            recovery: vec!["0f".to_owned()],
        });
        assert_eq!(StoredUser::parse(user.to_stored()).unwrap().user, user);
        assert!(StoredUser::parse("{}".to_owned()).is_err());
    }

    #[test]
    fn a_second_factor_can_be_confirmed_for_15_minutes() {
        let mut user = User {
            id: "usr_1".into(),
            email: "a@example.com".into(),
            role: Role::Owner,
            password: "$argon2id$".into(),
            created_at_ms: 5,
            totp: None,
            totp_pending: None,
            totp_begun_at_ms: None,
        };
        let life = 15 * 60_000;
        for (begun, now, is_open) in [
            (Some(7), 7, true),
            (Some(7), 6 + life, true),
            (Some(7), 7 + life, false),
            (Some(7), 3, true),
            (None, 3, false),
        ] {
            user.totp_pending = Some("sealed".to_owned());
            user.totp_begun_at_ms = begun;
            let taken = user.take_begun_totp(now);
            assert_eq!(taken.is_some(), is_open, "{begun:?} {now}");
            assert_eq!((&user.totp_pending, user.totp_begun_at_ms), (&None, None));
            assert_eq!(user.take_begun_totp(now), None);
        }
    }

    #[test]
    fn scripts_find_the_role_in_the_text_and_nothing_that_looks_like_it() {
        let owner = r#""role":"owner""#;
        let mut user = User {
            id: "usr_1".into(),
            email: owner.into(),
            role: Role::Owner,
            password: owner.into(),
            created_at_ms: 5,
            totp: None,
            totp_pending: Some(owner.into()),
            totp_begun_at_ms: None,
        };
        assert_eq!(user.to_stored().matches(owner).count(), 1);
        user.role = Role::Admin;
        assert!(!user.to_stored().contains(owner));
    }

    #[test]
    fn scripts_know_a_user_by_how_the_text_begins() {
        let user = User {
            id: "usr_1".into(),
            email: "a@example.com".into(),
            role: Role::Viewer,
            password: "$argon2id$".into(),
            created_at_ms: 5,
            totp: None,
            totp_pending: None,
            totp_begun_at_ms: None,
        };
        assert!(user.to_stored().starts_with(&User::stored_start("usr_1")));
        for other in ["usr_", "usr_12", "usr_2", ""] {
            assert!(
                !user.to_stored().starts_with(&User::stored_start(other)),
                "{other}"
            );
        }
    }
}
