//! Permissions of API keys (decisions D8, D49).

crate::words! {
    /// One permission of an API key.
    #[derive(PartialOrd, Ord)]
    pub enum Permission {
        /// GET routes.
        Read = "read",
        /// All other routes, except approvals.
        Write = "write",
        /// Approving and denying intents. A key with only write permission cannot, so that an agent cannot approve
        /// itself.
        Approve = "approve",
    }
}

impl Permission {
    /// Parses `read,write`; `None` if any word is not a permission.
    pub fn parse_list(text: &str) -> Option<Vec<Self>> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut list: Vec<Self> = words.map(Self::parse).collect::<Option<_>>()?;
        list.sort_unstable();
        list.dedup();
        Some(list)
    }

    /// Formats a list for [`Permission::parse_list`].
    pub fn list_text(list: &[Self]) -> String {
        Self::words(list).join(",")
    }

    /// Returns the words of a list.
    pub fn words(list: &[Self]) -> Vec<&'static str> {
        list.iter().copied().map(Self::as_str).collect()
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
