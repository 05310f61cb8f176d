//! Current state of a virtual key, read without counting a request.

use crate::keys::AccountKeys;
use crate::lookup::VirtualKeyOwner;
use crate::{Store, StoreError};

/// Activity and rate count of a virtual key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyState {
    /// False once it is revoked.
    pub is_active: bool,
    /// Requests in its window; 0 if none is open.
    pub requests: u64,
}

impl KeyState {
    /// Reads the state, with two commands. It may change before the next request; only `authorize.lua` decides.
    pub async fn read(store: &Store, owner: &VirtualKeyOwner) -> Result<Self, StoreError> {
        let keys = AccountKeys::new(owner.account());
        let mut rank = redis::cmd("ZSCORE");
        rank.arg(keys.active_keys()).arg(owner.key_id());
        let score: Option<String> = store.command(&rank).await?;
        let mut rate = redis::cmd("GET");
        rate.arg(keys.rate(owner.key_id()));
        let requests: Option<u64> = store.command(&rate).await?;
        Ok(Self {
            is_active: score.is_some(),
            requests: requests.unwrap_or(0),
        })
    }
}
