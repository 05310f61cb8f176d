//! OpenAPI documentation of agents.

use super::{AgentAnswer, AgentView, DESCRIPTION_MAX, NAME_MAX, TYPE_DEFAULT, TYPE_MAX};
use endpoint::doc::field::{agent_id, flag, is, limit, line, lines, string};
use endpoint::doc::{Body, Doc, Section};
use endpoint::{Code, Done};

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
    let body = Body::new("NewAgent")
        .must("name", line(NAME_MAX).eg("Research bot"), "What people call it.")
        .may(
            "type",
            line(TYPE_MAX).eg(TYPE_DEFAULT),
            "Free text, `custom` by default; `marketplace` makes it a marketplace subscription.",
        )
        .may(
            "description",
            lines(DESCRIPTION_MAX).eg("Reads papers at night."),
            "What it does.",
        );
    Doc::new("POST /agents", "createAgent", "Make an agent with its wallet")
        .says("Tollgate chooses the id. To choose it yourself, make the wallet instead: `POST /wallets/create`.")
        .takes(body)
        .gives::<AgentAnswer<'_>>(200, "The agent.")
        .refuses(&[Code::TierLimit, Code::Conflict])
}

fn list() -> Doc {
    Doc::new("GET /agents", "listAgents", "List agents, or search for some")
        .query(
            "q",
            string().with("maxLength", NAME_MAX).eg("bot"),
            "Those whose id or name has this in it, in upper or lower case.",
        )
        .query("status", is("AgentState"), "Those in this state.")
        .lists::<AgentView<'_>>("agents", "A page of agents, the newest first.")
        .can_have(
            "partial",
            flag(),
            "Only when it was searched: whether there are agents that were not looked at.",
        )
}

fn get() -> Doc {
    Doc::new("GET /agents/{id}", "getAgent", "Show an agent")
        .gives::<AgentAnswer<'_>>(200, "The agent.")
        .refuses(&[Code::NotFound])
}

fn update() -> Doc {
    let body = Body::new("AgentChanges")
        .given("name", line(NAME_MAX).eg("Research bot"), "What people call it.")
        .may(
            "type",
            line(TYPE_MAX).eg(TYPE_DEFAULT),
            "Null goes back to `custom`.",
        )
        .may(
            "description",
            lines(DESCRIPTION_MAX).eg("Reads papers at night."),
            "Null clears it.",
        )
        .may(
            "spendLimit",
            limit(),
            "What its wallet may spend through `POST /spend` in a UTC day. Null lifts it.",
        );
    Doc::new("PATCH /agents/{id}", "updateAgent", "Change an agent")
        .says("Fields that are left out stay as they are.")
        .takes(body)
        .gives::<AgentAnswer<'_>>(200, "The agent as it now is.")
        .refuses(&[Code::NotFound])
}

fn delete() -> Doc {
    Doc::new(
        "DELETE /agents/{id}",
        "deleteAgent",
        "Delete an agent and close its wallet",
    )
    .says(
        "Its virtual keys are revoked with it. Refused while its wallet holds money, has a pending deposit or is a \
         party of an open escrow that the account pays.",
    )
    .gives::<Done>(200, "It is deleted.")
    .refuses(&[Code::NotFound, Code::Conflict])
}

fn freeze() -> Doc {
    Doc::new("POST /agents/{id}/freeze", "freezeAgent", "Freeze an agent")
        .says("Binds the next call: the proxy denies it with `frozen`, and nothing leaves its wallet.")
        .gives::<AgentAnswer<'_>>(200, "The agent, frozen; also when it was before.")
        .refuses(&[Code::NotFound])
}

fn unfreeze() -> Doc {
    Doc::new(
        "POST /agents/{id}/unfreeze",
        "unfreezeAgent",
        "Lift the freeze of an agent",
    )
    .says("A freeze by the operator of the installation can only be lifted by the operator.")
    .gives::<AgentAnswer<'_>>(200, "The agent, active; also when it was before.")
    .refuses(&[Code::NotFound, Code::OperatorFreeze])
}
