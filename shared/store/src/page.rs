//! Reads one page of a listing: a part of a sorted set of ids, and their records. A page starts at an offset, or after
//! the position at which a previous page ended. A position costs the same at any depth, and stays valid while records
//! are added and removed.

use crate::search::Search;
use crate::{Store, StoreError};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Records read in one round trip. The largest are intents: 16 KiB of metadata, a description of 8,000 bytes and some
/// 3 KB of other fields, so that a step has less than 1 MiB. Commands of others pass between two steps, and a
/// client's output buffer, which counts against the store's `maxmemory`, has one step at a time.
const RECORDS_AT_ONCE: usize = 32;
/// Retries of a read while others add or remove members.
const READ_ATTEMPTS: usize = 8;

/// Start of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart<'a> {
    /// After this many records.
    Offset(usize),
    /// After the position from [`Page::next`].
    After(&'a str),
}

/// A requested page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest<'a> {
    /// Maximum number of records on the page.
    pub limit: usize,
    /// Position before the first record.
    pub start: PageStart<'a>,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In the order of the list.
    pub records: Vec<T>,
    /// Length of the whole list.
    pub total: u64,
    /// Position after the last record; `None` at the end of the list.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Returns the page with other records.
    pub fn with<U>(self, records: Vec<U>) -> Page<U> {
        Page {
            records,
            total: self.total,
            next: self.next,
        }
    }

    /// Returns an empty page.
    pub const fn empty() -> Self {
        Self {
            records: Vec::new(),
            total: 0,
            next: None,
        }
    }
}

impl Page<(String, HashMap<String, String>)> {
    /// Parses the records with `read`; `None` if one is malformed. Skips records deleted between the two reads.
    pub(super) fn present<T>(self, read: impl Fn(&HashMap<String, String>) -> Option<T>) -> Option<Page<T>> {
        let fields = self.records.iter().map(|(_, fields)| fields);
        let present = fields.filter(|fields| !fields.is_empty());
        let read: Option<Vec<T>> = present.map(read).collect();
        read.map(|records| self.with(records))
    }
}

/// A member of a sorted set, with its score.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScoredMember {
    score: f64,
    pub(super) member: String,
}

impl ScoredMember {
    /// Returns the position after it.
    pub(super) fn position(&self) -> String {
        format!("{} {}", self.score, self.member)
    }

    fn parse(position: &str) -> Result<Self, StoreError> {
        let parsed = position.split_once(' ').and_then(|(score, member)| {
            let score: f64 = score.parse().ok()?;
            let member = member.to_owned();
            score.is_finite().then_some(Self { score, member })
        });
        parsed.ok_or(StoreError::BadPosition)
    }

    /// Returns whether it sorts after `other`, highest first.
    fn is_behind(&self, other: &Self) -> bool {
        let order = self.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal);
        order.then_with(|| self.member.cmp(&other.member)) == Ordering::Less
    }
}

/// A sorted set, listed from its highest member.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortedSet<'a> {
    pub(super) store: &'a Store,
    pub(super) set: &'a str,
    /// Members up to this score are skipped.
    pub(super) floor: Option<u64>,
}

impl<'a> SortedSet<'a> {
    /// Returns the list of all members.
    pub(super) const fn whole(store: &'a Store, set: &'a str) -> Self {
        Self {
            store,
            set,
            floor: None,
        }
    }
}

impl<'a> PageRequest<'a> {
    /// Returns a page that starts after `offset` records.
    pub const fn at(offset: usize, limit: usize) -> Self {
        let start = PageStart::Offset(offset);
        Self { limit, start }
    }

    /// Returns a page that starts after a position.
    pub const fn after(position: &'a str, limit: usize) -> Self {
        let start = PageStart::After(position);
        Self { limit, start }
    }

    /// Reads the records (hashes) of the page's members, highest first. A record deleted between the two reads is
    /// empty.
    pub(super) async fn records(
        self,
        store: &Store,
        set: &str,
        key: impl Fn(&str) -> String,
    ) -> Result<Page<(String, HashMap<String, String>)>, StoreError> {
        let mut part = self.members(store, set).await?;
        let ids = std::mem::take(&mut part.records);
        let found = records(store, ids, key).await?;
        Ok(part.with(found))
    }

    /// Reads the page's members of a sorted set, highest first.
    pub(super) async fn members(self, store: &Store, set: &str) -> Result<Page<String>, StoreError> {
        self.ranked(SortedSet::whole(store, set)).await
    }

    /// Like [`PageRequest::members`], with a floor.
    pub(super) async fn ranked(self, list: SortedSet<'_>) -> Result<Page<String>, StoreError> {
        let mut part = list.marks(self).await?;
        let marks = std::mem::take(&mut part.records);
        Ok(part.with(marks.into_iter().map(|mark| mark.member).collect()))
    }

    /// Returns the page of a list in memory, in the order of `key` or reversed.
    pub fn of_all<T>(
        self,
        mut all: Vec<T>,
        order: Order,
        key: impl Fn(&T) -> (u64, &str),
    ) -> Result<Page<T>, StoreError> {
        let total = all.len() as u64;
        let skipped = match self.start {
            PageStart::Offset(offset) => offset.min(all.len()),
            PageStart::After(position) => {
                let (number, id) = position.split_once(' ').ok_or(StoreError::BadPosition)?;
                let number: u64 = number.parse().map_err(|_| StoreError::BadPosition)?;
                let shown = |one: &T| match order {
                    Order::Ascending => key(one) <= (number, id),
                    Order::Descending => key(one) >= (number, id),
                };
                all.iter().take_while(|one| shown(one)).count()
            }
        };
        let mut records = all.split_off(skipped);
        let more = records.len() > self.limit;
        records.truncate(self.limit);
        let last = records.last().filter(|_| more).map(&key);
        let next = last.map(|(number, id)| format!("{number} {id}"));
        Ok(Page { records, total, next })
    }
}

/// Order of a list in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The lowest first.
    Ascending,
    /// The highest first.
    Descending,
}

impl SortedSet<'_> {
    /// Reads the page's members with their scores.
    pub(super) async fn marks(self, page: PageRequest<'_>) -> Result<Page<ScoredMember>, StoreError> {
        match page.start {
            PageStart::Offset(offset) => {
                let (marks, total) = self.window(offset as u64, page.limit as u64 + 1).await?;
                Ok(part(self.above_floor(marks), page.limit, total, false))
            }
            PageStart::After(position) => self.behind(&ScoredMember::parse(position)?, page.limit).await,
        }
    }

    /// Reads members from a rank on, highest first, and the count of all.
    async fn window(self, from: u64, count: u64) -> Result<(Vec<ScoredMember>, u64), StoreError> {
        let mut query = redis::pipe();
        let last = from.saturating_add(count).saturating_sub(1);
        query
            .cmd("ZREVRANGE")
            .arg(self.set)
            .arg(from)
            .arg(last)
            .arg("WITHSCORES");
        match self.floor {
            None => query.cmd("ZCARD").arg(self.set),
            Some(floor) => query
                .cmd("ZCOUNT")
                .arg(self.set)
                .arg(format!("({floor}"))
                .arg("+inf"),
        };
        let (found, total): (Vec<(String, f64)>, u64) = self.store.pipeline(&query).await?;
        let marks = found
            .into_iter()
            .map(|(member, score)| ScoredMember { score, member });
        Ok((marks.collect(), total))
    }

    /// Reads the members after a position. Rank and members are read at different times, so the window starts one
    /// member earlier, which shows whether members were added or removed in between.
    async fn behind(self, mark: &ScoredMember, limit: usize) -> Result<Page<ScoredMember>, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            let from = self.rank(mark).await?.saturating_sub(1);
            let count = limit as u64 + 2;
            let (window, total) = self.window(from, count).await?;
            let is_full = window.len() as u64 == count;
            let is_whole = from == 0 || window.first().is_some_and(|first| !first.is_behind(mark));
            let behind: Vec<ScoredMember> = window.into_iter().filter(|one| one.is_behind(mark)).collect();
            if is_whole && !(is_full && behind.is_empty()) {
                let count = behind.len();
                let listed = self.above_floor(behind);
                let may_go_on = is_full && listed.len() == count;
                return Ok(part(listed, limit, total, may_go_on));
            }
        }
        Err(StoreError::unexpected(
            "a list that changes faster than it is read",
        ))
    }

    fn above_floor(self, marks: Vec<ScoredMember>) -> Vec<ScoredMember> {
        #[expect(clippy::cast_precision_loss, reason = "scores are milliseconds, below 2^53")]
        let is_above = |mark: &ScoredMember| self.floor.is_none_or(|floor| mark.score > floor as f64);
        marks.into_iter().take_while(is_above).collect()
    }

    /// Counts the members before a position, itself included if present.
    async fn rank(self, mark: &ScoredMember) -> Result<u64, StoreError> {
        let mut query = redis::pipe();
        query.cmd("ZREVRANK").arg(self.set).arg(&mark.member);
        query.cmd("ZSCORE").arg(self.set).arg(&mark.member);
        query
            .cmd("ZCOUNT")
            .arg(self.set)
            .arg(format!("({}", mark.score))
            .arg("+inf");
        query.cmd("ZCOUNT").arg(self.set).arg(mark.score).arg(mark.score);
        type Found = (Option<u64>, Option<f64>, u64, u64);
        let (rank, score, above, beside): Found = self.store.pipeline(&query).await?;
        if let (Some(rank), true) = (rank, score == Some(mark.score)) {
            return Ok(rank + 1);
        }
        // Members with the same score are ordered by their bytes.
        let mut search = Search::between(above, above + beside);
        while let Some(ranks) = search.positions() {
            let members = ranks.iter().map(|rank| (self.set, rank, rank));
            let found: Vec<Vec<String>> = self.store.each("ZREVRANGE", members).await?;
            let late = found
                .iter()
                .map(|one| one.first().is_none_or(|one| *one < mark.member));
            search.record(&ranks, late);
        }
        Ok(search.found())
    }
}

/// Cuts `marks` to `limit`; `may_go_on`: there may be more.
fn part(mut marks: Vec<ScoredMember>, limit: usize, total: u64, may_go_on: bool) -> Page<ScoredMember> {
    let goes_on = may_go_on || marks.len() > limit;
    marks.truncate(limit);
    let next = marks.last().filter(|_| goes_on).map(ScoredMember::position);
    Page {
        records: marks,
        total,
        next,
    }
}

/// Reads the records of ids, in the same order, [`RECORDS_AT_ONCE`] at a time.
pub(super) async fn records(
    store: &Store,
    ids: Vec<String>,
    key: impl Fn(&str) -> String,
) -> Result<Vec<(String, HashMap<String, String>)>, StoreError> {
    let mut records: Vec<HashMap<String, String>> = Vec::with_capacity(ids.len());
    for some in ids.chunks(RECORDS_AT_ONCE) {
        records.extend(store.each("HGETALL", some.iter().map(|id| key(id))).await?);
    }
    Ok(ids.into_iter().zip(records).collect())
}
