//! Reading the sealed entries that are still in the store: by number, by agent, type and time, by a decision's id.

use super::{ATTEMPTS, Chain, Extent, Head, shown, to_hash};
use crate::StoreError;
use crate::audit::decisions;
use crate::search::Search;
use domain::entry::Sealed;

/// A place in a list where nothing is.
const NOWHERE: u64 = i64::MAX as u64;

/// Which entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter<'a> {
    /// Those about this agent.
    pub agent: Option<&'a str>,
    /// Those of this type.
    pub kind: Option<&'a str>,
    /// Those at this time or later.
    pub from_ms: Option<u64>,
    /// Those before this time.
    pub to_ms: Option<u64>,
}

/// Which of the entries that match a filter, from the newest backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backwards {
    /// Those below this number.
    pub before: u64,
    /// Of these, not the newest so many.
    pub skip: u64,
    /// At most so many.
    pub count: u64,
}

/// Entries in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// They are live.
    Live(Vec<Sealed>),
    /// The first one is archived.
    Archived,
}

impl Chain<'_> {
    /// The sealed entries from `first` on, `count` at most, ascending; those that are archived already are not among
    /// them.
    ///
    /// # Errors
    /// [`StoreError`].
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

    /// The sealed entries from `first` on, `count` at most, ascending, when the first one is in the store.
    ///
    /// # Errors
    /// [`StoreError`].
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
            let mut look = redis::pipe();
            look.atomic();
            look.cmd("HGET").arg(self.keys.audit_base(self.mode)).arg("seq");
            look.cmd("LINDEX")
                .arg(&hashes_key)
                .arg(from.checked_sub(1).unwrap_or(NOWHERE));
            look.cmd("LRANGE")
                .arg(self.keys.audit(self.mode))
                .arg(from)
                .arg(last);
            look.cmd("LRANGE").arg(&hashes_key).arg(from).arg(last);
            type Found = (Option<u64>, Option<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>);
            let (base, before, lines, hashes): Found = self.store.pipeline(&look).await?;
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

    /// The numbers of the live sealed entries that match, ascending, of those that `part` names; how many match in all;
    /// and the last entry that was archived when this was so.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn numbers(
        &self,
        filter: Filter<'_>,
        part: Backwards,
    ) -> Result<(Vec<u64>, u64, u64), StoreError> {
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
                return Ok((numbers, total, extent.archived.seq));
            }
        }
        Err(busy())
    }

    /// How many entries up to number `end` the list of an agent, a type, or both names, archived ones included; `None`
    /// when later ones are archived by now, so that nobody can tell them apart any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn named(
        &self,
        agent: Option<&str>,
        kind: Option<&str>,
        end: u64,
    ) -> Result<Option<u64>, StoreError> {
        let list = self.keys.audit_index(self.mode, agent, kind);
        for _ in 0..ATTEMPTS {
            let (count, archived) = self.archived_count(agent, kind).await?;
            if archived > end {
                return Ok(None);
            }
            let nothing = Backwards {
                before: u64::MAX,
                skip: 0,
                count: 0,
            };
            let (_, live) = self.listed(&list, (archived + 1, end + 1), nothing).await?;
            if self.archived_count(agent, kind).await? == (count, archived) {
                return Ok(Some(count + live));
            }
        }
        Err(busy())
    }

    /// The numbers of the entries that may be of the decision `id`: compare the ids.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn decision(&self, id: &str) -> Result<Vec<u64>, StoreError> {
        let Some(part) = decisions::key_part(id) else {
            return Ok(Vec::new());
        };
        let key = self.keys.audit_decisions(self.mode, part);
        let text: Option<String> = self.store.command(redis::cmd("GET").arg(key)).await?;
        Ok(decisions::find(text.as_deref().unwrap_or_default(), id))
    }

    /// The first number, and the one behind the last, of the live sealed entries in the filter's span of time.
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

    /// The first entry at `at_ms` or later.
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
            let mut look = redis::pipe();
            for number in &numbers {
                look.cmd("LINDEX")
                    .arg(&list)
                    .arg(number - extent.archived.seq - 1);
            }
            let lines: Vec<Option<Vec<u8>>> = self.store.pipeline(&look).await?;
            search.record(&numbers, lines.iter().map(|line| time(line.as_deref()) >= at_ms));
        }
        Ok(search.found())
    }

    /// The first place in an index, of `length`, where `number` or a later one is.
    async fn place_of(&self, list: &str, length: u64, number: u64) -> Result<u64, StoreError> {
        let mut search = Search::between(0, length);
        while let Some(places) = search.places() {
            let mut look = redis::pipe();
            for place in &places {
                look.cmd("LINDEX").arg(list).arg(*place);
            }
            let numbers: Vec<Option<u64>> = self.store.pipeline(&look).await?;
            let late = numbers
                .iter()
                .map(|found| found.is_none_or(|found| found >= number));
            search.record(&places, late);
        }
        Ok(search.found())
    }

    /// The numbers from `first` to before `last` in an index, of those that `part` names; and how many there are in
    /// all.
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
    /// Which of the places from `low` to before `high`.
    fn within(self, low: u64, high: u64) -> (u64, u64) {
        let end = high.saturating_sub(self.skip).max(low);
        (end.saturating_sub(self.count).max(low), end)
    }
}

/// When the line was written; one that is gone or makes no sense is later than all.
fn time(line: Option<&[u8]>) -> u64 {
    let word = line.and_then(|line| line.split(|byte| *byte == b' ').nth(1));
    let word = word.and_then(|word| std::str::from_utf8(word).ok());
    word.and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}

fn busy() -> StoreError {
    StoreError::UnexpectedReply("the audit trail was archived while it was read".to_owned())
}
