//! Why a price table, an overlay or an import is refused. The texts name the model and the field.

/// A price table or an import that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    /// Invalid TOML, or an error outside the models; the source says where.
    #[error("the price table cannot be read")]
    Toml(#[source] Box<toml::de::Error>),
    /// Not the expected JSON; the source says where.
    #[error("the {what} is no valid JSON")]
    Json {
        /// The text that was parsed.
        what: &'static str,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
    /// A model's entry is invalid.
    #[error("model `{model}`: {reason}")]
    Model {
        /// The name of the entry.
        model: String,
        /// The fault, including the field.
        reason: String,
    },
    /// A setting outside the models is invalid.
    #[error("`{field}` {reason}")]
    Setting {
        /// The key at the head of the table.
        field: &'static str,
        /// Description of the fault, as the end of a sentence.
        reason: &'static str,
    },
    /// The text of another table than the named one.
    #[error("it is the price table of version {found}, not {expected}")]
    Version {
        /// The named version.
        expected: String,
        /// That of the text.
        found: String,
    },
    /// Larger than any plausible price table.
    #[error("the {what} has more than {limit} {unit}")]
    TooLarge {
        /// The text that was parsed.
        what: &'static str,
        /// The exceeded limit.
        limit: usize,
        /// The unit of the limit.
        unit: &'static str,
    },
}

impl PriceError {
    /// Creates an error about one model's entry.
    pub(super) fn model(model: &str, reason: impl Into<String>) -> Self {
        Self::Model {
            model: model.to_owned(),
            reason: reason.into(),
        }
    }
}
