//! Twin of `end.lua`: end a run (decision D38).

use crate::run::RunStatus;
use crate::script::change::{AuditEvent, Scope};
use crate::script::script;
use crate::{Store, StoreError};
use serde_json::json;

script! {
    /// Ends a run.
    pub static RUN_END = "run_end",
    kind: Change,
    source: [include_str!("end.lua")],
    when_full: Refuse,
    keys: struct EndKeys: String { run },
    args: struct EndArgs<'a>: &'a str { status },
}

/// Final status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The run succeeded; webhooks receive `agent.run.completed`.
    Completed,
    /// The run failed; webhooks receive `agent.run.failed`.
    Failed,
}

impl RunEnd {
    /// Returns the resulting status of the run.
    pub const fn status(self) -> RunStatus {
        match self {
            Self::Completed => RunStatus::Completed,
            Self::Failed => RunStatus::Failed,
        }
    }

    const fn event(self) -> &'static str {
        match self {
            Self::Completed => "agent.run.completed",
            Self::Failed => "agent.run.failed",
        }
    }
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnded {
    /// The run has ended.
    Done,
    /// The agent has no such run.
    Missing,
    /// It had already ended in the same way; nothing changed.
    Already,
    /// It had already ended in the other way; nothing changed.
    Otherwise,
}

/// Ends the run `run` of `agent`. The end is final unless a later call of the run is approved, which resumes it.
/// Safe to retry.
pub async fn end(
    store: &Store,
    scope: &Scope<'_>,
    agent: &str,
    run: &str,
    end: RunEnd,
) -> Result<RunEnded, StoreError> {
    let status = end.status().as_str();
    let event = AuditEvent::new(end.event(), json!({ "runId": run, "status": status })).with_agent(agent);
    let keys = EndKeys {
        run: scope.realm().run(agent, run),
    };
    let args = EndArgs { status };
    let mut reply = scope.execute(store, &RUN_END, event, keys, args).await?;
    match reply.word()?.as_str() {
        "done" => Ok(RunEnded::Done),
        "missing" | "no_account" => Ok(RunEnded::Missing),
        "already" => Ok(RunEnded::Already),
        "otherwise" => Ok(RunEnded::Otherwise),
        _ => reply.unexpected(),
    }
}
