//! Verification of a chain, entry by entry, in constant memory.

use super::json;
use crate::broken::Broken;
use domain::chain::{GENESIS, canonical, hash_of};
use domain::checkpoint::hash_of_none;
use domain::entry::UNREADABLE;
use domain::timestamp::ms_from_iso;
use serde_json::{Map, Value};

/// Verifies the hash chain of a trail, entry by entry.
#[derive(Debug, Clone)]
pub struct ChainVerifier {
    after: u64,
    seen: u64,
    /// Hash that the next entry must contain; unknown before the first entry of a part.
    previous: Option<String>,
    hash: Option<[u8; 32]>,
    /// Agent and type of the last entry.
    subject: Option<(Option<String>, String)>,
    /// The entries whose hashes are remembered.
    marks: Vec<Mark>,
}

/// An entry whose hash is remembered.
#[derive(Debug, Clone)]
struct Mark {
    seq: u64,
    hash: Option<[u8; 32]>,
    /// When the next entry was written, in ms since 1970.
    next_ms: Option<u64>,
}

impl Mark {
    const fn at(seq: u64) -> Self {
        Self {
            seq,
            hash: None,
            next_ms: None,
        }
    }
}

impl ChainVerifier {
    /// Creates a verifier that begins after entry `after`: at the first entry, or at the next entry of a part whose
    /// beginning is trusted.
    pub fn starting_after(after: u64) -> Self {
        Self {
            after,
            seen: 0,
            previous: (after == 0).then(|| GENESIS.to_owned()),
            hash: None,
            subject: None,
            marks: vec![Mark {
                hash: Some(hash_of_none()),
                ..Mark::at(0)
            }],
        }
    }

    /// Requests the hash of entry `seq`.
    pub fn mark(&mut self, seq: u64) {
        if !self.marks.iter().any(|mark| mark.seq == seq) {
            self.marks.push(Mark::at(seq));
        }
    }

    /// Returns the hash of an entry that was requested or is the last one, if the verifier passed it.
    pub fn hash_of(&self, seq: u64) -> Option<[u8; 32]> {
        if self.seen > 0 && seq == self.end() {
            return self.hash;
        }
        self.marks.iter().find(|mark| mark.seq == seq)?.hash
    }

    /// Returns when the entry after a marked one was written, in ms since 1970, if the verifier has passed it.
    pub(super) fn next_ms(&self, seq: u64) -> Option<u64> {
        self.marks.iter().find(|mark| mark.seq == seq)?.next_ms
    }

    /// Returns the number before the first entry.
    pub const fn after(&self) -> u64 {
        self.after
    }

    /// Returns the number of entries seen.
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the number of the last entry.
    pub const fn end(&self) -> u64 {
        self.after + self.seen
    }

    /// Returns the hash of the last entry.
    pub const fn hash(&self) -> Option<[u8; 32]> {
        self.hash
    }

    /// Returns the agent and the type of the last entry.
    pub(super) fn subject(&self) -> Option<(Option<&str>, &str)> {
        let subject = self.subject.as_ref();
        subject.map(|(agent, kind)| (agent.as_deref(), kind.as_str()))
    }

    /// Checks the next entry, as JSON.
    ///
    /// # Errors
    /// [`Broken`] if it is not the next one of the chain, or does not match its hash.
    pub fn step(&mut self, text: &[u8]) -> Result<(), Broken> {
        let next = self.end() + 1;
        let broken = |problem: &str| Broken::at(next, problem);
        let mut entry =
            json::object(text).map_err(|why| Broken::at(next, format!("it cannot be read: {why}.")))?;
        check_number(&entry, next)?;
        let word = |entry: &Map<String, Value>, name: &str| match entry.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(Broken::at(next, format!("it has no string `{name}`."))),
        };
        let named = word(&entry, "previousHash")?;
        if self.previous.as_ref().is_some_and(|previous| *previous != named) {
            return Err(broken(
                "its previousHash is not the hash of the entry before it: one of the two was changed, or an entry between \
                 them was removed.",
            ));
        }
        let claimed = word(&entry, "hash")?;
        let kind = word(&entry, "type")?;
        if kind == UNREADABLE {
            return Err(broken(
                "its line in the store cannot be read: it was changed by hand.",
            ));
        }
        entry.remove("hash");
        let form = canonical(&entry).ok_or_else(|| broken("it has no canonical form."))?;
        let hash = hash_of(&named, &form);
        let text = hex::encode(hash);
        if text != claimed {
            return Err(broken("its content does not match its hash: it was changed."));
        }
        if self.seen == 0 && self.after > 0 {
            let before = decode(&named).ok_or_else(|| broken("its previousHash is not a hash."))?;
            self.know(self.after, before);
        }
        let agent = entry.get("agentId").and_then(Value::as_str).map(str::to_owned);
        self.subject = Some((agent, kind));
        self.seen += 1;
        self.previous = Some(text);
        self.hash = Some(hash);
        let at_ms = entry.get("at").and_then(Value::as_str).and_then(ms_from_iso);
        for mark in &mut self.marks {
            if mark.seq == next {
                mark.hash = Some(hash);
            }
            if mark.seq + 1 == next {
                mark.next_ms = at_ms;
            }
        }
        Ok(())
    }

    /// Stores the hash of entry `seq`, whether or not it was requested.
    fn know(&mut self, seq: u64, hash: [u8; 32]) {
        self.mark(seq);
        for mark in self.marks.iter_mut().filter(|mark| mark.seq == seq) {
            mark.hash = Some(hash);
        }
    }
}

fn check_number(entry: &Map<String, Value>, next: u64) -> Result<(), Broken> {
    let problem = match entry.get("seq").and_then(Value::as_u64) {
        Some(seq) if seq == next => return Ok(()),
        None => "it has no number `seq`.".to_owned(),
        Some(seq) if seq > next => {
            format!(
                "entry {seq} stands in its place: entries were removed or moved, or its number was changed."
            )
        }
        Some(seq) => {
            format!(
                "entry {seq} stands in its place: an entry was inserted or moved, or its number was changed."
            )
        }
    };
    Err(Broken::at(next, problem))
}

fn decode(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).ok().map(|()| hash)
}
