//! Searches the newest agents by a part of their id or name, and by freeze.

use crate::agent::AgentRecord;
use crate::agent::survey::AGENTS_MAX;
use crate::filtered_page::{FieldFilter, FilteredPage};
use crate::keys::Realm;
use crate::page::{PageRequest, SortedSet, records};
use crate::{Store, StoreError};

/// Conditions that a listed agent meets; `None` matches every agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFilter {
    /// Part of the id or name, in lower case; matches any case.
    pub text: Option<String>,
    /// Matches frozen, or not frozen, agents only.
    pub frozen: Option<bool>,
}

impl AgentFilter {
    /// Returns whether an agent with this id, name and state matches.
    fn fits(&self, id: &str, name: &str, frozen: bool) -> bool {
        let text = self.text.as_deref();
        let has = |where_: &str| text.is_none_or(|text| where_.to_lowercase().contains(text));
        (has(id) || has(name)) && self.frozen.is_none_or(|wanted| wanted == frozen)
    }
}

impl AgentRecord {
    /// Returns matching agents with a wallet row, newest first. A page scans [`AGENTS_MAX`] at most.
    pub async fn search(
        store: &Store,
        realm: &Realm,
        wanted: &AgentFilter,
        page: PageRequest<'_>,
    ) -> Result<FilteredPage<Self>, StoreError> {
        let set = realm.agents();
        let list = SortedSet::whole(store, &set);
        let key = |id: &str| realm.agent(id);
        let filter = FieldFilter {
            store,
            scanned_max: AGENTS_MAX,
            key,
            fields: &["name", "frozen"],
            fits: |id: &str, fields: &[Option<String>]| {
                let field = |at: usize| fields.get(at).and_then(Option::as_deref);
                wanted.fits(id, field(0).unwrap_or_default(), field(1).is_some())
            },
        };
        let FilteredPage { mut part, is_partial } = list.filtered(page, &filter).await?;
        let records = records(store, std::mem::take(&mut part.records), key).await?;
        let part = Self::with_row(part.with(records))?;
        Ok(FilteredPage { part, is_partial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_any_case() {
        let wanted = |text: &str, frozen| AgentFilter {
            text: Some(text.to_owned()),
            frozen,
        };
        assert!(wanted("bot", None).fits("My-BOT", "x", false));
        assert!(wanted("straße", None).fits("a", "Große Straße 7", true));
        assert!(!wanted("bots", None).fits("my-bot", "x", false));
        assert!(!wanted("bot", Some(true)).fits("my-bot", "x", false));
        assert!(AgentFilter::default().fits("my-bot", "x", false));
    }
}
