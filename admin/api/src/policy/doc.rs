//! OpenAPI documentation of policies.

use super::{LIMITS, NAME_MAX, PolicyAnswer, PolicyView};
use endpoint::doc::field::{agent_id, flag, is, limit, line, new_agent_id, pattern, words};
use endpoint::doc::{Body, Doc, Section};
use endpoint::{CURRENCIES, Code, Done};

pub(crate) fn section() -> Section {
    let about = "What agents may spend. An agent has one policy of its own; policies without an agent hold for all agents that have \
                 none, the strictest of each limit. Without a policy Cap denies every call.";
    Section::new("Policies", about, vec![set(), list(), set_for_agent(), delete()])
}

/// Adds the fields that both ways of setting a policy accept.
fn limits(body: Body) -> Body {
    let body = body
        .may(
            "agentId",
            new_agent_id(),
            "The agent whose policy it is; left out for the whole account.",
        )
        .may(
            "currency",
            words(CURRENCIES),
            "One unit of account at par; `USD` for a new policy.",
        )
        .may(
            "capEnabled",
            flag(),
            "Whether Cap lets the agent spend at all; true for a new policy, and for null.",
        );
    let says = |name: &str| match name {
        "maxSpendPerDay" => "Of calls and spends in a UTC day.",
        "maxSpendPerTransaction" => "Of one `POST /spend`.",
        "maxSpendPerRun" => "Of calls and spends with the same run id.",
        "maxSpendPerMonth" => "Of calls and spends in a UTC month.",
        "approvalThreshold" => "A spend above it waits for approval.",
        _ => "A wallet that falls below it is reported by `wallet.low_balance`.",
    };
    LIMITS
        .iter()
        .fold(body, |body, (name, _)| body.may(name, limit(), says(name)))
}

/// Adds the preconditions with which editors avoid overwriting each other's changes.
fn expecting(doc: Doc) -> Doc {
    let tag = pattern(r#"^(\*|"[0-9]{1,19}")$"#).eg("\"3\"");
    doc.header("If-Match", tag, "The `revision` that you saw, in quotes; 412 when the policy has another. `*`: any, as long as there is one.")
        .header("If-None-Match", pattern(r"^\*$").eg("*"), "`*`: only if there is no policy yet. Not together with `If-Match`.")
        .refuses(&[Code::PreconditionFailed])
}

fn set() -> Doc {
    let body = Body::new("PolicyFields").must(
        "name",
        line(NAME_MAX).eg("Research budget"),
        "What people call it.",
    );
    let doc = Doc::new("POST /policies", "setPolicy", "Make or change a policy")
        .says("With an `agentId` that has a policy, that policy is changed: fields given change, others stay, null clears.")
        .takes(limits(body))
        .gives::<PolicyAnswer<'_>>(200, "The policy as it now is.")
        .refuses(&[Code::Conflict]);
    expecting(doc)
}

fn list() -> Doc {
    Doc::new("GET /policies", "listPolicies", "List policies")
        .query("agentId", agent_id(), "The policy of this agent only.")
        .lists::<PolicyView<'_>>("policies", "A page of policies.")
}

fn set_for_agent() -> Doc {
    let body = Body::new("AgentPolicyFields").given(
        "name",
        line(NAME_MAX).eg("Research budget"),
        "`default` where none was given.",
    );
    let doc = Doc::new(
        "POST /policies/{id}",
        "setAgentPolicy",
        "Make or change the policy of an agent",
    )
    .says("The parameter is the agent's id. Fields given change, others stay, null clears.")
    .param("id", new_agent_id(), "The agent.")
    .takes(limits(body))
    .gives::<PolicyAnswer<'_>>(200, "The policy as it now is.")
    .refuses(&[Code::Conflict]);
    expecting(doc)
}

fn delete() -> Doc {
    Doc::new("DELETE /policies/{id}", "deletePolicy", "Delete a policy")
        .param("id", is("PolicyId"), "The policy.")
        .gives::<Done>(200, "It is deleted.")
        .refuses(&[Code::NotFound])
}
