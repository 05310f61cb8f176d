//! Checks whether the calls of a virtual key must stop: its agent is frozen, or it is revoked.

use crate::keys::AccountKeys;
use crate::lookup::VirtualKeyOwner;
use crate::{Store, StoreError};

/// Reads whether the key's agent is frozen or the key revoked, with one round trip.
pub async fn is_stopped(store: &Store, owner: &VirtualKeyOwner) -> Result<bool, StoreError> {
    let keys = AccountKeys::new(owner.account());
    let mut query = redis::pipe();
    query.cmd("ZSCORE").arg(keys.active_keys()).arg(owner.key_id());
    query
        .cmd("HEXISTS")
        .arg(keys.live().agent(owner.agent()))
        .arg("frozen");
    let (active, is_frozen): (Option<String>, bool) = store.pipeline(&query).await?;
    Ok(is_frozen || active.is_none())
}
