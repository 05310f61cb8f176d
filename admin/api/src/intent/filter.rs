//! Which intents a list shows: those of one index, and of these by run and time.

use super::document::stored;
use super::is_intent;
use crate::calls::filter::{run, word};
use domain::intent::{Kind, State};
use endpoint::{Problem, require_agent_id, time};
use std::collections::BTreeMap;
use store::intent::IntentRecord;
use store::keys::{IntentIndex, USER};

/// The filters that have an index, of which one can be given.
pub(super) const FILTERS: [&str; 3] = ["agentId", "kind", "state"];
/// The filters by which each intent that is read is judged.
pub(super) const SEARCHED: [&str; 3] = ["runId", "from", "to"];

/// The list that a query asks for.
pub(super) fn index(query: &BTreeMap<String, String>) -> Result<IntentIndex<'_>, Problem> {
    let mut given = FILTERS.iter().filter_map(|name| query.get_key_value(*name));
    let (Some((name, value)), another) = (given.next(), given.next()) else {
        return Ok(IntentIndex::All);
    };
    if another.is_some() {
        let names = FILTERS.join(", ");
        return Err(Problem::validation(format!("Give one of {names} at a time.")));
    }
    match name.as_str() {
        "kind" => {
            let kinds = Kind::ALL.iter().filter(|kind| is_intent(**kind));
            word(query, name, kinds.map(|kind| kind.as_str()))?;
            Ok(IntentIndex::Kind(value))
        }
        "state" => {
            word(query, name, State::ALL.map(State::as_str))?;
            Ok(IntentIndex::State(value))
        }
        _ if value == USER => Ok(IntentIndex::Agent(value)),
        _ => {
            require_agent_id("agentId", value)?;
            Ok(IntentIndex::Agent(value))
        }
    }
}

/// The filters without an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct IntentFilter {
    run: Option<String>,
    /// In ms since 1970.
    pub(super) from_ms: Option<u64>,
    /// In ms since 1970.
    to_ms: Option<u64>,
}

impl IntentFilter {
    /// Reads the filters of a query.
    ///
    /// # Errors
    /// 400 names a parameter that is malformed.
    pub(super) fn of_query(query: &BTreeMap<String, String>) -> Result<Self, Problem> {
        Ok(Self {
            run: run(query)?,
            from_ms: time(query, "from")?,
            to_ms: time(query, "to")?,
        })
    }

    /// Whether it shows every intent.
    pub(super) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an intent that was read is shown. Only spends have a run.
    pub(super) fn fits(&self, record: &IntentRecord) -> bool {
        self.from_ms.is_none_or(|from| record.at_ms >= from)
            && self.to_ms.is_none_or(|to| record.at_ms < to)
            && (self.run.is_none() || stored(record).run_id == self.run)
    }
}
