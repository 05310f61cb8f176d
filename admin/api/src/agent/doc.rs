//! OpenAPI documentation of agents.

use super::{AgentAnswer, AgentView, DESCRIPTION_MAX, NAME_MAX, TYPE_DEFAULT, TYPE_MAX};
use endpoint::doc::field::{agent_id, is, limit, line, lines, string};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::{Code, Success};

pub(crate) fn section() -> Section {
    let about = "Agents with the wallets they were made with. An agent id exists as soon as it has a wallet, a policy, a provider key or \
                 a virtual key; everything that belongs to a wallet is null without one.";
    Section::new(
        "Agents",
        about,
        vec![create(), list(), get(), update(), delete(), freeze(), unfreeze()],
    )
    .param("id", agent_id(), "The agent.")
}

fn create() -> Doc {
    let body = BodyDoc::new("NewAgent")
        .required("name", line(NAME_MAX).example("Research bot"), "Display name.")
        .optional_or_null(
            "type",
            line(TYPE_MAX).example(TYPE_DEFAULT),
            "Free text, `custom` by default; `marketplace` makes it a marketplace subscription.",
        )
        .optional_or_null(
            "description",
            lines(DESCRIPTION_MAX).example("Reads papers at night."),
            "Purpose of the agent.",
        );
    Doc::new("POST /agents", "createAgent", "Make an agent with its wallet")
        .description("Tollgate chooses the id. To choose it yourself, make the wallet instead: `POST /wallets/create`.")
        .request_body(body)
        .response::<AgentAnswer<'_>>(200, "The agent.")
        .errors(&[Code::TierLimit, Code::Conflict])
}

fn list() -> Doc {
    Doc::new("GET /agents", "listAgents", "List agents, or search for some")
        .query(
            "q",
            string().with("maxLength", NAME_MAX).example("bot"),
            "Those whose id or name has this in it, in upper or lower case.",
        )
        .query("status", is("AgentState"), "Those in this state.")
        .lists::<AgentView<'_>>("agents", "A page of agents, the newest first.")
        .partial("Only in a search: whether some agents were not searched.")
}

fn get() -> Doc {
    Doc::new("GET /agents/{id}", "getAgent", "Show an agent")
        .response::<AgentAnswer<'_>>(200, "The agent.")
        .errors(&[Code::NotFound])
}

fn update() -> Doc {
    let body = BodyDoc::new("AgentChanges")
        .optional("name", line(NAME_MAX).example("Research bot"), "Display name.")
        .optional_or_null(
            "type",
            line(TYPE_MAX).example(TYPE_DEFAULT),
            "Null goes back to `custom`.",
        )
        .optional_or_null(
            "description",
            lines(DESCRIPTION_MAX).example("Reads papers at night."),
            "Null clears it.",
        )
        .optional_or_null(
            "spendLimit",
            limit(),
            "Limit of its wallet's spends through `POST /spend` in a UTC day. Null removes the limit.",
        );
    Doc::new("PATCH /agents/{id}", "updateAgent", "Change an agent")
        .description("Fields that are left out stay as they are.")
        .request_body(body)
        .response::<AgentAnswer<'_>>(200, "The agent as it now is.")
        .errors(&[Code::NotFound])
}

fn delete() -> Doc {
    Doc::new(
        "DELETE /agents/{id}",
        "deleteAgent",
        "Delete an agent and close its wallet",
    )
    .description(
        "Its virtual keys are revoked with it. Refused while its wallet holds money, has a pending deposit or is a \
         party of an open escrow that the account pays.",
    )
    .response::<Success>(200, "It is deleted.")
    .errors(&[Code::NotFound, Code::Conflict])
}

fn freeze() -> Doc {
    Doc::new("POST /agents/{id}/freeze", "freezeAgent", "Freeze an agent")
        .description("Binds the next call: the proxy denies it with `frozen`, and nothing leaves its wallet.")
        .response::<AgentAnswer<'_>>(200, "The agent, frozen; also when it was before.")
        .errors(&[Code::NotFound])
}

fn unfreeze() -> Doc {
    Doc::new(
        "POST /agents/{id}/unfreeze",
        "unfreezeAgent",
        "Lift the freeze of an agent",
    )
    .description("A freeze by the operator of the installation can only be lifted by the operator.")
    .response::<AgentAnswer<'_>>(200, "The agent, active; also when it was before.")
    .errors(&[Code::NotFound, Code::OperatorFreeze])
}
