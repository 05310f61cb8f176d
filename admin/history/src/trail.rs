//! The whole audit trail of an account and mode: complete, in order, newest first in lists, whether its entries are in
//! the store or in the archive.

mod archived;
pub mod calls;

use archive::Archive;
use domain::denial_window;
use domain::entry::{Entry, Sealed};
use std::collections::{BTreeSet, HashMap};
use store::audit::chain::{Backwards, Chain, ChainHead, EntryFilter, LiveEntries, LiveNumbers};
use store::keys::Realm;
use store::page::{Page, PageRequest, PageStart};
use store::{Store, StoreError};

/// Number of entries read at once.
const READ_BATCH: u64 = 500;
/// Attempts at a read while entries are archived.
const READ_ATTEMPTS: usize = 8;

/// A handle on one trail.
#[derive(Debug, Clone)]
pub struct Trail<'a> {
    chain: Chain<'a>,
    archive: &'a Archive,
}

impl<'a> Trail<'a> {
    /// Returns the trail of a realm.
    pub const fn new(store: &'a Store, archive: &'a Archive, realm: Realm) -> Self {
        let chain = Chain::new(store, realm);
        Self { chain, archive }
    }

    /// Seals all events until now. Returns the end of the trail.
    pub async fn seal(&self) -> Result<ChainHead, StoreError> {
        self.chain.seal().await
    }

    /// Seals all events up to entry `goal`, however many wait. Returns the end of the trail, which is before `goal`
    /// only where a line cannot be sealed.
    pub async fn seal_until(&self, goal: u64) -> Result<ChainHead, StoreError> {
        self.chain.seal_until(goal).await
    }

    /// Lists the entries on a page, newest first, including all events until now. A position is the number of an entry,
    /// which entries keep in the archive.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] if a required segment is missing or damaged.
    pub async fn list(
        &self,
        filter: EntryFilter<'_>,
        page: PageRequest<'_>,
    ) -> Result<Page<Sealed>, StoreError> {
        self.seal().await?;
        let many = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let (before, skip) = match page.start {
            PageStart::Offset(offset) => (u64::MAX, many(offset)),
            PageStart::After(position) => (position.parse().map_err(|_| StoreError::BadPosition)?, 0),
        };
        // One more shows whether the store has more.
        let count = many(page.limit).saturating_add(1);
        for _ in 0..READ_ATTEMPTS {
            let wanted = Backwards { before, skip, count };
            let live = self.chain.numbers(filter, wanted).await?;
            let Some(old) = self.archived_total(filter, live.archived).await? else {
                continue;
            };
            let LiveNumbers {
                numbers,
                total: live,
                archived,
            } = live;
            let entries = self.entries(&numbers).await?;
            let mut found: Vec<(u64, Sealed)> = numbers.into_iter().zip(entries).collect();
            found.reverse();
            let mut goes_on = found.len() > page.limit;
            found.truncate(page.limit);
            if !goes_on && old > 0 {
                let rest = Backwards {
                    before,
                    skip: skip.saturating_sub(live),
                    count: many(page.limit - found.len()),
                };
                let (entries, more) = self.archived_page(filter, archived, rest).await?;
                found.extend(entries);
                goes_on = more;
            }
            let last = found.last().filter(|_| goes_on);
            let next = last.map(|(number, _)| number.to_string());
            return Ok(Page {
                records: found.into_iter().map(|(_, entry)| entry).collect(),
                total: live + old,
                next,
            });
        }
        Err(busy())
    }

    /// Reads entries from `first` on, ascending, at least one unless `first` is after the end, and at most some
    /// hundred.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] if a required segment is missing or damaged.
    pub async fn read(&self, first: u64) -> Result<Vec<Sealed>, StoreError> {
        self.row(first.max(1), READ_BATCH).await
    }

    /// Like [`read`](Self::read), only from the store; `None` if the first entry was archived.
    pub async fn read_live(&self, first: u64) -> Result<Option<Vec<Sealed>>, StoreError> {
        match self.chain.live_entries(first.max(1), READ_BATCH).await? {
            LiveEntries::Live(entries) => Ok(Some(entries)),
            LiveEntries::Archived => Ok(None),
        }
    }

    /// Reads the entry with this number; `None` if it is not sealed.
    pub async fn entry(&self, seq: u64) -> Result<Option<Sealed>, StoreError> {
        Ok(self.row(seq, 1).await?.into_iter().next())
    }

    /// Returns whether the entry with this number is in the archive.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn is_archived(&self, seq: u64) -> Result<bool, StoreError> {
        Ok(seq <= self.chain.extent().await?.archived.seq)
    }

    /// Reads the entries of a decision, oldest first: one, or two if a kept charge was corrected. The record of a rate
    /// window is found by the id that its denials lead to (decision D70).
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] if a required segment is missing or damaged.
    pub async fn decision(&self, id: &str) -> Result<Vec<Sealed>, StoreError> {
        self.seal().await?;
        // An entry that is archived between the two reads is found by the second one.
        let mut numbers = self.chain.decision(id).await?;
        numbers.extend(self.archived_decision(id).await?);
        numbers.sort_unstable();
        numbers.dedup();
        let wanted = ["id", denial_window::ID_FIELD].map(|field| format!("\"{field}\":\"{id}\""));
        let mut entries = self.entries(&numbers).await?;
        entries.retain(|entry| wanted.iter().any(|wanted| entry.json.contains(wanted)));
        Ok(entries)
    }

    /// The hashes of these entries, in any order, by their numbers.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] when a segment that is needed is missing or damaged.
    pub async fn hashes(
        &self,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Result<HashMap<u64, [u8; 32]>, StoreError> {
        let numbers: Vec<u64> = numbers
            .into_iter()
            .collect::<BTreeSet<u64>>()
            .into_iter()
            .collect();
        for _ in 0..READ_ATTEMPTS {
            let Some((live, archived)) = self.chain.hashes_of(&numbers).await? else {
                continue;
            };
            let mut hashes: HashMap<u64, [u8; 32]> = live.into_iter().collect();
            for number in numbers.iter().filter(|number| **number <= archived) {
                let entry = self
                    .archived_row(*number, 1)
                    .await?
                    .and_then(|row| row.into_iter().next());
                hashes.extend(entry.map(|entry| (*number, entry.hash)));
            }
            return Ok(hashes);
        }
        Err(busy())
    }

    /// Returns the number of matching entries.
    async fn count_of(&self, filter: EntryFilter<'_>) -> Result<u64, StoreError> {
        let nothing = Backwards {
            before: u64::MAX,
            skip: 0,
            count: 0,
        };
        for _ in 0..READ_ATTEMPTS {
            let live = self.chain.numbers(filter, nothing).await?;
            if let Some(old) = self.archived_total(filter, live.archived).await? {
                return Ok(live.total + old);
            }
        }
        Err(busy())
    }

    /// The entries of those of some decisions that can have more than one, in no order; also those of other decisions
    /// whose ids look alike.
    async fn entries_of_decisions(&self, ids: &[&str]) -> Result<Vec<Entry>, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            // An entry that leaves the store between the two reads is found by the second one.
            let mut numbers = Vec::new();
            for (id, mut found) in self.chain.decisions(ids).await? {
                found.extend(self.archived_decision(id).await?);
                found.sort_unstable();
                found.dedup();
                if found.len() > 1 {
                    numbers.extend(found);
                }
            }
            numbers.sort_unstable();
            numbers.dedup();
            let archived = self.chain.extent().await?.archived.seq;
            let live = numbers.split_off(numbers.partition_point(|number| *number <= archived));
            let Some(mut entries) = self.chain.entries_of(&live).await? else {
                continue;
            };
            let old = self.entries(&numbers).await?;
            entries.extend(old.iter().filter_map(|sealed| Entry::from_json(&sealed.json)));
            return Ok(entries);
        }
        Err(busy())
    }

    /// Reads the entries with these ascending numbers.
    async fn entries(&self, numbers: &[u64]) -> Result<Vec<Sealed>, StoreError> {
        let mut found = Vec::with_capacity(numbers.len());
        let mut rest = numbers;
        while let Some(first) = rest.first() {
            let row = rest
                .iter()
                .zip(*first..)
                .take_while(|(number, next)| *number == next)
                .count();
            let entries = self.row(*first, row as u64).await?;
            if entries.is_empty() {
                return Err(busy());
            }
            rest = rest.get(entries.len()..).unwrap_or_default();
            found.extend(entries);
        }
        Ok(found)
    }

    /// Reads at most `count` consecutive entries from `first` on, at least one unless `first` is after the end.
    async fn row(&self, first: u64, count: u64) -> Result<Vec<Sealed>, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            if let LiveEntries::Live(entries) = self.chain.live_entries(first, count).await? {
                return Ok(entries);
            }
            if let Some(entries) = self.archived_row(first, count).await? {
                return Ok(entries);
            }
        }
        Err(busy())
    }
}

fn busy() -> StoreError {
    StoreError::unexpected("the audit trail was archived while it was read")
}
