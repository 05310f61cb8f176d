//! Twin of `blocked/change.lua`: block addresses and let them in again.

use crate::script::change::CLOCK;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError, keys};
use domain::blocked::{BLOCKED_MAX, canonical};
use ipnet::IpNet;
use std::sync::LazyLock;

/// The script. A full store takes it: to turn somebody away must not wait for room. It is confirmed: no account's
/// version tells that a lost server took a block back.
pub static BLOCKED: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "blocked_change",
        WhenFull::Run,
        &[CLOCK, include_str!("change.lua")],
    )
    .of_names()
});

/// What to do with a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Answer nobody in it; for this reason, if one is given.
    Block(Option<&'a str>),
    /// Answer them again.
    Unblock,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// Both servers follow.
    Done,
    /// It was so before.
    AlreadySo,
    /// There are as many ranges as there can be.
    TooMany,
}

/// Why it could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No randomness for the new version.
    #[error(transparent)]
    NoEntropy(#[from] entropy::NoEntropy),
}

/// Changes the list, and waits until that is as safe as configured. Its version counts up, and ends in something
/// random: a store that lost writes could count to the same number with another list.
///
/// # Errors
/// [`ChangeError`]; it may be repeated.
pub async fn change(store: &Store, range: IpNet, change: Change<'_>) -> Result<Changed, ChangeError> {
    let random = hex::encode(entropy::random_bytes::<8>()?);
    let (word, reason) = match change {
        Change::Block(reason) => ("block", reason.unwrap_or_default()),
        Change::Unblock => ("unblock", ""),
    };
    let (range, most) = (canonical(range).to_string(), BLOCKED_MAX.to_string());
    let args = [word, &range, reason, &most, &random];
    let reply: Vec<String> = store.script(&BLOCKED, &[keys::BLOCKED], &args).await?;
    match reply.first().map(String::as_str) {
        Some("done") => Ok(Changed::Done),
        Some("already") => Ok(Changed::AlreadySo),
        Some("too_many") => Ok(Changed::TooMany),
        _ => Err(StoreError::UnexpectedReply("blocked_change".to_owned()).into()),
    }
}
