//! The e-mails of users: in which accounts an address has one (decision D74).
//!
//! The look-up of an e-mail lies in another slot than the accounts. It says where to look, and the account decides: an
//! account is added before its user is written and again afterwards, and taken out after the user is removed. What a
//! crash leaves in between leads to an account without the user, and costs one look.

use crate::keys::{self, AccountKeys};
use crate::lookup;
use crate::user::Stored;
use crate::{Store, StoreError};

/// Accounts that a look-up names at most. Users of further ones exist, and sign in by naming their account.
pub const ACCOUNTS_MAX: usize = 1000;

/// A user that an e-mail may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailOwner {
    /// Account id, `acct_…`.
    pub account: String,
    /// The user; empty where an earlier version kept the account only.
    pub user: String,
}

impl EmailOwner {
    /// Reads the stored text of a look-up.
    #[must_use]
    pub fn parse(text: &str) -> Vec<Self> {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(Self::of_line).collect()
    }

    fn of_line(line: &str) -> Self {
        let (account, user) = line.split_once(' ').unwrap_or((line, ""));
        Self {
            account: account.to_owned(),
            user: user.to_owned(),
        }
    }

    /// In which accounts this e-mail has a user, or seems to, in the order in which they were added.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all(store: &Store, email: &str) -> Result<Vec<Self>, StoreError> {
        Ok(Self::parse(&stored(store, email).await?))
    }

    /// Adds the user; of each account there is one. A look-up that is full stays as it is.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry.
    pub async fn join(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        let key = keys::user_lookup(email);
        lookup::script::join(store, &key, &self.account, &self.user, ACCOUNTS_MAX).await
    }

    /// Takes the user out, which was not written. Where the account has another user of the e-mail, the look-up leads
    /// to that one, also when it had been lost.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry.
    pub async fn leave_to_another(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        self.leave(store, email).await?;
        let there = Stored::find(store, &AccountKeys::new(&self.account), email).await?;
        let Some(there) = there else { return Ok(()) };
        let other = Self {
            account: self.account.clone(),
            user: there.user.id,
        };
        other.join(store, email).await
    }

    /// Takes `account` out, which has no user of the e-mail: a removal that was cut off left it. Returns whether it was
    /// named.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry.
    pub async fn forget_missing(store: &Store, email: &str, account: &str) -> Result<bool, StoreError> {
        let owners = Self::all(store, email).await?;
        let named = owners.into_iter().find(|owner| owner.account == account);
        let Some(owner) = named else { return Ok(false) };
        // One that was added meanwhile stays.
        owner.leave_to_another(store, email).await?;
        Ok(true)
    }

    /// Takes the user out, after it was removed or was not written. Another one of the account stays.
    ///
    /// # Errors
    /// [`StoreError`]; safe to retry.
    pub async fn leave(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        lookup::script::leave(store, &keys::user_lookup(email), &self.account, &self.user).await
    }
}

async fn stored(store: &Store, email: &str) -> Result<String, StoreError> {
    let key = keys::user_lookup(email);
    let text: Option<String> = store.command(redis::cmd("GET").arg(key)).await?;
    Ok(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_of_every_version_are_read() {
        let owner = |account: &str, user: &str| EmailOwner {
            account: account.to_owned(),
            user: user.to_owned(),
        };
        assert_eq!(EmailOwner::parse(""), []);
        assert_eq!(EmailOwner::parse("acct_1"), [owner("acct_1", "")]);
        assert_eq!(EmailOwner::parse("acct_1 usr_1"), [owner("acct_1", "usr_1")]);
        let two = EmailOwner::parse("acct_1 usr_1\nacct_2 usr_2");
        assert_eq!(two, [owner("acct_1", "usr_1"), owner("acct_2", "usr_2")]);
    }
}
