//! The price tables by which edges charged: in the archive, or in the store on their way to it.

use archive::Archive;
use domain::price::PriceTable;
use std::collections::HashMap;
use std::sync::Arc;
use store::prices::tables;
use store::{Store, StoreError};

/// Maximum number of tables in memory.
const CACHED_MAX: usize = 16;

/// Reads tables by their versions.
pub(super) struct PriceTables<'a> {
    store: &'a Store,
    archive: &'a Archive,
    cached: HashMap<String, Option<Arc<PriceTable>>>,
}

impl<'a> PriceTables<'a> {
    pub(super) fn new(store: &'a Store, archive: &'a Archive) -> Self {
        Self {
            store,
            archive,
            cached: HashMap::new(),
        }
    }

    /// Returns the table of this version, if it was kept.
    ///
    /// # Errors
    /// [`StoreError`], also if the stored text is not this table.
    pub(super) async fn get(&mut self, version: &str) -> Result<Option<Arc<PriceTable>>, StoreError> {
        if let Some(known) = self.cached.get(version) {
            return Ok(known.clone());
        }
        let table = self.read(version).await?.map(Arc::new);
        if self.cached.len() == CACHED_MAX {
            self.cached.clear();
        }
        self.cached.insert(version.to_owned(), table.clone());
        Ok(table)
    }

    async fn read(&self, version: &str) -> Result<Option<PriceTable>, StoreError> {
        if !PriceTable::is_version(version) {
            return Ok(None);
        }
        // The store first: a table leaves it when it is in the archive.
        match tables::read(self.store, version).await?.into_table(version) {
            Ok(None) => self.archive.price_table(version).await,
            Ok(Some((_, table))) => Ok(Some(table)),
            Err(error) => Err(StoreError::unexpected(format!("a price table: {error}"))),
        }
    }
}
