//! Count and average length of the audit lines that an account caused itself. What arrives from another account counts
//! against its sender (decision D71), so the entries of arrivals are left out of both.

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
    Ok(typical(&parts))
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

/// The median of the parts' averages: lines that lie together, at whatever place, move one part and not the estimate.
fn typical(parts: &[Vec<Vec<u8>>]) -> u64 {
    let average = |part: &Vec<Vec<u8>>| {
        let own: Vec<u64> = part
            .iter()
            .filter(|line| !is_arrival(line))
            .map(|line| line.len() as u64)
            .collect();
        own.iter().sum::<u64>().checked_div(own.len() as u64)
    };
    let mut averages: Vec<u64> = parts.iter().filter_map(average).collect();
    averages.sort_unstable();
    let middle = averages.len().saturating_sub(1) / 2;
    averages.get(middle).copied().unwrap_or(TYPICAL_BYTES)
}

fn is_arrival(line: &[u8]) -> bool {
    // The number of the entry does not matter here; a line names its own.
    let seq = line.split(|byte| *byte == b' ').next();
    let seq = seq.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    seq.is_some_and(|seq| ARRIVAL_ENTRIES.contains(&Entry::of_line(seq, line).kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::entry;
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
            let parts = [vec![line(kind, 2000), own.clone(), line(kind, 10)]];
            assert_eq!(typical(&parts), own.len() as u64, "{kind}");
            assert_eq!(typical(&[vec![line(kind, 2000)]]), TYPICAL_BYTES);
        }
    }

    #[test]
    fn eight_long_lines_in_a_row_do_not_move_the_estimate() {
        let (short, long) = (line("agent.created", 0), line("agent.created", 2000));
        let mut parts = vec![vec![short.clone(); 8]; 8];
        parts[7] = vec![long.clone(); 8];
        assert_eq!(typical(&parts), short.len() as u64);
        // They may lie in two parts.
        parts[6] = vec![long; 8];
        assert_eq!(typical(&parts), short.len() as u64);
        assert_eq!(typical(&[]), TYPICAL_BYTES);
    }
}
