//! An entry of the audit trail (decisions D40, D50): a pure function of the line that a script appended, linked to the
//! previous entry by its hash. The hashed text is the canonical JSON that listings and exports show, so everything that
//! it depends on (names, order of checks, forms of amounts) never changes.

mod call;
mod checks;
mod ended_by;
mod words;

pub use call::{HoldOutcome, NONE, run_of_word, run_word};
pub use checks::RecordedCheck;
pub use ended_by::{EndedBy, OPERATOR};

use super::chain;
use super::denial_window;
use super::id::IdKind;
use crate::timestamp::iso_from_ms;
use serde_json::{Map, Value, json};

/// Type of an entry whose line cannot be parsed, for example after a manual change of the store.
pub const UNREADABLE: &str = "unreadable";
/// Maximum number of characters of such a line that its entry shows.
const SHOWN_MAX: usize = 1000;

/// The latest version of lines that this release reads. A line has its version after the time, as in `<seq> <at_ms> v2
/// <rest>`; a line without one has version 1. A new denial reason, check or kind of end needs a new version, so that no
/// earlier release seals a line that it does not understand.
///
/// | version | addition |
/// |---|---|
/// | 1 | |
/// | 2 | the [measurements](crate::measured::Measured) in the line of a call that ended |
/// | 3 | [who](EndedBy) ended a call's hold, where it was not its edge |
/// | 4 | the [details of the charge](crate::measured::Billing) in the measurements |
pub const LINE_VERSION: u64 = 4;

/// An audit entry: one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Number in the trail, starting at 1 without gaps.
    pub seq: u64,
    /// Id: `allow_…` or `deny_…` for a decision on a call, `aud_…` for everything else.
    pub id: String,
    /// Time by the store's clock, in ms since 1970.
    pub at_ms: u64,
    /// Type: `agent.frozen`, `decision.denied`, …
    pub kind: String,
    /// The affected agent.
    pub agent: Option<String>,
    /// The actor: an API key's id, a virtual key's id, `operator`, …
    pub actor: String,
    /// The details. Never contain a secret.
    pub data: Map<String, Value>,
}

/// An entry at its position in the chain, as shown and exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// One JSON object: the hashed fields, and `hash`.
    pub json: String,
    /// The entry's hash, which the next entry contains.
    pub hash: [u8; 32],
}

impl Entry {
    /// Parses the line at position `seq`: `<seq> <at_ms> <rest>`. A malformed line, or one with another number, becomes
    /// an entry of the type [`UNREADABLE`], so that no line can stop the chain.
    pub fn from_line(seq: u64, line: &[u8]) -> Self {
        let text = std::str::from_utf8(line).ok();
        text.and_then(|text| read(seq, text))
            .unwrap_or_else(|| unreadable(seq, line))
    }

    /// Links the entry to the one whose hash is `previous`.
    pub fn seal(&self, previous: &str) -> Option<Sealed> {
        let text = self.canonical(previous)?;
        let hash = chain::hash_of(previous, text.as_bytes());
        with_hash(&text, hash)
    }

    /// Builds the entry with its stored hash, without verifying it.
    pub fn shown(&self, previous: &str, hash: [u8; 32]) -> Option<Sealed> {
        with_hash(&self.canonical(previous)?, hash)
    }

    /// Returns the hashed text.
    fn canonical(&self, previous: &str) -> Option<String> {
        let value = json!({
            "seq": self.seq,
            "id": self.id,
            "at": iso_from_ms(self.at_ms),
            "type": self.kind,
            "agentId": self.agent,
            "actor": self.actor,
            "data": self.data,
            "previousHash": previous,
        });
        String::from_utf8(chain::canonical(&value)?).ok()
    }

    /// Returns the id of the decision, or of the window's record, that the entry is about.
    pub fn decision_id(&self) -> &str {
        decision_id(&self.kind, &self.id, self.data.get(denial_window::ID_FIELD))
    }

    /// Returns the index lists of the entry: by agent, by type, and by both.
    pub fn indexes(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
        indexes(self.agent.as_deref(), &self.kind)
    }

    /// Parses a JSON object written by [`Entry::seal`].
    pub fn from_json(json: &str) -> Option<Self> {
        let mut value: Map<String, Value> = serde_json::from_str(json).ok()?;
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let at = text(value.remove("at"))?;
        Some(Self {
            seq: value.get("seq")?.as_u64()?,
            id: text(value.remove("id"))?,
            at_ms: crate::timestamp::ms_from_iso(&at)?,
            kind: text(value.remove("type"))?,
            agent: text(value.remove("agentId")),
            actor: text(value.remove("actor"))?,
            data: match value.remove("data")? {
                Value::Object(data) => data,
                _ => return None,
            },
        })
    }
}

/// Returns the index lists of an entry of this agent and type: by agent, by type, and by both.
pub fn indexes<'a>(
    agent: Option<&'a str>,
    kind: &'a str,
) -> impl Iterator<Item = (Option<&'a str>, Option<&'a str>)> {
    let of_agent = agent.map(|agent| [(Some(agent), None), (Some(agent), Some(kind))]);
    std::iter::once((None, Some(kind))).chain(of_agent.into_iter().flatten())
}

/// Returns the id under which decisions find an entry of this type and id. `said` is its field
/// [`ID_FIELD`](denial_window::ID_FIELD).
pub fn decision_id<'a>(kind: &str, id: &'a str, said: Option<&'a Value>) -> &'a str {
    let of_window = said
        .filter(|_| kind == denial_window::KIND)
        .and_then(Value::as_str);
    of_window.unwrap_or(id)
}

fn with_hash(canonical: &str, hash: [u8; 32]) -> Option<Sealed> {
    let open = canonical.strip_suffix('}')?;
    let json = format!("{open},\"hash\":\"{}\"}}", hex::encode(hash));
    Some(Sealed { json, hash })
}

/// Returns whether a later release wrote the line. This release has no [`Entry`] for it, and must leave it alone.
pub fn is_of_later_release(line: &[u8]) -> bool {
    let rest = line.splitn(3, |byte| *byte == b' ').nth(2);
    // Nearly all lines have no version, and are parsed as text only once.
    let marked = rest.filter(|rest| rest.starts_with(b"v"));
    let text = marked.and_then(|rest| std::str::from_utf8(rest).ok());
    text.is_some_and(|text| version(text).0 > LINE_VERSION)
}

/// Returns the version in the text after the time, and the rest after the version.
fn version(text: &str) -> (u64, &str) {
    let marked = text.strip_prefix('v').and_then(|text| text.split_once(' '));
    let version = marked.and_then(|(digits, rest)| Some((digits.parse().ok()?, rest)));
    version.unwrap_or((1, text))
}

/// Parses `<seq> <at_ms> <rest>`, with or without a version before the rest.
fn read(seq: u64, text: &str) -> Option<Entry> {
    let (number, rest) = text.split_once(' ')?;
    let (at_ms, rest) = rest.split_once(' ')?;
    let at_ms = at_ms.parse().ok()?;
    let (version, rest) = version(rest);
    if version > LINE_VERSION {
        return None;
    }
    if number.parse() != Ok(seq) {
        return None;
    }
    if rest.starts_with('{') {
        change(seq, at_ms, rest)
    } else {
        call::read(seq, at_ms, version, rest)
    }
}

/// Parses a change: the JSON composed by the script's twin, and the words that the script appended.
fn change(seq: u64, at_ms: u64, rest: &str) -> Option<Entry> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
    let mut said = values.next()?.ok()?;
    let end = values.byte_offset();
    let Value::Object(mut data) = said.remove("data")? else {
        return None;
    };
    words::merge(&mut data, rest.get(end..)?)?;
    Some(Entry {
        seq,
        id: IdKind::Audit.numbered(at_ms, seq),
        at_ms,
        kind: said.get("type")?.as_str()?.to_owned(),
        agent: said.get("agentId").and_then(Value::as_str).map(str::to_owned),
        actor: said.get("actor")?.as_str()?.to_owned(),
        data,
    })
}

fn unreadable(seq: u64, line: &[u8]) -> Entry {
    let line: String = String::from_utf8_lossy(line).chars().take(SHOWN_MAX).collect();
    let mut data = Map::new();
    data.insert("line".to_owned(), line.into());
    Entry {
        seq,
        id: IdKind::Audit.numbered(0, seq),
        at_ms: 0,
        kind: UNREADABLE.to_owned(),
        agent: None,
        actor: "unknown".to_owned(),
        data,
    }
}

#[cfg(test)]
mod tests;
