//! What an API key may do (decisions D8, D49).

use std::fmt;

/// One permission of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    /// GET routes.
    Read,
    /// All other routes, less approvals.
    Write,
    /// Approving and denying intents; a plain write key cannot, so that an agent cannot approve itself.
    Approve,
}

impl Permission {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Approve];

    /// The word in options, records and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Approve => "approve",
        }
    }

    /// The permission of a word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|permission| permission.as_str() == word)
    }

    /// Reads `read,write`; `None` when any word is no permission.
    pub fn parse_list(text: &str) -> Option<Vec<Self>> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut list: Vec<Self> = words.map(Self::parse).collect::<Option<_>>()?;
        list.sort_unstable();
        list.dedup();
        Some(list)
    }

    /// Writes what [`Permission::parse_list`] reads.
    pub fn list_text(list: &[Self]) -> String {
        list.iter()
            .map(|permission| permission.as_str())
            .collect::<Vec<_>>()
            .join(",")
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_back() {
        let list = Permission::parse_list("write, read,write").unwrap();
        assert_eq!(Permission::list_text(&list), "read,write");
        assert_eq!(Permission::parse_list(""), Some(vec![]));
        assert_eq!(Permission::parse_list("read,admin"), None);
    }
}
