//! Look-up of e-mail addresses: the accounts in which an address has a user (decision D74).
//!
//! The look-up is in another slot than the accounts. It lists candidates, and the account decides: an account is added
//! before its user is written and again afterwards, and removed after the user. A crash in between leaves an entry
//! without a user, which costs one read.

use crate::keys::{self, AccountKeys};
use crate::lookup;
use crate::user::StoredUser;
use crate::{Store, StoreError};

/// Maximum number of accounts in a look-up. Users of further accounts must name their account to sign in.
pub const ACCOUNTS_MAX: usize = 1000;

/// A candidate user of an e-mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailOwner {
    /// Account id, `acct_…`.
    pub account: String,
    /// User id.
    pub user: String,
}

impl EmailOwner {
    /// Parses the stored text of a look-up.
    pub fn parse(text: &str) -> Vec<Self> {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(Self::from_line).collect()
    }

    fn from_line(line: &str) -> Self {
        let (account, user) = line.split_once(' ').unwrap_or((line, ""));
        Self {
            account: account.to_owned(),
            user: user.to_owned(),
        }
    }

    /// Returns the accounts in which this e-mail has, or may have, a user, in the order of their addition.
    pub async fn all(store: &Store, email: &str) -> Result<Vec<Self>, StoreError> {
        Ok(Self::parse(&stored(store, email).await?))
    }

    /// Adds the user; one per account. A full look-up stays unchanged.
    /// Safe to retry.
    pub async fn join(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        let key = keys::user_lookup(email);
        lookup::script::join(store, &key, &self.account, &self.user, ACCOUNTS_MAX).await
    }

    /// Removes a user that was not written. If the account has another user with the address, the look-up then contains
    /// that one, even if its entry was lost.
    /// Safe to retry.
    pub(crate) async fn leave_to_another(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        self.leave(store, email).await?;
        let there = StoredUser::find(store, &AccountKeys::new(&self.account), email).await?;
        let Some(there) = there else { return Ok(()) };
        let other = Self {
            account: self.account.clone(),
            user: there.user.id,
        };
        other.join(store, email).await
    }

    /// Removes `account`, which has no user of the e-mail after an interrupted removal. Returns whether it was named.
    /// Safe to retry.
    pub async fn forget_missing(store: &Store, email: &str, account: &str) -> Result<bool, StoreError> {
        let owners = Self::all(store, email).await?;
        let named = owners.into_iter().find(|owner| owner.account == account);
        let Some(owner) = named else { return Ok(false) };
        // An entry added meanwhile stays.
        owner.leave_to_another(store, email).await?;
        Ok(true)
    }

    /// Removes the user after it was removed or not written. Another user of the account stays.
    /// Safe to retry.
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
    fn a_look_up_is_read_back() {
        let owner = |account: &str, user: &str| EmailOwner {
            account: account.to_owned(),
            user: user.to_owned(),
        };
        assert_eq!(EmailOwner::parse(""), []);
        assert_eq!(EmailOwner::parse("damaged"), [owner("damaged", "")]);
        assert_eq!(EmailOwner::parse("acct_1 usr_1"), [owner("acct_1", "usr_1")]);
        let two = EmailOwner::parse("acct_1 usr_1\nacct_2 usr_2");
        assert_eq!(two, [owner("acct_1", "usr_1"), owner("acct_2", "usr_2")]);
    }
}
