//! Finding the sealed provider keys of an account, for the rotation of the master key.

use crate::keys::{self, AccountKeys};
use crate::{Store, StoreError};
use std::collections::HashMap;

/// A provider key as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedKey {
    /// Name of the provider.
    pub provider: String,
    /// `pk_…`
    pub key_id: String,
    /// Provider key, encrypted for its agent and provider.
    pub sealed: String,
}

impl SealedKey {
    /// Returns all provider keys of an agent.
    ///
    /// # Errors
    /// [`StoreError`], also for a key id without its sealed text.
    pub async fn list_by_agent(store: &Store, account: &str, agent: &str) -> Result<Vec<Self>, StoreError> {
        let key = AccountKeys::new(account).live().agent(agent);
        let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(key)).await?;
        let mut found = Vec::new();
        let id_prefix = keys::provider_key_id_field("");
        for (field, key_id) in &fields {
            let Some(provider) = field.strip_prefix(&id_prefix) else {
                continue;
            };
            let sealed = fields.get(&keys::provider_key_sealed_field(provider));
            let sealed = sealed.ok_or_else(|| StoreError::unexpected("provider key without its text"))?;
            found.push(Self {
                provider: provider.to_owned(),
                key_id: key_id.clone(),
                sealed: sealed.clone(),
            });
        }
        found.sort_by(|a, b| a.provider.cmp(&b.provider));
        Ok(found)
    }
}
