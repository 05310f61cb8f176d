//! Entries of the audit log.

use crate::snapshot::Entry;
use store::keys::USER;

/// An entry about money of the wallet of `owner`.
pub fn entry(at: String, kind: &str, actor: &str, owner: &str, nanos: u64, words: Option<String>) -> Entry {
    let agent = Some(owner.to_owned()).filter(|owner| owner != USER);
    Entry {
        at,
        kind: kind.to_owned(),
        agent,
        actor: actor.to_owned(),
        nanos: Some(nanos),
        words,
    }
}

/// An entry about something that moves no money.
pub fn event(at: String, kind: &str, actor: &str, agent: Option<&str>) -> Entry {
    Entry {
        at,
        kind: kind.to_owned(),
        agent: agent.map(str::to_owned),
        actor: actor.to_owned(),
        nanos: None,
        words: None,
    }
}
