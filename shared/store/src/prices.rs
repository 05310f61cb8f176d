//! Twin of `prices/replace.lua`: stores the prices that the operator imported.

use crate::script::script;
use crate::{Store, StoreError, keys};

script! {
    /// Replaces the imported prices. Confirmed for durability, since no account's version would reveal that a server
    /// lost the import.
    pub static REPLACE_PRICES = "replace_prices",
    source: [include_str!("prices/replace.lua")],
    when_full: Refuse,
    marks: [of_names],
    keys: struct ReplaceKeys<'a>: &'a str { prices },
    args: struct ReplaceArgs<'a>: &'a str { old, new },
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// The new text is stored.
    Done,
    /// The stored text differs from the one that was read; nothing changed.
    Changed,
}

/// Returns the imported prices as stored, if there are any.
pub async fn read(store: &Store) -> Result<Option<String>, StoreError> {
    store.command(redis::cmd("GET").arg(keys::PRICES)).await
}

/// Replaces `old`, the text that was read, by `new`, and waits for the configured durability.
///
/// # Errors
/// [`StoreError`]. [`StoreError::NotDurable`]: a crash may lose the import, which can be repeated.
pub async fn replace(store: &Store, old: Option<&str>, new: &str) -> Result<Replaced, StoreError> {
    let keys = ReplaceKeys { prices: keys::PRICES };
    let args = ReplaceArgs {
        old: old.unwrap_or_default(),
        new,
    };
    let mut reply = store.reply(&REPLACE_PRICES, keys, args).await?;
    match reply.word()?.as_str() {
        "done" => Ok(Replaced::Done),
        "changed" => Ok(Replaced::Changed),
        _ => reply.unexpected(),
    }
}
