//! Count and average length of the audit lines that an account caused itself. What arrives from another account counts
//! against its sender (decision D71), so the entries of arrivals are left out of both. Long texts of changes are
//! counted where they are written ([`Budget::AuditText`](domain::budget::Budget)), so the sample leaves them out: lines
//! that were made for the sampled places move it by a few hundred bytes at most.

use crate::audit::long_text;
use crate::keys::Realm;
use crate::transit::ARRIVAL_ENTRIES;
use crate::{Store, StoreError};
use domain::entry::Entry;

/// Parts of the log that are sampled, spread over its length.
const PARTS: u64 = 8;
/// Lines sampled in each part.
const PART_LINES: u64 = 8;
/// Average length in bytes where every sampled line is of an arrival (docs/guides/sizing.md).
const TYPICAL_BYTES: u64 = 400;

/// The commands that count the entries of arrivals, one for each of [`ARRIVAL_ENTRIES`]. Entries that are not sealed
/// yet are in no index: for that moment they count as the account's own.
pub(super) fn count_arrivals(query: &mut redis::Pipeline, realm: &Realm) {
    for kind in ARRIVAL_ENTRIES {
        query.cmd("LLEN").arg(realm.audit_index(None, Some(kind)));
    }
}

/// Estimates the average length in bytes of the account's own lines among the `all` lines of its log.
pub(super) async fn own_bytes(store: &Store, realm: &Realm, all: u64) -> Result<u64, StoreError> {
    let list = realm.audit();
    let ranges = parts(all).map(|(first, last)| (&list, first, last));
    let parts: Vec<Vec<Vec<u8>>> = store.each("LRANGE", ranges).await?;
    Ok(average(&parts.concat()))
}

/// First and last place of each sampled part in a log of `all` lines.
fn parts(all: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = all.div_ceil(PART_LINES).min(PARTS);
    (0..count).map(move |part| {
        // The first part begins with the oldest line, the last one ends with the newest.
        let first = match count {
            1 => 0,
            _ => part * all.saturating_sub(PART_LINES) / (count - 1),
        };
        (first, first + PART_LINES - 1)
    })
}

/// Average length of the account's own lines, without the part that is counted as text.
fn average(lines: &[Vec<u8>]) -> u64 {
    let own = lines.iter().map(|line| (number(line), line));
    let own = own.filter(|(seq, line)| !is_arrival(*seq, line));
    let own: Vec<u64> = own
        .map(|(seq, line)| line.len() as u64 - long_text(seq, line))
        .collect();
    let sum: u64 = own.iter().sum();
    sum.checked_div(own.len() as u64).unwrap_or(TYPICAL_BYTES)
}

/// Returns the number that the line names, which is that of its entry; 0 for none.
fn number(line: &[u8]) -> u64 {
    let seq = line.split(|byte| *byte == b' ').next();
    let seq = seq.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    seq.unwrap_or(0)
}

fn is_arrival(seq: u64, line: &[u8]) -> bool {
    ARRIVAL_ENTRIES.contains(&Entry::from_line(seq, line).kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{LONG_LINE, entry};
    use serde_json::json;

    fn line(kind: &str, memo: usize) -> Vec<u8> {
        let data = json!({ "memo": "x".repeat(memo) });
        format!("7 1700000000000 {}", entry(kind, None, "a", &data)).into_bytes()
    }

    #[test]
    fn parts_are_spread_over_the_log() {
        assert_eq!(parts(1).collect::<Vec<_>>(), [(0, 7)]);
        assert_eq!(parts(8).collect::<Vec<_>>(), [(0, 7)]);
        assert_eq!(parts(9).collect::<Vec<_>>(), [(0, 7), (1, 8)]);
        let many: Vec<_> = parts(1_000_000).collect();
        assert_eq!(many.len(), 8);
        assert_eq!((many[0], many[7]), ((0, 7), (999_992, 999_999)));
    }

    #[test]
    fn lines_of_arrivals_are_not_in_the_average() {
        let own = line("agent.created", 0);
        for kind in ARRIVAL_ENTRIES {
            let lines = [line(kind, 2000), own.clone(), line(kind, 10)];
            assert_eq!(average(&lines), own.len() as u64, "{kind}");
            assert_eq!(average(&[line(kind, 2000)]), TYPICAL_BYTES);
        }
        assert_eq!(average(&[]), TYPICAL_BYTES);
    }

    #[test]
    fn long_texts_are_not_in_the_average() {
        let (short, long) = (line("agent.created", 0), line("agent.created", 9000));
        assert_eq!(average(std::slice::from_ref(&long)), LONG_LINE as u64);
        let lines = [short.clone(), long, short.clone()];
        assert_eq!(average(&lines), (2 * short.len() + LONG_LINE) as u64 / 3);
        // Lines of calls are in no counter, and count in full.
        let call = format!("7 1 A {}", "x".repeat(1_100)).into_bytes();
        assert_eq!(average(&[call]), 1_106);
    }
}
