//! The outcome of a verification.

use crate::broken::Broken;
use crate::end::KnownEnd;
use crate::verifier::ChainVerifier;
use domain::chain::GENESIS;
use serde_json::{Value, json};

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Number of entries that were read and are valid.
    pub entries: u64,
    /// Number of the entry before the first of them.
    pub after: u64,
    /// Hash of the last one.
    pub hash: Option<[u8; 32]>,
    /// The first fault, if any.
    pub broken: Option<Broken>,
    /// The known end that the trail was compared with.
    pub checkpoint: Option<KnownEnd>,
    /// True if it is proven that no entry is missing at the end.
    pub end_proven: bool,
    /// Number of entries that a signed checkpoint covers; `None` without one.
    pub proven_to: Option<u64>,
    /// Limits of the verdict, each a sentence.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// Creates the verdict on the entries read so far.
    pub(crate) fn new(verifier: &ChainVerifier) -> Self {
        Self {
            entries: verifier.seen(),
            after: verifier.after(),
            hash: verifier.hash(),
            ..Self::default()
        }
    }

    /// Returns whether there is no fault.
    pub const fn ok(&self) -> bool {
        self.broken.is_none()
    }

    /// Returns the number of entries that a signed checkpoint covers, if there is no fault.
    pub fn proven_to(&self) -> Option<u64> {
        self.proven_to.filter(|_| self.ok())
    }

    /// Returns the verdict as JSON, for scripts.
    pub fn document(&self) -> Value {
        let broken = self.broken.as_ref();
        json!({
            "ok": self.ok(),
            "entries": self.entries,
            "after": self.after,
            "hash": self.hash.map_or_else(|| GENESIS.to_owned(), hex::encode),
            "firstBroken": broken.and_then(|broken| broken.seq),
            "problem": broken.map(|broken| broken.problem.as_str()),
            "checkpoint": self.checkpoint.as_ref().map(KnownEnd::document),
            "endProven": self.end_proven && self.ok(),
            "provenTo": self.proven_to(),
            "warnings": self.warnings,
        })
    }

    /// Returns the verdict as text, for people.
    pub fn text(&self) -> String {
        let mut lines = vec![match (&self.broken, self.entries) {
            (
                Some(Broken {
                    seq: Some(seq),
                    problem,
                }),
                _,
            ) => format!("BROKEN at entry {seq}: {problem}"),
            (Some(Broken { seq: None, problem }), _) => format!("BROKEN: {problem}"),
            (None, 0) => "There are no entries.".to_owned(),
            (None, entries) => {
                format!(
                    "Entries {} to {} are in order.",
                    self.after + 1,
                    self.after + entries
                )
            }
        }];
        lines.extend(self.checkpoint.as_ref().filter(|_| self.ok()).map(KnownEnd::text));
        if self.ok() && !self.end_proven {
            lines.push(match self.proven_to {
                Some(proven) if proven > 0 => {
                    format!("NOT PROVEN behind entry {proven}: entries may be missing at the end.")
                }
                _ => "NOT PROVEN: entries may be missing at the end.".to_owned(),
            });
        }
        lines.extend(self.warnings.iter().map(|warning| format!("Note: {warning}")));
        lines.join("\n")
    }
}
