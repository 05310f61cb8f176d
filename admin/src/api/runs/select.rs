//! Which runs a list shows: all, or those of one status.

use crate::problem::Problem;
use crate::routes::Call;
use shared::store::page::Page;
use shared::store::paused_runs::Waiting;
use shared::store::run::{Run, RunStatus};
use std::collections::BTreeMap;

/// Runs looked at in one round trip when only those of one status are wanted.
const LOOK: usize = 500;
/// Most of them: a list by status is of the agent's newest so many runs.
const LOOKED_AT_MAX: usize = 20_000;
/// The word for runs that wait for approval.
const PAUSED: &str = "paused";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Paused,
    Of(RunStatus),
}

/// A page of what is asked for.
pub(super) struct Selected {
    pub(super) runs: Vec<Run>,
    pub(super) total: u64,
    pub(super) waiting: BTreeMap<String, Waiting>,
}

impl Wanted {
    /// What `status` asks for.
    ///
    /// # Errors
    /// 400 for a word that is none.
    pub(super) fn of_query(query: &BTreeMap<String, String>) -> Result<Self, Problem> {
        let all = [RunStatus::Running, RunStatus::Completed, RunStatus::Failed];
        match query.get("status").map(String::as_str) {
            None => Ok(Self::All),
            Some(PAUSED) => Ok(Self::Paused),
            Some(word) => match all.into_iter().find(|status| status.as_str() == word) {
                Some(status) => Ok(Self::Of(status)),
                None => Err(Problem::validation(
                    "status must be one of running, completed, failed, paused.",
                )),
            },
        }
    }

    /// Those of the page, last seen first.
    ///
    /// # Errors
    /// 503.
    pub(super) async fn select(self, call: &Call, agent: &str, page: Page) -> Result<Selected, Problem> {
        let (store, keys, mode) = (&call.app.store, call.keys(), call.caller.mode);
        let waiting = Waiting::of_agent(store, &keys, mode, agent).await?;
        let all = match self {
            Self::All => {
                let (runs, total) = Run::list(store, &keys, mode, agent, page).await?;
                return Ok(Selected { runs, total, waiting });
            }
            Self::Paused => {
                let mut all = Vec::with_capacity(waiting.len());
                for (id, waiting) in &waiting {
                    let found = Run::find(store, &keys, mode, agent, id).await?;
                    all.push(found.unwrap_or_else(|| waiting.run(id.clone())));
                }
                all.sort_by(|a, b| (b.last_ms, &b.id).cmp(&(a.last_ms, &a.id)));
                all
            }
            Self::Of(status) => of_status(call, agent, status).await?,
        };
        let total = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let runs = all.into_iter().skip(page.offset).take(page.limit).collect();
        Ok(Selected { runs, total, waiting })
    }
}

/// The runs with this status among the agent's newest.
async fn of_status(call: &Call, agent: &str, status: RunStatus) -> Result<Vec<Run>, Problem> {
    let (store, keys, mode) = (&call.app.store, call.keys(), call.caller.mode);
    let mut all = Vec::new();
    for offset in (0..LOOKED_AT_MAX).step_by(LOOK) {
        let page = Page { limit: LOOK, offset };
        let (runs, total) = Run::list(store, &keys, mode, agent, page).await?;
        all.extend(runs.into_iter().filter(|run| run.status == status));
        if total <= u64::try_from(offset + LOOK).unwrap_or(u64::MAX) {
            break;
        }
    }
    Ok(all)
}
