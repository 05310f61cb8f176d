//! The id of the archive to which entries of this store have gone, in the store's own record. Without it, an empty
//! mount point would be taken for a new archive, and segments written there would be missing in the real one.

use crate::keys::STORE;
use crate::sanity::NO_EPOCH;
use crate::{Store, StoreError};
use sha2::{Digest, Sha256};

/// Field of the store's record.
const FIELD: &str = "archive";

/// Returns the id; `None` if nothing was archived yet.
pub async fn read(store: &Store) -> Result<Option<String>, StoreError> {
    store.command(redis::cmd("HGET").arg(STORE).arg(FIELD)).await
}

/// Returns the id of a new archive of this store: for all servers the same, since several may write to it first.
pub async fn for_new_archive(store: &Store) -> Result<String, StoreError> {
    let epoch: Option<String> = store.command(redis::cmd("HGET").arg(STORE).arg("epoch")).await?;
    let epoch = epoch.ok_or_else(|| StoreError::unexpected(NO_EPOCH))?;
    let hash = hex::encode(Sha256::digest(epoch));
    Ok(format!("archive_{}", &hash[..32]))
}

/// Keeps the id unless there is one. Returns the one that is kept.
pub async fn keep(store: &Store, id: &str) -> Result<String, StoreError> {
    let mut keep = redis::cmd("HSETNX");
    let _: bool = store.command(keep.arg(STORE).arg(FIELD).arg(id)).await?;
    let kept = read(store).await?;
    kept.ok_or_else(|| StoreError::unexpected("an archive id that was not kept"))
}
