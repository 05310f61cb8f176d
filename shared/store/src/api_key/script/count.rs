//! Twin of `count.lua`: counts requests of an API key against the management rate limits (decisions D10, D53) and
//! records its last use.

use crate::keys::AccountKeys;
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::{Store, StoreError};
use domain::rate::Rate;

script! {
    /// Counts one request. Runs on a full store, since revocations are counted like any request.
    pub static COUNT = "api_key_count",
    kind: Timed,
    source: [include_str!("../count.lua")],
    when_full: Run,
    keys: struct CountKeys: String { requests, api_key },
    /// `window` is in ms.
    args: struct CountArgs<'a>: &'a str { limit, window },
}

/// A rate, and the plan's limit for one of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// Class of requests.
    pub rate: Rate,
    /// Maximum number of requests in a window.
    pub limit: u64,
}

/// State of a key's rate window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowState {
    /// Requests allowed in the window.
    pub limit: u64,
    /// Requests left in the window, after this one.
    pub remaining: u64,
    /// Time until the end of the window, in ms.
    pub left_ms: u64,
    /// End of the window, in ms since 1970, on the store's clock.
    pub ends_at_ms: u64,
}

/// Outcome of counting a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountOutcome {
    /// The key does not exist or is revoked.
    Gone,
    /// No limit applies.
    Uncounted,
    /// It was counted.
    Passed(WindowState),
    /// The limit is reached; the request was not counted.
    Over(WindowState),
}

/// Counts one request of the key `key_id`. If `allowed` is `None`, only records the use.
///
/// # Errors
/// [`StoreError`]; the caller must then refuse the request.
pub async fn count(
    store: &Store,
    account: &AccountKeys,
    key_id: &str,
    allowed: Option<Allowed>,
) -> Result<CountOutcome, StoreError> {
    let rate = allowed.map_or(Rate::PerMinute, |allowed| allowed.rate);
    let keys = CountKeys {
        requests: account.management_rate(rate, key_id),
        api_key: account.api_key(key_id),
    };
    let args = CountArgs {
        limit: &allowed.map_or(String::new(), |allowed| allowed.limit.to_string()),
        window: &rate.window().as_millis().to_string(),
    };
    let mut reply = store.reply(&COUNT, keys, args).await?;
    match (reply.word()?.as_str(), allowed) {
        ("gone", _) => Ok(CountOutcome::Gone),
        ("uncounted", None) => Ok(CountOutcome::Uncounted),
        ("passed", Some(allowed)) => window(&mut reply, allowed.limit).map(CountOutcome::Passed),
        ("over", Some(allowed)) => window(&mut reply, allowed.limit).map(CountOutcome::Over),
        _ => reply.unexpected(),
    }
}

fn window(reply: &mut ScriptReply, limit: u64) -> Result<WindowState, StoreError> {
    let (used, left_ms): (u64, u64) = (reply.number()?, reply.number()?);
    Ok(WindowState {
        limit,
        remaining: limit.saturating_sub(used),
        left_ms,
        ends_at_ms: reply.parsed(|now_ms| now_ms.parse::<u64>().ok()?.checked_add(left_ms))?,
    })
}
