//! Twin of `reseal_checkpoint_key.lua`: rotation of the master key for the checkpoint key.

use crate::keys::STORE;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use std::sync::LazyLock;

/// The script.
pub static RESEAL_CHECKPOINT_KEY: LazyLock<Script> = LazyLock::new(|| {
    let source = include_str!("reseal_checkpoint_key.lua");
    Script::new("reseal_checkpoint_key", WhenFull::Refuse, &[source])
});

/// Field of the store's record that holds the sealed key.
pub const FIELD: &str = "checkpoint_key";

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// The new text is stored.
    Done,
    /// The stored text is no longer the old one; nothing changed.
    Changed,
}

/// Replaces `old` by `new`.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn replace(store: &Store, old: &str, new: &str) -> Result<Replaced, StoreError> {
    let reply: Vec<String> = store
        .script(&RESEAL_CHECKPOINT_KEY, &[STORE], &[FIELD, old, new])
        .await?;
    match reply.first().map(String::as_str) {
        Some("done") => Ok(Replaced::Done),
        Some("changed") => Ok(Replaced::Changed),
        _ => Err(StoreError::UnexpectedReply("reseal_checkpoint_key".to_owned())),
    }
}
