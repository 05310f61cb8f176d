//! Look-ups of keys, outside the buckets: the owner of a hash. They never change once written, so they can be cached
//! forever; the bucket decides whether a key is active. A look-up is announced before the record of its key is written.
//! Afterwards, before the secret is returned, it is made permanent and confirmed
//! ([`keep`](crate::lookup::script::keep)).

pub mod script;

use crate::keys;
use crate::{Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of an announced, unconfirmed look-up.
const UNCONFIRMED_LIFE: Duration = Duration::from_secs(3600);

/// A key that is being issued, with its look-up.
pub(crate) struct Issue<'a> {
    /// Key id, for the log.
    pub key_id: &'a str,
    /// Key of the look-up.
    pub lookup: &'a str,
    /// The stored owner.
    pub owner: &'a str,
}

impl Issue<'_> {
    /// Announces the look-up, writes the record with `write`, and makes the look-up permanent and confirmed last, if
    /// the record `is_written`. A crash in between leaves a key whose secret nobody received and whose look-up expires.
    ///
    /// # Errors
    /// [`StoreError`]: the secret must then not be returned. If the record may be written, `revoke` is tried.
    pub(crate) async fn execute<T>(
        &self,
        store: &Store,
        write: impl Future<Output = Result<T, StoreError>>,
        is_written: impl FnOnce(&T) -> bool,
        revoke: impl Future<Output = Result<bool, StoreError>>,
    ) -> Result<T, StoreError> {
        let issued = self.issue(store, write, is_written).await;
        let may_be_written = issued.as_ref().is_err_and(|error| !is_refusal(error));
        if may_be_written && let Err(error) = revoke.await {
            tracing::warn!(key = self.key_id, %error, "a key may be listed although its secret was never shown");
        }
        issued
    }

    async fn issue<T>(
        &self,
        store: &Store,
        write: impl Future<Output = Result<T, StoreError>>,
        is_written: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let mut announce = redis::cmd("SET");
        announce.arg(self.lookup).arg(self.owner).arg("NX").arg("PX");
        announce.arg(UNCONFIRMED_LIFE.as_millis().to_string());
        let announced: Option<String> = store.command(&announce).await?;
        if announced.is_none() {
            return Err(StoreError::unexpected("a new key that is known already"));
        }
        let written = write.await;
        match &written {
            Ok(outcome) if is_written(outcome) => script::keep(store, self.lookup, self.owner).await?,
            Err(error) if !is_refusal(error) => {}
            // No record was written that the look-up could lead to.
            Ok(_) | Err(_) => {
                let _: i64 = store.command(redis::cmd("DEL").arg(self.lookup)).await?;
            }
        }
        written
    }
}

/// Returns whether the error means that the script changed nothing.
const fn is_refusal(error: &StoreError) -> bool {
    matches!(error, StoreError::OverBudget { .. } | StoreError::NotPermitted(_))
}

/// Owner of an API key's hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyOwner {
    /// Account id, `acct_…`.
    pub account: String,
    /// `key_…`
    pub key_id: String,
}

impl ApiKeyOwner {
    /// Returns the stored text. No part may contain a space.
    pub fn to_stored(&self) -> String {
        format!("{} {}", self.account, self.key_id)
    }

    /// Parses the stored text.
    pub fn parse(text: &str) -> Option<Self> {
        let (account, key_id) = text.split_once(' ')?;
        Some(Self {
            account: account.to_owned(),
            key_id: key_id.to_owned(),
        })
    }

    /// Finds the owner of the key with this hash; `None` if the key does not exist.
    pub async fn find(store: &Store, sha256_hex: &str) -> Result<Option<Self>, StoreError> {
        let key = keys::api_key_lookup(sha256_hex);
        store.lookup(key, "API key look-up", Self::parse).await
    }
}

/// Owner of a virtual key's hash. One allocation, since an edge caches many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualKeyOwner {
    /// Account, agent and key id, separated by spaces.
    text: Arc<str>,
    /// Offsets of the two spaces.
    spaces: [usize; 2],
}

impl VirtualKeyOwner {
    /// Creates an owner. No part may contain a space.
    pub fn new(account: &str, agent: &str, key_id: &str) -> Self {
        Self {
            text: [account, agent, key_id].join(" ").into(),
            spaces: [account.len(), account.len() + 1 + agent.len()],
        }
    }

    /// Returns the stored text.
    pub fn as_stored(&self) -> &str {
        &self.text
    }

    /// Parses the stored text.
    pub fn parse(text: &str) -> Option<Self> {
        let (account, rest) = text.split_once(' ')?;
        let (agent, key_id) = rest.split_once(' ')?;
        (!key_id.contains(' ')).then(|| Self::new(account, agent, key_id))
    }

    /// Returns the account id, `acct_…`.
    pub fn account(&self) -> &str {
        &self.text[..self.spaces[0]]
    }

    /// Returns the agent that the key was created for.
    pub fn agent(&self) -> &str {
        &self.text[self.spaces[0] + 1..self.spaces[1]]
    }

    /// Returns the key id.
    pub fn key_id(&self) -> &str {
        &self.text[self.spaces[1] + 1..]
    }

    /// Finds the owner of the key with this hash; `None` if the key does not exist.
    pub async fn find(store: &Store, sha256_hex: &str) -> Result<Option<Self>, StoreError> {
        let key = keys::virtual_key_lookup(sha256_hex);
        store.lookup(key, "virtual key look-up", Self::parse).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_back() {
        let owner = VirtualKeyOwner::new("acct_1", "böt", "vk_1");
        assert_eq!(
            (owner.account(), owner.agent(), owner.key_id()),
            ("acct_1", "böt", "vk_1")
        );
        assert_eq!(owner.as_stored(), "acct_1 böt vk_1");
        assert_eq!(VirtualKeyOwner::parse(owner.as_stored()), Some(owner));
    }

    #[test]
    fn a_text_of_other_than_three_words_is_no_owner() {
        for text in [
            "",
            "acct_1",
            "acct_1 bot",
            "acct_1 bot vk_1 more",
            "acct_1 bot vk_1 ",
        ] {
            assert_eq!(VirtualKeyOwner::parse(text), None, "{text:?}");
        }
    }
}
