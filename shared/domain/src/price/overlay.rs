//! Imported prices that take precedence over those of the file (D65), and their text in the store.

use super::entry::ModelEntry;
use super::error::PriceError;
use super::text::{check_count, check_size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Entries that replace or extend those of a [`PriceTable`](super::PriceTable).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceOverlay {
    models: BTreeMap<String, ModelEntry>,
}

impl PriceOverlay {
    /// Creates an overlay of valid entries.
    pub(super) fn new(models: BTreeMap<String, ModelEntry>) -> Result<Self, PriceError> {
        check_count("price overlay", models.len())?;
        models.iter().try_for_each(|(name, entry)| entry.check(name))?;
        Ok(Self { models })
    }

    /// Parses the text of [`PriceOverlay::to_store_text`].
    ///
    /// # Errors
    /// [`PriceError`] if the text is malformed, or an entry is invalid.
    pub fn from_store_text(text: &str) -> Result<Self, PriceError> {
        check_size("price overlay", text)?;
        let read: Self = serde_json::from_str(text).map_err(|source| PriceError::Json {
            what: "price overlay",
            source,
        })?;
        Self::new(read.models)
    }

    /// Formats the overlay as JSON, with prices as exact decimal strings. Equal overlays have equal texts.
    ///
    /// # Errors
    /// [`PriceError::Json`] if it cannot be written, which no entry causes.
    pub fn to_store_text(&self) -> Result<String, PriceError> {
        serde_json::to_string(self).map_err(|source| PriceError::Json {
            what: "price overlay",
            source,
        })
    }

    /// Returns this overlay, with its entries replaced by those of a newer import.
    ///
    /// # Errors
    /// [`PriceError::TooLarge`] if both together exceed the maximum number of models.
    pub fn merged_with(&self, newer: &Self) -> Result<Self, PriceError> {
        let mut models = self.models.clone();
        models.extend(
            newer
                .models
                .iter()
                .map(|(name, entry)| (name.clone(), entry.clone())),
        );
        Self::new(models)
    }

    /// Returns the entries in the order of their names.
    pub fn models(&self) -> impl ExactSizeIterator<Item = (&str, &ModelEntry)> {
        self.models.iter().map(|(name, entry)| (name.as_str(), entry))
    }
}
