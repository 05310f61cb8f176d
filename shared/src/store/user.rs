//! Dashboard users, as the store keeps them: a JSON record by e-mail in the account's users.

use super::keys::AccountKeys;
use super::{Store, StoreError};
use crate::domain::role::Role;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One user. The password exists only as an argon2id hash.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// `usr_…`
    pub id: String,
    /// Lower case; unique in the whole installation, since a login names nothing else.
    pub email: String,
    /// What the user may do.
    pub role: Role,
    /// The argon2id hash of the password, in PHC form.
    pub password: String,
    /// When the user was made.
    pub created_at_ms: u64,
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
    /// The stored text.
    #[must_use]
    pub fn to_stored(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// All users of `account`, oldest first.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn list(store: &Store, account: &AccountKeys) -> Result<Vec<Self>, StoreError> {
        let records: HashMap<String, String> =
            store.command(redis::cmd("HGETALL").arg(account.users())).await?;
        let nonsense = |_| StoreError::Nonsense("user record".to_owned());
        let users = records
            .values()
            .map(|text| serde_json::from_str(text).map_err(nonsense));
        let mut users: Vec<Self> = users.collect::<Result<_, _>>()?;
        users.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(users)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_hide_the_hash() {
        let user = User {
            id: "usr_1".into(),
            email: "a@example.com".into(),
            role: Role::Manager,
            password: "$argon2id$v=19$hash".into(),
            created_at_ms: 5,
        };
        let read: User = serde_json::from_str(&user.to_stored()).unwrap();
        assert_eq!(read, user);
        assert!(!format!("{user:?}").contains("argon2"));
    }
}
