//! Whether the store may be trusted with money (decision D47): it must never evict, and it must be the ledger that was
//! initialised. A wiped store is an error, not a fresh budget.

use super::keys::STORE;
use super::{Store, StoreError};
use crate::crypto::virtual_key::CheckSecret;
use std::collections::HashMap;

/// Why the store may not be used.
#[derive(Debug, thiserror::Error)]
pub enum Insane {
    /// It does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No epoch: never initialised, or wiped.
    #[error(
        "the store has no ledger epoch: it was never initialised (`tollgate-admin store init`), or it was wiped"
    )]
    NoEpoch,
    /// It may evict.
    #[error("the store's maxmemory-policy is {0}; it must be noeviction, or counters could vanish")]
    Evicts(String),
    /// No randomness for a new epoch.
    #[error(transparent)]
    NoEntropy(#[from] crate::entropy::NoEntropy),
    /// `init` on a store that holds something.
    #[error("the store is not empty ({0} keys); `store init` works on an empty store only")]
    NotEmpty(u64),
}

/// The store's own record.
#[derive(Debug, Clone)]
pub struct StoreRecord {
    /// Identifies this ledger; made by `init`.
    pub epoch: String,
    /// For the checksum of virtual keys.
    pub check_secret: CheckSecret,
    /// Whether the server writes an append-only file, as far as it says.
    pub append_only: bool,
}

/// Reads the store's record.
///
/// # Errors
/// [`Insane::NoEpoch`] when there is none.
pub async fn record(store: &Store) -> Result<StoreRecord, Insane> {
    let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(STORE)).await?;
    let field = |name: &str| fields.get(name).cloned().ok_or(Insane::NoEpoch);
    let epoch = field("epoch")?;
    let check_secret = CheckSecret::from_stored(field("check_secret")?);
    Ok(StoreRecord {
        epoch,
        check_secret,
        append_only: false,
    })
}

/// Checks everything that can be seen from outside: the epoch, and that no node evicts.
///
/// # Errors
/// [`Insane`] says what is wrong.
pub async fn check(store: &Store) -> Result<StoreRecord, Insane> {
    let mut record = record(store).await?;
    for info in store.every_node(redis::cmd("INFO").arg("memory")).await? {
        let policy = line(&info, "maxmemory_policy:").unwrap_or("unknown");
        if policy != "noeviction" {
            return Err(Insane::Evicts(policy.to_owned()));
        }
    }
    let persistence = store.every_node(redis::cmd("INFO").arg("persistence")).await?;
    record.append_only = persistence
        .iter()
        .all(|info| line(info, "aof_enabled:") == Some("1"));
    Ok(record)
}

fn line<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// Initialises an empty store: a new epoch, and the secret of the key checksum. Doing it twice changes nothing.
///
/// # Errors
/// [`Insane::NotEmpty`] when the store holds anything without an epoch.
pub async fn init(store: &Store, at_iso: &str) -> Result<StoreRecord, Insane> {
    match record(store).await {
        Err(Insane::NoEpoch) => {}
        other => return other,
    }
    let mut keys = 0;
    for node in store.every_node(&redis::cmd("DBSIZE")).await? {
        keys += node
            .parse::<u64>()
            .map_err(|_| StoreError::Nonsense("DBSIZE".to_owned()))?;
    }
    if keys > 0 {
        // Somebody else may have initialised it meanwhile.
        return record(store).await.map_err(|error| match error {
            Insane::NoEpoch => Insane::NotEmpty(keys),
            error => error,
        });
    }
    // Each field is only ever set once and all of them together, so of two that initialise at once one wins whole.
    let epoch = hex::encode(crate::entropy::random_bytes::<16>()?);
    let mut set = redis::pipe();
    set.atomic();
    for (field, value) in [
        ("epoch", epoch),
        ("check_secret", CheckSecret::mint()?),
        ("initialised_at", at_iso.to_owned()),
    ] {
        set.cmd("HSETNX").arg(STORE).arg(field).arg(value);
    }
    let _: [i64; 3] = store.pipeline(&set).await?;
    record(store).await
}
