//! Twin of `reseal_checkpoint_key.lua`: rotation of the master key for the checkpoint key.

use crate::keys::STORE;
use crate::script::script;
use crate::{Store, StoreError};

script! {
    /// Replaces the sealed checkpoint key.
    pub static RESEAL_CHECKPOINT_KEY = "reseal_checkpoint_key",
    kind: Timeless,
    source: [include_str!("reseal_checkpoint_key.lua")],
    when_full: Refuse,
    /// The store's record.
    keys: struct ResealKeys<'a>: &'a str { store },
    /// `old` and `new` are sealed texts.
    args: struct ResealArgs<'a>: &'a str { field, old, new },
}

/// Field of the store's record that holds the sealed key.
pub const FIELD: &str = "checkpoint_key";

/// Replaces `old` by `new`. Returns false if the stored text is another one by now; nothing changed.
/// Safe to retry.
pub async fn replace(store: &Store, old: &str, new: &str) -> Result<bool, StoreError> {
    let keys = ResealKeys { store: STORE };
    let args = ResealArgs {
        field: FIELD,
        old,
        new,
    };
    let reply = store.reply(&RESEAL_CHECKPOINT_KEY, keys, args).await?;
    reply.is("done", &["changed"])
}
