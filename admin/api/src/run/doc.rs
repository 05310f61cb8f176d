//! OpenAPI documentation of runs.

use super::{RunAnswer, RunView};
use endpoint::doc::field::{agent_id, run_id, words};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "Spend and state of named runs. A run begins with the first call or spend that names it.";
    Section::new("Runs", about, vec![list(), get(), end()])
        .param("id", agent_id(), "The agent.")
        .param("runId", run_id(), "The run.")
}

fn list() -> Doc {
    Doc::new("GET /agents/{id}/runs", "listRuns", "List the runs of an agent")
        .description("Runs of one status are found by a scan of at most 1,000 runs for a page, so a page can be short or empty and still have a `nextCursor`.")
        .query(
            "status",
            words(["running", "completed", "failed", "paused"]),
            "Those of this status; `paused` ones wait for approval.",
        )
        .lists::<RunView<'_>>("runs", "A page of runs, last seen first.")
        .partial("Only with `status` other than `paused`: whether some runs were not scanned; `total` does not count them.")
        .errors(&[Code::NotFound])
}

fn get() -> Doc {
    Doc::new("GET /agents/{id}/runs/{runId}", "getRun", "Show a run")
        .response::<RunAnswer<'_>>(200, "The run.")
        .errors(&[Code::NotFound])
}

fn end() -> Doc {
    let body =
        BodyDoc::new("RunEnd").required("status", words(["completed", "failed"]), "Result of the run.");
    Doc::new("POST /agents/{id}/runs/{runId}", "endRun", "End a run")
        .description("Fires `agent.run.completed` or `agent.run.failed`. A run that ended in the other way stays so: 409.")
        .request_body(body)
        .response::<RunAnswer<'_>>(200, "The run, ended; also when it was before.")
        .errors(&[Code::NotFound, Code::Conflict])
}
