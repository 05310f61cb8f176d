//! Account records: parsed here, written by scripts.

pub mod counters;
pub mod refused;
pub mod script;
pub mod usage;

use crate::keys::{self, AccountKeys};
use crate::{Store, StoreError};
use domain::mode::Mode;

/// Number of account ids read in one round trip.
const PAGE: usize = 500;

domain::words! {
    /// Fields of an account's record that exist once per mode. Scripts write them.
    pub enum ModeField {
        /// Number of the last audit entry.
        AuditSeq = "audit_seq",
        /// Count of webhooks.
        Webhooks = "webhooks",
        /// Incremented by every change of a webhook.
        WebhooksVersion = "webhooks_version",
        /// Number of the last audit entry whose events were dispatched to webhooks.
        Dispatched = "dispatched",
        /// Count of wallets whose agent was deleted.
        ClosedWallets = "closed_wallets",
        /// Bytes of text in intents and escrows.
        TextBytes = "text_bytes",
        /// Bytes of long audit lines: see `change.lua`.
        AuditText = "audit_text",
        /// Bytes of text in agents' rows and transactions, and of provider keys: see `kept_text.lua`.
        KeptText = "kept_text",
        /// Count of transactions received from other accounts.
        TransactionsIn = "txn_in",
        /// Count of escrows that the account pays.
        Escrows = "escrows",
        /// Count of deposits, pending and confirmed.
        Deposits = "deposits",
        /// Count of refused requests that are recorded: see `refusals.lua`.
        Refusals = "refusals",
        /// Count of events so far.
        Events = "events",
        /// Minute whose coalesced violations are not dispatched yet; absent if none wait.
        Violations = "violations",
    }
}

impl ModeField {
    /// Returns the name of the field in the record.
    pub fn name(self, mode: Mode) -> String {
        format!("{mode}_{self}")
    }
}

/// An account's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// `acct_…`
    pub id: String,
    /// Display name, set by the operator.
    pub name: String,
    /// Name of its plan.
    pub plan: String,
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Incremented by `store accept`.
    pub generation: u64,
    /// Incremented by every change.
    pub version: u64,
}

impl Account {
    /// Reads the account `id`; `None` if it does not exist.
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
            .ok_or_else(|| StoreError::unexpected("account record"))
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

    /// Returns the ids of all accounts, sorted. An account whose creation was interrupted has an id and no record.
    pub async fn ids(store: &Store) -> Result<Vec<String>, StoreError> {
        sorted_members(store, keys::ACCOUNTS).await
    }

    /// Returns the count of account ids.
    pub async fn count(store: &Store) -> Result<usize, StoreError> {
        store.command(redis::cmd("SCARD").arg(keys::ACCOUNTS)).await
    }

    /// Returns the agents of `account` with a stored provider key, sorted.
    pub async fn sealed_agents(store: &Store, account: &str) -> Result<Vec<String>, StoreError> {
        sorted_members(store, &AccountKeys::new(account).sealed_agents()).await
    }
}

async fn sorted_members(store: &Store, key: &str) -> Result<Vec<String>, StoreError> {
    let (mut all, _) = members(store, key, usize::MAX).await?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Reads members of a set until there are `most`, page by page, so that no single command blocks the server for long.
/// Says also whether these are all.
pub(crate) async fn members(
    store: &Store,
    key: &str,
    most: usize,
) -> Result<(Vec<String>, bool), StoreError> {
    let mut all = Vec::new();
    let mut cursor = "0".to_owned();
    while all.len() < most {
        let mut scan = redis::cmd("SSCAN");
        scan.arg(key).arg(&cursor).arg("COUNT").arg(PAGE);
        let (next, page): (String, Vec<String>) = store.command(&scan).await?;
        all.extend(page);
        if next == "0" {
            return Ok((all, true));
        }
        cursor = next;
    }
    Ok((all, false))
}
