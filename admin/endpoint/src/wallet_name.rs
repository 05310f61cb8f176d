//! Names with which callers refer to a wallet (decision D61).

use super::whole_number::whole_number;
use domain::id::IdKind;
use domain::names::is_agent_id;
use serde_json::Value;
use store::keys::USER;

/// A name with which a caller refers to a wallet (decision D61).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalletName {
    /// By its number, of 14 to 16 digits.
    Number(u64),
    /// By its id, `wal_…`.
    Id(String),
    /// By the agent's id, or `user`: a wallet of the caller's account.
    Owner(String),
}

impl WalletName {
    /// Reads a JSON integer or string.
    pub(super) fn parse(json: &str) -> Option<Self> {
        match serde_json::from_str(json).ok()? {
            Value::Number(number) => number.as_u64().filter(|number| *number > 0).map(Self::Number),
            Value::String(text) => Self::from_text(text),
            _ => None,
        }
    }

    /// Reads a text that is no number: an id, an agent or `user`.
    fn from_text(text: String) -> Option<Self> {
        match text.starts_with(IdKind::Wallet.prefix()) {
            true => is_agent_id(&text).then_some(Self::Id(text)),
            false => (text == USER || is_agent_id(&text)).then_some(Self::Owner(text)),
        }
    }

    /// Reads any name as one word, as on a command line.
    pub fn from_word(word: &str) -> Option<Self> {
        match whole_number(word).filter(|number| *number > 0) {
            Some(number) => Some(Self::Number(number)),
            None => Self::from_text(word.to_owned()),
        }
    }

    /// Reads a number or an id, as in a path or a query. An id that was cut off is refused: it would seem to be that of
    /// a wallet without records.
    pub fn from_path(text: &str) -> Option<Self> {
        Self::from_word(text).filter(|name| match name {
            Self::Number(_) => true,
            Self::Id(id) => IdKind::Wallet.has_form(id),
            Self::Owner(_) => false,
        })
    }

    /// Returns the name as given, for fingerprints and messages.
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Id(id) => id.clone(),
            Self::Owner(owner) => owner.clone(),
        }
    }
}
