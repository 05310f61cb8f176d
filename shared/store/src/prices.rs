//! Twin of `prices/replace.lua`: stores the prices that the operator imported.

pub mod tables;

use crate::script::script;
use crate::{Store, StoreError, keys};

script! {
    /// Replaces the imported prices. Confirmed for durability, since no account's version would reveal that a server
    /// lost the import.
    pub static REPLACE_PRICES = "replace_prices",
    kind: Timeless,
    source: [include_str!("prices/replace.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct ReplaceKeys<'a>: &'a str { prices },
    args: struct ReplaceArgs<'a>: &'a str { old, new },
}

/// Returns the imported prices as stored, if there are any.
pub async fn read(store: &Store) -> Result<Option<String>, StoreError> {
    store.command(redis::cmd("GET").arg(keys::PRICES)).await
}

/// Replaces `old`, the text that was read, by `new`, and waits for the configured durability. Returns false if
/// the stored text is another one by now; nothing changed.
///
/// # Errors
/// [`StoreError`]. [`StoreError::NotDurable`]: a crash may lose the import, which can be repeated.
pub async fn replace(store: &Store, old: Option<&str>, new: &str) -> Result<bool, StoreError> {
    let keys = ReplaceKeys { prices: keys::PRICES };
    let args = ReplaceArgs {
        old: old.unwrap_or_default(),
        new,
    };
    let reply = store.reply(&REPLACE_PRICES, keys, args).await?;
    reply.is("done", &["changed"])
}
