//! Reads sealed entries that are still in the store: by number, by agent, type and time, by decision id.

use super::{ATTEMPTS, Chain, Extent, Head, shown, to_hash};
use crate::StoreError;
use crate::audit::decisions;
use crate::search::Search;
use domain::entry::Sealed;

/// A rank beyond the end of every list.
const NOWHERE: u64 = i64::MAX as u64;

/// A filter for entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter<'a> {
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
    /// Most entries on the page.
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

/// Consecutive entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// The entries are in the store.
    Live(Vec<Sealed>),
    /// The first one is archived.
    Archived,
}

impl Chain<'_> {
    /// Reads at most `count` sealed entries from `first` on, ascending. Skips archived ones.
    pub async fn read(&self, first: u64, count: u64) -> Result<Vec<Sealed>, StoreError> {
        let mut first = first;
        for _ in 0..ATTEMPTS {
            match self.row(first, count).await? {
                Row::Live(found) => return Ok(found),
                Row::Archived => first = self.extent().await?.archived.seq + 1,
            }
        }
        Err(busy())
    }

    /// Reads at most `count` sealed entries from `first` on, ascending, if the first one is in the store.
    pub async fn row(&self, first: u64, count: u64) -> Result<Row, StoreError> {
        let hashes_key = self.keys.audit_hashes(self.mode);
        for _ in 0..ATTEMPTS {
            let (extent, _) = self.read_extent().await?;
            if first <= extent.archived.seq {
                return Ok(Row::Archived);
            }
            let count = count.min((extent.sealed.seq + 1).saturating_sub(first));
            if count == 0 {
                return Ok(Row::Live(Vec::new()));
            }
            let from = first - extent.archived.seq - 1;
            let last = from + count - 1;
            let mut query = redis::pipe();
            query.atomic();
            query.cmd("HGET").arg(self.keys.audit_base(self.mode)).arg("seq");
            query
                .cmd("LINDEX")
                .arg(&hashes_key)
                .arg(from.checked_sub(1).unwrap_or(NOWHERE));
            query
                .cmd("LRANGE")
                .arg(self.keys.audit(self.mode))
                .arg(from)
                .arg(last);
            query.cmd("LRANGE").arg(&hashes_key).arg(from).arg(last);
            type Found = (Option<u64>, Option<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>);
            let (base, before, lines, hashes): Found = self.store.pipeline(&query).await?;
            if base.unwrap_or(0) != extent.archived.seq {
                continue;
            }
            let before = Head {
                seq: first - 1,
                hash: match before {
                    Some(hash) => Some(to_hash(&hash)?),
                    None => extent.archived.hash,
                },
            };
            return shown(first, before, lines, hashes).map(Row::Live);
        }
        Err(busy())
    }

    /// Returns the numbers of matching live sealed entries on the page `part`.
    pub async fn numbers(&self, filter: Filter<'_>, part: Backwards) -> Result<LiveNumbers, StoreError> {
        for _ in 0..ATTEMPTS {
            let extent = self.extent().await?;
            let (first, last) = self.span(&extent, filter).await?;
            let found = match (filter.agent, filter.kind) {
                (None, None) => {
                    let (start, end) = part.within(first, last.min(part.before));
                    ((start..end).collect(), last - first)
                }
                (agent, kind) => {
                    let list = self.keys.audit_index(self.mode, agent, kind);
                    self.listed(&list, (first, last), part).await?
                }
            };
            if self.extent().await?.archived == extent.archived {
                let (numbers, total) = found;
                return Ok(LiveNumbers {
                    numbers,
                    total,
                    archived: extent.archived.seq,
                });
            }
        }
        Err(busy())
    }

    /// Counts the entries up to number `end` in the index of an agent, a type, or both, archived ones included. `None`
    /// if later ones are archived, so that they cannot be told apart.
    pub async fn named(
        &self,
        agent: Option<&str>,
        kind: Option<&str>,
        end: u64,
    ) -> Result<Option<u64>, StoreError> {
        let list = self.keys.audit_index(self.mode, agent, kind);
        for _ in 0..ATTEMPTS {
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
        let key = self.keys.audit_decisions(self.mode, part);
        let text: Option<String> = self.store.command(redis::cmd("GET").arg(key)).await?;
        Ok(decisions::find(text.as_deref().unwrap_or_default(), id))
    }

    /// Returns the first number of the filter's time span, and the one after its last, among live sealed entries.
    async fn span(&self, extent: &Extent, filter: Filter<'_>) -> Result<(u64, u64), StoreError> {
        let (low, high) = (extent.archived.seq + 1, extent.sealed.seq + 1);
        let first = match filter.from_ms {
            None => low,
            Some(from_ms) => self.first_at(extent, from_ms, low, high).await?,
        };
        let last = match filter.to_ms {
            None => high,
            Some(to_ms) => self.first_at(extent, to_ms, low, high).await?,
        };
        Ok((first, last.max(first)))
    }

    /// Finds the first entry at `at_ms` or later.
    pub(crate) async fn first_at(
        &self,
        extent: &Extent,
        at_ms: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, StoreError> {
        let list = self.keys.audit(self.mode);
        let mut search = Search::between(low, high);
        while let Some(numbers) = search.places() {
            let places = numbers
                .iter()
                .map(|number| (&list, number - extent.archived.seq - 1));
            let lines: Vec<Option<Vec<u8>>> = self.store.each("LINDEX", places).await?;
            search.record(&numbers, lines.iter().map(|line| time(line.as_deref()) >= at_ms));
        }
        Ok(search.found())
    }

    /// Finds the first rank in an index of `length` at which `number` or a later one is.
    async fn place_of(&self, list: &str, length: u64, number: u64) -> Result<u64, StoreError> {
        let mut search = Search::between(0, length);
        while let Some(places) = search.places() {
            let items = places.iter().map(|place| (list, place));
            let numbers: Vec<Option<u64>> = self.store.each("LINDEX", items).await?;
            let late = numbers
                .iter()
                .map(|found| found.is_none_or(|found| found >= number));
            search.record(&places, late);
        }
        Ok(search.found())
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
        let low = self.place_of(list, length, first).await?;
        let high = self.place_of(list, length, last).await?;
        let below = match part.before < last {
            true => self.place_of(list, high, part.before).await?,
            false => high,
        };
        let (start, end) = part.within(low, below);
        if start == end {
            return Ok((Vec::new(), high - low));
        }
        let mut range = redis::cmd("LRANGE");
        range.arg(list).arg(start).arg(end - 1);
        Ok((self.store.command(&range).await?, high - low))
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
