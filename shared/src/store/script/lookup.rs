//! Twins of `lookup/*.lua`: what lies outside the buckets and is written beside a record. [`crate::store::keys`] says why each
//! of them is safe.

use super::change::nonsense;
use super::{Script, WhenFull};
use crate::store::{Store, StoreError};
use std::sync::LazyLock;

/// Changes which users an e-mail leads to. On a full store as well: people leave.
pub static SWAP: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("lookup/swap.lua")];
    Script::new("lookup_swap", WhenFull::Run, &parts).of_names()
});

/// Makes a look-up last.
pub static KEEP: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("lookup/keep.lua")];
    Script::new("lookup_keep", WhenFull::Run, &parts).of_names()
});

/// Adds to a set.
pub static NOTE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("lookup/note.lua")];
    Script::new("lookup_note", WhenFull::Refuse, &parts).of_names()
});

/// Makes the look-up of `owner` last, and waits until it is as safe as configured.
///
/// # Errors
/// [`StoreError`]; it may be repeated. Also when it is somebody else's.
pub async fn keep(store: &Store, lookup: &str, owner: &str) -> Result<(), StoreError> {
    let reply: Vec<String> = store.script(&KEEP, &[lookup], &[owner]).await?;
    match reply.first().map(String::as_str) {
        Some("kept") => Ok(()),
        Some("taken") => Err(StoreError::Nonsense(
            "a look-up that has another owner meanwhile".to_owned(),
        )),
        _ => nonsense(&KEEP),
    }
}

/// Adds a member to a set outside the buckets, and waits until it is as safe as configured.
///
/// # Errors
/// [`StoreError`]; it may be repeated.
pub async fn note(store: &Store, set: &str, member: &str) -> Result<(), StoreError> {
    let reply: Vec<String> = store.script(&NOTE, &[set], &[member]).await?;
    match reply.first().map(String::as_str) {
        Some("noted") => Ok(()),
        _ => nonsense(&NOTE),
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    /// It is as it was to be.
    Done,
    /// Something else was there: this. Nothing happened.
    Other(String),
}

/// Puts `new` in the place of `old`; an empty text is none.
///
/// # Errors
/// [`StoreError`]; it may have happened.
pub async fn swap(store: &Store, lookup: &str, old: &str, new: &str) -> Result<Swapped, StoreError> {
    let reply: Vec<String> = store.script(&SWAP, &[lookup], &[old, new]).await?;
    let words: Vec<&str> = reply.iter().map(String::as_str).collect();
    match words[..] {
        ["done"] => Ok(Swapped::Done),
        ["other", there] => Ok(Swapped::Other(there.to_owned())),
        _ => nonsense(&SWAP),
    }
}
