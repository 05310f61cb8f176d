//! Filter of the intents in a list: one index, and the other filters applied to its intents.

use super::is_intent;
use domain::intent::{IntentKind, IntentState};
use endpoint::{Problem, QueryParams, TimeRange, require_agent_id};
use store::intent::IntentRecord;
use store::keys::{IntentIndex, USER};

/// Filters with an index each. A list goes through one index; the others are searched for.
pub(super) const INDEXED: [&str; 3] = ["agentId", "kind", "state"];
/// Filters without an index, by which each intent that is read is judged.
pub(super) const SEARCHED: [&str; 3] = ["runId", "from", "to"];

/// The filters of a list beside its index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct IntentFilter<'a> {
    agent: Option<&'a str>,
    kind: Option<IntentKind>,
    state: Option<IntentState>,
    run: Option<&'a str>,
    /// In ms since 1970.
    pub(super) from_ms: Option<u64>,
    /// In ms since 1970.
    to_ms: Option<u64>,
}

/// Reads the filters of a query: the index that the list goes through, and the filters beside it.
///
/// # Errors
/// 400 names a parameter that is malformed.
pub(super) fn read(query: &QueryParams) -> Result<(IntentIndex<'_>, IntentFilter<'_>), Problem> {
    let kinds = IntentKind::ALL.iter().copied().filter(|kind| is_intent(*kind));
    let kind = query.value("kind", kinds.map(IntentKind::as_str), IntentKind::parse)?;
    let states = IntentState::ALL.map(IntentState::as_str);
    let state = query.value("state", states, IntentState::parse)?;
    let agent = query.get("agentId");
    if let Some(agent) = agent.filter(|agent| *agent != USER) {
        require_agent_id("agentId", agent)?;
    }
    let TimeRange { from_ms, to_ms } = TimeRange::from_query(query)?;
    let mut filter = IntentFilter {
        agent,
        kind,
        state,
        run: query.run_id("runId")?,
        from_ms,
        to_ms,
    };
    Ok((filter.take_index(), filter))
}

impl<'a> IntentFilter<'a> {
    /// Takes the filter whose index has the fewest intents as a rule: few wait, an agent has fewer than a kind, and a
    /// kind fewer than the settled or blocked ones.
    fn take_index(&mut self) -> IntentIndex<'a> {
        let waiting = self.state.take_if(|state| *state == IntentState::PendingApproval);
        if let Some(state) = waiting {
            return IntentIndex::State(state.as_str());
        }
        if let Some(agent) = self.agent.take() {
            return IntentIndex::Agent(agent);
        }
        if let Some(kind) = self.kind.take() {
            return IntentIndex::Kind(kind.as_str());
        }
        match self.state.take() {
            Some(state) => IntentIndex::State(state.as_str()),
            None => IntentIndex::All,
        }
    }

    /// Returns whether it shows every intent.
    pub(super) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true for an intent that is shown. Only spends have a run.
    pub(super) fn fits(&self, record: &IntentRecord) -> bool {
        self.agent.is_none_or(|agent| record.agent == agent)
            && self.kind.is_none_or(|kind| record.kind == kind)
            && self.state.is_none_or(|state| record.state == state)
            && self.from_ms.is_none_or(|from| record.at_ms >= from)
            && self.to_ms.is_none_or(|to| record.at_ms < to)
            && (self.run.is_none() || record.run.as_deref() == self.run)
    }
}
