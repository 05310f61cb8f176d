//! The lists that name an intent.

use crate::keys::{IntentIndex, Realm};
use domain::intent::IntentState;

/// Selects the lists that name an intent.
#[derive(Debug, Clone, Copy)]
pub struct IntentLists<'a> {
    /// Kind of request.
    pub kind: &'a str,
    /// Owner of the wallet: the agent, or `user`.
    pub agent: &'a str,
}

impl IntentLists<'_> {
    /// Returns the six index keys that scripts take.
    pub fn keys(&self, realm: &Realm) -> [String; 6] {
        let state = |state: IntentState| IntentIndex::State(state.as_str());
        [
            IntentIndex::All,
            IntentIndex::Kind(self.kind),
            IntentIndex::Agent(self.agent),
            state(IntentState::Settled),
            state(IntentState::Blocked),
            state(IntentState::PendingApproval),
        ]
        .map(|which| realm.intents(which))
    }
}
