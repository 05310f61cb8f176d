//! Offers the price table in force to the archive, so that its charges can be recomputed (decision D48).

use crate::store_health::EdgeStoreHealth;
use domain::price::PriceTable;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;
use store::prices::tables;
use telemetry::error_chain;

/// Interval of offering the same table again: a store that fails over can lose it before the archive has it.
const AGAIN: Duration = Duration::from_secs(3_600);

/// The offers of this process.
pub struct PriceOffers {
    store: Store,
    health: Arc<EdgeStoreHealth>,
    /// Version of the table that was last offered.
    version: String,
    /// When the store took it; `None` if it did not.
    taken_at: Option<Instant>,
}

impl PriceOffers {
    /// Creates the state before the first offer.
    pub const fn new(store: Store, health: Arc<EdgeStoreHealth>) -> Self {
        Self {
            store,
            health,
            version: String::new(),
            taken_at: None,
        }
    }

    /// Offers the table unless the store took it within the last hour. What fails is logged once, and tried again by
    /// the next call.
    pub async fn offer(&mut self, table: &PriceTable) {
        let is_taken = self.taken_at.is_some_and(|at| at.elapsed() < AGAIN);
        // Nothing is written to a store that may not be the right one; an empty one would not be empty any more.
        if (is_taken && self.version == table.version()) || !self.health.is_trusted().await {
            return;
        }
        let failure = self.send(table).await.err();
        if let Some(error) = &failure
            && self.version != table.version()
        {
            tracing::error!(
                price.version = table.version(),
                error,
                "the price table is not kept, so its charges cannot be recomputed; tried again"
            );
        }
        self.taken_at = failure.is_none().then(Instant::now);
        table.version().clone_into(&mut self.version);
    }

    async fn send(&self, table: &PriceTable) -> Result<(), String> {
        let text = table.to_text().map_err(|error| error_chain(&error))?;
        if text.len() > tables::TEXT_BYTES_MAX {
            return Err(format!("it is longer than {} bytes", tables::TEXT_BYTES_MAX));
        }
        match tables::offer(&self.store, table.version(), &text).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} tables wait for the archive", tables::TABLES_MAX)),
            Err(error) => Err(error_chain(&error)),
        }
    }
}
