//! Known ends of a chain, which its end is compared with: a truncated chain is valid up to its last entry.

use crate::broken::Broken;
use crate::verifier::ChainVerifier;
use crypto::checkpoint_key::{BadNote, PublicKey};
use domain::checkpoint::{Checkpoint, CheckpointEnd};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The warning if no signed checkpoint was compared.
pub(super) const UNSIGNED: &str = "no signed checkpoint was available (they are in audit.archive, the first of a trail after audit.checkpoint_every_ms): only the store states that nothing is missing at the end.";

domain::words! {
    /// Source of a known end.
    pub enum Source {
        /// A signed note that the caller gave.
        Note = "note",
        /// The signed note in the archive.
        Archive = "archive",
        /// The store itself.
        Store = "store",
    }
}

/// A known end: the number of entries of a chain, and the hash of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownEnd {
    /// Evidence for this end.
    pub source: Source,
    /// Number of entries.
    pub size: u64,
    /// Hash of the last entry.
    pub hash: [u8; 32],
    /// The end that the chain had when a note of this earlier state was signed.
    pub later: Option<CheckpointEnd>,
}

/// Rounds of the worker that signs checkpoints, within which an entry need not be covered by a checkpoint.
const ROUNDS: u32 = 2;

/// Returns the times, in ms since 1970, of entries that need not be covered by a checkpoint yet: the last two rounds of
/// the worker that signs one at each `every`.
pub fn young(now_ms: u64, every: Duration) -> RangeInclusive<u64> {
    let span_ms = u64::try_from(every.saturating_mul(ROUNDS).as_millis()).unwrap_or(u64::MAX);
    now_ms.saturating_sub(span_ms)..=now_ms.saturating_add(span_ms)
}

impl Source {
    /// Returns the subject of a sentence.
    const fn name(self) -> &'static str {
        match self {
            Self::Note => "the checkpoint",
            Self::Archive => "the checkpoint in the archive",
            Self::Store => "the trail in the store",
        }
    }
}

impl KnownEnd {
    /// Returns the end in a note, if this key signed it for this chain.
    ///
    /// # Errors
    /// [`Broken`] with a sentence about the note.
    pub fn from_note(note: &str, key: PublicKey, origin: &str) -> Result<Self, Broken> {
        let Checkpoint {
            size, hash, later, ..
        } = key.verify(note, origin).map_err(bad)?;
        Ok(Self {
            source: Source::Note,
            size,
            hash,
            later,
        })
    }

    /// Returns the largest end that a checkpoint in the archive contains.
    pub fn from_archive(note: &Checkpoint) -> Self {
        let CheckpointEnd { size, hash } = note.end();
        Self {
            source: Source::Archive,
            size,
            hash,
            later: None,
        }
    }

    /// Returns the end that the chain had when the checkpoint was signed, if it covers an earlier state.
    pub(super) fn at_signing(&self) -> Option<Self> {
        let CheckpointEnd { size, hash } = self.later?;
        Some(Self {
            source: self.source,
            size,
            hash,
            later: None,
        })
    }

    /// Makes a verifier remember the hashes that this is compared with.
    pub fn mark(&self, verifier: &mut ChainVerifier) {
        verifier.mark(self.size);
        if let Some(later) = self.later {
            verifier.mark(later.size);
        }
    }

    /// Returns the warning that the checkpoint covers an earlier state.
    pub(super) fn earlier(&self) -> Option<String> {
        let (name, end, size) = (self.source.name(), self.later?.size, self.size);
        Some(format!(
            "{name} covers an earlier state: the trail had {end} entries when it was signed, and those after entry \
             {size} are not covered."
        ))
    }

    pub(super) fn document(&self) -> Value {
        json!({ "source": self.source.as_str(), "size": self.size, "hash": hex::encode(self.hash) })
    }

    pub(super) fn text(&self) -> String {
        let name = self.source.name();
        format!("They agree with {name}, which has {} entries.", self.size)
    }

    /// Returns the warning that it proves less than the whole file.
    pub(super) fn older(&self) -> String {
        let (name, size) = (self.source.name(), self.size);
        format!(
            "{name} is older than the file: it does not prove that the entries after {size} are complete."
        )
    }

    /// Returns the warning that it could not be compared.
    pub(super) fn unseen(&self) -> String {
        let (name, size) = (self.source.name(), self.size);
        format!("{name} was not compared: the file does not contain its last entry, {size}.")
    }

    /// Compares the verified entries with it. Returns whether the hashes could be compared and are equal; they could
    /// not if the verifier began after it, or has no entry. If it must be `exact`, an end beyond it is a fault, like a
    /// missing one.
    pub(super) fn compare(&self, verifier: &ChainVerifier, exact: bool) -> Result<bool, Broken> {
        let (name, size, end) = (self.source.name(), self.size, verifier.end());
        if end < size {
            let missing = format!(
                "entries {} to {size} are missing at the end: {name} has them.",
                end + 1
            );
            let hint = match self.source {
                Source::Store => {
                    " Verify an older export with the checkpoint that was taken with it (--checkpoint)."
                }
                Source::Note | Source::Archive => "",
            };
            return Err(Broken::at(end + 1, format!("{missing}{hint}")));
        }
        let hash = verifier.hash_of(size);
        if hash.is_some_and(|hash| hash != self.hash) {
            let problem = format!(
                "its hash differs from {name}: it or an earlier entry was changed, and the later hashes were \
                 recomputed."
            );
            return Err(Broken::at(size, problem));
        }
        if exact && end > size {
            let problem = format!("it is beyond the end: {name} has only {size} entries.");
            return Err(Broken::at(size + 1, problem));
        }
        Ok(hash.is_some())
    }
}

/// Result of comparing verified entries with all known ends.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The first mismatch.
    pub(super) broken: Option<Broken>,
    /// The known end that proves most, among those that could be compared.
    pub(super) best: Option<KnownEnd>,
    /// Number of entries that the largest matching checkpoint covers; `None` without one. The store itself proves no
    /// end: an attacker who truncates the trail can write to it.
    pub(super) signed: Option<u64>,
    /// The largest number of entries that a checkpoint states, even if the verifier has not seen them.
    stated: u64,
    /// True if a known end covers exactly the verified entries.
    pub(super) whole: bool,
    /// Known ends that could not be compared.
    pub(super) unseen: Vec<KnownEnd>,
}

impl Compared {
    /// Compares a verifier with known ends. Notes must match exactly if `exact`; the store must always.
    pub(super) fn new(verifier: &ChainVerifier, known: Vec<KnownEnd>, exact: bool) -> Self {
        let mut all = Self::default();
        for one in known {
            let exact = match one.source {
                Source::Note => exact,
                Source::Archive => false,
                Source::Store => true,
            };
            match one.compare(verifier, exact) {
                Ok(false) => {
                    all.unseen.push(one);
                    continue;
                }
                Ok(true) => {
                    if one.source != Source::Store {
                        all.signed = all.signed.max(Some(one.size));
                        all.stated = all.stated.max(one.later.map_or(one.size, |later| later.size));
                    }
                    all.whole |= one.size == verifier.end();
                }
                Err(broken) => {
                    let first = all.broken.take().into_iter().chain([broken]);
                    all.broken = first.min_by_key(|broken| broken.seq);
                }
            }
            // Of two with the same end, the signed one proves more.
            let weight = |one: &KnownEnd| (one.size, one.source != Source::Store);
            all.best = all.best.take().into_iter().chain([one]).max_by_key(weight);
        }
        all
    }

    /// Returns whether it is proven that nothing is missing at the end: a checkpoint covers it, or it is too young for
    /// one.
    pub(super) fn is_end_proven(&self, verifier: &ChainVerifier, young: &RangeInclusive<u64>) -> bool {
        let Some(signed) = self.signed.filter(|_| self.stated <= verifier.end()) else {
            return false;
        };
        signed == verifier.end()
            || verifier
                .next_ms(signed)
                .is_some_and(|at_ms| young.contains(&at_ms))
    }

    /// Returns the warning about entries that no checkpoint covers although one should.
    pub(super) fn uncovered(&self, verifier: &ChainVerifier, young: &RangeInclusive<u64>) -> Option<String> {
        let signed = self.signed?;
        let is_old =
            signed < verifier.end() && !self.is_end_proven(verifier, young) && self.stated <= verifier.end();
        is_old.then(|| {
            format!(
                "entries {} to {} are covered by no signed checkpoint, and the first of them is older than two rounds \
                 of the worker that signs (audit.checkpoint_every_ms): it does not run, or its checkpoint was replaced \
                 by an older one.",
                signed + 1,
                verifier.end()
            )
        })
    }
}

fn bad(why: BadNote) -> Broken {
    Broken {
        seq: None,
        problem: format!("{} is invalid: {why}.", Source::Note.name()),
    }
}
