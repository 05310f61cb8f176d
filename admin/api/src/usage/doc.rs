//! OpenAPI documentation of an agent's usage.

use super::Usage;
use endpoint::doc::field::agent_id;
use endpoint::doc::{Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "Where an agent stands with each of its caps.";
    let get = Doc::of(
        "GET /agents/{id}/usage",
        "getAgentUsage",
        "Show what an agent spent and what its caps leave",
    )
    .gives::<Usage<'_>>(200, "The usage.")
    .refuses(&[Code::NotFound]);
    Section::of("Usage", about, vec![get]).param("id", agent_id(), "The agent.")
}
