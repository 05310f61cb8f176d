//! Selection of the runs of a list: all, or those with one status.

use crate::state::Call;
use endpoint::{Problem, QueryParams};
use std::collections::BTreeMap;
use store::page::{Order, Page, PageRequest};
use store::run::paused_runs::WaitingIntents;
use store::run::{Run, RunStatus};

/// Status of runs that wait for approval.
const PAUSED: &str = "paused";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunFilter {
    All,
    Paused,
    Of(RunStatus),
}

/// A page of the runs that pass the filter.
pub(super) struct Selected {
    pub(super) part: Page<Run>,
    pub(super) waiting: BTreeMap<String, WaitingIntents>,
    /// With a status filter: whether some runs were not read.
    pub(super) partial: Option<bool>,
}

impl RunFilter {
    /// Parses the filter from the query's `status`.
    ///
    /// # Errors
    /// 400 for an unknown status.
    pub(super) fn from_query(query: &QueryParams) -> Result<Self, Problem> {
        match query.get("status") {
            None => Ok(Self::All),
            Some(PAUSED) => Ok(Self::Paused),
            Some(word) => match RunStatus::parse(word) {
                Some(status) => Ok(Self::Of(status)),
                None => Err(Problem::validation(
                    "status must be one of running, completed, failed, paused.",
                )),
            },
        }
    }

    /// Reads the runs of the page, most recent call first.
    ///
    /// # Errors
    /// 400 for an invalid position, 503.
    pub(super) async fn select(
        self,
        call: &Call,
        agent: &str,
        page: PageRequest<'_>,
    ) -> Result<Selected, Problem> {
        let (store, realm) = (&call.state.store, call.realm());
        let waiting = WaitingIntents::read_by_agent(store, &realm, agent).await?;
        let (part, partial) = match self {
            Self::All => (Run::list(store, &realm, agent, page).await?, None),
            Self::Paused => {
                let mut all = Vec::with_capacity(waiting.len());
                for (id, waiting) in &waiting {
                    let found = Run::find(store, &realm, agent, id).await?;
                    all.push(found.unwrap_or_else(|| waiting.run(id.clone())));
                }
                all.sort_by(|a, b| (b.last_ms, &b.id).cmp(&(a.last_ms, &a.id)));
                let part = page.of_all(all, Order::Descending, |run| (run.last_ms, &run.id))?;
                (part, None)
            }
            Self::Of(status) => {
                let found = Run::list_by_status(store, &realm, (agent, status), page).await?;
                (found.part, Some(found.is_partial))
            }
        };
        Ok(Selected {
            part,
            waiting,
            partial,
        })
    }
}
