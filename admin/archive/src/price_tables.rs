//! The price tables by which edges charged, each under its version, so that a charge can be recomputed years later
//! (decision D48).

use crate::Archive;
use domain::price::PriceTable;
use store::{Store, StoreError};

/// Part of the archive that has the tables.
const FOLDER: &str = "prices";
const EXTENSION: &str = ".json";

impl Archive {
    /// Keeps the text of a table.
    ///
    /// # Errors
    /// [`StoreError::ArchiveUnavailable`], [`StoreError::Archive`]; safe to retry.
    pub async fn keep_price_table(&self, store: &Store, version: &str, text: &str) -> Result<(), StoreError> {
        self.require_own(store).await?;
        self.settle(&path(version), text.as_bytes()).await
    }

    /// Returns the table of this version, if it was kept.
    ///
    /// # Errors
    /// [`StoreError::ArchiveUnavailable`]; [`StoreError::Archive`] if the object is not this table.
    pub async fn price_table(&self, version: &str) -> Result<Option<PriceTable>, StoreError> {
        let path = path(version);
        let found = self.location().get(&path).await?;
        let damaged = |why: String| StoreError::Archive(format!("{path}: {why}"));
        let Some(bytes) = found else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| damaged(error.to_string()))?;
        let table = PriceTable::from_text(version, text);
        table.map(Some).map_err(|error| damaged(error.to_string()))
    }

    /// Returns the versions of the tables that were kept, sorted.
    ///
    /// # Errors
    /// [`StoreError::ArchiveUnavailable`]
    pub async fn price_versions(&self) -> Result<Vec<String>, StoreError> {
        let paths = self.location().list(FOLDER).await?;
        let names = paths
            .iter()
            .filter_map(|path| path.strip_prefix(FOLDER)?.strip_prefix('/'));
        let versions = names.filter_map(|name| name.strip_suffix(EXTENSION));
        let versions = versions.filter(|version| PriceTable::is_version(version));
        Ok(versions.map(str::to_owned).collect())
    }
}

fn path(version: &str) -> String {
    format!("{FOLDER}/{version}{EXTENSION}")
}
