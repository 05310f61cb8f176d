//! Twin of `reseal_checkpoint_key.lua`: rotation of the master key for the checkpoint key.

use crate::keys::STORE;
use crate::script::names::{Names, inputs};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use std::sync::LazyLock;

/// The script.
pub static RESEAL_CHECKPOINT_KEY: LazyLock<Script> = LazyLock::new(|| {
    let source = include_str!("reseal_checkpoint_key.lua");
    let inputs = Names::new(ResealKeys::NAMES, ResealArgs::NAMES);
    Script::new("reseal_checkpoint_key", WhenFull::Refuse, inputs, &[source])
});

inputs! {
    /// The key: the store's record.
    struct ResealKeys<'a>: &'a str { store }
}
inputs! {
    /// The arguments. `old` and `new` are sealed texts.
    struct ResealArgs<'a>: &'a str { field, old, new }
}

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
/// Safe to retry.
pub async fn replace(store: &Store, old: &str, new: &str) -> Result<Replaced, StoreError> {
    let keys = ResealKeys { store: STORE };
    let args = ResealArgs {
        field: FIELD,
        old,
        new,
    };
    let mut reply = store.reply(&RESEAL_CHECKPOINT_KEY, keys, args).await?;
    match reply.word()?.as_str() {
        "done" => Ok(Replaced::Done),
        "changed" => Ok(Replaced::Changed),
        _ => reply.unexpected(),
    }
}
