//! OpenAPI documentation of calls.

use super::filter::FILTERS;
use super::view::{COLUMNS, CallView};
use crate::spreadsheet;
use endpoint::doc::{Doc, Section};
use endpoint::problem::Code;

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
        .partial(PARTIAL)
}

fn export() -> Doc {
    let doc = Doc::new("GET /calls/export", "exportCalls", "Export the proxied calls");
    filtered(doc)
        .description("A CSV file, the last recorded first. Refused if it would read more than 100,000 records. An apostrophe precedes text that a spreadsheet would read as a formula, also after `;`, a tab or a line break in a cell.")
        .file(spreadsheet::CONTENT_TYPE, "The calls.", spreadsheet::header(&COLUMNS))
        .errors(&[Code::Conflict])
}
