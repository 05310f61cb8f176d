//! Proxied calls, newest first, read from their entries in the audit trail: first those in the store, then those in the
//! archive. Each step reads a bounded number of entries, so that the caller decides how far to search.
//!
//! A call is one record, although the trail can have two entries of it: where its hold was kept and corrected later,
//! the record is where the entry of the kept hold is, with the content of the correction, whose entry is no record of
//! its own. So a record has one place for ever: no page and no span has it twice, and none misses it.

use super::archived::may_match;
use super::{READ_ATTEMPTS, Trail, busy};
use archive::segment::Segment;
use domain::call_record::CallRecord;
use domain::entry::{Entry, Sealed};
use std::collections::HashMap;
use std::fmt;
use store::StoreError;
use store::audit::chain::{Backwards, EntryFilter, LateNumbers};

/// Maximum number of entries that one step reads.
pub const STEP_MAX: usize = 500;
/// Maximum number of archive segments that one step opens; a step that ends there is short.
const SEGMENTS_MAX: usize = 4;
/// Cost of a short step, in entries: each opened segment costs as much as a whole step.
const SHORT_STEP_COST: usize = SEGMENTS_MAX * STEP_MAX;

/// The requested calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSelection<'a> {
    /// The types of their entries, of [`domain::call_record::KINDS`].
    pub kinds: &'a [&'static str],
    /// Only calls of this agent.
    pub agent: Option<&'a str>,
    /// Those first recorded at this time or later, in ms since 1970.
    pub from_ms: Option<u64>,
    /// Those first recorded before this time, in ms since 1970.
    pub to_ms: Option<u64>,
    /// Those first recorded at `to_ms` or later, too, if they are of these days.
    pub late: Option<LateCalls>,
}

/// Days of which those calls are read, too, that ended more than a day later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateCalls {
    /// From this day on up to, not including, the other; in days since 1970.
    pub days: (u64, u64),
    /// Those first recorded before this time, in ms since 1970.
    pub to_ms: Option<u64>,
}

/// Start of a step. Calls that ended late come first, then the others, each the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsPosition {
    /// Late ones of this day below this number, and of the days before it.
    Late(u64, u64),
    /// Others below this number.
    Below(u64),
}

/// Result of one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallsStep {
    /// The calls, newest first.
    pub calls: Vec<CallRecord>,
    /// Cost of the step, in entries that could have been read instead; at least one.
    pub cost: usize,
    /// Start of the next step; `None` at the end.
    pub next: Option<CallsPosition>,
    /// When the oldest entry that was read was recorded.
    pub oldest_ms: Option<u64>,
    /// True for late settlements.
    pub is_late: bool,
}

/// Entries, newest first, and the number before which there can be more.
struct Entries {
    found: Vec<Entry>,
    next: Option<u64>,
}

/// Begins a text of a position among late calls.
const LATE: &str = "late";

impl CallsPosition {
    /// Position before the newest call.
    pub const START: Self = Self::Late(u64::MAX, u64::MAX);

    /// Reads the text that [`CallsPosition`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(LATE) {
            Some(position) => {
                let (day, number) = position.split_once('.')?;
                Some(Self::Late(day.parse().ok()?, number.parse().ok()?))
            }
            None => text.parse().ok().map(Self::Below),
        }
    }
}

impl fmt::Display for CallsPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(day, number) => write!(f, "{LATE}{day}.{number}"),
            Self::Below(number) => write!(f, "{number}"),
        }
    }
}

impl<'a> CallSelection<'a> {
    /// Returns the filter for one of its types.
    fn filter(&self, kind: &'static str) -> EntryFilter<'a> {
        EntryFilter {
            agent: self.agent,
            kind: Some(kind),
            from_ms: self.from_ms,
            to_ms: self.to_ms,
        }
    }
}

impl Trail<'_> {
    /// Counts the matching entries of calls.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] if a required segment is missing or damaged.
    pub async fn count_calls(&self, selection: &CallSelection<'_>) -> Result<u64, StoreError> {
        let mut total = 0;
        for kind in selection.kinds {
            total += self.count_of(selection.filter(kind)).await?;
        }
        if let Some(late) = selection.late {
            total += self.chain.late_count(late.days).await?;
        }
        Ok(total)
    }

    /// The calls from `position` on, of at most `most` entries and [`STEP_MAX`]. The trail must be sealed
    /// ([`Trail::seal`]) for the latest calls to be among them.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Archive`] when a segment that is needed is missing or damaged.
    pub async fn calls(
        &self,
        selection: &CallSelection<'_>,
        position: CallsPosition,
        most: usize,
    ) -> Result<CallsStep, StoreError> {
        let count = most.min(STEP_MAX);
        let before = match (position, selection.late) {
            (CallsPosition::Late(day, before), Some(late)) => {
                let step = self.late_calls(selection, late, (day, before), count).await?;
                if !step.calls.is_empty() || matches!(step.next, Some(CallsPosition::Late(..))) {
                    return Ok(step);
                }
                u64::MAX
            }
            (CallsPosition::Late(..), None) => u64::MAX,
            (CallsPosition::Below(before), _) => before,
        };
        let entries = self.call_entries(selection, before, count as u64).await?;
        let mut calls: Vec<CallRecord> = entries.found.iter().filter_map(CallRecord::from_entry).collect();
        self.unite(&mut calls).await?;
        Ok(CallsStep {
            calls,
            cost: match entries.next.is_some() && entries.found.len() < count {
                true => SHORT_STEP_COST,
                false => count.max(1),
            },
            next: entries.next.map(CallsPosition::Below),
            oldest_ms: entries.found.last().map(|entry| entry.at_ms),
            is_late: false,
        })
    }

    /// Calls that ended late, from `position` on.
    async fn late_calls(
        &self,
        selection: &CallSelection<'_>,
        late: LateCalls,
        position: (u64, u64),
        count: usize,
    ) -> Result<CallsStep, StoreError> {
        let LateNumbers { numbers, next } = self.chain.late(late.days, position, count as u64).await?;
        let entries = self.entries(&numbers).await?;
        let entries = entries
            .iter()
            .rev()
            .filter_map(|sealed| Entry::from_json(&sealed.json));
        let fits = |entry: &Entry| {
            selection.kinds.contains(&entry.kind.as_str())
                && selection.agent.is_none_or(|agent| entry.agent.as_deref() == Some(agent))
                // The others are read with the rest.
                && selection.to_ms.is_some_and(|to_ms| entry.at_ms >= to_ms)
                && late.to_ms.is_none_or(|to_ms| entry.at_ms < to_ms)
                && selection.from_ms.is_none_or(|from_ms| entry.at_ms >= from_ms)
        };
        let mut calls: Vec<CallRecord> = entries
            .filter(fits)
            .filter_map(|entry| CallRecord::from_entry(&entry))
            .collect();
        self.unite(&mut calls).await?;
        Ok(CallsStep {
            calls,
            cost: numbers.len().max(1),
            next: Some(next.map_or(CallsPosition::Below(u64::MAX), |(day, number)| {
                CallsPosition::Late(day, number)
            })),
            oldest_ms: None,
            is_late: true,
        })
    }

    /// Returns the entries, from the store and then from the archive.
    async fn call_entries(
        &self,
        selection: &CallSelection<'_>,
        before: u64,
        count: u64,
    ) -> Result<Entries, StoreError> {
        for _ in 0..READ_ATTEMPTS {
            // One more shows whether the store has more.
            let found = self
                .call_numbers(selection, before, count.saturating_add(1))
                .await?;
            let Some((mut numbers, archived)) = found else {
                continue;
            };
            let surplus = numbers
                .len()
                .saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
            numbers.drain(..surplus);
            let Some(mut found) = self.chain.entries_of(&numbers).await? else {
                continue;
            };
            found.reverse();
            if surplus > 0 {
                let next = numbers.first().copied();
                return Ok(Entries { found, next });
            }
            let left = count.saturating_sub(found.len() as u64);
            if archived == 0 {
                return Ok(Entries { found, next: None });
            }
            let old = self.archived_calls(selection, (archived, before), left).await?;
            found.extend(old.found);
            return Ok(Entries {
                found,
                next: old.next,
            });
        }
        Err(busy())
    }

    /// Returns the highest numbers of matching entries in the store, ascending, and the last archived entry; `None` if
    /// entries were archived meanwhile.
    async fn call_numbers(
        &self,
        selection: &CallSelection<'_>,
        before: u64,
        count: u64,
    ) -> Result<Option<(Vec<u64>, u64)>, StoreError> {
        let part = Backwards {
            before,
            skip: 0,
            count,
        };
        let span = self.chain.span(selection.from_ms, selection.to_ms).await?;
        let (mut all, mut end) = (Vec::new(), 0);
        for kind in selection.kinds {
            let names = (selection.agent, Some(*kind));
            let Some(live) = self.chain.numbers_within(&span, names, part).await? else {
                return Ok(None);
            };
            end = live.archived;
            all.extend(live.numbers);
        }
        all.sort_unstable();
        let surplus = all
            .len()
            .saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(Some((all.split_off(surplus), end)))
    }

    /// Reads the matching archived entries of calls up to number `end` and before `before`, newest first, at most
    /// `count`, from at most [`SEGMENTS_MAX`] segments. Also returns the number before which there can be more.
    async fn archived_calls(
        &self,
        selection: &CallSelection<'_>,
        (end, before): (u64, u64),
        count: u64,
    ) -> Result<Entries, StoreError> {
        let (mut found, mut opened) = (Vec::new(), 0);
        let mut left = count;
        for segment in self.up_to(end).await?.into_iter().rev() {
            let kinds = selection.kinds.iter().map(|kind| selection.filter(kind));
            let filters: Vec<EntryFilter<'_>> = kinds.filter(|filter| may_match(&segment, *filter)).collect();
            if segment.first >= before || filters.is_empty() {
                continue;
            }
            if left == 0 || opened == SEGMENTS_MAX {
                let next = Some(before.min(segment.last + 1));
                return Ok(Entries { found, next });
            }
            opened += 1;
            let file = self.archive.segment(self.chain.realm(), &segment).await?;
            let (mut numbered, goes_on) = newest_of(&file, &filters, before, left);
            left -= numbered.len() as u64;
            let last = numbered.last().map(|(number, _)| *number);
            found.extend(
                numbered
                    .drain(..)
                    .filter_map(|(_, sealed)| Entry::from_json(&sealed.json)),
            );
            if goes_on {
                return Ok(Entries { found, next: last });
            }
        }
        Ok(Entries { found, next: None })
    }

    /// Puts the content of the correction in the place of each kept call that was corrected, and leaves out the
    /// corrections themselves.
    async fn unite(&self, calls: &mut Vec<CallRecord>) -> Result<(), StoreError> {
        let is_one_of_two = |call: &&CallRecord| call.is_kept() || call.can_follow_kept();
        let ids: Vec<&str> = calls
            .iter()
            .filter(is_one_of_two)
            .map(|call| call.id.as_str())
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut united: HashMap<String, (CallRecord, CallRecord)> = HashMap::new();
        for entry in self.entries_of_decisions(&ids).await? {
            let Some(call) = CallRecord::from_entry(&entry) else {
                continue;
            };
            let (first, last) = united
                .entry(call.id.clone())
                .or_insert_with(|| (call.clone(), call.clone()));
            if call.seq < first.seq {
                *first = call;
            } else if call.seq > last.seq {
                *last = call;
            }
        }
        calls.retain_mut(|call| {
            let Some((first, last)) = united.get(&call.id).filter(|(first, _)| first.is_kept()) else {
                return true;
            };
            if call.seq != first.seq {
                return false;
            }
            *call = CallRecord {
                seq: call.seq,
                ..last.clone()
            };
            true
        });
        Ok(())
    }
}

/// Returns the newest entries of an opened segment that match one of the filters, at most `count`, newest first, and
/// whether there are older ones.
fn newest_of(
    segment: &Segment,
    filters: &[EntryFilter<'_>],
    before: u64,
    count: u64,
) -> (Vec<(u64, Sealed)>, bool) {
    let part = Backwards {
        before,
        skip: 0,
        count,
    };
    let (mut found, mut goes_on) = (Vec::new(), false);
    for filter in filters {
        let (entries, more) = segment.matching(*filter, part);
        found.extend(entries);
        goes_on |= more;
    }
    found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    goes_on |= found.len() > most;
    found.truncate(most);
    (found, goes_on)
}
