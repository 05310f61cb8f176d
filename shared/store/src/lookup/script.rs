//! Twins of `lookup/*.lua`: look-ups outside the buckets that are written beside a record. [`crate::keys`] says why
//! each is safe.

use crate::script::names::{Names, inputs};
use crate::script::reply::Reply;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use std::sync::LazyLock;

/// Adds a user to an e-mail. Runs on a full store: a later script refuses the user.
pub static JOIN: LazyLock<Script> = LazyLock::new(|| {
    let inputs = Names::new(LookupKeys::NAMES, JoinArgs::NAMES);
    let parts = [include_str!("join.lua")];
    Script::new("lookup_join", WhenFull::Run, inputs, &parts).of_names()
});

inputs! {
    /// The key of `join.lua`, `leave.lua` and `keep.lua`.
    struct LookupKeys<'a>: &'a str { lookup }
}
inputs! {
    /// The arguments of `join.lua`.
    struct JoinArgs<'a>: &'a str { account, user, accounts_max }
}

/// Removes a user from an e-mail. Runs on a full store.
pub static LEAVE: LazyLock<Script> = LazyLock::new(|| {
    let inputs = Names::new(LookupKeys::NAMES, LeaveArgs::NAMES);
    let parts = [include_str!("leave.lua")];
    Script::new("lookup_leave", WhenFull::Run, inputs, &parts).of_names()
});

inputs! {
    /// The arguments of `leave.lua`.
    struct LeaveArgs<'a>: &'a str { account, user }
}

/// Makes a look-up permanent.
pub static KEEP: LazyLock<Script> = LazyLock::new(|| {
    let inputs = Names::new(LookupKeys::NAMES, KeepArgs::NAMES);
    let parts = [include_str!("keep.lua")];
    Script::new("lookup_keep", WhenFull::Run, inputs, &parts).of_names()
});

inputs! {
    /// The argument of `keep.lua`.
    struct KeepArgs<'a>: &'a str { owner }
}

/// Adds to a set.
pub static NOTE: LazyLock<Script> = LazyLock::new(|| {
    let inputs = Names::new(NoteKeys::NAMES, NoteArgs::NAMES);
    let parts = [include_str!("note.lua")];
    Script::new("lookup_note", WhenFull::Refuse, inputs, &parts).of_names()
});

inputs! {
    /// The key of `note.lua`.
    struct NoteKeys<'a>: &'a str { set }
}
inputs! {
    /// The argument of `note.lua`.
    struct NoteArgs<'a>: &'a str { member }
}

/// Makes the look-up of `owner` permanent, and waits for the configured durability.
///
/// # Errors
/// [`StoreError`], also if it belongs to another owner; safe to retry.
pub async fn keep(store: &Store, lookup: &str, owner: &str) -> Result<(), StoreError> {
    let (keys, args) = (LookupKeys { lookup }, KeepArgs { owner });
    let mut reply = store.reply(&KEEP, keys, args).await?;
    match reply.word()?.as_str() {
        "kept" => Ok(()),
        "taken" => Err(StoreError::UnexpectedReply(
            "a look-up that has another owner meanwhile".to_owned(),
        )),
        _ => reply.unexpected(),
    }
}

/// Adds a member to a set outside the buckets, and waits for the configured durability.
/// Safe to retry.
pub async fn note(store: &Store, set: &str, member: &str) -> Result<(), StoreError> {
    let (keys, args) = (NoteKeys { set }, NoteArgs { member });
    let mut reply = store.reply(&NOTE, keys, args).await?;
    match reply.word()?.as_str() {
        "noted" => Ok(()),
        _ => reply.unexpected(),
    }
}

/// Adds `user` of `account` to the look-up of an e-mail, atomically. A look-up with `most` accounts stays unchanged.
/// Safe to retry.
pub async fn join(
    store: &Store,
    lookup: &str,
    account: &str,
    user: &str,
    most: usize,
) -> Result<(), StoreError> {
    let args = JoinArgs {
        account,
        user,
        accounts_max: &most.to_string(),
    };
    done(store.reply(&JOIN, LookupKeys { lookup }, args).await?)
}

/// Removes `user` of `account` from the look-up of an e-mail. Another user of the account stays.
/// Safe to retry.
pub async fn leave(store: &Store, lookup: &str, account: &str, user: &str) -> Result<(), StoreError> {
    let (keys, args) = (LookupKeys { lookup }, LeaveArgs { account, user });
    done(store.reply(&LEAVE, keys, args).await?)
}

fn done(mut reply: Reply) -> Result<(), StoreError> {
    match reply.word()?.as_str() {
        "done" => Ok(()),
        _ => reply.unexpected(),
    }
}
