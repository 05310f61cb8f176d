//! Reads sealed entries that are still in the store: by number, by agent, type and time, by decision id.

use super::{Chain, ChainHead, Extent, READ_ATTEMPTS, shown, to_hash};
use crate::StoreError;
use crate::audit::{decisions, long_text};
use crate::read::Read;
use crate::search::Search;
use crate::time_span::{TimeSpan, Times, first_at};
use domain::entry::Sealed;
use std::ops::Range;

/// A rank beyond the end of every list.
const NOWHERE: i64 = i64::MAX;

/// A filter for entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryFilter<'a> {
    /// Entries about this agent only.
    pub agent: Option<&'a str>,
    /// Entries of this type only.
    pub kind: Option<&'a str>,
    /// At this time or later, in ms since 1970.
    pub from_ms: Option<u64>,
    /// Before this time, in ms since 1970.
    pub to_ms: Option<u64>,
}

/// A page of the entries that match a filter, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backwards {
    /// Entries below this number only.
    pub before: u64,
    /// Entries to skip.
    pub skip: u64,
    /// Maximum number of entries on the page.
    pub count: u64,
}

/// A page of the live entries that match a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveNumbers {
    /// Numbers on the page, ascending.
    pub numbers: Vec<u64>,
    /// Count of all live matches.
    pub total: u64,
    /// The last archived entry at that moment.
    pub archived: u64,
}

/// Some numbers of entries of calls that ended late.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LateNumbers {
    /// Numbers, ascending.
    pub numbers: Vec<u64>,
    /// Position of the next ones: a day and the number above them.
    pub next: Option<(u64, u64)>,
}

/// The live sealed entries of a span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSpan {
    archived: ChainHead,
    numbers: TimeSpan,
}

/// The lines of a chain, by the numbers of their entries, of which those up to `archived` are archived.
struct ChainLines<'c> {
    chain: &'c Chain<'c>,
    archived: u64,
}

/// Consecutive entries, if they are in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveEntries {
    /// The entries are in the store.
    Live(Vec<Sealed>),
    /// The first requested entry is archived.
    Archived,
}

impl Chain<'_> {
    /// Reads at most `count` sealed entries from `first` on, ascending. Skips archived ones.
    pub async fn read(&self, first: u64, count: u64) -> Result<Vec<Sealed>, StoreError> {
        let mut first = first;
        for _ in 0..READ_ATTEMPTS {
            match self.live_entries(first, count).await? {
                LiveEntries::Live(found) => return Ok(found),
                LiveEntries::Archived => first = self.extent().await?.archived.seq + 1,
            }
        }
        Err(busy())
    }

    /// Reads at most `count` sealed entries from `first` on, ascending, if the first one is in the store.
    pub async fn live_entries(&self, first: u64, count: u64) -> Result<LiveEntries, StoreError> {
        let measured = self.measured_live_entries(first, count).await?;
        Ok(measured.map_or(LiveEntries::Archived, |(entries, _)| LiveEntries::Live(entries)))
    }

    /// Reads the same, `None` for [`LiveEntries::Archived`], and of each entry the [`long_text`] of its line.
    pub async fn measured_live_entries(
        &self,
        first: u64,
        count: u64,
    ) -> Result<Option<(Vec<Sealed>, Vec<u64>)>, StoreError> {
        let (bucket, hashes) = (self.realm.bucket(), self.realm.audit_hashes());
        for _ in 0..READ_ATTEMPTS {
            let (extent, _) = self.read_extent().await?;
            if first <= extent.archived.seq {
                return Ok(None);
            }
            let count = count.min((extent.sealed.seq + 1).saturating_sub(first));
            if count == 0 {
                return Ok(Some((Vec::new(), Vec::new())));
            }
            let from = first - extent.archived.seq - 1;
            let before = from.checked_sub(1).and_then(|rank| i64::try_from(rank).ok());
            let reads = [
                Read::field(bucket, self.realm.audit_base(), "seq"),
                Read::list_item(bucket, &hashes, before.unwrap_or(NOWHERE)),
                Read::list(bucket, self.realm.audit(), from, count),
                Read::list(bucket, &hashes, from, count),
            ];
            type Found = (Option<u64>, Option<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>);
            let (base, before, lines, found): Found = self.store.read_atomically(&reads).await?;
            if base.unwrap_or(0) != extent.archived.seq {
                continue;
            }
            let before = ChainHead {
                seq: first - 1,
                hash: match before {
                    Some(hash) => Some(to_hash(&hash)?),
                    None => extent.archived.hash,
                },
            };
            let texts = (first..).zip(&lines).map(|(seq, line)| long_text(seq, line));
            let texts = texts.collect();
            return Ok(Some((shown(first, before, lines, found)?, texts)));
        }
        Err(busy())
    }

    /// Returns the numbers of matching live sealed entries on the page `part`.
    pub async fn numbers(&self, filter: EntryFilter<'_>, part: Backwards) -> Result<LiveNumbers, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            let span = self.span(filter.from_ms, filter.to_ms).await?;
            let found = self
                .numbers_within(&span, (filter.agent, filter.kind), part)
                .await?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(busy())
    }

    /// Finds the live sealed entries of a span of time.
    pub async fn span(&self, from_ms: Option<u64>, to_ms: Option<u64>) -> Result<LiveSpan, StoreError> {
        let extent = self.extent().await?;
        let numbers = extent.archived.seq + 1..extent.sealed.seq + 1;
        let lines = ChainLines {
            chain: self,
            archived: extent.archived.seq,
        };
        let spread_ms = self.store.clock_spread_ms();
        Ok(LiveSpan {
            archived: extent.archived,
            numbers: TimeSpan::find(&lines, numbers, (from_ms, to_ms), spread_ms).await?,
        })
    }

    /// Returns the numbers of those of an agent, of a type, or of both on the page `part`; `None` if entries were
    /// archived since the span was found.
    pub async fn numbers_within(
        &self,
        span: &LiveSpan,
        (agent, kind): (Option<&str>, Option<&str>),
        part: Backwards,
    ) -> Result<Option<LiveNumbers>, StoreError> {
        let (numbers, total) = match (agent, kind) {
            (None, None) => {
                let (first, last) = part.within(0, span.numbers.count_before(part.before));
                (span.numbers.positions(first, last), span.numbers.len())
            }
            (agent, kind) => {
                let list = self.realm.audit_index(agent, kind);
                self.listed_within(&list, &span.numbers, part).await?
            }
        };
        let is_same = self.extent().await?.archived == span.archived;
        Ok(is_same.then_some(LiveNumbers {
            numbers,
            total,
            archived: span.archived.seq,
        }))
    }

    /// Counts the entries up to number `end` in the index of an agent, a type, or both, archived ones included. `None`
    /// if later ones are archived, so that the index does not distinguish them.
    pub async fn named(
        &self,
        agent: Option<&str>,
        kind: Option<&str>,
        end: u64,
    ) -> Result<Option<u64>, StoreError> {
        let list = self.realm.audit_index(agent, kind);
        for _ in 0..READ_ATTEMPTS {
            let archived = self.archived_count(agent, kind).await?;
            if archived.last > end {
                return Ok(None);
            }
            let nothing = Backwards {
                before: u64::MAX,
                skip: 0,
                count: 0,
            };
            let (_, live) = self.listed(&list, (archived.last + 1, end + 1), nothing).await?;
            if self.archived_count(agent, kind).await? == archived {
                return Ok(Some(archived.count + live));
            }
        }
        Err(busy())
    }

    /// Returns the numbers of entries that may be of the decision `id`; the caller compares the ids.
    pub async fn decision(&self, id: &str) -> Result<Vec<u64>, StoreError> {
        let Some(part) = decisions::key_part(id) else {
            return Ok(Vec::new());
        };
        let key = self.realm.audit_decisions(part);
        let text: Option<String> = self.store.command(redis::cmd("GET").arg(key)).await?;
        Ok(decisions::find(text.as_deref().unwrap_or_default(), id))
    }

    /// Counts the sealed entries of calls that ended more than a day after their day, of the days from `first` up to,
    /// not including, `end`; archived ones too.
    pub async fn late_count(&self, days: (u64, u64)) -> Result<u64, StoreError> {
        Ok(self.late_lengths(days).await?.iter().sum())
    }

    /// Returns the numbers of such entries from `position` on, a day and the number above them: of one day only,
    /// `count` at most, ascending; and where the next ones are. The last day comes first.
    pub async fn late(
        &self,
        (first, end): (u64, u64),
        (day, before): (u64, u64),
        count: u64,
    ) -> Result<LateNumbers, StoreError> {
        let end = end.min(day.saturating_add(1));
        let lengths = self.late_lengths((first, end)).await?;
        let days = (first..end).rev().zip(lengths.into_iter().rev());
        let mut days = days.filter(|(_, length)| *length > 0);
        let Some((found, length)) = days.next() else {
            return Ok(LateNumbers::default());
        };
        let earlier = days.next().map(|(day, _)| (day, u64::MAX));
        let list = self.realm.audit_late(found);
        let below = match found == day && before != u64::MAX {
            true => self.position_of(&list, length, before).await?,
            false => length,
        };
        let start = below.saturating_sub(count.max(1));
        let numbers = self.ranked(&list, start..below).await?;
        let rest = numbers
            .first()
            .filter(|_| start > 0)
            .map(|number| (found, *number));
        Ok(LateNumbers {
            numbers,
            next: rest.or(earlier),
        })
    }

    async fn late_lengths(&self, (first, end): (u64, u64)) -> Result<Vec<u64>, StoreError> {
        let lists = (first..end).map(|day| self.realm.audit_late(day));
        self.store.each("LLEN", lists).await
    }

    /// Finds the first entry at `at_ms` or later.
    pub(crate) async fn first_at(
        &self,
        extent: &Extent,
        at_ms: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, StoreError> {
        let lines = ChainLines {
            chain: self,
            archived: extent.archived.seq,
        };
        first_at(&lines, low..high, at_ms).await
    }

    /// Finds the first rank in an index of `length` at which `number` or a later one is.
    async fn position_of(&self, list: &str, length: u64, number: u64) -> Result<u64, StoreError> {
        let mut search = Search::between(0, length);
        while let Some(positions) = search.positions() {
            let items = positions.iter().map(|position| (list, position));
            let numbers: Vec<Option<u64>> = self.store.each("LINDEX", items).await?;
            let late = numbers
                .iter()
                .map(|found| found.is_none_or(|found| found >= number));
            search.record(&positions, late);
        }
        Ok(search.found())
    }

    /// Returns the numbers of `wanted` in an index, those on the page `part` only; and the count of all.
    async fn listed_within(
        &self,
        list: &str,
        wanted: &TimeSpan,
        part: Backwards,
    ) -> Result<(Vec<u64>, u64), StoreError> {
        let Some((before, behind)) = wanted.borders() else {
            let middle = wanted.middle();
            return self.listed(list, (middle.start, middle.end), part).await;
        };
        let length: u64 = self.store.command(redis::cmd("LLEN").arg(list)).await?;
        let mut ranks = [0; 4];
        let middle = wanted.middle();
        for (rank, number) in ranks.iter_mut().zip([before, middle.start, middle.end, behind]) {
            *rank = self.position_of(list, length, number).await?;
        }
        let [first, start, end, last] = ranks;
        let read = async |ranks: Range<u64>| {
            let numbers = self.ranked(list, ranks.clone()).await?;
            let found = ranks.zip(numbers);
            let found = found.filter(|(_, number)| wanted.contains(*number));
            Ok::<Vec<u64>, StoreError>(found.map(|(rank, _)| rank).collect())
        };
        let ranks = TimeSpan::new(read(first..start).await?, start..end, read(end..last).await?);
        let below = match part.before {
            u64::MAX => ranks.len(),
            before => ranks.count_before(self.position_of(list, length, before).await?),
        };
        let (start, end) = part.within(0, below);
        let positions = ranks.positions(start, end);
        let (Some(first), Some(last)) = (positions.first(), positions.last()) else {
            return Ok((Vec::new(), ranks.len()));
        };
        let numbers = self.ranked(list, *first..last + 1).await?;
        let found = (*first..).zip(numbers);
        let found = found.filter(|(rank, _)| positions.binary_search(rank).is_ok());
        Ok((found.map(|(_, number)| number).collect(), ranks.len()))
    }

    /// Reads the numbers at some ranks of an index.
    async fn ranked(&self, list: &str, ranks: Range<u64>) -> Result<Vec<u64>, StoreError> {
        if ranks.is_empty() {
            return Ok(Vec::new());
        }
        let mut range = redis::cmd("LRANGE");
        range.arg(list).arg(ranks.start).arg(ranks.end - 1);
        self.store.command(&range).await
    }

    /// Returns the numbers from `first` up to, not including, `last` in an index, those on the page `part` only; and
    /// the count of all.
    async fn listed(
        &self,
        list: &str,
        (first, last): (u64, u64),
        part: Backwards,
    ) -> Result<(Vec<u64>, u64), StoreError> {
        let length: u64 = self.store.command(redis::cmd("LLEN").arg(list)).await?;
        let low = self.position_of(list, length, first).await?;
        let high = self.position_of(list, length, last).await?;
        let below = match part.before < last {
            true => self.position_of(list, high, part.before).await?,
            false => high,
        };
        let (start, end) = part.within(low, below);
        Ok((self.ranked(list, start..end).await?, high - low))
    }
}

impl Times for ChainLines<'_> {
    async fn at(&self, positions: &[u64]) -> Result<Vec<u64>, StoreError> {
        let list = self.chain.realm.audit();
        let ranks: Vec<u64> = positions
            .iter()
            .map(|number| number - self.archived - 1)
            .collect();
        let lines: Vec<Option<Vec<u8>>> = self.chain.store.items_at(&list, &ranks).await?;
        Ok(lines.iter().map(|line| time(line.as_deref())).collect())
    }
}

impl Backwards {
    /// Returns the page's range among the ranks from `low` up to, not including, `high`.
    fn within(self, low: u64, high: u64) -> (u64, u64) {
        let end = high.saturating_sub(self.skip).max(low);
        (end.saturating_sub(self.count).max(low), end)
    }
}

/// Returns the time of a line. A missing or malformed line counts as later than all.
fn time(line: Option<&[u8]>) -> u64 {
    let word = line.and_then(|line| line.split(|byte| *byte == b' ').nth(1));
    let word = word.and_then(|word| std::str::from_utf8(word).ok());
    word.and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}

fn busy() -> StoreError {
    StoreError::unexpected("the audit trail was archived while it was read")
}
