//! Plans and prices: read at start, again on SIGHUP, and overlaid with what the operator imported into the store.
//! A table that cannot be read leaves the one in force; imported prices that could not be read yet leave none.

use crate::gate::Gate;
use domain::price::PriceTable;
use settings::{BadSettings, Settings};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::prices as replace_prices;
use telemetry::tables::Table;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// Between two tries to read the imported prices for the first time.
const FIRST_EVERY: Duration = Duration::from_millis(100);
/// Between two tries to read the same text of imported prices that makes no sense.
const BAD_EVERY: Duration = Duration::from_secs(5);

/// What is known of the imported prices.
#[derive(Debug, Default)]
pub struct Imported {
    /// Whether what the store has was in force once.
    known: AtomicBool,
    texts: Mutex<Texts>,
}

#[derive(Debug, Default)]
struct Texts {
    /// What is in force.
    good: Option<String>,
    /// What could not be read, and when that was found.
    bad: Option<(Option<String>, Instant)>,
}

impl Texts {
    /// Whether this text is known to make no sense.
    fn is_bad(&self, text: Option<&str>) -> bool {
        let bad = self.bad.as_ref();
        bad.is_some_and(|(bad, at)| bad.as_deref() == text && at.elapsed() < BAD_EVERY)
    }
}

impl Imported {
    /// Whether the store has told once which prices were imported, and they could be read. Before that the price file alone is
    /// in force, and its prices may be too low.
    pub fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// The same; asks the store when it is not known yet.
    pub async fn is_known_now(&self, gate: &Gate) -> bool {
        if !self.is_known() {
            read(gate, false).await;
        }
        self.is_known()
    }
}

/// Keeps both tables current, for ever.
pub async fn follow(gate: &Gate, every: Duration) {
    let Ok(mut hangups) = signal(SignalKind::hangup()) else {
        tracing::error!("SIGHUP cannot be heard; tables are read at start only");
        return;
    };
    read(gate, false).await;
    loop {
        let pause = if gate.imported.is_known() {
            every
        } else {
            FIRST_EVERY
        };
        let reread = tokio::select! {
            () = sleep(pause) => false,
            _ = hangups.recv() => true,
        };
        if reread {
            let plans = gate.settings.plans();
            gate.metrics.tables.read_again(Table::Plans, plans.is_ok());
            match plans {
                Ok(plans) => {
                    gate.set_plans(&plans);
                    tracing::info!("plans in force");
                }
                Err(error) => tracing::error!(%error, "the plans in force stay"),
            }
        }
        read(gate, reread).await;
    }
}

/// Reads what was imported, and the file as well when it is to be read again, or something else was imported.
async fn read(gate: &Gate, reread: bool) {
    let overlay = replace_prices::read(&gate.store).await;
    let is_known = overlay.is_ok();
    if !is_known && !reread {
        return;
    }
    let mut texts = gate.imported.texts.lock().unwrap_or_else(PoisonError::into_inner);
    let overlay = overlay.unwrap_or_else(|_| texts.good.clone());
    if !reread && texts.is_bad(overlay.as_deref()) {
        return;
    }
    if reread || overlay != texts.good {
        let table = merged(&gate.settings, overlay.as_deref());
        gate.metrics.tables.read_again(Table::Prices, table.is_ok());
        match table {
            Ok(table) => {
                tracing::info!(price.version = table.version(), "prices in force");
                gate.prices.store(table.into());
                *texts = Texts {
                    good: overlay,
                    bad: None,
                };
            }
            Err(error) => {
                tracing::error!(%error, "the prices in force stay");
                if !gate.imported.is_known() {
                    tracing::error!("without the imported prices every call is denied");
                }
                texts.bad = Some((overlay, Instant::now()));
                return;
            }
        }
    }
    if is_known {
        gate.imported.known.store(true, Ordering::Release);
    }
}

fn merged(settings: &Settings, overlay: Option<&str>) -> Result<PriceTable, BadSettings> {
    let file = settings.prices()?;
    PriceTable::overlaid(file, overlay).map_err(|error| BadSettings(format!("imported prices: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Does, Stand, text};

    const DEAR: &str = r#"{"models":{"gpt-4o":{"rates":{"standard":{"input":"250","output":"1000"}}}}}"#;

    /// The file is read again, and what was imported is as unknown as before.
    #[tokio::test]
    async fn a_hang_up_says_nothing_of_a_store_that_never_answered() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        stand.store_says(|command| (command[0] == "GET").then_some(Does::HangsUp));
        read(gate, true).await;
        assert!(!gate.imported.is_known());
        assert!(!gate.imported.is_known_now(gate).await);
        stand.store_says(|_| None);
        assert!(gate.imported.is_known_now(gate).await);
    }

    /// Prices that were imported stay in force when the file is read again and the store does not answer.
    #[tokio::test]
    async fn what_was_imported_stays_while_the_store_is_away() {
        let stand = Stand::new().await;
        let gate = &stand.gate;
        let file = gate.prices.load().version().to_owned();
        stand.store_says(|command| (command[0] == "GET").then(|| text(DEAR)));
        read(gate, false).await;
        let imported = gate.prices.load().version().to_owned();
        assert!(gate.imported.is_known() && imported != file);
        stand.store_says(|command| (command[0] == "GET").then_some(Does::HangsUp));
        read(gate, true).await;
        assert_eq!(gate.prices.load().version(), imported);
        stand.store_says(|_| None);
        read(gate, false).await;
        assert_eq!(gate.prices.load().version(), file, "the import was taken back");
    }
}
