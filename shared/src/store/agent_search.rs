//! Finding agents by a part of their id or name, and by whether they are frozen: a bounded look at the newest ones.

use super::agent::AgentRecord;
use super::keys::AccountKeys;
use super::page::{Page, records};
use super::survey::AGENTS_MAX;
use super::{Store, StoreError};
use crate::domain::mode::Mode;

/// Agents asked for in one round trip.
const CHUNK: usize = 500;

/// What agents must be like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// In lower case: a part of the id or of the name, in any case.
    pub text: Option<String>,
    /// Whether they are frozen.
    pub frozen: Option<bool>,
}

impl Wanted {
    /// Whether an agent of this id, name and state is wanted.
    fn fits(&self, id: &str, name: &str, frozen: bool) -> bool {
        let text = self.text.as_deref();
        let has = |where_: &str| text.is_none_or(|text| where_.to_lowercase().contains(text));
        (has(id) || has(name)) && self.frozen.is_none_or(|wanted| wanted == frozen)
    }
}

impl AgentRecord {
    /// The agents with a wallet row that are wanted, newest first, how many these are in all, and whether every agent was
    /// looked at: of more than [`AGENTS_MAX`] only the newest are.
    ///
    /// # Errors
    /// [`StoreError`], also for records that make no sense.
    pub async fn search(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        wanted: &Wanted,
        page: Page,
    ) -> Result<(Vec<Self>, u64, bool), StoreError> {
        let newest = Page {
            limit: AGENTS_MAX,
            offset: 0,
        };
        let (ids, rows) = newest.members(store, &account.agents(mode)).await?;
        let mut found = Vec::new();
        for ids in ids.chunks(CHUNK) {
            let mut look = redis::pipe();
            for id in ids {
                look.cmd("HMGET")
                    .arg(account.agent(mode, id))
                    .arg("name")
                    .arg("frozen");
            }
            let seen: Vec<(Option<String>, Option<String>)> = store.pipeline(&look).await?;
            let seen = ids.iter().zip(seen);
            let fitting = seen.filter(|(id, (name, frozen))| {
                wanted.fits(id, name.as_deref().unwrap_or_default(), frozen.is_some())
            });
            found.extend(fitting.map(|(id, _)| id.clone()));
        }
        let total = found.len() as u64;
        let shown = found.into_iter().skip(page.offset).take(page.limit).collect();
        let records = records(store, shown, |id| account.agent(mode, id)).await?;
        let agents = records.iter().map(|(id, fields)| Self::from_fields(id, fields));
        let agents: Option<Vec<Self>> = agents.collect();
        let mut agents = agents.ok_or_else(|| StoreError::Nonsense("agent record".to_owned()))?;
        // One that was deleted between the looks is left out.
        agents.retain(|agent| agent.row.is_some());
        Ok((agents, total, rows <= AGENTS_MAX as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_any_case() {
        let wanted = |text: &str, frozen| Wanted {
            text: Some(text.to_owned()),
            frozen,
        };
        assert!(wanted("bot", None).fits("My-BOT", "x", false));
        assert!(wanted("straße", None).fits("a", "Große Straße 7", true));
        assert!(!wanted("bots", None).fits("my-bot", "x", false));
        assert!(!wanted("bot", Some(true)).fits("my-bot", "x", false));
        assert!(Wanted::default().fits("my-bot", "x", false));
    }
}
