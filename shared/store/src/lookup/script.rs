//! Twins of `lookup/*.lua`: look-ups outside the buckets that are written beside a record. [`crate::keys`] says why
//! each is safe.

use crate::script::change::unexpected_reply;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use std::sync::LazyLock;

/// Adds a user to an e-mail. Runs on a full store: a later script refuses the user.
pub static JOIN: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("join.lua")];
    Script::new("lookup_join", WhenFull::Run, &parts).of_names()
});

/// Removes a user from an e-mail. Runs on a full store.
pub static LEAVE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("leave.lua")];
    Script::new("lookup_leave", WhenFull::Run, &parts).of_names()
});

/// Makes a look-up permanent.
pub static KEEP: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("keep.lua")];
    Script::new("lookup_keep", WhenFull::Run, &parts).of_names()
});

/// Adds to a set.
pub static NOTE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("note.lua")];
    Script::new("lookup_note", WhenFull::Refuse, &parts).of_names()
});

/// Makes the look-up of `owner` permanent, and waits for the configured durability.
///
/// # Errors
/// [`StoreError`], also if it belongs to another owner; safe to retry.
pub async fn keep(store: &Store, lookup: &str, owner: &str) -> Result<(), StoreError> {
    let reply: Vec<String> = store.script(&KEEP, &[lookup], &[owner]).await?;
    match reply.first().map(String::as_str) {
        Some("kept") => Ok(()),
        Some("taken") => Err(StoreError::UnexpectedReply(
            "a look-up that has another owner meanwhile".to_owned(),
        )),
        _ => unexpected_reply(&KEEP),
    }
}

/// Adds a member to a set outside the buckets, and waits for the configured durability.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn note(store: &Store, set: &str, member: &str) -> Result<(), StoreError> {
    let reply: Vec<String> = store.script(&NOTE, &[set], &[member]).await?;
    match reply.first().map(String::as_str) {
        Some("noted") => Ok(()),
        _ => unexpected_reply(&NOTE),
    }
}

/// Adds `user` of `account` to the look-up of an e-mail, atomically. A look-up with `most` accounts stays unchanged.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn join(
    store: &Store,
    lookup: &str,
    account: &str,
    user: &str,
    most: usize,
) -> Result<(), StoreError> {
    let most = most.to_string();
    done(
        &JOIN,
        store.script(&JOIN, &[lookup], &[account, user, &most]).await?,
    )
}

/// Removes `user` of `account` from the look-up of an e-mail. Another user of the account stays.
///
/// # Errors
/// [`StoreError`]; safe to retry.
pub async fn leave(store: &Store, lookup: &str, account: &str, user: &str) -> Result<(), StoreError> {
    done(&LEAVE, store.script(&LEAVE, &[lookup], &[account, user]).await?)
}

fn done(script: &'static Script, reply: Vec<String>) -> Result<(), StoreError> {
    match reply.first().map(String::as_str) {
        Some("done") => Ok(()),
        _ => unexpected_reply(script),
    }
}
