//! OpenAPI documentation of spends.

use super::answer::{SpendDenied, SpendPending, SpendSettled};
use super::request::{DESCRIPTION_MAX, RECIPIENT_MAX};
use domain::intent::Reason;
use endpoint::doc::field::{amount, currency, free, line, lines, new_agent_id, run_id};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;
use openapi::Json;
use serde_json::json;

pub(crate) fn section() -> Section {
    let about =
        "An agent spends: checked against its policy, the plan and its wallet, and carried out, in one step.";
    Section::new("Spend", about, vec![spend()])
}

const EXAMPLE_INTENT: &str = "int_01KAJ4M7Q8R5T6V9W0X1Y2Z3A4";

fn refused_for(reason: Reason) -> Json {
    Json::from_serialize(&SpendDenied::new(reason, EXAMPLE_INTENT, None, false))
}

/// Returns the answers that a spend and an approval have in common.
pub(crate) fn decided(doc: Doc) -> Doc {
    doc.response::<SpendDenied<'_>>(
        400,
        "`INSUFFICIENT_BALANCE`: refused, and the intent keeps why. Or the request is wrong.",
    )
    .example(refused_for(Reason::InsufficientBalance))
    .response::<SpendDenied<'_>>(
        402,
        "Refused by a limit of the policy, the wallet or the plan; the intent keeps why.",
    )
    .example(refused_for(Reason::DailyLimit))
    .response::<SpendDenied<'_>>(
        403,
        "`FROZEN`, `CAP_DISABLED`: refused, and the intent keeps why. Or the caller may not do this.",
    )
    .example(refused_for(Reason::Frozen))
    .errors(&[Code::NotFound, Code::BalanceLimit])
}

/// Adds the answer to an approval if the agent's wallet is not the one at the time of the request.
pub(crate) fn of_other_wallet(doc: Doc) -> Doc {
    doc.response::<SpendDenied<'_>>(
        409,
        "`WALLET_CLOSED`: the agent has a different wallet than at the request; refused, and the intent records the reason. \
         Or it is decided already, or the counters cannot hold it.",
    )
    .example(refused_for(Reason::WalletClosed))
}

pub(crate) fn fields(body: BodyDoc) -> BodyDoc {
    body.optional_or_null("currency", currency(), "One unit of account at par.")
        .optional_or_null(
            "recipient",
            line(RECIPIENT_MAX).example("search.example"),
            "Recipient of the payment.",
        )
        .optional_or_null(
            "description",
            lines(DESCRIPTION_MAX).example("Search credits"),
            "Purpose of the spend.",
        )
        .optional_or_null("runId", run_id(), "The run that it belongs to.")
        .optional_or_null(
            "metadata",
            free().example(Json::from_serialize(&json!({ "invoice": 7731 }))),
            "Your own; at most 16 KiB.",
        )
}

fn spend() -> Doc {
    let body = BodyDoc::new("NewSpend")
        .required("agent", new_agent_id(), "Agent that spends.")
        .required("amount", amount(), "USD, above zero.");
    let doc = Doc::new("POST /spend", "spend", "Spend")
        .description("Free text that reads like an attempt to instruct an AI agent blocks the spend. An amount above the policy's approval threshold waits for approval.")
        .request_body(fields(body))
        .idempotent()
        .response::<SpendSettled<'_>>(200, "The money moved.")
        .response::<SpendPending<'_>>(202, "It waits for approval.");
    decided(doc).names_intent()
}
