//! The price table: built once, then immutable.

use super::DEFAULT_PRICES;
use super::entry::ModelEntry;
use super::error::PriceError;
use super::lookup::ModelNames;
use super::model::{Fallback, ModelPrice};
use super::overlay::PriceOverlay;
use super::picos::CallPrice;
use super::text::{Allowances, TableContent, VERSION_DIGITS, check_count, is_version, version_of};
use super::tier::TierNames;

/// All known prices. Immutable: a reload or an import builds a new table.
#[derive(Debug, Clone)]
pub struct PriceTable {
    content: TableContent,
    version: String,
    pub(super) tier_names: TierNames,
    pub(super) allowances: Allowances,
    /// In the order of their names.
    prices: Vec<ModelPrice>,
    /// Names and aliases to positions in `prices`.
    names: ModelNames,
    /// The names in `names`, sorted.
    listed: Vec<String>,
    unknown: ModelPrice,
}

impl PriceTable {
    /// Number of hex digits of a version.
    pub const VERSION_DIGITS: usize = VERSION_DIGITS;

    /// Reads the text of `config/prices.toml`.
    ///
    /// # Errors
    /// [`PriceError`], which names the model and the field at fault.
    pub fn from_toml(text: &str) -> Result<Self, PriceError> {
        Self::build(TableContent::from_toml(text)?)
    }

    /// Returns the compiled-in table.
    ///
    /// # Errors
    /// Does not occur, as a test verifies.
    pub fn builtin() -> Result<Self, PriceError> {
        Self::from_toml(DEFAULT_PRICES)
    }

    /// Merges imported entries into `base` (D65). An entry replaces all figures; data that imports do not have
    /// (aliases, allowances, search fee) stays. A model that `base` does not contain under any name, with or without
    /// its provider prefix, gets the highest allowance for images, since its own is unknown.
    ///
    /// # Errors
    /// [`PriceError`] if an entry of the overlay is invalid.
    pub fn merge(base: &Self, overlay: &PriceOverlay) -> Result<Self, PriceError> {
        let mut content = base.content.clone();
        for (name, entry) in overlay.models() {
            let mut entry = entry.clone();
            // A snapshot that the base contains only as an alias, or without its date, inherits from that model.
            if let Some(older) = base.entry(name) {
                entry = entry.completed_by(older);
            } else if base.names.namesakes(name).next().is_none() {
                entry.image_tokens = entry.image_tokens.or(Some(base.unknown.image_tokens));
            }
            if let Some(same) = content.models.get(name) {
                entry.aliases.extend_from_slice(&same.aliases);
                entry.aliases.sort_unstable();
                entry.aliases.dedup();
            }
            content.models.insert(name.to_owned(), entry);
        }
        content.drop_shadowed_aliases();
        Self::build(content)
    }

    /// Merges the operator's import, in its stored form, into `base`.
    ///
    /// # Errors
    /// [`PriceError`] if the stored text is invalid.
    pub fn overlaid(base: Self, stored: Option<&str>) -> Result<Self, PriceError> {
        match stored {
            None => Ok(base),
            Some(stored) => Self::merge(&base, &PriceOverlay::from_store_text(stored)?),
        }
    }

    /// Parses the text of [`PriceTable::to_text`], of a table of the version `version`.
    ///
    /// # Errors
    /// [`PriceError`], also if the text is that of another version.
    pub fn from_text(version: &str, text: &str) -> Result<Self, PriceError> {
        let found = version_of(text);
        if found != version {
            return Err(PriceError::Version {
                expected: version.to_owned(),
                found,
            });
        }
        // An earlier release can have written the same content otherwise: the version stays that of its text.
        Ok(Self {
            version: found,
            ..Self::build(TableContent::from_canonical(text)?)?
        })
    }

    /// Formats the table as JSON, from which its charges can be recomputed at any time (D48). Its version is the first
    /// 16 hex digits of the text's SHA-256.
    ///
    /// # Errors
    /// [`PriceError::Json`] if it cannot be written, which no table causes.
    pub fn to_text(&self) -> Result<String, PriceError> {
        self.content.to_canonical()
    }

    /// Returns whether this has the form of a [`version`](Self::version).
    pub fn is_version(text: &str) -> bool {
        is_version(text)
    }

    fn build(mut content: TableContent) -> Result<Self, PriceError> {
        check_count("price table", content.models.len())?;
        let names = ModelNames::from_models(&content.models);
        content.share_allowances(&names);
        let fees = content.models.values().filter_map(|entry| entry.web_search);
        let fallback = Fallback {
            web_search_picos: fees.map(CallPrice::picos).max().unwrap_or(0),
            image_tokens: content.allowances.image_tokens,
            completion_tokens: content.allowances.completion_tokens.unwrap_or(0),
        };
        let prices = content
            .models
            .iter()
            .map(|(name, entry)| ModelPrice::new(name, entry, fallback));
        let prices = prices.collect::<Result<Vec<_>, _>>()?;
        let empty = PriceError::Setting {
            field: "models",
            reason: "must have at least one model",
        };
        let unknown = ModelPrice::dearest_of(&prices).ok_or(empty)?;
        let version = version_of(&content.to_canonical()?);
        let tier_names = TierNames {
            auto_tier: content.auto_tier.clone(),
            aliases: content.tier_aliases.clone(),
        };
        let allowances = content.allowances;
        Ok(Self {
            content,
            version,
            tier_names,
            allowances,
            prices,
            listed: names.sorted(),
            names,
            unknown,
        })
    }

    /// Returns 16 hex digits that differ between tables with different content (D48).
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the names that have a price, aliases included, in alphabetical order.
    pub fn models(&self) -> impl ExactSizeIterator<Item = &str> {
        self.listed.iter().map(String::as_str)
    }

    /// Returns the price of `model`; an unknown one has the highest prices of the table (specification §4.4 step 4).
    pub fn price_of(&self, model: &str) -> &ModelPrice {
        self.known(model).unwrap_or(&self.unknown)
    }

    /// Returns the price of `model`, if the table has one.
    pub fn known(&self, model: &str) -> Option<&ModelPrice> {
        self.prices.get(self.names.known(model)?)
    }

    /// Returns whether `service_tier` has the meaning of a request without one.
    pub fn is_default_tier(&self, service_tier: Option<&str>) -> bool {
        self.tier_names.canonical(service_tier) == self.tier_names.canonical(None)
    }

    /// Returns the published figures that price this model; `None` for a model priced as the dearest.
    pub fn entry(&self, model: &str) -> Option<&ModelEntry> {
        self.content.models.get(self.known(model)?.name())
    }
}
