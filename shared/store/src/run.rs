//! Named runs (decision D38): written by the scripts of calls and spends, ended by `run_end`.

pub mod end;
pub mod paused_runs;

use crate::call::authorize::RUN_LIFE_MS;
use crate::filtered_page::{FieldFilter, FilteredPage};
use crate::keys::Realm;
use crate::page::{Page, PageRequest, SortedSet, records};
use crate::record_fields::RecordFields;
use crate::{Store, StoreError, server_clock};
use domain::money::Nanos;
use std::collections::HashMap;

/// Maximum number of runs scanned for a page with a status filter. The status is not indexed, since an index would cost
/// each call.
pub const SCANNED_MAX: usize = 1_000;

domain::words! {
    /// State of a run, by its last end and later approved calls.
    pub enum RunStatus {
        /// Not ended, or a call was approved after its end.
        Running = "running",
        /// It was ended as completed.
        Completed = "completed",
        /// It was ended as failed.
        Failed = "failed",
    }
}

impl RunStatus {
    /// Parses the `status` field of a record, which a run in progress does not have.
    fn stored(field: Option<&str>) -> Option<Self> {
        field.map_or(Some(Self::Running), |word| {
            Self::parse(word).filter(|status| *status != Self::Running)
        })
    }
}

/// A named run of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Unique among the runs of its agent.
    pub id: String,
    /// [`RunStatus::Running`] also after an end, if a later call was approved.
    pub status: RunStatus,
    /// Approved calls and spends.
    pub calls: u64,
    /// Calls and spends that Cap, the plan or a policy denied.
    pub denied: u64,
    /// Spend, open holds included with their estimates.
    pub spent: Nanos,
    /// Time of its first call, in ms since 1970.
    pub first_ms: u64,
    /// Time of its last call, in ms since 1970.
    pub last_ms: u64,
    /// Time of its end, in ms since 1970.
    pub ended_ms: Option<u64>,
}

impl Run {
    /// Reads a record; `None` when it makes no sense.
    fn from_fields(id: String, fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        let count = |name: &str| Some(fields.optional(name)?.unwrap_or(0));
        Some(Self {
            id,
            status: RunStatus::stored(fields.get("status"))?,
            calls: count("calls")?,
            denied: count("denied")?,
            spent: Nanos::from_stored(count("spent")?),
            first_ms: fields.number("first")?,
            last_ms: fields.number("last")?,
            ended_ms: fields.optional("ended")?,
        })
    }

    /// Lists an agent's runs of the last 35 days, last used first. The index has the minute of the last use, so pages
    /// are ordered by the minute, and each page by the millisecond.
    pub async fn list(
        store: &Store,
        realm: &Realm,
        agent: &str,
        page: PageRequest<'_>,
    ) -> Result<Page<Self>, StoreError> {
        let set = realm.runs(agent);
        let list = not_over(store, &set).await?;
        let part = page.ranked(list).await?;
        read(store, (realm, agent), part).await
    }

    /// Lists the runs with a status. A page scans [`SCANNED_MAX`] runs at most, and its total counts the matches among
    /// them. A page with a next position may be short or empty.
    pub async fn list_by_status(
        store: &Store,
        realm: &Realm,
        (agent, status): (&str, RunStatus),
        page: PageRequest<'_>,
    ) -> Result<FilteredPage<Self>, StoreError> {
        let set = realm.runs(agent);
        let list = not_over(store, &set).await?;
        let filter = FieldFilter {
            store,
            scanned_max: SCANNED_MAX,
            key: |id: &str| realm.run(agent, id),
            fields: &["first", "status"],
            fits: |_: &str, fields: &[Option<String>]| {
                let field = |at: usize| fields.get(at).and_then(Option::as_deref);
                field(0).is_some() && RunStatus::stored(field(1)) == Some(status)
            },
        };
        let FilteredPage { part, is_partial } = list.filtered(page, &filter).await?;
        let mut part = read(store, (realm, agent), part).await?;
        // Skips a run whose status changed meanwhile.
        part.records.retain(|run| run.status == status);
        Ok(FilteredPage { part, is_partial })
    }

    /// Reads the run `id` of an agent; `None` if it does not exist.
    pub async fn find(
        store: &Store,
        realm: &Realm,
        agent: &str,
        id: &str,
    ) -> Result<Option<Self>, StoreError> {
        let key = realm.run(agent, id);
        let parse = |fields: &HashMap<String, String>| Self::from_fields(id.to_owned(), fields);
        store.record(key, RECORD, parse).await
    }
}

/// Selects the unexpired runs of an index. Records expire by themselves; their index entries are removed when another
/// run is recorded.
async fn not_over<'a>(store: &'a Store, set: &'a str) -> Result<SortedSet<'a>, StoreError> {
    let floor = Some(server_clock::now_ms(store).await?.saturating_sub(RUN_LIFE_MS));
    Ok(SortedSet { store, set, floor })
}

/// Reads runs; skips those that expired meanwhile.
async fn read(
    store: &Store,
    (realm, agent): (&Realm, &str),
    mut part: Page<String>,
) -> Result<Page<Run>, StoreError> {
    let ids = std::mem::take(&mut part.records);
    let found = records(store, ids, |id| realm.run(agent, id)).await?;
    let there = found.into_iter().filter(|(_, fields)| !fields.is_empty());
    let runs: Option<Vec<Run>> = there.map(|(id, fields)| Run::from_fields(id, &fields)).collect();
    let mut runs = runs.ok_or_else(|| StoreError::unexpected(RECORD))?;
    runs.sort_by_key(|run| std::cmp::Reverse(run.last_ms));
    Ok(part.with(runs))
}

/// Name of a record in errors.
const RECORD: &str = "run record";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Option<Run> {
        let fields = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Run::from_fields("r".to_owned(), &fields.collect())
    }

    #[test]
    fn a_record_needs_its_beginning_and_nothing_else() {
        let run = read(&[("first", "5"), ("last", "9"), ("denied", "2")]).unwrap();
        assert_eq!((run.calls, run.denied, run.first_ms, run.last_ms), (0, 2, 5, 9));
        assert_eq!((run.status, run.ended_ms), (RunStatus::Running, None));
        let ended = [
            ("first", "5"),
            ("last", "6"),
            ("status", "failed"),
            ("ended", "7"),
            ("spent", "18446744073709551615"),
        ];
        let run = read(&ended).unwrap();
        assert_eq!((run.status, run.ended_ms), (RunStatus::Failed, Some(7)));
        assert_eq!(run.spent.get(), u64::MAX);
    }

    #[test]
    fn a_record_that_makes_no_sense_is_refused() {
        for fields in [
            &[("first", "5"), ("calls", "1")][..],
            &[("last", "5"), ("calls", "1")],
            &[("first", "5"), ("last", "6"), ("status", "asleep")],
            &[("first", "5"), ("last", "6"), ("spent", "-1")],
            &[("first", "5"), ("last", "6"), ("ended", "soon")],
        ] {
            assert_eq!(read(fields), None, "{fields:?}");
        }
    }
}
