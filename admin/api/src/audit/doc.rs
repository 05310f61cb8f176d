//! OpenAPI documentation of the audit trail.

use super::{CheckpointView, HEAD_HEADER, SIZE_HEADER, TYPE_MAX};
use endpoint::doc::field::{agent_id, count, pattern, time};
use endpoint::doc::{Doc, Section, is};
use endpoint::problem::Code;
use history::export::CONTENT_TYPE;
use utoipa::ToSchema;

const LINE: &str = "{\"actor\":\"key_…\",\"agentId\":\"research-bot\",\"at\":\"2026-11-21T08:15:30.123Z\",\"data\":{},\"id\":\"aud_…\",\"previousHash\":\"genesis\",\"seq\":1,\"type\":\"agent.frozen\",\"hash\":\"9f86…\"}\n";

const VERDICT: &str = "{\"checked\":50,\"total\":118}\n{\"done\":true,\"ok\":true,\"entries\":118,\"firstBroken\":null,\"endProven\":true,\"provenTo\":118,\"message\":\"The chain is whole.\"}\n";

/// An entry, exactly as it was hashed, and its hash.
#[derive(ToSchema)]
#[schema(as = AuditEntry, rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "entries are passed on as the text that was hashed; this only describes it"
)]
struct EntryDoc {
    #[schema(value_type = is::Actor)]
    actor: String,
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<String>,
    #[schema(value_type = is::Time)]
    at: String,
    /// Details of the event. The fields depend on the type.
    #[schema(value_type = is::Free)]
    data: String,
    /// Id of the decision, if the entry is about one.
    #[schema(value_type = is::AuditEntryId)]
    id: String,
    #[schema(value_type = is::PreviousHash)]
    previous_hash: String,
    /// Number in the trail: 1, 2, 3 …
    #[schema(minimum = 1, example = 118)]
    seq: u64,
    /// Type of the event, such as `agent.frozen` or `decision.denied`.
    #[schema(example = "agent.frozen")]
    r#type: String,
    #[schema(value_type = is::Sha256)]
    hash: String,
}

pub(crate) fn section() -> Section {
    let about = "The hash-chained trail of everything that happened.";
    Section::new("Audit", about, vec![list(), export(), checkpoint(), verify()])
}

fn list() -> Doc {
    let entry_type = pattern(&format!("^[A-Za-z0-9._]{{1,{TYPE_MAX}}}$")).example("agent.frozen");
    Doc::new("GET /audit", "listAudit", "List the audit trail")
        .query("agentId", agent_id(), "Entries of this agent.")
        .query("type", entry_type, "Entries of this type.")
        .query("from", time(), "Entries from this moment on.")
        .query("to", time(), "Entries before this moment.")
        .query(
            "before",
            count(0),
            "Entries below this number. Give neither `offset` nor `cursor` with it.",
        )
        .lists::<EntryDoc>(
            "logs",
            "A page of entries, the newest first. It includes everything that happened before the request.",
        )
}

fn export() -> Doc {
    Doc::new("GET /audit/export", "exportAudit", "Export the audit trail")
        .description("JSON Lines: one entry a line, oldest first, each exactly as it was hashed. `tollgate-admin audit verify --file` verifies it without a store.")
        .query("after", count(0).with("x-default", 0_u64), "The entries behind this number.")
        .file(CONTENT_TYPE, "The entries.", LINE)
        .response_header(SIZE_HEADER, count(0), "Number of entries of the trail when the export began.")
        .response_header(HEAD_HEADER, endpoint::doc::field::is("PreviousHash"), "The hash of the last of them.")
        .errors(&[Code::Conflict])
}

fn checkpoint() -> Doc {
    Doc::new(
        "GET /audit/checkpoint",
        "signCheckpoint",
        "Sign the end of the audit trail",
    )
    .description("A signed note that later proves that no entry before it was changed or removed.")
    .query(
        "size",
        count(0),
        "Sign the trail's state at this number of entries. The note then also contains its current end.",
    )
    .response::<CheckpointView>(200, "The checkpoint.")
    .errors(&[Code::Conflict])
}

fn verify() -> Doc {
    Doc::new("GET /audit/verify", "verifyAudit", "Verify the audit trail")
        .description("Recomputes every hash. JSON lines report the progress; the last one, with `done: true`, has the result. An account can run one verification at a time.")
        .lines(CONTENT_TYPE, "`checked` of `total`, then the verdict; or a line with `error` and `code` when the trail could not be read to its end.", VERDICT)
        .errors(&[Code::Conflict])
}
