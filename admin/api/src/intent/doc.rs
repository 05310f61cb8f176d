//! OpenAPI documentation of payout intents.

use super::document::IntentDocument;
use super::{INDEXED, IntentAnswer, IntentDenied, REASON_MAX};
use crate::spend::{SpendSettled, decided, of_other_wallet};
use endpoint::doc::field::{is, lines, run_id, time, words};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;

const CSV_EXAMPLE: &str =
    "intent_id,kind,state,amount,currency,allowed_by,blocked_reason,rail_reference,created_at,updated_at\r\n";

pub(crate) fn section() -> Section {
    let about = "The records of spends and of calls on escrows: what was asked for, what became of it, and a hash-chained timeline that \
                 proves it.";
    Section::new("Intents", about, vec![list(), get(), export(), approve(), deny()]).param(
        "id",
        is("IntentId"),
        "The intent.",
    )
}

fn list() -> Doc {
    let [agent, kind, state] = INDEXED;
    Doc::new("GET /intents", "listIntents", "List intents")
        .description("With `runId`, `from` or `to`, or two of `agentId`, `kind` and `state`, at most 1,000 intents are read for a page, so that it can be short, or empty, and still have a `nextCursor`.")
        .query(
            agent,
            is("AgentId"),
            "Those of this agent; `user` for those of the user wallet.",
        )
        .query(kind, is("IntentKind"), "Those of this kind.")
        .query(state, is("IntentState"), "Those in this state.")
        .query("runId", run_id(), "Those of spends of this run.")
        .query("from", time(), "Those made from this moment on.")
        .query("to", time(), "Those made before this moment.")
        .lists::<IntentDocument<'_>>("intents", "A page of intents in brief, the newest first.")
        .partial("Only with `runId`, `from` or `to`, or two of `agentId`, `kind` and `state`: whether there are intents that were not read; `total` does not count them.")
}

fn get() -> Doc {
    Doc::new("GET /intents/{id}", "getIntent", "Show an intent")
        .response::<IntentAnswer<'_>>(200, "The intent with its timeline.")
        .errors(&[Code::NotFound])
}

fn export() -> Doc {
    Doc::new("GET /intents/{id}/export", "exportIntent", "Export an intent as proof")
        .description("The same bytes each time. In CSV what a spreadsheet would take for a formula begins with an apostrophe, also behind `;`, a tab or a line break in a cell.")
        .query("format", words(["json", "csv"]).with("x-default", "json"), "The form of the file.")
        .document::<IntentDocument<'_>>("The intent document, or one row of it.")
        .file("text/csv; charset=utf-8", "The intent document, or one row of it.", CSV_EXAMPLE)
        .errors(&[Code::NotFound])
}

fn decision(name: &'static str) -> BodyDoc {
    BodyDoc::new(name).optional_or_null(
        "reason",
        lines(REASON_MAX).example("Checked with the team."),
        "Kept in the audit trail.",
    )
}

fn approve() -> Doc {
    let doc = Doc::new(
        "POST /intents/{id}/approve",
        "approveIntent",
        "Approve a spend that waits",
    )
    .description("All checks run again, and can refuse it still.")
    .request_body(decision("Approval"))
    .response::<SpendSettled<'_>>(200, "The money moved.")
    .errors(&[Code::IntentNotPending]);
    of_other_wallet(decided(doc))
}

fn deny() -> Doc {
    Doc::new("POST /intents/{id}/deny", "denyIntent", "Deny a spend that waits")
        .request_body(decision("Refusal"))
        .response::<IntentDenied<'_>>(200, "The spend is denied, which is final.")
        .errors(&[Code::NotFound, Code::IntentNotPending])
}
