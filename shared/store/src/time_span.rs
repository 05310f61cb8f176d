//! Finds a span of time in a list whose times ascend only as far as the clocks of the servers agree: each time may be
//! off by `store.max_clock_difference_ms` to either side, since beyond it a server is not used.
//!
//! Near an end of the span every time is compared; between these borders all rows are in it. A border has at most
//! [`BORDER_MAX`] rows: in a list that is faster, rows that are further away count as sorted.

use crate::search::Search;
use crate::{Store, StoreError};
use std::future::Future;
use std::ops::Range;

/// Most rows of a border whose times are compared, half of them to each side of the end.
const BORDER_MAX: u64 = 1000;
/// Rows of a border that are read in one round trip.
const CHUNK: u64 = 500;

/// Reads the times of rows.
pub(crate) trait Times {
    /// Returns the times at these ascending positions, in ms since 1970. A missing row is later than all.
    fn at(&self, positions: &[u64]) -> impl Future<Output = Result<Vec<u64>, StoreError>> + Send;
}

/// The rows of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    /// Rows before the middle, ascending.
    before: Vec<u64>,
    /// Rows that are all in the span.
    middle: Range<u64>,
    /// Rows behind the middle, ascending.
    behind: Vec<u64>,
}

impl Store {
    /// Returns by how much a time can be below one before it, in ms: both servers' clocks may be off, to either side.
    pub fn clock_spread_ms(&self) -> u64 {
        self.clock_difference_max_ms().saturating_mul(2)
    }
}

impl TimeSpan {
    /// Finds the rows from `from_ms` on and before `to_ms`, of those at `positions`.
    pub(crate) async fn find(
        times: &(impl Times + Sync),
        positions: Range<u64>,
        (from_ms, to_ms): (Option<u64>, Option<u64>),
        spread_ms: u64,
    ) -> Result<Self, StoreError> {
        // A short list is read in one round trip.
        let is_short = (from_ms.is_some() || to_ms.is_some()) && positions.end - positions.start <= CHUNK;
        let from = match from_ms {
            _ if is_short => positions.clone(),
            None => positions.start..positions.start,
            Some(from_ms) => border(times, &positions, from_ms, spread_ms).await?,
        };
        let to = match to_ms {
            Some(to_ms) if !is_short => border(times, &positions, to_ms, spread_ms).await?,
            _ => positions.end..positions.end,
        };
        let fits = |at_ms: u64| from_ms.is_none_or(|from| at_ms >= from) && to_ms.is_none_or(|to| at_ms < to);
        // Borders that touch leave no middle.
        let (from, to) = match from.end > to.start {
            true => {
                let end = from.end.max(to.end);
                (from.start..end, end..end)
            }
            false => (from, to),
        };
        Ok(Self {
            before: matching(times, from.clone(), fits).await?,
            middle: from.end..to.start,
            behind: matching(times, to, fits).await?,
        })
    }

    /// The span of these rows.
    pub(crate) fn new(before: Vec<u64>, middle: Range<u64>, behind: Vec<u64>) -> Self {
        Self {
            before,
            middle,
            behind,
        }
    }

    /// Returns the rows that are all in the span.
    pub(crate) fn middle(&self) -> Range<u64> {
        self.middle.clone()
    }

    /// Returns the position of the first row and the one after the last; `None` if all rows are in the middle.
    pub(crate) fn borders(&self) -> Option<(u64, u64)> {
        if self.before.is_empty() && self.behind.is_empty() {
            return None;
        }
        let first = self.before.first().copied().unwrap_or(self.middle.start);
        let last = self.behind.last().map_or(self.middle.end, |last| last + 1);
        Some((first, last))
    }

    /// Returns whether the row at `position` is in the span.
    pub(crate) fn contains(&self, position: u64) -> bool {
        let of = |border: &[u64]| border.binary_search(&position).is_ok();
        self.middle.contains(&position) || of(&self.before) || of(&self.behind)
    }

    /// Returns how many rows there are.
    pub(crate) fn len(&self) -> u64 {
        (self.before.len() + self.behind.len()) as u64 + (self.middle.end - self.middle.start)
    }

    /// Returns how many of the rows are before `position`.
    pub(crate) fn count_before(&self, position: u64) -> u64 {
        let of = |border: &[u64]| border.partition_point(|at| *at < position) as u64;
        let middle = position.clamp(self.middle.start, self.middle.end) - self.middle.start;
        of(&self.before) + middle + of(&self.behind)
    }

    /// Returns the positions of the rows from the one of rank `first` up to, not including, that of rank `last`.
    pub(crate) fn positions(&self, first: u64, last: u64) -> Vec<u64> {
        let before = self.before.len() as u64;
        let behind = before + (self.middle.end - self.middle.start);
        let at = |border: &[u64], rank: u64| {
            usize::try_from(rank)
                .ok()
                .and_then(|rank| border.get(rank).copied())
        };
        (first..last)
            .filter_map(|rank| match rank {
                rank if rank < before => at(&self.before, rank),
                rank if rank < behind => Some(self.middle.start + rank - before),
                rank => at(&self.behind, rank - behind),
            })
            .collect()
    }
}

/// Returns the positions whose times must be compared with `at_ms`: before them all are earlier, behind them all later.
async fn border(
    times: &(impl Times + Sync),
    positions: &Range<u64>,
    at_ms: u64,
    spread_ms: u64,
) -> Result<Range<u64>, StoreError> {
    let near = first_at(times, positions.clone(), at_ms).await?;
    let low = near.saturating_sub(BORDER_MAX / 2).max(positions.start);
    let high = near.saturating_add(BORDER_MAX / 2).min(positions.end);
    let first = first_at(times, low..near, at_ms.saturating_sub(spread_ms)).await?;
    let last = first_at(times, near..high, at_ms.saturating_add(spread_ms)).await?;
    Ok(first..last)
}

/// Finds the first position at `at_ms` or later.
pub(crate) async fn first_at(
    times: &(impl Times + Sync),
    positions: Range<u64>,
    at_ms: u64,
) -> Result<u64, StoreError> {
    let mut search = Search::between(positions.start, positions.end);
    while let Some(positions) = search.positions() {
        let found = times.at(&positions).await?;
        search.record(&positions, found.into_iter().map(|found| found >= at_ms));
    }
    Ok(search.found())
}

/// Returns those of `positions` whose time fits.
async fn matching(
    times: &(impl Times + Sync),
    positions: Range<u64>,
    fits: impl Fn(u64) -> bool,
) -> Result<Vec<u64>, StoreError> {
    let mut found = Vec::new();
    let mut first = positions.start;
    while first < positions.end {
        let last = positions.end.min(first + CHUNK);
        let chunk: Vec<u64> = (first..last).collect();
        let read = times.at(&chunk).await?;
        found.extend(
            chunk
                .into_iter()
                .zip(read)
                .filter(|(_, at_ms)| fits(*at_ms))
                .map(|(position, _)| position),
        );
        first = last;
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
