//! Price tables on their way from the edges that charge by them to the archive (decision D48). The twin of `keep.lua`,
//! `offered.lua` and `read.lua`.
//!
//! The credentials of an edge write any field, so readers bound the length of a field.

use crate::script::names::Inputs as _;
use crate::script::script;
use crate::{Store, StoreError, keys};
use domain::price::{PriceError, PriceTable};

/// Maximum number of tables that wait for the archive.
pub const TABLES_MAX: u64 = 64;
/// Longest text of a table that is kept or read, in bytes.
pub const TEXT_BYTES_MAX: usize = 8 << 20;
/// Longest part of a field's name that is shown, in bytes.
const SHOWN_BYTES: usize = 64;

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

script! {
    /// Lists the tables that wait. Runs on a full store, since it frees memory.
    pub static OFFERED = "price_tables_offered",
    kind: Timeless,
    source: [include_str!("offered.lua")],
    when_full: Run,
    keys: struct OfferedKeys<'a>: &'a str { tables },
    args: struct OfferedArgs: String { tables_max, version_digits, text_bytes_max, shown_bytes, remove },
}

script! {
    /// Reads a table that waits.
    pub static READ_TABLE = "price_table_read",
    kind: Timeless,
    source: [include_str!("read.lua")],
    when_full: ReadOnly,
    keys: struct ReadKeys<'a>: &'a str { tables },
    args: struct ReadArgs<'a>: &'a str { version, text_bytes_max },
}

/// Treatment of fields that are no tables of an edge: the name is no version, or the text is longer than
/// [`TEXT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherFields {
    /// They stay.
    Keep,
    /// They are removed.
    Remove,
}

/// The tables that wait for the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTables {
    /// Their versions, in no order.
    pub versions: Vec<String>,
    /// Number of fields that are no tables of an edge.
    pub others: u64,
    /// Start of the name of one of those fields, printable.
    pub first_other: String,
}

/// A table as it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferedTable {
    /// Its text. Bytes that are not UTF-8 are replaced, so that it has another version.
    Text(String),
    /// It does not wait.
    None,
    /// It is longer than [`TEXT_BYTES_MAX`], and was not read.
    TooLong,
}

/// A field that is no table of its version.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTable {
    /// Longer than any that an edge writes.
    #[error("it is longer than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// Another text than that of the version, or none of a table.
    #[error(transparent)]
    Text(#[from] PriceError),
}

impl OfferedTable {
    /// Parses the table of this version, and returns it with its text. `None` if it does not wait.
    ///
    /// # Errors
    /// [`InvalidTable`]
    pub fn into_table(self, version: &str) -> Result<Option<(String, PriceTable)>, InvalidTable> {
        match self {
            Self::None => Ok(None),
            Self::TooLong => Err(InvalidTable::TooLong),
            Self::Text(text) => {
                let table = PriceTable::from_text(version, &text)?;
                Ok(Some((text, table)))
            }
        }
    }
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

/// Lists the tables that wait. Of more than [`TABLES_MAX`] fields it sees as many, others each time.
pub async fn offered(store: &Store, others: OtherFields) -> Result<OfferedTables, StoreError> {
    let keys = OfferedKeys {
        tables: keys::PRICE_TABLES,
    };
    let args = OfferedArgs {
        tables_max: TABLES_MAX.to_string(),
        version_digits: PriceTable::VERSION_DIGITS.to_string(),
        text_bytes_max: TEXT_BYTES_MAX.to_string(),
        shown_bytes: SHOWN_BYTES.to_string(),
        remove: u8::from(others == OtherFields::Remove).to_string(),
    };
    let mut reply = store.reply(&OFFERED, keys, args).await?;
    match reply.word()?.as_str() {
        "offered" => Ok(OfferedTables {
            others: reply.number()?,
            first_other: reply.word()?,
            versions: reply.rest(),
        }),
        _ => reply.unexpected(),
    }
}

/// Reads a table that waits.
pub async fn read(store: &Store, version: &str) -> Result<OfferedTable, StoreError> {
    let keys = ReadKeys {
        tables: keys::PRICE_TABLES,
    };
    let text_bytes_max = TEXT_BYTES_MAX.to_string();
    let args = ReadArgs {
        version,
        text_bytes_max: &text_bytes_max,
    };
    let reply: Vec<Vec<u8>> = store.script(&READ_TABLE, &keys.values(), &args.values()).await?;
    let mut words = reply.into_iter();
    match (words.next().as_deref(), words.next()) {
        (Some(b"text"), Some(text)) => {
            let text = String::from_utf8_lossy(&text).into_owned();
            Ok(OfferedTable::Text(text))
        }
        (Some(b"none"), None) => Ok(OfferedTable::None),
        (Some(b"too_long"), None) => Ok(OfferedTable::TooLong),
        _ => Err(StoreError::unexpected(READ_TABLE.name())),
    }
}

/// Removes a table that is in the archive.
pub async fn remove(store: &Store, version: &str) -> Result<(), StoreError> {
    store
        .command(redis::cmd("HDEL").arg(keys::PRICE_TABLES).arg(version))
        .await
}
