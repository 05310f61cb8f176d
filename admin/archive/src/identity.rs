//! The object `archive-id` says which archive this is, and the store keeps the same id. So a wrong location, such as
//! another directory or the mount point of a volume that is gone, is detected before anything is written to it.

use crate::handle::Archive;
use store::audit::archive_id;
use store::{Store, StoreError};

/// The object's path.
const PATH: &str = "archive-id";

impl Archive {
    /// Requires that this is the archive to which entries of this store have gone. The first call marks a new archive.
    ///
    /// # Errors
    /// [`StoreError::ArchiveUnavailable`] if it is another one, or could not be read.
    pub async fn require_own(&self, store: &Store) -> Result<(), StoreError> {
        let found = self.id().await?;
        match archive_id::read(store).await? {
            Some(expected) => require_same(found, &expected),
            None => self.adopt(store, found).await,
        }
    }

    /// Like [`require_own`](Self::require_own), but changes nothing: of a store that knows no archive, any one is
    /// right.
    ///
    /// # Errors
    /// [`StoreError::ArchiveUnavailable`] if it is another one, or could not be read.
    pub async fn check_own(&self, store: &Store) -> Result<(), StoreError> {
        match archive_id::read(store).await? {
            Some(expected) => require_same(self.id().await?, &expected),
            None => Ok(()),
        }
    }

    /// Reads the archive's own id; `None` if it has none.
    async fn id(&self) -> Result<Option<String>, StoreError> {
        let found = self.location().get(PATH).await?;
        Ok(found.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// Makes this the archive of a store that has none: `found` is its id, unless it is new.
    async fn adopt(&self, store: &Store, found: Option<String>) -> Result<(), StoreError> {
        let id = match found {
            Some(id) => id,
            None => self.mark(store).await?,
        };
        match archive_id::keep(store, &id).await {
            // Archiving makes room in a full store.
            Err(error) if error.is_out_of_memory() => Ok(()),
            Ok(kept) if kept != id => Err(another(&kept)),
            kept => kept.map(drop),
        }
    }

    /// Marks a new archive. Returns its id.
    async fn mark(&self, store: &Store) -> Result<String, StoreError> {
        let id = archive_id::for_new_archive(store).await?;
        self.settle(PATH, format!("{id}\n").as_bytes()).await?;
        Ok(id)
    }
}

fn require_same(found: Option<String>, expected: &str) -> Result<(), StoreError> {
    match found {
        Some(id) if id == expected => Ok(()),
        _ => Err(another(expected)),
    }
}

fn another(expected: &str) -> StoreError {
    StoreError::ArchiveUnavailable(format!(
        "audit.archive is not the archive of this store: its object `{PATH}` is not `{expected}`. Mount or name the \
         archive that has it; nothing is written here"
    ))
}
