//! The store's signing key for checkpoints of audit chains, sealed in the store's record.

use crate::audit::reseal_checkpoint_key::{FIELD, replace};
use crate::keys::STORE;
use crate::sanity::NO_EPOCH;
use crate::{Store, StoreError};
use crypto::checkpoint_key::CheckpointKey;
use crypto::seal::{Keyring, SealError};

/// Why there is no signing key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key is sealed under a master key that is not configured, or cannot be sealed.
    #[error("the key of checkpoints: {0}")]
    Seal(#[from] SealError),
    /// The store has no ledger epoch, so nothing may be written.
    #[error("{NO_EPOCH}")]
    NoLedger,
}

/// Outcome of resealing the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotated {
    /// The key is now sealed under the newest master key.
    Done,
    /// It was already, or there is no key yet.
    Current,
    /// None of the configured master keys opens it.
    Unopenable,
}

/// Returns the key, and creates it if the store has none. Of two concurrent creations the first one applies to both
/// callers.
pub async fn key(store: &Store, keyring: &Keyring) -> Result<CheckpointKey, KeyError> {
    let sealed = match read(store).await? {
        Some(sealed) => sealed,
        None => {
            let mut make = redis::cmd("HSETNX");
            make.arg(STORE).arg(FIELD).arg(CheckpointKey::mint(keyring)?);
            let _: bool = store.command(&make).await?;
            store.command(redis::cmd("HGET").arg(STORE).arg(FIELD)).await?
        }
    };
    Ok(CheckpointKey::open(keyring, &sealed)?)
}

/// Seals the key under the newest master key.
///
/// # Errors
/// [`KeyError`]; safe to retry.
pub async fn rotate(store: &Store, keyring: &Keyring) -> Result<Rotated, KeyError> {
    let Some(old) = read(store).await? else {
        return Ok(Rotated::Current);
    };
    if keyring.is_current(&old) {
        return Ok(Rotated::Current);
    }
    let new = match CheckpointKey::seal_again(keyring, &old) {
        Ok(new) => new,
        Err(SealError::DoesNotOpen) => return Ok(Rotated::Unopenable),
        Err(error) => return Err(error.into()),
    };
    // Only a concurrent rotation can have changed it, and it stores the same key.
    replace(store, &old, &new).await?;
    Ok(Rotated::Done)
}

async fn read(store: &Store) -> Result<Option<String>, KeyError> {
    let mut get = redis::cmd("HMGET");
    get.arg(STORE).arg("epoch").arg(FIELD);
    let (epoch, sealed): (Option<String>, Option<String>) = store.command(&get).await?;
    match epoch {
        None => Err(KeyError::NoLedger),
        Some(_) => Ok(sealed),
    }
}
