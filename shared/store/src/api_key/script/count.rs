//! Twin of `count.lua`: the management rate limits (decisions D10, D53), and when a key was last used.

use crate::keys::AccountKeys;
use crate::script::change::CLOCK;
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use domain::rate::Rate;
use std::sync::LazyLock;

/// The script. It runs on a full store too: revocations are counted like anything else.
pub static COUNT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "api_key_count",
        WhenFull::Run,
        &[CLOCK, include_str!("../count.lua")],
    )
});

/// A rate and what the plan allows in one of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The rate.
    pub rate: Rate,
    /// Requests in a window.
    pub limit: u64,
}

/// Where a key stands in the window of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowState {
    /// Requests allowed in the window.
    pub limit: u64,
    /// Requests still allowed in it, this one counted.
    pub remaining: u64,
    /// Milliseconds until the window ends.
    pub left_ms: u64,
    /// When it ends, by the store's clock, in milliseconds since 1970.
    pub ends_at_ms: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// The key is not there, or was revoked.
    Gone,
    /// Nothing limits it.
    Uncounted,
    /// It was counted.
    Passed(WindowState),
    /// All requests of the window are used up; this one was not counted.
    Over(WindowState),
}

/// Counts one request of the key `key_id`; with nothing allowed said, only notes that it was used.
///
/// # Errors
/// [`StoreError`]; the request must then be refused.
pub async fn count(
    store: &Store,
    account: &AccountKeys,
    key_id: &str,
    allowed: Option<Allowed>,
) -> Result<Counted, StoreError> {
    let rate = allowed.map_or(Rate::PerMinute, |allowed| allowed.rate);
    let keys = [account.management_rate(rate, key_id), account.api_key(key_id)];
    let limit = allowed.map_or(String::new(), |allowed| allowed.limit.to_string());
    let window = rate.window().as_millis().to_string();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let reply: Vec<String> = store.script(&COUNT, &keys, &[&limit, &window]).await?;
    parse(&reply, allowed).ok_or_else(|| StoreError::UnexpectedReply("api_key_count".to_owned()))
}

fn parse(reply: &[String], allowed: Option<Allowed>) -> Option<Counted> {
    let number = |at: usize| reply.get(at)?.parse::<u64>().ok();
    let standing = || {
        let (limit, left_ms) = (allowed?.limit, number(2)?);
        Some(WindowState {
            limit,
            remaining: limit.saturating_sub(number(1)?),
            left_ms,
            ends_at_ms: number(3)?.checked_add(left_ms)?,
        })
    };
    match reply.first()?.as_str() {
        "gone" => Some(Counted::Gone),
        "uncounted" if allowed.is_none() => Some(Counted::Uncounted),
        "passed" => standing().map(Counted::Passed),
        "over" => standing().map(Counted::Over),
        _ => None,
    }
}
