//! Roles of dashboard users (decision D9).

use serde::{Deserialize, Serialize};

crate::words! {
    /// A role. Ordered: a higher one may do all that a lower one may.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// Reads.
        Viewer = "viewer",
        /// Reads; releases and disputes escrows, freezes and unfreezes agents, decides waiting intents.
        Manager = "manager",
        /// Everything but team, plan and deposits.
        Admin = "admin",
        /// Everything.
        Owner = "owner",
    }
}

impl Role {
    /// The lowest role that makes API keys, which may do more than the roles below it.
    pub const MAKES_KEYS: Self = Self::Admin;

    /// Returns whether a user of this role makes API keys.
    pub fn makes_keys(self) -> bool {
        self >= Self::MAKES_KEYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_read_back() {
        assert!(Role::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        assert_eq!(Role::parse("root"), None);
    }
}
