//! Twin of `blocked/change.lua`: blocks and unblocks addresses.

use crate::script::script;
use crate::{Store, StoreError, keys};
use domain::blocked::{BLOCKED_MAX, canonical};
use ipnet::IpNet;

script! {
    /// Blocks or unblocks a range. Runs on a full store: blocking must not wait for memory. Confirmed for durability,
    /// since no account's version would reveal that a server lost the block.
    pub static BLOCKED = "blocked_change",
    kind: Timed,
    source: [include_str!("change.lua")],
    when_full: Run,
    marks: [confirmed],
    keys: struct ChangeKeys<'a>: &'a str { blocked },
    /// `random` is part of a new version.
    args: struct ChangeArgs<'a>: &'a str { action, range, reason, ranges_max, random },
}

/// The requested change of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockChange<'a> {
    /// Block it, with an optional reason.
    Block(Option<&'a str>),
    /// Removes the range from the list.
    Unblock,
}

domain::words! {
    /// Outcome of the script.
    pub enum Changed {
        /// The list is changed; every server applies it within a second.
        Done = "done",
        /// The list was already in this state; nothing changed.
        AlreadySo = "already",
        /// The list is at its maximum; nothing changed.
        TooMany = "too_many",
    }
}

/// Why the list could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The store gave no usable answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system has no randomness for the new version.
    #[error(transparent)]
    NoEntropy(#[from] entropy::NoEntropy),
}

/// Changes the list and waits for the configured durability. The new version increments the count and ends in a random
/// part: a store that lost writes could reach the same count with another list.
///
/// # Errors
/// [`ChangeError`]; safe to retry.
pub async fn change(store: &Store, range: IpNet, change: BlockChange<'_>) -> Result<Changed, ChangeError> {
    let random = hex::encode(entropy::random_bytes::<8>()?);
    let (action, reason) = match change {
        BlockChange::Block(reason) => ("block", reason.unwrap_or_default()),
        BlockChange::Unblock => ("unblock", ""),
    };
    let keys = ChangeKeys {
        blocked: keys::BLOCKED,
    };
    let args = ChangeArgs {
        action,
        range: &canonical(range).to_string(),
        reason,
        ranges_max: &BLOCKED_MAX.to_string(),
        random: &random,
    };
    let mut reply = store.reply(&BLOCKED, keys, args).await?;
    Ok(reply.parsed(Changed::parse)?)
}
