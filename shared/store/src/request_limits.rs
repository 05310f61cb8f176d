//! Twin of `request_limits.lua`: the technical limits of test-mode API keys and of sessions (decision D71).

use crate::keys::AccountKeys;
use crate::script::script;
use crate::{Store, StoreError};
use domain::rate::Rate;
use std::time::Duration;

script! {
    /// Counts one request. Runs on a full store: a session that freezes an agent is counted like any other.
    pub static TECHNICAL = "technical_count",
    kind: Timeless,
    source: [include_str!("request_limits/request_limits.lua")],
    when_full: Run,
    /// Requests in a window.
    keys: struct CountKeys: String { of_caller, of_account },
    /// The limit of each key (the account's is empty if it is not checked), then the window in ms.
    args: struct CountArgs: String { caller_max, account_max, window },
}

/// Multiple of one caller's limit that all test-mode keys of an account, or all its users with their sessions, share
/// per window: otherwise each further key or user would add a limit.
pub const CALLERS_AT_ONCE: u64 = 5;
/// Represents the whole account in place of a caller's id.
pub const ALL_CALLERS: &str = "all";

/// A technical limit of one caller: a test-mode key, or a user with all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// [`Rate::Test`] or [`Rate::Session`].
    pub rate: Rate,
    /// Maximum number of requests of one caller in a window.
    pub most: u64,
}

/// Outcome of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOutcome {
    /// Within both limits.
    Passed,
    /// The caller's limit is reached for this long; the request was not counted.
    Over(Duration),
    /// The limit of the whole account is reached for this long; the request was not counted.
    AccountOver(Duration),
}

impl Limit {
    /// Returns the limit of all such callers of an account in a window.
    pub const fn of_account(&self) -> u64 {
        self.most.saturating_mul(CALLERS_AT_ONCE)
    }

    /// Returns the requests of all such callers of an account in the window that is open.
    pub async fn used(&self, store: &Store, account: &AccountKeys) -> Result<u64, StoreError> {
        let key = account.management_rate(self.rate, ALL_CALLERS);
        let mut query = redis::pipe();
        query.cmd("GET").arg(&key).cmd("PTTL").arg(&key);
        let (used, left_ms): (Option<u64>, i64) = store.pipeline(&query).await?;
        // One that ends later than any that opens now was opened while the clock was ahead: see `request_limits.lua`.
        let is_open =
            u64::try_from(left_ms).is_ok_and(|left_ms| u128::from(left_ms) <= self.rate.window().as_millis());
        Ok(used.filter(|_| is_open).unwrap_or(0))
    }

    /// Counts one request of the key or user `id` against its own limit and that of the account.
    ///
    /// # Errors
    /// [`StoreError`]; the caller must then refuse the request.
    pub async fn count(
        &self,
        store: &Store,
        account: &AccountKeys,
        id: &str,
    ) -> Result<LimitOutcome, StoreError> {
        self.counted(store, account, id, self.of_account().to_string())
            .await
    }

    /// Counts one request of the key, user or session `id` only against its own limit, so that other callers of the
    /// account do not delay it.
    ///
    /// # Errors
    /// [`StoreError`]; the caller must then refuse the request.
    pub async fn count_alone(
        &self,
        store: &Store,
        account: &AccountKeys,
        id: &str,
    ) -> Result<LimitOutcome, StoreError> {
        self.counted(store, account, id, String::new()).await
    }

    async fn counted(
        &self,
        store: &Store,
        account: &AccountKeys,
        id: &str,
        account_max: String,
    ) -> Result<LimitOutcome, StoreError> {
        let keys = CountKeys {
            of_caller: account.management_rate(self.rate, id),
            of_account: account.management_rate(self.rate, ALL_CALLERS),
        };
        let args = CountArgs {
            caller_max: self.most.to_string(),
            account_max,
            window: self.rate.window().as_millis().to_string(),
        };
        let mut reply = store.reply(&TECHNICAL, keys, args).await?;
        match reply.word()?.as_str() {
            "passed" => Ok(LimitOutcome::Passed),
            "over" => Ok(LimitOutcome::Over(Duration::from_millis(reply.number()?))),
            "account_over" => Ok(LimitOutcome::AccountOver(Duration::from_millis(reply.number()?))),
            _ => reply.unexpected(),
        }
    }
}
