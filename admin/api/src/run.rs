//! `/agents/{id}/runs`: cost and open holds of each named run, and ending a run (decision D38).

mod doc;

pub(crate) use doc::section;

mod select;

use self::select::Selected;
use super::agent;
use crate::state::{ApiState, Call};
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, Problem, Reply, operations, require_run_id};
use serde::Serialize;
use store::run::Run;
use store::run::end::{RunEnd, RunEnded, end as end_run};
use store::run::paused_runs::WaitingIntents;
use utoipa::ToSchema;

operations! {
    /// Operations on runs.
    ROUTES: ApiState, Management;

    GET  "/agents/{id}/runs",         key(Read, Viewer), Both, PerMinute, list, Query;
    GET  "/agents/{id}/runs/{runId}", key(Read, Viewer), Both, PerMinute, get;
    POST "/agents/{id}/runs/{runId}", key(Write, Admin), Both, PerMinute, end, AlwaysAllowed;
}

/// Maximum number of waiting intents that are listed.
const WAITING_SHOWN: usize = 20;

/// A run as returned.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Run)]
struct RunView<'a> {
    #[schema(value_type = is::RunId)]
    run_id: &'a str,
    #[schema(value_type = is::AgentId)]
    agent_id: &'a str,
    #[schema(value_type = is::RunState)]
    status: &'static str,
    /// True if a spend of the run waits for approval.
    paused: bool,
    /// The intents that wait, the first twenty.
    #[schema(value_type = Vec<is::IntentId>)]
    waiting_for_approval: &'a [String],
    /// Approved calls.
    #[schema(example = 12)]
    calls: u64,
    #[schema(example = 0)]
    denied: u64,
    spent_usd: Nanos,
    #[schema(value_type = is::NanoUsd)]
    spent_nanos: String,
    #[schema(value_type = is::Time)]
    first_seen_at: String,
    #[schema(value_type = is::Time)]
    last_seen_at: String,
    #[schema(value_type = Option<is::Time>)]
    ended_at: Option<String>,
}

endpoint::answer! { RunAnswer<'a>, run: RunView<'a> }

impl<'a> RunView<'a> {
    fn new(run: &'a Run, agent: &'a str, waiting: Option<&'a WaitingIntents>) -> Self {
        let intents = waiting.map_or(&[][..], |waiting| waiting.intents.as_slice());
        Self {
            run_id: &run.id,
            agent_id: agent,
            status: run.status.as_str(),
            paused: !intents.is_empty(),
            waiting_for_approval: &intents[..intents.len().min(WAITING_SHOWN)],
            calls: run.calls,
            denied: run.denied,
            spent_usd: run.spent,
            spent_nanos: run.spent.get().to_string(),
            first_seen_at: iso_from_ms(run.first_ms),
            last_seen_at: iso_from_ms(run.last_ms),
            ended_at: run.ended_ms.map(iso_from_ms),
        }
    }
}

/// `GET /agents/{id}/runs`
///
/// # Errors
/// 400, 404, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let agent = call.agent()?;
    let query = call.list_query(&["status"])?;
    let paging = call.paging(&query, "runs")?;
    let filter = select::RunFilter::from_query(&query)?;
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    agent::require(&call, agent).await?;
    let Selected {
        part,
        waiting,
        partial,
    } = filter.select(&call, agent, paging.page()).await?;
    Reply::ok(
        &paging
            .listing(&part, |run| RunView::new(run, agent, waiting.get(&run.id)))
            .partial(partial),
    )
}

/// `GET /agents/{id}/runs/{runId}`
pub async fn get(call: Call) -> Answer {
    let (agent, run) = (call.agent()?, run_id(&call)?);
    agent::require(&call, agent).await?;
    show(&call, agent, run).await
}

/// `POST /agents/{id}/runs/{runId}`
///
/// # Errors
/// 400, 404, 409 for a run that already ended with the other status, 503.
pub async fn end(call: Call) -> Answer {
    let (agent, run) = (call.agent()?, run_id(&call)?);
    let body = call.body()?.only(&["status"])?;
    let status = body.string("status")?.required("status")?;
    let end = match status.as_str() {
        "completed" => RunEnd::Completed,
        "failed" => RunEnd::Failed,
        _ => return Err(Problem::validation("status must be completed or failed.")),
    };
    agent::require(&call, agent).await?;
    match end_run(&call.state.store, &call.scope(), agent, run, end).await? {
        RunEnded::Done | RunEnded::Already => show(&call, agent, run).await,
        RunEnded::Missing => Err(no_run(run)),
        RunEnded::Otherwise => {
            let message = format!("The run has ended already, and not as {status}.");
            Err(Problem::new(Code::Conflict, message))
        }
    }
}

async fn show(call: &Call, agent: &str, id: &str) -> Answer {
    let (store, realm) = (&call.state.store, call.realm());
    let waiting = WaitingIntents::read_by_agent(store, &realm, agent).await?;
    let waiting = waiting.get(id);
    let found = Run::find(store, &realm, agent, id).await?;
    let run = found.or_else(|| waiting.map(|waiting| waiting.run(id.to_owned())));
    let run = run.ok_or_else(|| no_run(id))?;
    Reply::ok(&RunAnswer::new(RunView::new(&run, agent, waiting)))
}

/// Returns the run in the path.
fn run_id(call: &Call) -> Result<&str, Problem> {
    let id = call.param("runId");
    require_run_id("The run id", id)?;
    Ok(id)
}

fn no_run(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("There is no run `{id}` of this agent."))
}
