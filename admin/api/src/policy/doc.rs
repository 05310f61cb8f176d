//! OpenAPI documentation of policies.

use super::{LIMITS, NAME_MAX, PolicyAnswer, PolicyView};
use endpoint::doc::field::{agent_id, flag, is, limit, line, new_agent_id, pattern, words};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::{CURRENCIES, Code, Success};
use openapi::Json;

pub(crate) fn section() -> Section {
    let about = "What agents may spend. An agent has one policy of its own; policies without an agent hold for all agents that have \
                 none, the strictest of each limit. Without a policy Cap denies every call.";
    Section::new("Policies", about, vec![set(), list(), set_for_agent(), delete()])
}

/// Adds the fields that both ways of setting a policy accept.
fn limits(body: BodyDoc) -> BodyDoc {
    let body = body
        .optional_or_null(
            "agentId",
            new_agent_id(),
            "The agent whose policy it is; left out for the whole account.",
        )
        .optional_or_null(
            "currency",
            words(CURRENCIES),
            "One unit of account at par; `USD` for a new policy.",
        )
        .optional_or_null(
            "capEnabled",
            flag(),
            "Whether Cap lets the agent spend at all; true for a new policy, and for null.",
        );
    let description = |name: &str| match name {
        "maxSpendPerDay" => "Of calls and spends in a UTC day.",
        "maxSpendPerTransaction" => "Of one `POST /spend`.",
        "maxSpendPerRun" => "Of calls and spends with the same run id.",
        "maxSpendPerMonth" => "Of calls and spends in a UTC month.",
        "approvalThreshold" => "A spend above it waits for approval.",
        _ => "A wallet that falls below it is reported by `wallet.low_balance`.",
    };
    LIMITS.iter().fold(body, |body, (name, _)| {
        body.optional_or_null(name, limit(), description(name))
    })
}

fn revision_tag() -> Json {
    pattern(r#"^(\*|"[0-9]{1,19}")$"#).example("\"3\"")
}

/// Adds the preconditions with which editors avoid overwriting each other's changes.
fn expecting(doc: Doc) -> Doc {
    doc.header("If-Match", revision_tag(), "The `revision` that you saw, in quotes; 412 when the policy has another. `*`: any, as long as there is one.")
        .header("If-None-Match", pattern(r"^\*$").example("*"), "`*`: only if there is no policy yet. Not together with `If-Match`.")
        .errors(&[Code::PreconditionFailed])
}

fn set() -> Doc {
    let body = BodyDoc::new("PolicyFields").required(
        "name",
        line(NAME_MAX).example("Research budget"),
        "Display name.",
    );
    let doc = Doc::new("POST /policies", "setPolicy", "Make or change a policy")
        .description("With an `agentId` that has a policy, that policy is changed: fields given change, others stay, null clears.")
        .request_body(limits(body))
        .response::<PolicyAnswer<'_>>(200, "The policy as it now is.")
        .errors(&[Code::Conflict]);
    expecting(doc)
}

fn list() -> Doc {
    Doc::new("GET /policies", "listPolicies", "List policies")
        .query("agentId", agent_id(), "The policy of this agent only.")
        .lists::<PolicyView<'_>>("policies", "A page of policies.")
}

fn set_for_agent() -> Doc {
    let body = BodyDoc::new("AgentPolicyFields").optional(
        "name",
        line(NAME_MAX).example("Research budget"),
        "`default` where none was given.",
    );
    let doc = Doc::new(
        "POST /policies/{id}",
        "setAgentPolicy",
        "Make or change the policy of an agent",
    )
    .description("The parameter is the agent's id. Fields given change, others stay, null clears.")
    .param("id", new_agent_id(), "The agent.")
    .request_body(limits(body))
    .response::<PolicyAnswer<'_>>(200, "The policy as it now is.")
    .errors(&[Code::Conflict]);
    expecting(doc)
}

fn delete() -> Doc {
    Doc::new("DELETE /policies/{id}", "deletePolicy", "Delete a policy")
        .param("id", is("PolicyId"), "The policy.")
        .header(
            "If-Match",
            revision_tag(),
            "The `revision` that you saw, in quotes; 412 when the policy has another.",
        )
        .response::<Success>(200, "It is deleted.")
        .errors(&[Code::NotFound, Code::PreconditionFailed])
}
