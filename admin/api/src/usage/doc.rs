//! OpenAPI documentation of usage.

use super::AgentUsage;
use super::over_time::UsageView;
use super::over_time::csv::COLUMNS;
use super::over_time::span::{DAYS_DEFAULT, Interval};
use super::over_time::sums::Group;
use crate::spreadsheet;
use endpoint::doc::field::{agent_id, cursor, is, run_id, string, time, words};
use endpoint::doc::{Doc, Section};
use endpoint::problem::Code;
use store::call::hold::MODEL_MAX;

const _: () = assert!(DAYS_DEFAULT == 30, "the document says how long a span is");

pub(crate) fn section() -> Section {
    let about = "Usage: how much of each cap an agent has used, and the account's usage over time.";
    Section::new("Usage", about, vec![of_agent(), over_time()]).param("id", agent_id(), "The agent.")
}

fn of_agent() -> Doc {
    Doc::new(
        "GET /agents/{id}/usage",
        "getAgentUsage",
        "Show what an agent spent and what its caps leave",
    )
    .response::<AgentUsage<'_>>(200, "The usage.")
    .errors(&[Code::NotFound])
}

fn over_time() -> Doc {
    let model = string()
        .with("minLength", 1_u64)
        .with("maxLength", MODEL_MAX)
        .example("gpt-4o");
    Doc::new("GET /usage", "getUsage", "Add up calls, tokens and cost over time")
        .description("Proxied calls, added up from the audit trail. A call counts in the interval of its approval, so that days agree with what Cap counted. One answer reads at most 20,000 records and stops at 2,000 rows; where `partial` is true, go on with `nextCursor` and add the rows. A CSV file is always whole, and refused where it would read more than 100,000 records, or have more than 16 MiB of rows. An account can have two usage reports or exports under way; more wait for at most five seconds.")
        .query("groupBy", words(Group::ALL.map(Group::as_str)).with("x-default", Group::Model.as_str()), "Grouping of the rows. Calls without a run id share the row whose `group` is null.")
        .query("interval", words(Interval::ALL.map(Interval::as_str)).with("x-default", Interval::Day.as_str()), "How long an interval is, in UTC: spans of at most 400 days by the day, and 31 by the hour.")
        .query("from", time(), "The first interval is the one with this moment; 30 days before `to` without it.")
        .query("to", time(), "The last interval is the one that ends at this moment or has it; the present one without it.")
        .query("agentId", agent_id(), "Calls of this agent.")
        .query("runId", run_id(), "Calls of this run.")
        .query("keyId", is("VirtualKeyId"), "Calls with this virtual key.")
        .query("model", model, "Calls that requested this model.")
        .query("format", words(["json", "csv"]).with("x-default", "json"), "The form of the answer.")
        .query("cursor", cursor(), "The `nextCursor` of the answer before this one, with the same parameters.")
        .response::<UsageView<'_>>(200, "The usage, or a file with its rows.")
        .file(spreadsheet::CONTENT_TYPE, "The usage, or a file with its rows.", spreadsheet::header(&COLUMNS))
        .errors(&[Code::Conflict])
}
