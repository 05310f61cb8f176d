//! The prices in force, for predictions: the price file with the operator's imports, as on the edge.

use arc_swap::ArcSwap;
use domain::price::PriceTable;
use settings::{BadSettings, Settings};
use std::sync::Arc;
use store::prices as replace_prices;
use store::{Store, StoreError};

/// The tables, replaced as a whole.
#[derive(Debug)]
pub struct LoadedPrices(ArcSwap<InForce>);

#[derive(Debug)]
struct InForce {
    file: Arc<PriceTable>,
    /// The imported prices from which `table` was built.
    imported: Option<String>,
    /// Both together.
    table: Arc<PriceTable>,
}

impl LoadedPrices {
    /// Loads the prices of the file.
    ///
    /// # Errors
    /// [`BadSettings`] with the file and its fault.
    pub fn new(settings: &Settings) -> Result<Self, BadSettings> {
        let file = settings.prices()?;
        Ok(Self(ArcSwap::from_pointee(InForce::from_file(file))))
    }

    /// Takes the prices of the file, as it is now.
    pub fn replace_file(&self, file: PriceTable) {
        self.0.store(Arc::new(InForce::from_file(file)));
    }

    /// Returns the prices in force. Unusable imported prices are ignored.
    pub async fn table(&self, store: &Store) -> Result<Arc<PriceTable>, StoreError> {
        let imported = replace_prices::read(store).await?;
        let now = self.0.load_full();
        if now.imported == imported {
            return Ok(Arc::clone(&now.table));
        }
        match PriceTable::overlaid((*now.file).clone(), imported.as_deref()) {
            Ok(table) => {
                let table = Arc::new(table);
                self.0.store(Arc::new(InForce {
                    file: Arc::clone(&now.file),
                    imported,
                    table: Arc::clone(&table),
                }));
                Ok(table)
            }
            Err(error) => {
                tracing::error!(%error, "imported prices cannot be used; those in force stay");
                Ok(Arc::clone(&now.table))
            }
        }
    }
}

impl InForce {
    fn from_file(file: PriceTable) -> Self {
        let file = Arc::new(file);
        Self {
            table: Arc::clone(&file),
            imported: None,
            file,
        }
    }
}
