//! Named runs (decision D38), as the store keeps them: written by the scripts of calls and spends, ended by `run_end`.

use super::keys::AccountKeys;
use super::page::{Page, records};
use super::script::authorize::RUN_LIFE;
use super::{Store, StoreError, server_clock};
use crate::domain::mode::Mode;
use crate::domain::money::Nanos;
use std::collections::HashMap;

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// It was not ended, or had a call approved after that.
    Running,
    /// It was ended as completed.
    Completed,
    /// It was ended as failed.
    Failed,
}

impl RunStatus {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The status that the `status` field of a record stands for; a run that goes on has none.
    fn stored(field: Option<&str>) -> Option<Self> {
        match field {
            None => Some(Self::Running),
            Some("completed") => Some(Self::Completed),
            Some("failed") => Some(Self::Failed),
            Some(_) => None,
        }
    }
}

/// A named run of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The run id.
    pub id: String,
    /// Whether it goes on.
    pub status: RunStatus,
    /// Approved calls and spends.
    pub calls: u64,
    /// Calls and spends that Cap, the plan or a policy denied.
    pub denied: u64,
    /// What it spent; that in open holds counts with its estimate.
    pub spent: Nanos,
    /// When it was first seen.
    pub first_ms: u64,
    /// When it was last seen.
    pub last_ms: u64,
    /// When it ended, if it did.
    pub ended_ms: Option<u64>,
}

impl Run {
    /// Reads a record; `None` when it makes no sense.
    fn from_fields(id: String, fields: &HashMap<String, String>) -> Option<Self> {
        let get = |name: &str| fields.get(name).map(String::as_str);
        let count = |name: &str| get(name).unwrap_or("0").parse::<u64>().ok();
        Some(Self {
            id,
            status: RunStatus::stored(get("status"))?,
            calls: count("calls")?,
            denied: count("denied")?,
            spent: Nanos::from_stored(count("spent")?),
            first_ms: get("first")?.parse().ok()?,
            last_ms: get("last")?.parse().ok()?,
            ended_ms: get("ended").map(str::parse).transpose().ok()?,
        })
    }

    /// The runs of an agent that were seen within their life of 35 days, those seen last first, and how many there are. The
    /// index knows the minute in which a run was seen, so pages are in order to the minute and each page to the millisecond.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn list(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        agent: &str,
        page: Page,
    ) -> Result<(Vec<Self>, u64), StoreError> {
        // Records end by themselves; the index drops what has ended only when a new run comes.
        let life = u64::try_from(RUN_LIFE.as_millis()).unwrap_or(u64::MAX);
        let oldest = server_clock::now_ms(store).await?.saturating_sub(life);
        let index = account.runs(mode, agent);
        let mut look = redis::pipe();
        look.cmd("ZREVRANGEBYSCORE")
            .arg(&index)
            .arg("+inf")
            .arg(format!("({oldest}"))
            .arg("LIMIT")
            .arg(page.offset)
            .arg(page.limit);
        look.cmd("ZCOUNT")
            .arg(&index)
            .arg(format!("({oldest}"))
            .arg("+inf");
        let (ids, total): (Vec<String>, u64) = store.pipeline(&look).await?;
        let found = records(store, ids, |id| account.run(mode, agent, id)).await?;
        // One whose life ended between the two reads is left out.
        let there = found.into_iter().filter(|(_, fields)| !fields.is_empty());
        let runs: Option<Vec<Self>> = there.map(|(id, fields)| Self::from_fields(id, &fields)).collect();
        let mut runs = runs.ok_or_else(nonsense)?;
        runs.sort_by_key(|run| std::cmp::Reverse(run.last_ms));
        Ok((runs, total))
    }

    /// The run `id` of an agent, or `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`], also for a record that makes no sense.
    pub async fn find(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        agent: &str,
        id: &str,
    ) -> Result<Option<Self>, StoreError> {
        let key = account.run(mode, agent, id);
        let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(key)).await?;
        if fields.is_empty() {
            return Ok(None);
        }
        let run = Self::from_fields(id.to_owned(), &fields);
        run.map(Some).ok_or_else(nonsense)
    }
}

fn nonsense() -> StoreError {
    StoreError::Nonsense("run record".to_owned())
}

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
