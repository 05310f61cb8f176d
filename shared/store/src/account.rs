//! Account records, as the store keeps them: read here, written by its scripts.

pub mod counters;
pub mod refused;
pub mod script;
pub mod usage;

use crate::keys::{self, AccountKeys};
use crate::{Store, StoreError};
use domain::mode::Mode;

/// Account ids asked for in one round trip.
const PAGE: usize = 500;

/// What an account's record says of each mode, beside what it says of the account. The scripts write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeField {
    /// How many audit entries were written.
    AuditSeq,
    /// How many webhooks there are.
    Webhooks,
    /// Raised by every change of a webhook.
    WebhooksVersion,
    /// The last audit entry whose events were made deliveries of.
    Dispatched,
    /// Wallets of deleted agents.
    ClosedWallets,
    /// Bytes of the text that intents and escrows keep.
    TextBytes,
    /// Transactions that came from other accounts.
    TransactionsIn,
    /// Escrows that the account pays.
    Escrows,
    /// Deposits, pending and confirmed.
    Deposits,
    /// Refused requests that are kept: see `refusals.lua`.
    Refusals,
    /// Events so far.
    Events,
    /// The minute whose coalesced violations are not told yet; not there when none wait.
    Violations,
}

impl ModeField {
    /// The name of the field.
    #[must_use]
    pub fn name(self, mode: Mode) -> String {
        let word = match self {
            Self::AuditSeq => "audit_seq",
            Self::Webhooks => "webhooks",
            Self::WebhooksVersion => "webhooks_version",
            Self::Dispatched => "dispatched",
            Self::ClosedWallets => "closed_wallets",
            Self::TextBytes => "text_bytes",
            Self::TransactionsIn => "txn_in",
            Self::Escrows => "escrows",
            Self::Deposits => "deposits",
            Self::Refusals => "refusals",
            Self::Events => "events",
            Self::Violations => "violations",
        };
        format!("{mode}_{word}")
    }
}

/// One account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// `acct_…`
    pub id: String,
    /// What the operator called it.
    pub name: String,
    /// The name of its plan.
    pub plan: String,
    /// When it was made.
    pub created_at_ms: u64,
    /// Raised when an operator accepts a store that lost writes.
    pub generation: u64,
    /// Raised by every change.
    pub version: u64,
}

impl Account {
    /// The account `id`, or `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn read(store: &Store, id: &str) -> Result<Option<Self>, StoreError> {
        let fields = ["name", "plan", "created_at", "generation", "version"];
        let mut get = redis::cmd("HMGET");
        get.arg(AccountKeys::new(id).record()).arg(&fields);
        let values: Vec<Option<String>> = store.command(&get).await?;
        if values.iter().all(Option::is_none) {
            return Ok(None);
        }
        let account = Self::parse(id, values);
        account
            .map(Some)
            .ok_or_else(|| StoreError::UnexpectedReply("account record".to_owned()))
    }

    fn parse(id: &str, values: Vec<Option<String>>) -> Option<Self> {
        let mut values = values.into_iter();
        let mut next = || values.next().flatten();
        Some(Self {
            id: id.to_owned(),
            name: next()?,
            plan: next()?,
            created_at_ms: next()?.parse().ok()?,
            generation: next()?.parse().ok()?,
            version: next()?.parse().ok()?,
        })
    }

    /// The ids of all accounts, sorted. One whose creation was cut off has an id and no record.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ids(store: &Store) -> Result<Vec<String>, StoreError> {
        members(store, keys::ACCOUNTS).await
    }

    /// How many ids there are.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count(store: &Store) -> Result<usize, StoreError> {
        store.command(redis::cmd("SCARD").arg(keys::ACCOUNTS)).await
    }

    /// The agents of `account` that have stored a provider key, sorted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sealed_agents(store: &Store, account: &str) -> Result<Vec<String>, StoreError> {
        members(store, &AccountKeys::new(account).sealed_agents()).await
    }
}

/// All members of a set, sorted, read page by page so that no single command takes long.
async fn members(store: &Store, key: &str) -> Result<Vec<String>, StoreError> {
    let mut all = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = redis::cmd("SSCAN");
        scan.arg(key).arg(&cursor).arg("COUNT").arg(PAGE);
        let (next, page): (String, Vec<String>) = store.command(&scan).await?;
        all.extend(page);
        if next == "0" {
            break;
        }
        cursor = next;
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
