//! Moves the price tables that edges charge by to the archive (decision D48).

use crate::context::WorkerContext;
use crate::metrics::Worker;
use crate::rounds::Rounds;
use archive::Archive;
use domain::price::{PriceError, PriceTable};
use std::sync::Arc;
use std::time::Duration;
use store::prices::tables::{self, OfferedTable, OtherFields};
use store::{Store, StoreError};
use telemetry::error_chain;
use tokio::sync::watch;

/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(2);

/// Keeps tables until the server stops. Several servers may do so concurrently: a table has one text.
pub(super) async fn run(context: Arc<WorkerContext>, archive: Arc<Archive>, stopping: watch::Receiver<bool>) {
    let mut rounds = Rounds::new(stopping, EVERY);
    while rounds.next_while_trusted(&context).await {
        let kept = run_round(&context.store, &archive).await;
        if kept.as_ref().is_err_and(|error| !error.is_server_failure()) {
            context.metrics.archiving_failed.inc();
            tracing::error!("price tables cannot be archived; they stay in the store");
        }
        context.record(Worker::PriceKeeper, kept);
    }
}

async fn run_round(store: &Store, archive: &Archive) -> Result<(), StoreError> {
    let offered = tables::offered(store, OtherFields::Remove).await?;
    if offered.others > 0 {
        tracing::error!(
            fields = offered.others,
            first = offered.first_other,
            "removed fields that are no price tables of an edge: too long, or not named by a version"
        );
    }
    for version in offered.versions {
        match tables::read(store, &version).await? {
            OfferedTable::None => continue,
            OfferedTable::TooLong => {
                tracing::error!(price.version = version, "removed a price table that is too long");
            }
            OfferedTable::Text(text) => keep(store, archive, &version, &text).await?,
        }
        tables::remove(store, &version).await?;
    }
    Ok(())
}

/// Archives a text whose hash is the version: charges refer to it, even if only another version of this program can
/// read it. A text with another hash proves no charge, and would stay for ever: it is dropped.
async fn keep(store: &Store, archive: &Archive, version: &str, text: &str) -> Result<(), StoreError> {
    let read = PriceTable::from_text(version, text);
    if let Err(error @ PriceError::Version { .. }) = read {
        let error = error_chain(&error);
        tracing::error!(price.version = version, error, "removed an invalid price table");
        return Ok(());
    }
    archive.keep_price_table(store, version, text).await?;
    match read {
        Ok(_) => tracing::info!(price.version = version, "price table archived"),
        Err(error) => {
            let error = error_chain(&error);
            tracing::error!(
                price.version = version,
                error,
                "archived a price table that cannot be read"
            );
        }
    }
    Ok(())
}
