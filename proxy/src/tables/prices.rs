//! The prices in force: the price file, overridden by prices that the operator imported into the store.

use arc_swap::ArcSwap;
use domain::price::PriceTable;
use parking_lot::Mutex;
use settings::BadSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::{Store, prices as imported};
use telemetry::tables::{Table, TableMetrics};

/// Pause before an imported text that does not parse is parsed again.
const BAD_TEXT_LIFE: Duration = Duration::from_secs(5);

/// The prices in force.
pub struct Prices {
    store: Store,
    metrics: TableMetrics,
    in_force: ArcSwap<PriceTable>,
    are_known: AtomicBool,
    sources: Mutex<Sources>,
}

/// The prices of the file, and the imported ones as last read from the store.
#[derive(Debug)]
struct Sources {
    file: Arc<PriceTable>,
    in_force: Option<String>,
    /// The last text that did not parse, and when it was read.
    bad: Option<(Option<String>, Instant)>,
}

impl Sources {
    fn is_bad(&self, text: Option<&str>) -> bool {
        let bad = self.bad.as_ref();
        bad.is_some_and(|(bad, at)| bad.as_deref() == text && at.elapsed() < BAD_TEXT_LIFE)
    }
}

impl Prices {
    /// Creates the table with the prices of the file. [`Prices::refresh`] adds the imported ones.
    pub fn new(file: PriceTable, store: Store, metrics: TableMetrics) -> Self {
        let file = Arc::new(file);
        Self {
            store,
            metrics,
            in_force: ArcSwap::new(Arc::clone(&file)),
            are_known: AtomicBool::new(false),
            sources: Mutex::new(Sources {
                file,
                in_force: None,
                bad: None,
            }),
        }
    }

    /// Returns the table in force.
    pub fn get(&self) -> Arc<PriceTable> {
        self.in_force.load_full()
    }

    /// Returns whether the imported prices were ever loaded. Before that, only the price file is in force, and its
    /// prices may be too low.
    pub fn are_known(&self) -> bool {
        self.are_known.load(Ordering::Acquire)
    }

    /// Like [`Prices::are_known`], but reads the store if they are not.
    pub async fn are_known_now(&self) -> bool {
        if !self.are_known() {
            // Boxed: the case is rare, and this future needs more space than the one that awaits it.
            Box::pin(self.refresh()).await;
        }
        self.are_known()
    }

    /// Reads the imported prices.
    pub async fn refresh(&self) {
        self.read(None).await;
    }

    /// Reads the imported prices. `file` are those of the file, as it is now.
    pub async fn reread(&self, file: Result<PriceTable, BadSettings>) {
        self.read(Some(file)).await;
    }

    async fn read(&self, file: Option<Result<PriceTable, BadSettings>>) {
        let overlay = imported::read(&self.store).await;
        let has_replied = overlay.is_ok();
        if self.accept(overlay.ok(), file) && has_replied {
            self.are_known.store(true, Ordering::Release);
        }
    }

    /// Puts `overlay` in force, as the store replied; `None` if it did not. Returns false if the prices in force stay
    /// although others were read, or if nothing was read.
    fn accept(&self, overlay: Option<Option<String>>, file: Option<Result<PriceTable, BadSettings>>) -> bool {
        if overlay.is_none() && file.is_none() {
            return false;
        }
        let mut sources = self.sources.lock();
        let overlay = overlay.unwrap_or_else(|| sources.in_force.clone());
        if file.is_none() && (overlay == sources.in_force || sources.is_bad(overlay.as_deref())) {
            return overlay == sources.in_force;
        }
        let file = file.map_or_else(|| Ok(Arc::clone(&sources.file)), |file| file.map(Arc::new));
        self.replace(&mut sources, file, overlay)
    }

    /// Puts `file` and `overlay` in force. Returns whether both could be read.
    fn replace(
        &self,
        sources: &mut Sources,
        file: Result<Arc<PriceTable>, BadSettings>,
        overlay: Option<String>,
    ) -> bool {
        let merged = file.and_then(|file| Ok((merged(&file, overlay.as_deref())?, file)));
        self.metrics.read_again(Table::Prices, merged.is_ok());
        match merged {
            Ok((table, file)) => {
                tracing::info!(price.version = table.version(), "prices in force");
                self.in_force.store(table.into());
                *sources = Sources {
                    file,
                    in_force: overlay,
                    bad: None,
                };
                true
            }
            Err(error) => {
                tracing::error!(%error, "the prices in force stay");
                if !self.are_known() {
                    tracing::error!("without the imported prices every call is denied");
                }
                sources.bad = Some((overlay, Instant::now()));
                false
            }
        }
    }
}

fn merged(file: &PriceTable, overlay: Option<&str>) -> Result<PriceTable, BadSettings> {
    PriceTable::overlaid(file.clone(), overlay)
        .map_err(|error| BadSettings(format!("imported prices: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, StoreReaction, text};

    const EXPENSIVE: &str = r#"{"models":{"gpt-4o":{"rates":{"standard":{"input":"250","output":"1000"}}}}}"#;

    #[tokio::test]
    async fn rereading_the_file_does_not_make_imported_prices_known() {
        let fixture = Fixture::new().await;
        let prices = &fixture.prices;
        fixture.on_command(|command| (command[0] == "GET").then_some(StoreReaction::Close));
        prices.reread(Ok(PriceTable::builtin().unwrap())).await;
        assert!(!prices.are_known());
        assert!(!prices.are_known_now().await);
        fixture.on_command(|_| None);
        assert!(prices.are_known_now().await);
    }

    #[tokio::test]
    async fn imported_prices_stay_in_force_while_the_store_is_away() {
        let fixture = Fixture::new().await;
        let prices = &fixture.prices;
        let version = || prices.get().version().to_owned();
        let file = version();
        fixture.on_command(|command| (command[0] == "GET").then(|| text(EXPENSIVE)));
        prices.refresh().await;
        let imported = version();
        assert!(prices.are_known() && imported != file);
        fixture.on_command(|command| (command[0] == "GET").then_some(StoreReaction::Close));
        prices.reread(Ok(PriceTable::builtin().unwrap())).await;
        assert_eq!(version(), imported);
        prices.reread(Err(BadSettings("bad".to_owned()))).await;
        assert_eq!(version(), imported, "a file that cannot be read changes nothing");
        fixture.on_command(|_| None);
        prices.refresh().await;
        assert_eq!(version(), file, "the import was taken back");
    }

    /// Until the prices are known, every call reads them.
    #[tokio::test]
    async fn a_text_that_does_not_parse_is_parsed_again_only_with_the_file() {
        let fixture = Fixture::new().await;
        let prices = &fixture.prices;
        let parsed_at = |reread: bool| {
            let file = reread.then(|| Ok(PriceTable::builtin().unwrap()));
            assert!(!prices.accept(Some(Some("{".to_owned())), file));
            prices.sources.lock().bad.as_ref().map(|(_, at)| *at).unwrap()
        };
        let first = parsed_at(false);
        assert_eq!(parsed_at(false), first);
        assert_ne!(parsed_at(true), first);
    }
}
