//! OpenAPI documentation of names.

use super::{DisplayNames, IDS_MAX};
use domain::names::AGENT_ID_MAX;
use endpoint::doc::field::pattern;
use endpoint::doc::{Doc, Section};

pub(crate) fn section() -> Section {
    let about = "The names of those who stand in the trail by their ids.";
    let id = format!("[A-Za-z0-9._:-]{{1,{AGENT_ID_MAX}}}");
    let ids = pattern(&format!("^{id}(,{id}){{0,{}}}$", IDS_MAX - 1))
        .example("key_01KAH3V9J80123456789ABCDEF,usr_01KAH3V9J80123456789ABCDEF");
    let list = Doc::new("GET /names", "listNames", "Show the names of API keys, virtual keys, policies, users and agents")
        .description("An id that does not exist, belongs to another account or has no name is left out. Agents, policies and keys are those of the mode; virtual keys are of live mode.")
        .query("ids", ids, "The ids, separated by commas.")
        .response::<DisplayNames<'_>>(200, "The names.");
    Section::new("Names", about, vec![list])
}
