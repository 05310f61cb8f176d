//! The tables that the configuration names: plans and prices.

use super::{BadSettings, Settings};
use domain::plan::{DEFAULT_PLANS, Plans};
use domain::price::{DEFAULT_PRICES, PriceTable};
use std::borrow::Cow;
use std::path::Path;

/// Default path of the plans.
const PLANS_FILE: &str = "config/plans.toml";
/// Default path of the prices.
const PRICES_FILE: &str = "config/prices.toml";

impl Settings {
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
    let text = std::fs::read_to_string(file);
    text.map(Cow::Owned).map_err(|error| bad(setting, file, &error))
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
    use crate::load_from;

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
        let error = settings.plans().unwrap_err().to_string();
        assert!(
            error.starts_with(&named("plans.file")) && error.contains("No such file"),
            "{error}"
        );
    }
}
