//! OpenAPI documentation of calls.

use super::filter::FILTERS;
use super::view::CallView;
use endpoint::doc::field::flag;
use endpoint::doc::{Doc, Section};

const PARTIAL: &str = "Whether there are calls that were not read; `total` does not count them.";

pub(crate) fn section() -> Section {
    let about =
        "The proxied calls: what each cost and how it ended. An approved call is listed when it has ended.";
    Section::new("Calls", about, vec![list(), export()])
}

fn filtered(doc: Doc) -> Doc {
    let filters = FILTERS.iter();
    filters.fold(doc, |doc, filter| {
        doc.query(filter.name, (filter.schema)(), filter.description)
    })
}

fn list() -> Doc {
    let doc = Doc::new("GET /calls", "listCalls", "List the proxied calls");
    filtered(doc)
        .description("Read from the audit trail: at most 2,000 records of it for a page, so that with a filter that few calls pass a page can be short, or empty, and still have a `nextCursor`.")
        .lists::<CallView<'_>>("calls", "A page of calls, the last recorded first.")
        .page_field("partial", flag(), PARTIAL)
}

fn export() -> Doc {
    let doc = Doc::new("GET /calls/export", "exportCalls", "Export the proxied calls");
    filtered(doc)
        .description("A CSV file, the last recorded first. Refused where it would read more than 100,000 records. What a spreadsheet would take for a formula begins with an apostrophe, also behind `;`, a tab or a line break in a cell.")
        .file(crate::spreadsheet::CONTENT_TYPE, "The calls.", EXAMPLE)
}

const EXAMPLE: &str = "id,at,endedAt,agentId,agentName,runId,keyId,keyName,model,endpoint,stream,upstream,inputTokens,cachedTokens,outputTokens,estimatedUsd,costUsd,latencyMs,firstByteMs,end,extensions,outcome,reason,count,chargedOn,auditSeq,hash,priceVersion,tierAsked,tierReported,reasoningTokens,cacheWriteTokens,cacheWrite12hTokens,cacheWrite30mTokens,audioInputTokens,audioOutputTokens,webSearch,longCache,reportedCostUsd,pricePrefix,providerStatus\r\n";

#[cfg(test)]
mod tests {
    use super::super::view::COLUMNS;
    use super::EXAMPLE;

    #[test]
    fn the_example_is_the_header() {
        assert_eq!(EXAMPLE.trim_end(), COLUMNS.join(","));
    }
}
