//! Twin of `prices/replace.lua`: stores the prices that the operator imported.

use crate::script::script;
use crate::{Store, StoreError, keys};

script! {
    /// Replaces the imported prices. Confirmed, since no account's version shows that a lost server took an import
    /// back.
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
    /// The stored text is no longer the one that was read; nothing changed.
    Changed,
}

/// The imported prices as stored, if there are any.
pub async fn read(store: &Store) -> Result<Option<String>, StoreError> {
    store.command(redis::cmd("GET").arg(keys::PRICES)).await
}

/// Puts `new` in the place of `old`, the text that was read, and waits for the configured durability.
///
/// # Errors
/// [`StoreError`]. [`StoreError::NotDurable`]: a crash may take the import back; it is made again in the same way.
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
