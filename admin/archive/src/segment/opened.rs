//! An opened segment: verified against its descriptor, and searchable.

use super::Descriptor;
use domain::denial_window;
use domain::entry::{Entry, Sealed};
use domain::timestamp::ms_from_iso;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use store::audit::chain::{Backwards, EntryFilter};
use store::audit::decisions;

/// The parsed fields of a line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryLine<'a> {
    pub(super) seq: u64,
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) at: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) agent_id: Option<String>,
    #[serde(borrow)]
    previous_hash: Cow<'a, str>,
    #[serde(borrow)]
    hash: Cow<'a, str>,
}

/// A segment, opened.
#[derive(Debug)]
pub struct Segment {
    first: u64,
    text: String,
    rows: Vec<SegmentEntry>,
    /// The names of its agents and types, to which rows refer by number.
    names: HashMap<String, usize>,
}

#[derive(Debug)]
struct SegmentEntry {
    start: usize,
    end: usize,
    at_ms: u64,
    hash: [u8; 32],
    agent: Option<usize>,
    kind: usize,
}

impl Segment {
    /// Opens the segment in `bytes`, if it matches `descriptor`: the same bytes, or the same entries compressed by
    /// another version.
    ///
    /// # Errors
    /// The fault of the segment.
    pub fn open(descriptor: &Descriptor, bytes: &[u8]) -> Result<Self, String> {
        let text = decompress(bytes, descriptor.content_bytes)?;
        if hex::encode(Sha256::digest(bytes)) != descriptor.sha256 {
            prove(&text, descriptor)?;
        }
        let mut segment = Self {
            first: descriptor.first,
            rows: Vec::new(),
            names: HashMap::new(),
            text: String::new(),
        };
        let (mut start, mut before) = (0, descriptor.previous_hash.clone());
        for (line, seq) in text.lines().zip(descriptor.first..) {
            let read = read(line).filter(|read| read.seq == seq && read.previous_hash == *before);
            let read = read.ok_or_else(|| format!("in the place of entry {seq} is something else"))?;
            let row = segment.row(&read, start, start + line.len());
            segment
                .rows
                .push(row.ok_or_else(|| format!("entry {seq} makes no sense"))?);
            start += line.len() + 1;
            before = read.hash.into_owned();
        }
        if segment.rows.len() as u64 != descriptor.entries || before != descriptor.hash {
            return Err("it does not end with the entry that was archived last".to_owned());
        }
        segment.text = text;
        Ok(segment)
    }

    fn row(&mut self, line: &EntryLine<'_>, start: usize, end: usize) -> Option<SegmentEntry> {
        let mut hash = [0; 32];
        hex::decode_to_slice(line.hash.as_ref(), &mut hash).ok()?;
        Some(SegmentEntry {
            start,
            end,
            at_ms: ms_from_iso(&line.at)?,
            hash,
            agent: line.agent_id.as_deref().map(|agent| self.name(agent)),
            kind: self.name(&line.kind),
        })
    }

    fn name(&mut self, name: &str) -> usize {
        let next = self.names.len();
        match self.names.get(name) {
            Some(known) => *known,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        }
    }

    /// Returns at most `count` entries from the number `first` on.
    pub fn from(&self, first: u64, count: u64) -> Vec<Sealed> {
        let skipped = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let rows = self.rows.iter().skip(skipped).take(count);
        rows.map(|row| self.sealed(row)).collect()
    }

    /// Returns the matching entries within `part`, oldest first, with their numbers, and whether there are older ones.
    pub fn matching(&self, filter: EntryFilter<'_>, part: Backwards) -> (Vec<(u64, Sealed)>, bool) {
        let matching = self.rows_matching(filter);
        let least = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let below = matching.partition_point(|(seq, _)| *seq < part.before);
        let end = below.saturating_sub(least(part.skip));
        let start = end.saturating_sub(least(part.count));
        let found = matching[start..end]
            .iter()
            .map(|(seq, row)| (*seq, self.sealed(row)));
        (found.collect(), start > 0)
    }

    /// Returns the number of matching entries.
    pub fn count(&self, filter: EntryFilter<'_>) -> u64 {
        self.rows_matching(filter).len() as u64
    }

    /// Returns the rows that match, oldest first, with the numbers of their entries.
    fn rows_matching(&self, filter: EntryFilter<'_>) -> Vec<(u64, &SegmentEntry)> {
        let number = |name: Option<&str>| name.map(|name| self.names.get(name).copied());
        let (agent, kind) = (number(filter.agent), number(filter.kind));
        let rows = (self.first..).zip(&self.rows);
        let matching = rows
            .filter(|(_, row)| agent.is_none_or(|agent| agent.is_some() && row.agent == agent))
            .filter(|(_, row)| kind.is_none_or(|kind| kind == Some(row.kind)))
            .filter(|(_, row)| filter.from_ms.is_none_or(|from_ms| row.at_ms >= from_ms))
            .filter(|(_, row)| filter.to_ms.is_none_or(|to_ms| row.at_ms < to_ms));
        matching.collect()
    }

    /// Returns the manifest lines of the segment's decisions; `None` if an entry is malformed.
    pub(crate) fn decisions(&self) -> Option<String> {
        let mut records = Vec::new();
        for line in self.text.lines() {
            records.extend(decision(&read(line)?, line)?);
        }
        records.sort_unstable();
        Some(records.concat())
    }

    /// Returns its approximate size in memory, in bytes.
    pub fn weight(&self) -> u64 {
        let rows = self.rows.len() * size_of::<SegmentEntry>();
        (self.text.len() + rows) as u64
    }

    fn sealed(&self, row: &SegmentEntry) -> Sealed {
        let json = self.text.get(row.start..row.end).unwrap_or_default();
        Sealed {
            json: json.to_owned(),
            hash: row.hash,
        }
    }
}

/// The record of the decision that an entry is about, if it is about one; `None` when it makes no sense.
pub(super) fn decision(line: &EntryLine<'_>, json: &str) -> Option<Option<String>> {
    let is_window = line.kind == denial_window::KIND;
    let window = is_window.then(|| Entry::from_json(json));
    let id = match &window {
        Some(entry) => entry.as_ref()?.decision_id(),
        None => line.id.as_ref(),
    };
    Some(decisions::archived_record(id, line.seq))
}

pub(super) fn read(line: &str) -> Option<EntryLine<'_>> {
    serde_json::from_str(line).ok()
}

/// Decompresses the text in `bytes`, which must have `length` bytes.
///
/// # Errors
/// The fault of the text.
pub fn decompress(bytes: &[u8], length: u64) -> Result<String, String> {
    let mut text = String::new();
    let decoder = zstd::Decoder::new(bytes).map_err(|error| error.to_string())?;
    let read = decoder.take(length.saturating_add(1)).read_to_string(&mut text);
    read.map_err(|error| format!("it cannot be decompressed: {error}"))?;
    if text.len() as u64 != length {
        return Err("it does not have the length that was archived".to_owned());
    }
    Ok(text)
}

/// Computes every hash again: entries that prove themselves are the right ones, however they were compressed.
fn prove(text: &str, descriptor: &Descriptor) -> Result<(), String> {
    let mut before = descriptor.previous_hash.clone();
    for (line, seq) in text.lines().zip(descriptor.first..) {
        let sealed = Entry::from_json(line).and_then(|entry| entry.seal(&before));
        let sealed = sealed
            .filter(|sealed| sealed.json == line)
            .ok_or_else(|| format!("its bytes are not those that were archived, from entry {seq} on"))?;
        before = hex::encode(sealed.hash);
    }
    match before == descriptor.hash {
        true => Ok(()),
        false => Err("its bytes are not those that were archived".to_owned()),
    }
}
