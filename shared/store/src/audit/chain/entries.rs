//! Reads live entries by their numbers, without their hashes: for lists and sums of calls, which prove nothing. Lists
//! read the hashes of the entries that they show.

use super::{Chain, to_hash};
use crate::StoreError;
use crate::audit::decisions;
use domain::entry::{Entry, is_of_later_release};
use std::collections::HashMap;

/// Number of unrequested lines between two entries that are read anyway: that costs less than another command.
const GAP_MAX: u64 = 8;

impl Chain<'_> {
    /// Reads the entries with these ascending numbers, in order; `None` if one of them has been archived.
    ///
    /// # Errors
    /// [`StoreError`], also for a line that a later release wrote.
    pub async fn entries_of(&self, numbers: &[u64]) -> Result<Option<Vec<Entry>>, StoreError> {
        let Some(first) = numbers.first() else {
            return Ok(Some(Vec::new()));
        };
        let archived = self.extent().await?.archived.seq;
        if *first <= archived {
            return Ok(None);
        }
        let Some(lines) = self.items_of(&self.realm.audit(), numbers, archived).await? else {
            return Ok(None);
        };
        let mut entries = Vec::with_capacity(lines.len());
        for (seq, line) in lines {
            if is_of_later_release(&line) {
                return Err(StoreError::LaterRelease(format!("audit entry {seq}")));
            }
            entries.push(Entry::from_line(seq, &line));
        }
        Ok(Some(entries))
    }

    /// Reads the hashes of the live ones of these ascending numbers, and how many entries are archived.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed hash.
    pub async fn hashes_of(
        &self,
        numbers: &[u64],
    ) -> Result<Option<(Vec<(u64, [u8; 32])>, u64)>, StoreError> {
        let archived = self.extent().await?.archived.seq;
        let live = &numbers[numbers.partition_point(|number| *number <= archived)..];
        let found = self.items_of(&self.realm.audit_hashes(), live, archived).await?;
        let Some(found) = found else { return Ok(None) };
        let hashes = found.into_iter().map(|(seq, hash)| Ok((seq, to_hash(&hash)?)));
        let hashes: Result<Vec<_>, StoreError> = hashes.collect();
        Ok(Some((hashes?, archived)))
    }

    /// Reads the elements of a list at these ascending numbers, all behind the `archived` ones; `None` if entries were
    /// archived meanwhile.
    async fn items_of(
        &self,
        list: &str,
        numbers: &[u64],
        archived: u64,
    ) -> Result<Option<Vec<(u64, Vec<u8>)>>, StoreError> {
        if numbers.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let rows = rows(numbers);
        let ranges = rows
            .iter()
            .map(|(first, last)| (list, first - archived - 1, last - archived - 1));
        let found: Vec<Vec<Vec<u8>>> = self.store.each("LRANGE", ranges).await?;
        // Ranks are those of the numbers only while nothing is archived.
        if self.extent().await?.archived.seq != archived {
            return Ok(None);
        }
        let mut wanted = numbers.iter().copied().peekable();
        let mut items = Vec::with_capacity(numbers.len());
        for ((first, _), row) in rows.into_iter().zip(found) {
            let row = (first..).zip(row);
            items.extend(row.filter(|(seq, _)| wanted.next_if_eq(seq).is_some()));
        }
        Ok(Some(items))
    }

    /// Returns for each of these decisions the numbers of the entries that may belong to it, as [`Chain::decision`]
    /// does.
    pub async fn decisions<'i>(&self, ids: &[&'i str]) -> Result<HashMap<&'i str, Vec<u64>>, StoreError> {
        let mut parts: Vec<&str> = ids.iter().filter_map(|id| decisions::key_part(id)).collect();
        parts.sort_unstable();
        parts.dedup();
        let keys = parts.iter().map(|part| self.realm.audit_decisions(part));
        let texts: Vec<Option<String>> = self.store.each("GET", keys).await?;
        let texts: HashMap<&str, Option<String>> = parts.into_iter().zip(texts).collect();
        let found = ids.iter().map(|id| {
            let text = decisions::key_part(id).and_then(|part| texts.get(part)?.as_deref());
            (*id, decisions::find(text.unwrap_or_default(), id))
        });
        Ok(found.collect())
    }
}

/// Returns the first and last numbers of the rows to read, which cover all numbers.
fn rows(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if number - *last <= GAP_MAX + 1 => *last = *number,
            _ => rows.push((*number, *number)),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_entries_are_read_together() {
        assert_eq!(rows(&[]), []);
        let gap = GAP_MAX + 1;
        let numbers = [3, 4, 4 + gap, 4 + 2 * gap + 1];
        assert_eq!(rows(&numbers), [(3, 4 + gap), (4 + 2 * gap + 1, 4 + 2 * gap + 1)]);
    }
}
