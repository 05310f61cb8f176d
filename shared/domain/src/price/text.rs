//! The content of a price table: parsing of `config/prices.toml`, and the canonical form that is hashed and kept.

use super::entry::{ModelEntry, is_model_name};
use super::error::PriceError;
use super::lookup::ModelNames;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};

/// Maximum number of models in a table or an overlay.
pub(super) const MAX_MODELS: usize = 10_000;
/// Longest text of a table, an overlay or an import, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;
const MAX_TIER_ALIASES: usize = 64;
/// Allowed values of `bytes_per_token`: at 1, no text can have more tokens than are held.
const BYTES_PER_TOKEN: std::ops::RangeInclusive<u64> = 1..=4;
/// Hex digits of a version.
pub(super) const VERSION_DIGITS: usize = 16;

/// Tokens that count in the estimate in addition to the bytes of the prompt's text.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Allowances {
    pub(super) image_tokens: u64,
    pub(super) audio_tokens: u64,
    pub(super) file_tokens: u64,
    /// For each reasoning item that the provider keeps.
    #[serde(default = "reasoning_tokens")]
    pub(super) reasoning_tokens: u64,
    /// For each message (decision D68).
    #[serde(default = "message_tokens")]
    pub(super) message_tokens: u64,
    /// For each content part (decision D68).
    #[serde(default = "part_tokens")]
    pub(super) part_tokens: u64,
    /// Bytes of prompt text that count as one token (specification, Constants).
    #[serde(default = "bytes_per_token")]
    pub(super) bytes_per_token: u64,
    /// The minimum completion allowance of a call without its own limit; the specification's 1,024 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) completion_tokens: Option<u64>,
}

/// Default of `bytes_per_token` (specification, Constants).
const fn bytes_per_token() -> u64 {
    4
}

/// Default of `reasoning_tokens`: the number that OpenAI recommends to reserve for the reasoning of an answer.
const fn reasoning_tokens() -> u64 {
    25_000
}

/// Tokens that frame a message (decision D68).
const fn message_tokens() -> u64 {
    4
}

/// Tokens that frame a content part (decision D68).
const fn part_tokens() -> u64 {
    1
}

/// A whole table. The order of fields and names is fixed, so that equal content has equal text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableContent {
    pub(super) auto_tier: String,
    pub(super) tier_aliases: BTreeMap<String, String>,
    pub(super) allowances: Allowances,
    pub(super) models: BTreeMap<String, ModelEntry>,
}

/// [`TableContent`] with unparsed models, so that an error in a model can name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnparsedContent {
    auto_tier: String,
    #[serde(default)]
    tier_aliases: BTreeMap<String, String>,
    allowances: Allowances,
    models: BTreeMap<String, toml::Value>,
}

impl TableContent {
    /// Reads the TOML of `config/prices.toml`.
    pub(super) fn from_toml(text: &str) -> Result<Self, PriceError> {
        check_size("price table", text)?;
        let head: UnparsedContent =
            toml::from_str(text).map_err(|error| PriceError::Toml(Box::new(error)))?;
        let mut models = BTreeMap::new();
        for (name, value) in head.models {
            let entry: ModelEntry = value.try_into().map_err(|error: toml::de::Error| {
                PriceError::model(&name, error.to_string().trim_end().replace('\n', " "))
            })?;
            entry.check(&name)?;
            models.insert(name, entry);
        }
        let content = Self {
            auto_tier: head.auto_tier,
            tier_aliases: head.tier_aliases,
            allowances: head.allowances,
            models,
        };
        content.check()?;
        Ok(content)
    }

    /// Copies the allowances of a model to the models with the same name after a provider prefix (`azure/gpt-4o`) that
    /// have none: neither imports nor a provider's prices contain the tokens of an image.
    pub(super) fn share_allowances(&mut self, names: &ModelNames) {
        let own = self.models.values();
        let own: Vec<_> = own
            .map(|entry| (entry.image_tokens, entry.completion_tokens))
            .collect();
        for (name, entry) in &mut self.models {
            let of_namesakes = || names.namesakes(name).filter_map(|at| own.get(at));
            let image = || of_namesakes().find_map(|(image_tokens, _)| *image_tokens);
            let completion = || of_namesakes().find_map(|(_, completion_tokens)| *completion_tokens);
            entry.image_tokens = entry.image_tokens.or_else(image);
            entry.completion_tokens = entry.completion_tokens.or_else(completion);
        }
    }

    /// Checks properties that involve more than one model.
    fn check(&self) -> Result<(), PriceError> {
        if !BYTES_PER_TOKEN.contains(&self.allowances.bytes_per_token) {
            return Err(PriceError::Setting {
                field: "allowances.bytes_per_token",
                reason: "must be 1 to 4: a token has at least one byte, and about four on average",
            });
        }
        if self.models.is_empty() {
            return Err(PriceError::Setting {
                field: "models",
                reason: "must have at least one model",
            });
        }
        check_count("price table", self.models.len())?;
        let aliases = &self.tier_aliases;
        if aliases.len() > MAX_TIER_ALIASES
            || !aliases
                .iter()
                .flat_map(|(a, b)| [a, b])
                .all(|word| is_model_name(word))
        {
            let reason = "must be at most 64 pairs of words without spaces";
            return Err(PriceError::Setting {
                field: "tier_aliases",
                reason,
            });
        }
        if !is_model_name(&self.auto_tier) || self.auto_tier == "auto" {
            let reason = "must name the tier that serves calls without `service_tier`, such as \"default\"";
            return Err(PriceError::Setting {
                field: "auto_tier",
                reason,
            });
        }
        let mut taken: HashSet<&str> = self.models.keys().map(String::as_str).collect();
        for (name, entry) in &self.models {
            if let Some(alias) = entry.aliases.iter().find(|alias| !taken.insert(alias)) {
                return Err(PriceError::model(
                    name,
                    format!("`aliases` has `{alias}`, which is already a name"),
                ));
            }
        }
        Ok(())
    }

    /// Removes aliases that are names of models: an import can have figures for a former alias. Such a table could not
    /// be read back.
    pub(super) fn drop_shadowed_aliases(&mut self) {
        let names: HashSet<String> = self.models.keys().cloned().collect();
        for entry in self.models.values_mut() {
            entry.aliases.retain(|alias| !names.contains(alias));
        }
    }

    /// Formats the content as JSON, with prices as exact decimal strings: equal for equal tables on every machine.
    pub(super) fn to_canonical(&self) -> Result<String, PriceError> {
        serde_json::to_string(self).map_err(|source| PriceError::Json {
            what: "price table",
            source,
        })
    }

    /// Parses the text of [`to_canonical`](Self::to_canonical).
    pub(super) fn from_canonical(text: &str) -> Result<Self, PriceError> {
        check_size("price table", text)?;
        let content: Self = serde_json::from_str(text).map_err(|source| PriceError::Json {
            what: "price table",
            source,
        })?;
        for (name, entry) in &content.models {
            entry.check(name)?;
        }
        content.check()?;
        Ok(content)
    }
}

/// Returns the version of the table with this canonical text (D48): the first 16 hex digits of its SHA-256.
pub(super) fn version_of(canonical: &str) -> String {
    let mut version = hex::encode(Sha256::digest(canonical));
    version.truncate(VERSION_DIGITS);
    version
}

/// Returns whether this can be the version of a table.
pub(super) fn is_version(text: &str) -> bool {
    text.len() == VERSION_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses a text that is longer than any price table.
pub(super) fn check_size(what: &'static str, text: &str) -> Result<(), PriceError> {
    match text.len() {
        0..=MAX_TEXT_BYTES => Ok(()),
        _ => Err(PriceError::TooLarge {
            what,
            limit: MAX_TEXT_BYTES,
            unit: "bytes",
        }),
    }
}

/// Refuses more models than the maximum.
pub(super) fn check_count(what: &'static str, models: usize) -> Result<(), PriceError> {
    match models {
        0..=MAX_MODELS => Ok(()),
        _ => Err(PriceError::TooLarge {
            what,
            limit: MAX_MODELS,
            unit: "models",
        }),
    }
}

#[cfg(test)]
mod tests;
