//! Twins of `lookup/*.lua`: look-ups outside the buckets that are written together with a record. [`crate::keys`]
//! explains why each is safe.

use crate::script::script;
use crate::{Store, StoreError};

script! {
    /// Adds a user to an e-mail. Runs on a full store: a later script refuses the user.
    pub static JOIN = "lookup_join",
    kind: Timeless,
    source: [include_str!("join.lua")],
    when_full: Run,
    marks: [confirmed],
    keys: struct LookupKeys<'a>: &'a str { lookup },
    args: struct JoinArgs<'a>: &'a str { account, user, accounts_max },
}

script! {
    /// Removes a user from an e-mail. Runs on a full store.
    pub static LEAVE = "lookup_leave",
    kind: Timeless,
    source: [include_str!("leave.lua")],
    when_full: Run,
    marks: [confirmed],
    keys: LookupKeys,
    args: struct LeaveArgs<'a>: &'a str { account, user },
}

script! {
    /// Makes a look-up permanent.
    pub static KEEP = "lookup_keep",
    kind: Timeless,
    source: [include_str!("keep.lua")],
    when_full: Run,
    marks: [confirmed],
    keys: LookupKeys,
    args: struct KeepArgs<'a>: &'a str { owner },
}

script! {
    /// Adds to a set.
    pub static NOTE = "lookup_note",
    kind: Timeless,
    source: [include_str!("note.lua")],
    when_full: Refuse,
    marks: [confirmed],
    keys: struct NoteKeys<'a>: &'a str { set },
    args: struct NoteArgs<'a>: &'a str { member },
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
        "taken" => Err(StoreError::unexpected(
            "a look-up that has another owner meanwhile",
        )),
        _ => reply.unexpected(),
    }
}

/// Adds a member to a set outside the buckets, and waits for the configured durability.
/// Safe to retry.
pub async fn note(store: &Store, set: &str, member: &str) -> Result<(), StoreError> {
    let (keys, args) = (NoteKeys { set }, NoteArgs { member });
    let reply = store.reply(&NOTE, keys, args).await?;
    reply.expect_one_of(&["noted"])
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
    let reply = store.reply(&JOIN, LookupKeys { lookup }, args).await?;
    reply.expect_one_of(&["done"])
}

/// Removes `user` of `account` from the look-up of an e-mail. Another user of the account stays.
/// Safe to retry.
pub async fn leave(store: &Store, lookup: &str, account: &str, user: &str) -> Result<(), StoreError> {
    let (keys, args) = (LookupKeys { lookup }, LeaveArgs { account, user });
    let reply = store.reply(&LEAVE, keys, args).await?;
    reply.expect_one_of(&["done"])
}
