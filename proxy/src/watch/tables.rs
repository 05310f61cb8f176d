//! Plans and prices: read at start, again on SIGHUP, and overlaid with what the operator imported into the store.
//! A table that cannot be read leaves the one in force.

use crate::gate::Gate;
use shared::domain::plan::Plans;
use shared::domain::price::{PriceOverlay, PriceTable};
use shared::settings::{BadSettings, Settings};
use shared::store::keys;
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;

/// The text of a table's file. A default file that does not exist means the compiled-in table (decision D58).
fn text(file: &Path, default_file: &str, default: &str) -> Result<String, BadSettings> {
    if file == Path::new(default_file) && !file.exists() {
        return Ok(default.to_owned());
    }
    std::fs::read_to_string(file).map_err(|error| BadSettings(format!("{}: {error}", file.display())))
}

/// Reads the plans.
///
/// # Errors
/// One line that names the file.
pub fn plans(settings: &Settings) -> Result<Plans, BadSettings> {
    let file = &settings.plans.file;
    let text = text(file, "config/plans.toml", shared::domain::plan::DEFAULT_PLANS)?;
    Plans::parse(&text).map_err(|error| BadSettings(format!("{}: {}", file.display(), error.message())))
}

/// Reads the price file.
///
/// # Errors
/// One line that names the file.
pub fn prices(settings: &Settings) -> Result<PriceTable, BadSettings> {
    let file = &settings.prices.file;
    let text = text(file, "config/prices.toml", shared::domain::price::DEFAULT_PRICES)?;
    PriceTable::from_toml(&text).map_err(|error| BadSettings(format!("{}: {error}", file.display())))
}

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
            match plans(&gate.settings) {
                Ok(plans) => gate.set_plans(&plans),
                Err(error) => tracing::error!(%error, "the plans in force stay"),
            }
        }
        let overlay: Option<String> = match gate.store.command(redis::cmd("GET").arg(keys::PRICES)).await {
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
    let file = prices(settings)?;
    let Some(overlay) = overlay else { return Ok(file) };
    let merged =
        PriceOverlay::from_store_text(overlay).and_then(|overlay| PriceTable::merge(&file, &overlay));
    merged.map_err(|error| BadSettings(format!("imported prices: {error}")))
}
