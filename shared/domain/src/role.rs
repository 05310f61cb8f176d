//! Roles of dashboard users (decision D9).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A role. Ordered: a higher one may do all that a lower one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads; releases and disputes escrows, freezes and unfreezes agents, decides waiting intents.
    Manager,
    /// Everything but team, plan and deposits.
    Admin,
    /// Everything.
    Owner,
}

impl Role {
    /// Every role, the strongest first.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Admin, Self::Manager, Self::Viewer];

    /// The word in options, records and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Manager => "manager",
            Self::Viewer => "viewer",
        }
    }

    /// Parses a role.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_read_back() {
        assert!(Role::ALL.windows(2).all(|pair| pair[0] > pair[1]));
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        assert_eq!(Role::parse("root"), None);
    }
}
