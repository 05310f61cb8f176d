//! The counters of an agent that its first charge of a day removes, as the models of the scripts see them.

use domain::period::Period;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum age of a day's or a month's counter: in days, and in the distance of month numbers.
const DAYS_KEPT: u64 = 40;
const MONTHS_KEPT: u64 = 200;
/// Number of the newest counters of a kind that stay, however old they are.
const NEWEST_KEPT: usize = 7;

/// Returns those of `fields` that are removed at `now`.
pub fn old_counters<'a>(fields: impl Iterator<Item = &'a String>, now: Period) -> BTreeSet<String> {
    let mut kinds = BTreeMap::<char, Vec<u64>>::new();
    for field in fields {
        let (kind, number) = field.split_at(1);
        let kind = kind.chars().next().filter(|kind| "dmsw".contains(*kind));
        if let (Some(kind), Ok(number)) = (kind, number.parse()) {
            kinds.entry(kind).or_default().push(number);
        }
    }
    let mut removed = BTreeSet::new();
    for (kind, mut numbers) in kinds {
        let (now, kept) = match kind {
            'd' | 'w' => (now.day, DAYS_KEPT),
            _ => (now.month, MONTHS_KEPT),
        };
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        let old = numbers.iter().skip(NEWEST_KEPT);
        let old = old.filter(|number| now.saturating_sub(**number) > kept);
        removed.extend(old.map(|number| format!("{kind}{number}")));
    }
    removed
}
