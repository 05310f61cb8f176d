//! Index of decisions by id: 20 bytes each, packed into one text for every half minute of ids. An id starts with its
//! time, so its first characters name the text; a record consists of the next characters and the number of the entry.

use crate::keys::DECISION_KEY_CHARS;
use domain::id::IdKind;

/// Characters of the id in a record, after those in the key: the rest of the time and 45 random bits. Matches are
/// afterwards compared with the whole id.
const ID_CHARS: usize = 12;
/// Base-32 digits of the entry number.
const NUMBER_DIGITS: usize = 8;
const RADIX: u32 = 32;

/// Characters of the id in a manifest's record: those in the key and those in a record.
pub const NAME_CHARS: usize = DECISION_KEY_CHARS + ID_CHARS;
/// Bytes of a manifest's record.
pub(crate) const ARCHIVED_BYTES: usize = NAME_CHARS + NUMBER_DIGITS;

/// Returns key part and record of the decision `id` with entry `seq`; `None` if `id` is no decision id.
pub fn record(id: &str, seq: u64) -> Option<(&str, String)> {
    let (start, found) = split(id)?;
    Some((start, format!("{found}{}", digits(seq)?)))
}

/// Returns the decision's record in a manifest. Records there are sorted, so earlier records are older.
pub fn archived_record(id: &str, seq: u64) -> Option<String> {
    let (start, record) = record(id, seq)?;
    Some(format!("{start}{record}"))
}

/// Returns the part of a decision id with which a manifest's record starts.
pub fn name(id: &str) -> Option<String> {
    let (start, found) = split(id)?;
    Some(format!("{start}{found}"))
}

/// Finds the entry numbers in a manifest that may be of the decision `id`, ascending.
pub fn find_archived(text: &str, id: &str) -> Vec<u64> {
    let Some(wanted) = name(id) else {
        return Vec::new();
    };
    let (records, _) = text.as_bytes().as_chunks::<ARCHIVED_BYTES>();
    let first = records.partition_point(|record| record[..NAME_CHARS] < *wanted.as_bytes());
    let same = records[first..]
        .iter()
        .take_while(|record| record.starts_with(wanted.as_bytes()));
    let numbers = same.filter_map(|record| {
        let digits = std::str::from_utf8(&record[NAME_CHARS..]).ok()?;
        u64::from_str_radix(digits, RADIX).ok()
    });
    numbers.collect()
}

/// Returns the key parts in a manifest, each once.
pub fn archived_starts(text: &str) -> impl Iterator<Item = &str> {
    let count = text.len() / ARCHIVED_BYTES;
    let starts = (0..count).filter_map(move |at| {
        let from = at * ARCHIVED_BYTES;
        text.get(from..from + DECISION_KEY_CHARS)
    });
    let mut before = "";
    starts.filter(move |start| std::mem::replace(&mut before, start) != *start)
}

/// Formats an entry number for a record.
fn digits(seq: u64) -> Option<String> {
    let mut digits = [b'0'; NUMBER_DIGITS];
    let mut rest = seq;
    for digit in digits.iter_mut().rev() {
        let value = u32::try_from(rest % u64::from(RADIX)).ok()?;
        *digit = u8::try_from(char::from_digit(value, RADIX)?).ok()?;
        rest /= u64::from(RADIX);
    }
    let number = std::str::from_utf8(&digits).ok().filter(|_| rest == 0)?;
    Some(number.to_owned())
}

pub(crate) fn key_part(id: &str) -> Option<&str> {
    split(id).map(|(start, _)| start)
}

/// Finds the entry numbers in `text` that may be of the decision `id`, ascending.
pub fn find(text: &str, id: &str) -> Vec<u64> {
    let Some((_, wanted)) = split(id) else {
        return Vec::new();
    };
    let records = text.as_bytes().chunks_exact(ID_CHARS + NUMBER_DIGITS);
    let mut numbers: Vec<u64> = records
        .filter_map(|record| std::str::from_utf8(record).ok()?.strip_prefix(wanted))
        .filter_map(|digits| u64::from_str_radix(digits, RADIX).ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the highest entry number in `text`.
pub fn newest(text: &str) -> Option<u64> {
    let records = text.as_bytes().chunks_exact(ID_CHARS + NUMBER_DIGITS);
    let numbers = records.filter_map(|record| {
        let digits = std::str::from_utf8(record.get(ID_CHARS..)?).ok()?;
        u64::from_str_radix(digits, RADIX).ok()
    });
    numbers.max()
}

/// Splits a decision id into the key part and the start of its record.
fn split(id: &str) -> Option<(&str, &str)> {
    let rest = [IdKind::Allow, IdKind::Deny]
        .iter()
        .find_map(|kind| id.strip_prefix(kind.prefix()))?;
    let plain = rest.len() == ulid::ULID_LEN && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !plain {
        return None;
    }
    let (start, rest) = rest.split_at(DECISION_KEY_CHARS);
    Some((start, &rest[..ID_CHARS]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_the_whole_part_of_the_id() {
        let ids: Vec<String> = (0..50)
            .map(|n| IdKind::Allow.mint(1_795_000_000_000 + n).unwrap())
            .collect();
        let text: String = ids
            .iter()
            .zip(1_000_000_000..)
            .map(|(id, seq)| record(id, seq).unwrap().1)
            .collect();
        assert_eq!(text.len(), 50 * 20);
        for (id, seq) in ids.iter().zip(1_000_000_000..) {
            assert_eq!(find(&text, id), [seq]);
            assert_eq!(find(&text, &id.replacen("allow_", "deny_", 1)), [seq]);
        }
        let twice = format!("{text}{}", record(&ids[3], 2_000_000_000).unwrap().1);
        assert_eq!(find(&twice, &ids[3]), [1_000_000_003, 2_000_000_000]);
        assert_eq!(newest(&text), Some(1_000_000_049));
        assert_eq!(newest(&twice), Some(2_000_000_000));
        assert_eq!(newest(""), None);
        assert!(find(&text, &IdKind::Allow.mint(1_795_000_000_007).unwrap()).is_empty());
    }

    #[test]
    fn archived_decisions_are_found_one_by_one() {
        let ids: Vec<String> = (0..300)
            .map(|n| IdKind::Deny.mint(1_795_000_000_000 + n * 1000).unwrap())
            .collect();
        let mut records: Vec<String> = ids
            .iter()
            .zip(1..)
            .filter_map(|(id, seq)| archived_record(id, seq))
            .collect();
        records.extend(archived_record(&ids[5], 1000));
        records.sort_unstable();
        let text = records.concat();
        for (id, seq) in ids.iter().zip(1..) {
            let expected: &[u64] = if seq == 6 { &[6, 1000] } else { &[seq] };
            assert_eq!(find_archived(&text, id), expected);
        }
        assert!(find_archived(&text, &IdKind::Deny.mint(1_795_000_000_000).unwrap()).is_empty());
        assert!(find_archived("", &ids[0]).is_empty());
        let starts: Vec<&str> = archived_starts(&text).collect();
        let mut expected: Vec<&str> = ids.iter().filter_map(|id| key_part(id)).collect();
        expected.dedup();
        assert_eq!(starts, expected);
        assert_eq!(archived_record(&ids[0], 7).unwrap().len(), ARCHIVED_BYTES);
    }

    #[test]
    fn an_id_of_no_decision_has_no_record() {
        for id in [
            "",
            "allow_",
            "aud_01KAH3V9J8000000000000000C",
            "allow_01KAH3V9J8",
            "deny_é",
        ] {
            assert_eq!(record(id, 1), None, "{id}");
        }
        assert_eq!(
            record(&IdKind::Deny.mint(0).unwrap(), 1 << 40),
            None,
            "more than eight digits"
        );
        let last = (1_u64 << 40) - 1;
        let id = IdKind::Deny.mint(0).unwrap();
        assert_eq!(find(&record(&id, last).unwrap().1, &id), [last]);
    }
}
