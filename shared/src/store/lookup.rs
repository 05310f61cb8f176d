//! The look-ups outside the buckets: what a hash of a key belongs to. They never change once written, so they can be
//! cached for ever; whether a key is active is decided inside the bucket.

use super::keys;
use super::{Store, StoreError};

/// What a virtual key's hash belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualKeyOwner {
    /// The account.
    pub account: String,
    /// The agent that the key was made for.
    pub agent: String,
    /// The key's id.
    pub key_id: String,
}

impl VirtualKeyOwner {
    /// The stored text. No part can contain a space.
    #[must_use]
    pub fn to_stored(&self) -> String {
        format!("{} {} {}", self.account, self.agent, self.key_id)
    }

    /// Reads the stored text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(str::to_owned);
        Some(Self {
            account: words.next()?,
            agent: words.next()?,
            key_id: words.next()?,
        })
    }

    /// The owner of the key with this hash, or `None` when there is no such key.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn find(store: &Store, sha256_hex: &str) -> Result<Option<Self>, StoreError> {
        let key = keys::virtual_key_lookup(sha256_hex);
        let text: Option<String> = store.command(redis::cmd("GET").arg(key)).await?;
        match text {
            None => Ok(None),
            Some(text) => match Self::parse(&text) {
                Some(owner) => Ok(Some(owner)),
                None => Err(StoreError::Nonsense("virtual key look-up".to_owned())),
            },
        }
    }
}
