//! Twins of `lookup/*.lua`: what lies outside the buckets and is written beside a record. [`crate::keys`] says why each
//! of them is safe.

use crate::script::change::unexpected_reply;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use std::sync::LazyLock;

/// Adds a user to an e-mail. On a full store as well: what refuses a user comes after it.
pub static JOIN: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("join.lua")];
    Script::new("lookup_join", WhenFull::Run, &parts).of_names()
});

/// Takes a user out of an e-mail. On a full store as well: people leave.
pub static LEAVE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("leave.lua")];
    Script::new("lookup_leave", WhenFull::Run, &parts).of_names()
});

/// Makes a look-up last.
pub static KEEP: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("keep.lua")];
    Script::new("lookup_keep", WhenFull::Run, &parts).of_names()
});

/// Adds to a set.
pub static NOTE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("note.lua")];
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
        Some("taken") => Err(StoreError::UnexpectedReply(
            "a look-up that has another owner meanwhile".to_owned(),
        )),
        _ => unexpected_reply(&KEEP),
    }
}

/// Adds a member to a set outside the buckets, and waits until it is as safe as configured.
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

/// Adds `user` of `account` to those that the e-mail of `lookup` leads to, in one step: however many accounts do so at
/// the same moment, each of them is named. A look-up that names `most` accounts stays as it is.
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

/// Takes `user` of `account` out of those that the e-mail of `lookup` leads to. Another user of the account stays.
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
