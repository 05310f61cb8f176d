//! OpenAPI documentation of calls.

use super::filter::{endpoints, outcomes};
use super::view::CallView;
use domain::measured::UPSTREAM_NAME_MAX;
use endpoint::doc::field::{agent_id, amount, count, flag, is, pattern, run_id, string, time, words};
use endpoint::doc::{Doc, Section};
use store::call::hold::MODEL_MAX;

const PARTIAL: &str = "Whether there are calls that were not read; `total` does not count them.";

pub(crate) fn section() -> Section {
    let about =
        "The proxied calls: what each cost and how it ended. An approved call is listed when it has ended.";
    Section::of("Calls", about, vec![list(), export()])
}

fn filtered(doc: Doc) -> Doc {
    let model = string().with("minLength", 1_u64).with("maxLength", MODEL_MAX);
    let upstream = pattern(&format!("^[a-z0-9_-]{{1,{UPSTREAM_NAME_MAX}}}$"));
    doc.query("agentId", agent_id(), "Those of this agent.")
        .query("runId", run_id(), "Those of this run.")
        .query("keyId", is("VirtualKeyId"), "Those of this virtual key.")
        .query("model", model.eg("gpt-4o"), "Those that asked for this model.")
        .query("endpoint", words(endpoints()), "Those of this endpoint.")
        .query(
            "upstream",
            upstream.eg("azure"),
            "Those that went to the upstream of this name.",
        )
        .query("outcome", words(outcomes()), "Those that ended so.")
        .query(
            "reason",
            is("DenialReason"),
            "Those that were denied for this reason.",
        )
        .query("minCostUsd", amount(), "Those that cost at least this.")
        .query(
            "minEstimatedUsd",
            amount(),
            "Those whose estimate is at least this.",
        )
        .query(
            "minInputTokens",
            count(1),
            "Those whose prompt had at least this many tokens.",
        )
        .query(
            "minCachedTokens",
            count(1),
            "Those with at least this many cached tokens.",
        )
        .query(
            "minOutputTokens",
            count(1),
            "Those whose answer had at least this many tokens.",
        )
        .query(
            "minLatencyMs",
            count(1),
            "Those that took at least this many milliseconds.",
        )
        .query(
            "minFirstByteMs",
            count(1),
            "Those whose first byte took at least this many milliseconds.",
        )
        .query("from", time(), "Those recorded from this moment on.")
        .query("to", time(), "Those recorded before this moment.")
}

fn list() -> Doc {
    let doc = Doc::of("GET /calls", "listCalls", "List the proxied calls");
    filtered(doc)
        .says("Read from the audit trail: at most 2,000 records of it for a page, so that with a filter that few calls pass a page can be short, or empty, and still have a `nextCursor`.")
        .lists::<CallView<'_>>("calls", "A page of calls, the last recorded first.")
        .can_have("partial", flag(), PARTIAL)
}

fn export() -> Doc {
    let doc = Doc::of("GET /calls/export", "exportCalls", "Export the proxied calls");
    filtered(doc)
        .says("A CSV file, the last recorded first. Refused where it would read more than 100,000 records. What a spreadsheet would take for a formula begins with an apostrophe, also behind `;`, a tab or a line break in a cell.")
        .file(crate::spreadsheet::CONTENT_TYPE, "The calls.", EXAMPLE)
}

const EXAMPLE: &str = "id,at,endedAt,agentId,agentName,runId,keyId,keyName,model,endpoint,stream,upstream,inputTokens,cachedTokens,outputTokens,estimatedUsd,costUsd,latencyMs,firstByteMs,end,extensions,outcome,reason,count\r\n";

#[cfg(test)]
mod tests {
    use super::super::view::COLUMNS;
    use super::EXAMPLE;

    #[test]
    fn the_example_is_the_header() {
        assert_eq!(EXAMPLE.trim_end(), COLUMNS.join(","));
    }
}
