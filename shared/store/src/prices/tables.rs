//! Price tables on their way from the edges that charge by them to the archive (decision D48). The twin of `keep.lua`.

use crate::script::script;
use crate::{Store, StoreError, keys};

/// Maximum number of tables that wait for the archive.
pub const TABLES_MAX: u64 = 64;
/// Longest text of a table that is kept, in bytes.
pub const TEXT_BYTES_MAX: usize = 8 << 20;

script! {
    /// Offers a table to the archive. Not confirmed for durability, for which an edge has no rights: it offers the
    /// table again.
    pub static KEEP_TABLE = "price_table_keep",
    kind: Timeless,
    source: [include_str!("keep.lua")],
    when_full: Refuse,
    keys: struct KeepKeys<'a>: &'a str { tables },
    args: struct KeepArgs<'a>: &'a str { version, text, tables_max },
}

/// Offers the table with this version and text to the archive. Returns false if [`TABLES_MAX`] others wait already;
/// nothing changed.
///
/// # Errors
/// [`StoreError`]
pub async fn offer(store: &Store, version: &str, text: &str) -> Result<bool, StoreError> {
    let keys = KeepKeys {
        tables: keys::PRICE_TABLES,
    };
    let args = KeepArgs {
        version,
        text,
        tables_max: &TABLES_MAX.to_string(),
    };
    let reply = store.reply(&KEEP_TABLE, keys, args).await?;
    reply.is("done", &["full"])
}

/// Returns the versions of the tables that wait, in no order.
pub async fn offered(store: &Store) -> Result<Vec<String>, StoreError> {
    store.command(redis::cmd("HKEYS").arg(keys::PRICE_TABLES)).await
}

/// Returns the text of a table that waits.
pub async fn text(store: &Store, version: &str) -> Result<Option<String>, StoreError> {
    store
        .command(redis::cmd("HGET").arg(keys::PRICE_TABLES).arg(version))
        .await
}

/// Removes a table that is in the archive.
pub async fn remove(store: &Store, version: &str) -> Result<(), StoreError> {
    store
        .command(redis::cmd("HDEL").arg(keys::PRICE_TABLES).arg(version))
        .await
}
