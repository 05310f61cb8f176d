//! The tables in force: plans and prices. Both are files, read at start and again on SIGHUP. Prices that the operator
//! imported into the store take precedence over the file. If a table cannot be read, the one in force stays.

pub mod plans;
pub mod price_offers;
pub mod prices;

use domain::plan::Plans;
use plans::PlanTable;
use price_offers::PriceOffers;
use prices::Prices;
use settings::{BadSettings, Settings};
use std::sync::Arc;
use std::time::Duration;
use telemetry::tables::{Table, TableMetrics};
use tokio::signal::unix::Signal;
use tokio::time::sleep;

/// Interval of reading the imported prices.
const REFRESH_EVERY: Duration = Duration::from_secs(5);
/// Interval until the first read of the imported prices. Until then every call is denied.
const FIRST_REFRESH_EVERY: Duration = Duration::from_millis(100);

/// Keeps both tables current, and offers that of prices to the archive, forever. `hangups` yields the signals to read
/// the files again, including those since the start of the process.
pub async fn follow(
    plans: Arc<PlanTable>,
    prices: Arc<Prices>,
    settings: Arc<Settings>,
    metrics: TableMetrics,
    mut offers: PriceOffers,
    hangups: &mut Signal,
) {
    prices.refresh().await;
    loop {
        if prices.are_known() {
            offers.offer(&prices.get()).await;
        }
        let pause = if prices.are_known() {
            REFRESH_EVERY
        } else {
            FIRST_REFRESH_EVERY
        };
        let reread = tokio::select! {
            () = sleep(pause) => false,
            _ = hangups.recv() => true,
        };
        if reread {
            let read = settings.read_tables_again().await;
            replace_plans(&plans, read.plans, &metrics);
            prices.reread(read.prices).await;
        } else {
            prices.refresh().await;
        }
    }
}

fn replace_plans(plans: &PlanTable, read: Result<Plans, BadSettings>, metrics: &TableMetrics) {
    metrics.read_again(Table::Plans, read.is_ok());
    match read {
        Ok(read) => {
            let removed = plans.replace(&read);
            if !removed.is_empty() {
                tracing::warn!(
                    ?removed,
                    "plans are gone from plans.file: accounts that have one are denied"
                );
            }
            tracing::info!("plans in force");
        }
        Err(error) => tracing::error!(%error, "the plans in force stay"),
    }
}
