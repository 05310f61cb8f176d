//! The prices in force, for predictions: the price file with the operator's imports, as on the edge.

use arc_swap::ArcSwap;
use domain::price::PriceTable;
use settings::{BadSettings, Settings};
use std::sync::Arc;
use store::prices as replace_prices;
use store::{Store, StoreError};

/// The tables, replaced as a whole.
#[derive(Debug)]
pub struct Prices(ArcSwap<InForce>);

#[derive(Debug)]
struct InForce {
    file: Arc<PriceTable>,
    /// The imported prices from which `table` was built.
    imported: Option<String>,
    /// Both together.
    table: Arc<PriceTable>,
}

impl Prices {
    /// Loads the prices of the file.
    ///
    /// # Errors
    /// [`BadSettings`] with the file and its fault.
    pub fn new(settings: &Settings) -> Result<Self, BadSettings> {
        Ok(Self(ArcSwap::from_pointee(InForce::from_file(settings)?)))
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// [`BadSettings`]; the prices in force then stay.
    pub fn reload(&self, settings: &Settings) -> Result<(), BadSettings> {
        self.0.store(Arc::new(InForce::from_file(settings)?));
        Ok(())
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
    fn from_file(settings: &Settings) -> Result<Self, BadSettings> {
        let file = Arc::new(settings.prices()?);
        Ok(Self {
            table: Arc::clone(&file),
            imported: None,
            file,
        })
    }
}
