//! Plans and prices: read at start, again on SIGHUP, and overlaid with what the operator imported into the store.
//! A table that cannot be read leaves the one in force.

use crate::gate::Gate;
use shared::domain::price::PriceTable;
use shared::settings::{BadSettings, Settings};
use shared::store::script::replace_prices;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;

/// Keeps both tables current, for ever.
pub async fn follow(gate: &Gate, every: Duration) {
    let Ok(mut hangups) = signal(SignalKind::hangup()) else {
        tracing::error!("SIGHUP cannot be heard; tables are read at start only");
        return;
    };
    let mut ticks = interval(every);
    let mut imported: Option<String> = None;
    loop {
        let reread = tokio::select! {
            _ = ticks.tick() => false,
            _ = hangups.recv() => true,
        };
        if reread {
            match gate.settings.plans() {
                Ok(plans) => gate.set_plans(&plans),
                Err(error) => tracing::error!(%error, "the plans in force stay"),
            }
        }
        let overlay = match replace_prices::read(&gate.store).await {
            Ok(overlay) => overlay,
            Err(_) if !reread => continue,
            Err(_) => imported.clone(),
        };
        if reread || overlay != imported {
            match merged(&gate.settings, overlay.as_deref()) {
                Ok(table) => {
                    tracing::info!(price.version = table.version(), "prices in force");
                    gate.prices.store(table.into());
                    imported = overlay;
                }
                Err(error) => tracing::error!(%error, "the prices in force stay"),
            }
        }
    }
}

fn merged(settings: &Settings, overlay: Option<&str>) -> Result<PriceTable, BadSettings> {
    let file = settings.prices()?;
    PriceTable::overlaid(file, overlay).map_err(|error| BadSettings(format!("imported prices: {error}")))
}
