//! The lists that name an intent.

use crate::keys::{IntentIndex, Realm};
use domain::intent::State;

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
        let state = |state: State| IntentIndex::State(state.as_str());
        [
            IntentIndex::All,
            IntentIndex::Kind(self.kind),
            IntentIndex::Agent(self.agent),
            state(State::Settled),
            state(State::Blocked),
            state(State::PendingApproval),
        ]
        .map(|which| realm.intents(which))
    }
}
