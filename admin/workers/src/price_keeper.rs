//! Moves the price tables that edges charge by to the archive (decision D48).

use crate::base::{Base, next_round};
use crate::metrics::Worker;
use archive::Archive;
use domain::price::PriceTable;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::prices::tables;
use telemetry::error_chain;
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(2);

/// The keeper of price tables, with its components.
pub(super) struct PriceKeeper {
    pub(super) base: Arc<Base>,
    pub(super) archive: Arc<Archive>,
}

/// Keeps tables until the server stops. Several servers may do so concurrently: a table has one text.
pub(super) async fn run(worker: PriceKeeper, mut stopping: watch::Receiver<bool>) {
    while next_round(&worker.base, &mut stopping, EVERY).await {
        match round(&worker).await {
            Ok(()) => worker.base.metrics.round(Worker::PriceKeeper),
            // The store, not the archive: its own alerts report it.
            Err(error) if error.is_server_failure() => {
                tracing::error!(error = %error_chain(&error), "round of archiving price tables cut off");
            }
            Err(error) => {
                worker.base.metrics.archiving_failed.inc();
                tracing::error!(error = %error_chain(&error), "price tables cannot be archived; they stay in the store");
            }
        }
    }
}

async fn round(worker: &PriceKeeper) -> Result<(), StoreError> {
    let store = &worker.base.store;
    for version in tables::offered(store).await? {
        let Some(text) = tables::text(store, &version).await? else {
            continue;
        };
        // The version is the hash of the text. Whatever else is there proves no charge, and would stay for ever.
        match PriceTable::from_text(&version, &text) {
            Ok(_) => {
                worker.archive.keep_price_table(&version, &text).await?;
                tracing::info!(price.version = version, "price table archived");
            }
            Err(error) => {
                tracing::error!(price.version = version, error = %error_chain(&error), "removed what is no price table");
            }
        }
        tables::remove(store, &version).await?;
    }
    Ok(())
}
