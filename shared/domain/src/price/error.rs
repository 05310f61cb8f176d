//! Why a price table, an overlay or an import is refused. The texts name the model and the field.

/// A price table or an import that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    /// Not TOML, or wrong outside the models; the source says where.
    #[error("the price table cannot be read")]
    Toml(#[source] Box<toml::de::Error>),
    /// Not the JSON that was expected; the source says where.
    #[error("the {what} is no valid JSON")]
    Json {
        /// What was being read.
        what: &'static str,
        /// The parser's complaint.
        #[source]
        source: serde_json::Error,
    },
    /// A model's entry is wrong.
    #[error("model `{model}`: {reason}")]
    Model {
        /// The name of the entry.
        model: String,
        /// What is wrong with it, naming the field.
        reason: String,
    },
    /// Something beside the models is wrong.
    #[error("`{field}` {reason}")]
    Setting {
        /// The key at the head of the table.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Larger than anything that is plausibly a price table.
    #[error("the {what} has more than {limit} {unit}")]
    TooLarge {
        /// What was being read.
        what: &'static str,
        /// The bound that it passed.
        limit: usize,
        /// What the bound counts.
        unit: &'static str,
    },
}

impl PriceError {
    /// A complaint about one model's entry.
    pub(super) fn model(model: &str, reason: impl Into<String>) -> Self {
        Self::Model {
            model: model.to_owned(),
            reason: reason.into(),
        }
    }
}
