//! Compares the lists by agent and type with the trail: a list that was shortened in the store hides entries from
//! readers by agent or type, although the chain is valid.

use crate::broken::Broken;
use domain::entry::indexes;
use std::collections::BTreeMap;
use store::StoreError;
use store::audit::archive::ListName;
use store::audit::chain::Chain;

/// Maximum number of lists that are compared, which bounds the memory of a verification.
const LISTS_MAX: usize = 200_000;

/// Number of entries that each list must contain, as a verifier counted them.
#[derive(Debug, Default)]
pub(super) struct Lists {
    counts: BTreeMap<ListName, u64>,
    /// True if there are more lists than are compared.
    full: bool,
}

/// Result of the comparison.
#[derive(Debug, Default)]
pub(super) struct ListsComparison {
    pub(super) broken: Option<Broken>,
    pub(super) warning: Option<&'static str>,
}

impl Lists {
    /// Counts an entry.
    pub(super) fn add(&mut self, agent: Option<&str>, kind: &str) {
        for (agent, kind) in indexes(agent, kind) {
            self.count((agent.map(str::to_owned), kind.map(str::to_owned)));
        }
    }

    fn count(&mut self, name: ListName) {
        if self.counts.len() == LISTS_MAX && !self.counts.contains_key(&name) {
            self.full = true;
            return;
        }
        *self.counts.entry(name).or_default() += 1;
    }

    /// Compares all lists, up to entry `end`, with the counts up to there.
    pub(super) async fn compare(&self, chain: &Chain<'_>, end: u64) -> Result<ListsComparison, StoreError> {
        let mut listed = ListsComparison::default();
        if self.full {
            listed.warning = Some("not all lists by agent and type were compared: there are too many.");
        }
        for ((agent, kind), count) in &self.counts {
            let Some(named) = chain.named(agent.as_deref(), kind.as_deref(), end).await? else {
                listed.warning =
                    Some("not all lists by agent and type were compared: entries were archived meanwhile.");
                return Ok(listed);
            };
            if named != *count {
                let of = |what: &str, name: &Option<String>| {
                    let name = name.as_ref()?;
                    Some(format!("{what} `{name}`"))
                };
                let names: Vec<String> = [of("agent", agent), of("type", kind)]
                    .into_iter()
                    .flatten()
                    .collect();
                let names = names.join(" and ");
                let problem = format!(
                    "the list of entries of {names} has {named}, but the trail has {count}: the list was changed."
                );
                listed.broken = Some(Broken { seq: None, problem });
                return Ok(listed);
            }
        }
        Ok(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_counts_in_each_list_that_names_it_and_memory_is_bounded() {
        let mut lists = Lists::default();
        lists.add(Some("a"), "x");
        lists.add(Some("a"), "y");
        lists.add(None, "x");
        let name =
            |agent: Option<&str>, kind: Option<&str>| (agent.map(str::to_owned), kind.map(str::to_owned));
        let expected = [
            (name(None, Some("x")), 2),
            (name(None, Some("y")), 1),
            (name(Some("a"), None), 2),
            (name(Some("a"), Some("x")), 1),
            (name(Some("a"), Some("y")), 1),
        ];
        assert_eq!(lists.counts, BTreeMap::from(expected));
        for n in 0..LISTS_MAX {
            lists.add(None, &n.to_string());
        }
        assert_eq!((lists.counts.len(), lists.full), (LISTS_MAX, true));
        lists.add(None, "x");
        assert_eq!(lists.counts[&name(None, Some("x"))], 3);
    }
}
