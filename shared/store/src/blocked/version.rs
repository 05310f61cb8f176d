//! Version of the list of blocked addresses, `<count>-<random>`. Each change increments the count. The random part
//! distinguishes changes with the same count: a store that lost writes can count to the same number with another list.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    text: Option<String>,
    /// Number of changes. `None` before the first one.
    count: Option<u64>,
}

impl Version {
    pub(super) fn from_stored(text: Option<String>) -> Self {
        let counted = text.as_deref().and_then(|text| text.split_once('-'));
        let count = counted.and_then(|(count, _)| count.parse().ok());
        Self { text, count }
    }

    /// Returns whether the list lost changes since `before`.
    pub(super) fn fell_from(&self, before: &Self) -> bool {
        match (before.count, self.count) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(before_count), Some(count)) => {
                count < before_count || (count == before_count && self.text != before.text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_falls_when_it_counts_less_or_the_same_of_another_list() {
        let version =
            |text: &str| Version::from_stored(Some(text.to_owned()).filter(|text| !text.is_empty()));
        for (before, after, fell) in [
            ("2-aa", "2-aa", false),
            ("2-aa", "3-bb", false),
            ("9-aa", "10-bb", false),
            ("2-aa", "2-bb", true),
            ("2-aa", "1-bb", true),
            ("10-aa", "9-bb", true),
            ("1-aa", "", true),
            ("", "", false),
            ("", "1-aa", false),
        ] {
            assert_eq!(
                version(after).fell_from(&version(before)),
                fell,
                "{before} {after}"
            );
        }
    }
}
