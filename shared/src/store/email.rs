//! The e-mails of users, each of which one user of the whole installation has.
//!
//! The look-up of an e-mail lies in another slot than the account, so it is reserved before the user is written, made to last
//! afterwards, and freed after the user is removed. It holds only while the account has the user: one that a removal left
//! behind when it was cut off is taken over by whoever asks next.

use super::keys::{self, AccountKeys};
use super::script::lookup::{Claimed, claim, keep, release};
use super::user::Stored;
use super::{Store, StoreError};

/// How long a reservation lives that is not confirmed.
const RESERVED_MS: u64 = 3_600_000;

/// Whose an e-mail is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailOwner {
    /// The account.
    pub account: String,
    /// The user.
    pub user: String,
}

impl EmailOwner {
    /// The stored text. No part can contain a space.
    fn to_stored(&self) -> String {
        format!("{} {}", self.account, self.user)
    }

    fn parse(text: &str) -> Self {
        // An earlier version kept the account only.
        let (account, user) = text.split_once(' ').unwrap_or((text, ""));
        Self {
            account: account.to_owned(),
            user: user.to_owned(),
        }
    }

    /// Who has this e-mail, or seems to: the account decides.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find(store: &Store, email: &str) -> Result<Option<Self>, StoreError> {
        let key = keys::user_lookup(email);
        let text: Option<String> = store.command(redis::cmd("GET").arg(key)).await?;
        Ok(text.map(|text| Self::parse(&text)))
    }

    /// Reserves the e-mail for this user; false when another user has it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reserve(&self, store: &Store, email: &str) -> Result<bool, StoreError> {
        let (lookup, mine) = (keys::user_lookup(email), self.to_stored());
        let (owner, lasting) = match claim(store, &lookup, "", &mine, RESERVED_MS).await? {
            Claimed::Done => return Ok(true),
            Claimed::Taken { owner, lasting } => (owner, lasting),
        };
        let keys = AccountKeys::of(&Self::parse(&owner).account);
        if Stored::find(store, &keys, email).await?.is_some() {
            if !lasting {
                keep(store, &lookup, &owner).await?;
            }
            return Ok(false);
        }
        // Somebody is about to write the user, or was cut off: that reservation ends by itself.
        if !lasting {
            return Ok(false);
        }
        let over = claim(store, &lookup, &owner, &mine, RESERVED_MS).await?;
        Ok(over == Claimed::Done)
    }

    /// Makes the look-up last, after the user was written, and waits until it is as safe as configured.
    ///
    /// # Errors
    /// [`StoreError`]; it may be repeated.
    pub async fn confirm(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        keep(store, &keys::user_lookup(email), &self.to_stored()).await
    }

    /// Frees the e-mail, after the user was removed or was not written.
    ///
    /// # Errors
    /// [`StoreError`]; it may be repeated.
    pub async fn release(&self, store: &Store, email: &str) -> Result<(), StoreError> {
        let lookup = keys::user_lookup(email);
        release(store, &lookup, &self.to_stored()).await?;
        // An earlier version kept the account only.
        release(store, &lookup, &self.account).await
    }
}
