//! Finds the prices of a request's model (D32): by name or alias, otherwise by the name without the snapshot's date,
//! otherwise by the base of a fine-tuned model. Hash look-ups on slices of the name, without allocation.

use super::entry::{MAX_NAME_BYTES, ModelEntry};
use std::collections::{BTreeMap, HashMap};

/// Prefix of the names of fine-tuned models: `ft:base:organisation:suffix:id`.
const FINE_TUNED: &str = "ft:";
/// End of a provider's prefix, as in `azure/gpt-4o` and `openrouter/openai/gpt-4o`.
const PREFIX_END: char = '/';

/// The names in a table, with the positions of their models.
#[derive(Debug, Clone)]
pub(super) struct ModelNames(HashMap<String, usize>);

impl ModelNames {
    /// Collects the names and aliases of these models.
    pub(super) fn from_models(models: &BTreeMap<String, ModelEntry>) -> Self {
        let mut positions: HashMap<String, usize> = models.keys().cloned().zip(0..).collect();
        for (position, entry) in models.values().enumerate() {
            for alias in &entry.aliases {
                // A model of that name takes precedence: an import may have figures for a former alias.
                positions.entry(alias.clone()).or_insert(position);
            }
        }
        Self(positions)
    }

    /// Returns the names, including aliases, in alphabetical order.
    pub(super) fn sorted(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the models named `model` without one or more of its provider prefixes, the longest name first. A named
    /// upstream serves the same model at its own price.
    pub(super) fn namesakes<'a>(&'a self, model: &'a str) -> impl Iterator<Item = usize> + 'a {
        let ends = model.match_indices(PREFIX_END);
        ends.filter_map(move |(at, end)| self.known(&model[at + end.len()..]))
    }

    /// Returns the model that `model` names.
    pub(super) fn known(&self, model: &str) -> Option<usize> {
        if model.len() > MAX_NAME_BYTES {
            return None;
        }
        let Some(tuned) = model.strip_prefix(FINE_TUNED) else {
            return self.dated(model);
        };
        let base = tuned.split(':').next().unwrap_or(tuned);
        let tuned_base = &model[..FINE_TUNED.len() + base.len()];
        self.exact(model)
            .or_else(|| self.dated(tuned_base))
            .or_else(|| self.dated(base))
    }

    /// Finds the name as given, otherwise without its date.
    fn dated(&self, name: &str) -> Option<usize> {
        self.exact(name).or_else(|| self.exact(without_date(name)?))
    }

    fn exact(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }
}

/// Returns the name without its date: `gpt-4o` for `gpt-4o-2024-08-06`, `gpt-4` for `gpt-4-0613`.
fn without_date(name: &str) -> Option<&str> {
    let (rest, last) = name.rsplit_once('-')?;
    match last.len() {
        4 if is_month(last.get(..2)?) && is_day(last.get(2..)?) => Some(rest),
        2 if is_day(last) => {
            let (rest, month) = rest.rsplit_once('-')?;
            let (rest, year) = rest.rsplit_once('-')?;
            (is_month(month) && year.len() == 4 && number(year)? >= 2000).then_some(rest)
        }
        _ => None,
    }
}

fn is_month(text: &str) -> bool {
    text.len() == 2 && number(text).is_some_and(|month| (1..=12).contains(&month))
}

fn is_day(text: &str) -> bool {
    text.len() == 2 && number(text).is_some_and(|day| (1..=31).contains(&day))
}

/// Parses digits only; `parse` alone would accept a sign.
fn number(text: &str) -> Option<u16> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_found_at_the_end_only() {
        for (name, base) in [
            ("gpt-4o-2024-08-06", Some("gpt-4o")),
            ("gpt-4-0613", Some("gpt-4")),
            ("gpt-3.5-turbo-16k-0613", Some("gpt-3.5-turbo-16k")),
            ("a-2024-12-31", Some("a")),
            ("gpt-4-1106-preview", None),
            ("gpt-4o", None),
            ("gpt-4-1306", None),
            ("gpt-4-0632", None),
            ("gpt-4-0000", None),
            ("a-2024-13-01", None),
            ("a-2024-1-01", None),
            ("a-24-01-01", None),
            ("a-1999-01-01", None),
            ("a-+024-01-01", None),
            ("a-2024-01-+1", None),
            ("2024-08-06", None),
            ("a-éé", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(without_date(name), base, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_panics(name in "(ft:)?[a-zé0-9:-]{0,20}(-[0-9é]{2,4}){0,3}") {
            let table = crate::price::tests::builtin();
            let _ = table.price_of(&name);
        }
    }
}
