//! The tables that the configuration names: plans and prices.

use super::{BadSettings, Settings};
use domain::plan::{DEFAULT_PLANS, Plans};
use domain::price::{DEFAULT_PRICES, PriceTable};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Time in which the files of the tables are read again. A file on a network share, or on a disk that hangs, can take
/// for ever.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// One reading at a time: each that hangs keeps a thread.
static READING: Semaphore = Semaphore::const_new(1);

/// Default path of the plans.
const PLANS_FILE: &str = "config/plans.toml";
/// Default path of the prices.
const PRICES_FILE: &str = "config/prices.toml";

/// Both tables, read from their files.
#[derive(Debug)]
pub struct Tables {
    /// `plans.file`
    pub plans: Result<Plans, BadSettings>,
    /// `prices.file`
    pub prices: Result<PriceTable, BadSettings>,
}

impl Settings {
    /// Reads both tables again, in a thread that may wait for a file.
    pub async fn read_tables_again(self: &Arc<Self>) -> Tables {
        let settings = Arc::clone(self);
        let read = move || Tables {
            plans: settings.plans(),
            prices: settings.prices(),
        };
        in_time(READ_WITHIN, &READING, read).await.unwrap_or_else(|what| {
            let bad = |file: &Path| BadSettings(format!("{}: {what}", file.display()));
            Tables {
                plans: Err(bad(&self.plans.file)),
                prices: Err(bad(&self.prices.file)),
            }
        })
    }

    /// Loads the plans of `plans.file`.
    ///
    /// # Errors
    /// [`BadSettings`] with the file and its fault.
    pub fn plans(&self) -> Result<Plans, BadSettings> {
        let text = read("plans.file", &self.plans.file, (PLANS_FILE, DEFAULT_PLANS))?;
        Plans::parse(&text).map_err(|error| bad("plans.file", &self.plans.file, &error))
    }

    /// Loads the prices of `prices.file`, without the operator's imports in the store.
    ///
    /// # Errors
    /// [`BadSettings`] with the file and its fault.
    pub fn prices(&self) -> Result<PriceTable, BadSettings> {
        let text = read("prices.file", &self.prices.file, (PRICES_FILE, DEFAULT_PRICES))?;
        PriceTable::from_toml(&text).map_err(|error| bad("prices.file", &self.prices.file, &error))
    }
}

/// Reads a table. If the default file is missing, the compiled-in table is used (decision D58).
fn read<'a>(
    setting: &str,
    file: &Path,
    (default, builtin): (&str, &'a str),
) -> Result<Cow<'a, str>, BadSettings> {
    if file == Path::new(default) && !file.exists() {
        return Ok(builtin.into());
    }
    let is_file = file.metadata().map(|metadata| metadata.is_file());
    if !is_file.map_err(|error| bad(setting, file, &error))? {
        let what = "is not a regular file";
        return Err(BadSettings(format!("{setting} {}: {what}", file.display())));
    }
    let text = std::fs::read_to_string(file);
    text.map(Cow::Owned).map_err(|error| bad(setting, file, &error))
}

/// Runs `read` in a thread of its own, and waits for it within a time.
async fn in_time<T: Send + 'static>(
    within: Duration,
    reading: &'static Semaphore,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let permit = reading
        .try_acquire()
        .map_err(|_| "an earlier reading has not ended")?;
    let read = spawn_blocking(move || {
        let read = read();
        drop(permit);
        read
    });
    match timeout(within, read).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(_panicked)) => Err("reading panicked"),
        Err(_elapsed) => Err("could not be read in time"),
    }
}

/// Builds one line with the setting, its file and the whole chain of causes.
fn bad(setting: &str, file: &Path, error: &dyn std::error::Error) -> BadSettings {
    let mut line = format!("{setting} {}: {error}", file.display());
    let mut source = error.source();
    while let Some(cause) = source {
        line = format!("{line}: {cause}");
        source = cause.source();
    }
    BadSettings(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_from;
    use std::sync::mpsc;

    #[tokio::test]
    async fn a_file_that_hangs_is_given_up() {
        static READING: Semaphore = Semaphore::const_new(1);
        let (go_on, hangs) = mpsc::channel::<()>();
        let slow = move || hangs.recv().is_ok();
        let late = in_time(Duration::from_millis(20), &READING, slow).await;
        assert_eq!(late, Err("could not be read in time"));
        let second = in_time(READ_WITHIN, &READING, || ()).await;
        assert_eq!(second, Err("an earlier reading has not ended"));
        go_on.send(()).unwrap();
        drop(READING.acquire().await.unwrap());
        assert_eq!(in_time(READ_WITHIN, &READING, || 7).await, Ok(7));
    }

    #[test]
    fn a_missing_default_file_means_the_compiled_in_table() {
        let settings = load_from(None, std::iter::empty()).unwrap();
        assert!(settings.plans().unwrap().get("builder").is_some());
        assert!(settings.prices().unwrap().known("gpt-4o-mini").is_some());
    }

    #[test]
    fn a_bad_table_is_one_line_that_names_the_file() {
        let dir = std::env::temp_dir().join(format!("tollgate-tables-{}", std::process::id()));
        std::fs::write(&dir, "[free]\nkeys = 3\n").unwrap();
        let text = format!("[plans]\nfile = {dir:?}\n[prices]\nfile = {dir:?}\n");
        let settings = load_from(Some(&text), std::iter::empty()).unwrap();
        let named = |setting: &str| format!("{setting} {}: ", dir.display());
        for (setting, error) in [
            ("plans.file", settings.plans().unwrap_err()),
            ("prices.file", settings.prices().unwrap_err()),
        ] {
            let error = error.to_string();
            assert!(
                error.starts_with(&named(setting)) && !error.contains('\n'),
                "{error}"
            );
        }
        std::fs::remove_file(&dir).unwrap();
        // Reading a pipe would wait for somebody who writes.
        std::fs::create_dir(&dir).unwrap();
        let error = settings.prices().unwrap_err().to_string();
        assert_eq!(error, format!("{}is not a regular file", named("prices.file")));
        std::fs::remove_dir(&dir).unwrap();
        let error = settings.plans().unwrap_err().to_string();
        assert!(
            error.starts_with(&named("plans.file")) && error.contains("No such file"),
            "{error}"
        );
    }
}
