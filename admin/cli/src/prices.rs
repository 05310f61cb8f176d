//! `tollgate-admin prices`: the operator's imported prices, which take precedence over the file (decisions D32, D65).

use super::context::CommandContext;
use super::price_tables::PriceTables;
use super::table::table as tabulated;
use super::value;
use crate::failure::CommandFailure;
use crate::report::Report;
use archive::Archive;
use clap::Subcommand;
use domain::price::{Imported, ModelEntry, OPENAI, PriceError, PriceOverlay, PriceTable, import_litellm};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use store::keys::PRICES;
use store::prices as replace_prices;
use store::prices::tables::{self, OtherFields};
use telemetry::error_chain;

/// Largest file that is imported, in bytes.
const FILE_MAX: u64 = 32 << 20;
/// The only file that can be imported.
const EXPECTED: &str = "what is imported is LiteLLM's model_prices_and_context_window.json, a JSON object with a \
    member for each model";
/// Models that the error of a file without usable ones names.
const LEFT_OUT_NAMED_MAX: usize = 3;
/// Maximum number of attempts of an import that another one overtakes.
const IMPORT_ATTEMPTS: usize = 5;

/// `prices …`
#[derive(Debug, Subcommand)]
pub(super) enum PricesCommand {
    /// Import LiteLLM's model_prices_and_context_window.json; its OpenAI models then take precedence over prices.file
    Import {
        /// The file
        file: PathBuf,
        /// The `litellm_provider` whose models are imported
        #[arg(long, value_name = "PROVIDER", default_value = OPENAI)]
        provider: String,
    },
    /// Show the prices of a model, and the entry that they come from
    Show {
        /// The model as a request names it; an unknown one has the highest prices of the table
        model: String,
        /// The prices of this version (`priceVersion` of a call) in place of those in force
        #[arg(long, value_name = "VERSION", value_parser = value::price_version)]
        version: Option<String>,
    },
    /// List the versions of the price tables that were kept, by which charges can be recomputed
    Versions,
}

impl PricesCommand {
    pub(super) async fn run(self, context: &CommandContext) -> Result<Report, CommandFailure> {
        match self {
            Self::Import { file, provider } => import(context, &file, &provider).await,
            Self::Show { model, version: None } => show(context, &model).await,
            Self::Show {
                model,
                version: Some(version),
            } => show_kept(context, &model, &version).await,
            Self::Versions => versions(context).await,
        }
    }
}

async fn import(context: &CommandContext, file: &Path, provider: &str) -> Result<Report, CommandFailure> {
    let text = read(file)?;
    let imported = import_litellm(&text, provider).map_err(|error| unusable(file, &error))?;
    if imported.overlay.models().len() == 0 {
        return Err(nothing_usable(file, &imported, provider));
    }
    let base = context.settings.prices()?;
    for _ in 0..IMPORT_ATTEMPTS {
        let old = replace_prices::read(&context.store).await?;
        let before = overlay(old.as_deref())?;
        let merged = before
            .merged_with(&imported.overlay)
            .map_err(|error| unusable(file, &error))?;
        // The whole table must be valid before any edge reads it.
        let table = PriceTable::merge(&base, &merged).map_err(|error| unusable(file, &error))?;
        let new = merged.to_store_text().map_err(|error| unusable(file, &error))?;
        if replace_prices::replace(&context.store, old.as_deref(), &new).await? {
            return Ok(imported_report(&imported, &table));
        }
    }
    Err(CommandFailure::refused(
        "CONFLICT",
        "other imports run at the same time; import again",
    ))
}

fn imported_report(imported: &Imported, table: &PriceTable) -> Report {
    let models: Vec<&str> = imported.overlay.models().map(|(name, _)| name).collect();
    let left_out: Vec<Value> = imported
        .skipped
        .iter()
        .map(|skipped| json!({ "model": skipped.model, "reason": skipped.reason }))
        .collect();
    let ignored: Vec<Value> = imported
        .ignored
        .iter()
        .map(|ignored| json!({ "model": ignored.model, "fields": ignored.fields }))
        .collect();
    let warning = match ignored.len() {
        0 => String::new(),
        models => format!(
            "\nWarning: {models} of the imported model(s) have costs that are not supported and not charged \
             (--json names them)."
        ),
    };
    Report::new(
        format!(
            "Imported {} model(s), left out {} (--json names them). The price table is version {} now.{warning}",
            models.len(),
            left_out.len(),
            table.version()
        ),
        json!({
            "models": models, "imported": models.len(), "skipped": left_out, "ignored": ignored,
            "priceVersion": table.version(),
        }),
    )
}

async fn show(context: &CommandContext, model: &str) -> Result<Report, CommandFailure> {
    let (table, overlay) = in_force(context).await?;
    let is_imported = |name: &str| overlay.models().any(|(imported, _)| imported == name);
    let source = |name: &str| if is_imported(name) { "import" } else { "file" };
    Ok(shown(&table, model, source))
}

/// Shows the prices of an earlier table.
async fn show_kept(context: &CommandContext, model: &str, version: &str) -> Result<Report, CommandFailure> {
    let archive = Archive::from_settings(&context.settings.audit)?;
    let table = PriceTables::new(&context.store, &archive).get(version).await?;
    let table = table.ok_or_else(|| {
        let message = format!("no price table of version {version} was kept; `prices versions` lists them");
        CommandFailure::refused("NOT_FOUND", message)
    })?;
    Ok(shown(&table, model, |_| "kept"))
}

fn shown(table: &PriceTable, model: &str, source: impl Fn(&str) -> &'static str) -> Report {
    let version = table.version();
    let (Some(price), Some(entry)) = (table.known(model), table.entry(model)) else {
        let text = format!(
            "{model} is not in the price table: it is charged the highest price of each kind in the table."
        );
        let document = json!({ "models": [{ "model": model, "known": false }], "priceVersion": version });
        return Report::new(text, document);
    };
    let name = price.name();
    let source = source(name);
    let document = json!({ "model": model, "known": true, "entry": name, "source": source, "prices": entry });
    Report::new(
        format!(
            "{model} is priced as {name} ({source}, table version {version}), USD per million tokens\n{}",
            lines(entry)
        ),
        json!({ "models": [document], "priceVersion": version }),
    )
}

async fn versions(context: &CommandContext) -> Result<Report, CommandFailure> {
    let archive = Archive::from_settings(&context.settings.audit)?;
    // The store first: a table leaves it when it is in the archive.
    let offered = tables::offered(&context.store, OtherFields::Keep).await?.versions;
    let archived: BTreeSet<String> = archive.price_versions().await?.into_iter().collect();
    let (table, _) = in_force(context).await?;
    let all: BTreeSet<&String> = offered.iter().chain(&archived).collect();
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for version in all {
        let (is_archived, is_in_force) = (archived.contains(version), table.version() == version);
        let place = if is_archived { "archive" } else { "store" };
        let now = if is_in_force { "in force" } else { "" };
        rows.push(vec![version.clone(), place.to_owned(), now.to_owned()]);
        documents.push(json!({ "version": version, "archived": is_archived, "inForce": is_in_force }));
    }
    Ok(Report::new(
        tabulated(&["VERSION", "KEPT IN", ""], &rows),
        json!({ "versions": documents, "priceVersion": table.version() }),
    ))
}

/// Returns the table that the configuration and the imports yield, and the imports.
async fn in_force(context: &CommandContext) -> Result<(PriceTable, PriceOverlay), CommandFailure> {
    let base = context.settings.prices()?;
    let stored = replace_prices::read(&context.store).await?;
    let overlay = overlay(stored.as_deref())?;
    let table = PriceTable::merge(&base, &overlay).map_err(|error| bad_overlay(&error))?;
    Ok((table, overlay))
}

/// Returns one line for each service tier, and one for each long-context tier.
fn lines(entry: &ModelEntry) -> String {
    let above = entry.long_context_above.unwrap_or_default();
    let short = entry.rates.iter().map(|(tier, rates)| (tier.clone(), rates));
    let long = entry
        .long_context
        .iter()
        .map(|(tier, rates)| (format!("{tier} above {above} tokens"), rates));
    let lines = short.chain(long).map(|(tier, rates)| {
        let kinds = [
            ("input", Some(rates.input)),
            ("cached input", rates.cached_input),
            ("cache write", rates.cache_write),
            ("cache write for 12 hours", rates.cache_write_12h),
            ("output", Some(rates.output)),
            ("audio input", rates.audio_input),
            ("audio output", rates.audio_output),
        ];
        let prices = kinds
            .iter()
            .filter_map(|(kind, price)| price.map(|price| format!("{kind} {price}")));
        format!("  {tier}: {}", prices.collect::<Vec<_>>().join(", "))
    });
    let mut lines: Vec<String> = lines.collect();
    lines.extend(
        entry
            .web_search
            .map(|fee| format!("  web search: {fee} USD a call")),
    );
    lines.join("\n")
}

/// Returns the prices imported before.
fn overlay(stored: Option<&str>) -> Result<PriceOverlay, CommandFailure> {
    let overlay = stored.map(PriceOverlay::from_store_text).transpose();
    let overlay = overlay.map_err(|error| bad_overlay(&error))?;
    Ok(overlay.unwrap_or_default())
}

/// Returns the failure of imported prices that this program cannot use. Nothing but an import writes them.
fn bad_overlay(error: &PriceError) -> CommandFailure {
    let message = format!(
        "the prices that were imported before (`{PRICES}` in the store) cannot be used: {}; use the release that \
         imported them",
        error_chain(error)
    );
    CommandFailure::refused("STORE", message)
}

fn read(file: &Path) -> Result<String, CommandFailure> {
    let bad = |error: std::io::Error| {
        CommandFailure::usage(match error.kind() {
            ErrorKind::InvalidData => format!("{}: it is no UTF-8 text; {EXPECTED}", file.display()),
            _ => format!("{}: {error}", file.display()),
        })
    };
    let mut text = String::new();
    // One byte more than the limit shows that the file is too long, even if its length is not known in advance.
    let read = File::open(file).and_then(|file| file.take(FILE_MAX + 1).read_to_string(&mut text));
    if read.map_err(bad)? as u64 > FILE_MAX {
        return Err(CommandFailure::usage(format!(
            "{}: longer than {FILE_MAX} bytes",
            file.display()
        )));
    }
    if text.trim().is_empty() {
        let message = format!("{}: the file is empty; {EXPECTED}", file.display());
        return Err(CommandFailure::usage(message));
    }
    Ok(text)
}

fn unusable(file: &Path, error: &PriceError) -> CommandFailure {
    let expected = match error {
        PriceError::Json { .. } => format!("; {EXPECTED}"),
        _ => String::new(),
    };
    CommandFailure::usage(format!("{}: {}{expected}", file.display(), error_chain(error)))
}

/// Returns the failure of a file in which no model can be used: why the first ones were left out.
fn nothing_usable(file: &Path, imported: &Imported, provider: &str) -> CommandFailure {
    let left_out = &imported.skipped;
    let reasons = left_out.iter().take(LEFT_OUT_NAMED_MAX);
    let mut named: Vec<String> = reasons
        .map(|skipped| format!("`{}`: {}", skipped.model, skipped.reason))
        .collect();
    if left_out.len() > named.len() {
        named.push(format!("and {} more", left_out.len() - named.len()));
    }
    let why = match named.is_empty() {
        true => EXPECTED.to_owned(),
        false => named.join(", "),
    };
    CommandFailure::usage(format!(
        "{}: there is no model of {provider} (--provider) that an edge serves; {why}",
        file.display()
    ))
}
