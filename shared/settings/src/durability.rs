//! `store.durability`: how durable a change of money must be before it is acknowledged.

use serde::Deserialize;
use std::fmt;

/// Maximum number of replicas that can be required.
const REPLICAS_MAX: u8 = 9;

/// The demanded durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Durability {
    /// As durable as the server can confirm: in a replica's memory if it has a replica, and on disk if it can confirm
    /// that; otherwise as [`Durability::Async`].
    Auto,
    /// In the memory of the master only.
    Async,
    /// On the master's disk.
    Aof,
    /// In the memory of this many replicas.
    Replicas(u8),
}

impl Durability {
    /// Returns whether the operator requires it: while a server cannot guarantee it, changes of money are refused
    /// (`aof`) or not confirmed (`replicas(n)`).
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Aof | Self::Replicas(_))
    }
}

/// An unknown value.
#[derive(Debug, thiserror::Error)]
#[error(
    "`store.durability` must be auto, async, aof or replicas(n) with n from 1 to {REPLICAS_MAX}, not `{0}`"
)]
pub struct NoDurability(String);

impl TryFrom<String> for Durability {
    type Error = NoDurability;

    fn try_from(text: String) -> Result<Self, NoDurability> {
        let replicas = |text: &str| {
            let inner = text.strip_prefix("replicas(")?.strip_suffix(')')?;
            let digits = inner.bytes().all(|byte| byte.is_ascii_digit());
            let count = inner.parse().ok().filter(|_| digits)?;
            (1..=REPLICAS_MAX)
                .contains(&count)
                .then_some(Self::Replicas(count))
        };
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "async" => Ok(Self::Async),
            "aof" => Ok(Self::Aof),
            other => replicas(other).ok_or_else(|| NoDurability(other.to_owned())),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Async => f.write_str("async"),
            Self::Aof => f.write_str("aof"),
            Self::Replicas(count) => write!(f, "replicas({count})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Durability, NoDurability> {
        Durability::try_from(text.to_owned())
    }

    #[test]
    fn a_named_durability_is_required() {
        for (text, required) in [
            ("auto", false),
            ("async", false),
            ("aof", true),
            ("replicas(2)", true),
        ] {
            assert_eq!(parse(text).unwrap().is_required(), required, "{text}");
        }
    }

    #[test]
    fn the_words_are_read_back_and_others_are_refused_by_name() {
        for text in ["auto", "async", "aof", "replicas(1)", "replicas(9)"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "Aof",
            "replicas",
            "replicas()",
            "replicas(0)",
            "replicas(10)",
            "replicas(+1)",
            "replicas(1",
        ] {
            assert!(
                parse(text)
                    .unwrap_err()
                    .to_string()
                    .contains("`store.durability`"),
                "{text}"
            );
        }
    }
}
