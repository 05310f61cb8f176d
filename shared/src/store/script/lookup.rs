//! Twins of `lookup/*.lua`: what lies outside the buckets and is written beside a record. [`crate::store::keys`] says why each
//! of them is safe.

use super::change::nonsense;
use super::{Script, WhenFull};
use crate::store::{Store, StoreError};
use std::sync::LazyLock;

/// Reserves an e-mail.
pub static CLAIM: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "lookup_claim",
        WhenFull::Refuse,
        &[include_str!("lookup/claim.lua")],
    )
});

/// Frees one.
pub static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "lookup_release",
        WhenFull::Run,
        &[include_str!("lookup/release.lua")],
    )
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

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// It is reserved for the time being.
    Done,
    /// It has an owner.
    Taken {
        /// The owner, as stored.
        owner: String,
        /// Whether the owner was confirmed.
        lasting: bool,
    },
}

/// Reserves the look-up for `owner`, if what is there is `expected` (nothing, when it is empty).
///
/// # Errors
/// [`StoreError`].
pub async fn claim(
    store: &Store,
    lookup: &str,
    expected: &str,
    owner: &str,
    life_ms: u64,
) -> Result<Claimed, StoreError> {
    let life = life_ms.to_string();
    let reply: Vec<String> = store.script(&CLAIM, &[lookup], &[expected, owner, &life]).await?;
    let words: Vec<&str> = reply.iter().map(String::as_str).collect();
    match words[..] {
        ["claimed"] => Ok(Claimed::Done),
        ["taken", owner, how] => Ok(Claimed::Taken {
            owner: owner.to_owned(),
            lasting: how == "lasting",
        }),
        _ => nonsense(&CLAIM),
    }
}

/// Frees the look-up, if `owner` still has it.
///
/// # Errors
/// [`StoreError`]; it may be repeated.
pub async fn release(store: &Store, lookup: &str, owner: &str) -> Result<(), StoreError> {
    let _: Vec<String> = store.script(&RELEASE, &[lookup], &[owner]).await?;
    Ok(())
}
