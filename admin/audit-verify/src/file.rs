//! Verification of an export: JSON Lines of any length, read in bounded memory, without a store.
//!
//! Blank lines, a CR before a line's end, and a byte order mark at the start are skipped. Spaces, order of keys and
//! other spellings of the same value do not matter, since the hash covers the canonical form.

use super::end::{Compared, KnownEnd, UNSIGNED};
use crate::broken::Broken;
use crate::verdict::Verdict;
use crate::verifier::ChainVerifier;
use history::trail::Trail;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _};
use std::ops::RangeInclusive;
use store::StoreError;

/// Longest line, in bytes: requests have up to 1 MiB, and JSON can write a byte as six.
const LINE_MAX: u64 = 16 << 20;
/// Byte order mark that some editors insert at the start of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

struct ExportLines<R> {
    reader: R,
    line: Vec<u8>,
    first: bool,
}

impl<R: BufRead> ExportLines<R> {
    const fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
            first: true,
        }
    }

    /// Returns the next line that is not blank; `None` at the end. A line that is too long is cut, so that it does not
    /// parse.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let read = self
                .reader
                .by_ref()
                .take(LINE_MAX)
                .read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            let mut start = 0;
            if std::mem::take(&mut self.first) && self.line.starts_with(BYTE_ORDER_MARK) {
                start = BYTE_ORDER_MARK.len();
            }
            if !self.line[start..].trim_ascii().is_empty() {
                return Ok(self.line.get(start..).map(<[u8]>::trim_ascii));
            }
        }
    }
}

/// Verifies an export to its end or its first fault.
///
/// # Errors
/// An error of the file system.
pub fn verify(reader: impl BufRead, verifier: &mut ChainVerifier) -> io::Result<Option<Broken>> {
    let mut lines = ExportLines::new(reader);
    while let Some(line) = lines.next()? {
        if let Err(broken) = verifier.step(line) {
            return Ok(Some(broken));
        }
    }
    Ok(None)
}

/// Returns the verdict on an export that was read, given the known ends of its trail. The end in the store must match
/// exactly, and so must a checkpoint of the caller unless it is `older`; that in the archive may always be older.
/// Entries written at a time in `young` need not be covered by a checkpoint yet.
pub fn verdict(
    verifier: &ChainVerifier,
    broken: Option<Broken>,
    known: Vec<KnownEnd>,
    older: bool,
    young: &RangeInclusive<u64>,
) -> Verdict {
    let mut verdict = Verdict::new(verifier);
    let nothing = known.is_empty();
    verdict
        .warnings
        .extend(known.iter().filter_map(KnownEnd::earlier));
    // An export may be older than the checkpoint, and then lacks the end that the chain had when that was signed.
    let seen = known
        .iter()
        .filter_map(KnownEnd::at_signing)
        .filter(|end| end.size <= verifier.end());
    let mut known_and_seen: Vec<KnownEnd> = seen.collect();
    known_and_seen.extend(known);
    let compared = Compared::new(verifier, known_and_seen, !older);
    verdict.end_proven = compared.whole && compared.is_end_proven(verifier, young);
    verdict.proven_to = compared.signed;
    let uncovered = compared.uncovered(verifier, young).filter(|_| compared.whole);
    verdict.warnings.extend(uncovered);
    verdict.broken = broken.or(compared.broken);
    verdict
        .warnings
        .extend(compared.unseen.iter().map(KnownEnd::unseen));
    let best = compared.best;
    match &best {
        _ if nothing => verdict.warnings.push(
            "the end was not compared: give --checkpoint, or verify where the store is reachable.".to_owned(),
        ),
        Some(known) if verdict.broken.is_none() && !compared.whole => verdict.warnings.push(known.older()),
        Some(_) if verdict.broken.is_none() && compared.signed.is_none() => {
            verdict.warnings.push(UNSIGNED.to_owned())
        }
        _ => {}
    }
    if verifier.after() > 0 {
        let after = verifier.after();
        verdict.warnings.push(format!(
            "the file begins after entry {after}: its beginning is taken on trust."
        ));
    }
    verdict.checkpoint = best;
    verdict
}

/// Returns the first entry of an export that differs from the trail; `None` if both agree as far as both go.
///
/// # Errors
/// An error of the file system or of the store.
pub async fn first_difference(
    reader: impl BufRead,
    after: u64,
    trail: &Trail<'_>,
) -> Result<Option<u64>, ExportReadError> {
    let mut lines = ExportLines::new(reader);
    let mut verifier = ChainVerifier::starting_after(after);
    let mut stored = VecDeque::new();
    while let Some(line) = lines.next()? {
        if verifier.step(line).is_err() {
            return Ok(None);
        }
        if stored.is_empty() {
            let entries = trail.read(verifier.end()).await?;
            stored.extend(entries.into_iter().map(|entry| entry.hash));
        }
        let Some(hash) = stored.pop_front() else {
            return Ok(None);
        };
        if verifier.hash() != Some(hash) {
            return Ok(Some(verifier.end()));
        }
    }
    Ok(None)
}

/// Why an export could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ExportReadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests;
