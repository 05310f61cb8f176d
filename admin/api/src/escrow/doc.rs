//! OpenAPI documentation of escrow.

use super::answer::{EscrowCreated, EscrowFunded, EscrowResolved};
use super::view::EscrowView;
use super::{EscrowAnswer, REASON_MAX};
use endpoint::doc::field::{
    amount, count, currency, flag, free, is, lines, number, string, wallet, wallet_of_path,
};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;
use openapi::Json;
use serde_json::json;

pub(crate) fn section() -> Section {
    let about = "Money held between two wallets: pending, funded, then released to the payee or disputed. Release and dispute exclude \
                 each other. Each call leaves a payout intent, also when it is refused.";
    Section::new(
        "Escrow",
        about,
        vec![create(), fund(), release(), dispute(), list(), get()],
    )
    .param(
        "id",
        count(1).example(Json::from_serialize(&42)),
        "The escrow's number.",
    )
}

/// Adds the fields of a refused call's answer in addition to the error. Its intent has the same values.
fn refused(doc: Doc) -> Doc {
    doc.names_intent()
        .error_field("escrowId", is("EscrowNumber"), "The escrow.")
        .error_field("status", is("EscrowState"), "State of the escrow.")
        .error_field("intentId", is("IntentId"), "The intent that keeps the refusal.")
        .error_field("state", is("IntentState"), "`blocked`")
        .error_field("success", flag(), "`false`")
        .error_field("reason", is("BlockedReason"), "Why, for programs.")
        .error_field("blocked_reason", string(), "Why, for people.")
        .error_field("replayed", flag(), "True in the answer to a repeated request.")
}

fn of_number(body: BodyDoc) -> BodyDoc {
    body.required("escrowId", number(), "The escrow's number.")
}

fn create() -> Doc {
    let body = BodyDoc::new("NewEscrow")
        .required("fromWalletId", wallet(), "The payer's wallet, one of yours.")
        .required(
            "toWalletId",
            wallet().example("supplier-bot"),
            "The payee's wallet; another account's by number or id.",
        )
        .required("amount", amount(), "USD, above zero.")
        .optional_or_null("currency", currency(), "One unit of account at par.")
        .optional_or_null(
            "conditions",
            free().example(Json::from_serialize(&json!({ "deliver": "report.pdf" }))),
            "Free-form and not enforced; at most 16 KiB.",
        );
    let doc = Doc::new("POST /escrow/create", "createEscrow", "Make an escrow")
        .description("No money moves yet.")
        .request_body(body)
        .idempotent()
        .response::<EscrowCreated<'_>>(200, "The escrow.")
        .errors(&[
            Code::InjectionDetected,
            Code::NotAParty,
            Code::NotFound,
            Code::WalletClosed,
        ]);
    refused(doc)
}

fn fund() -> Doc {
    let doc = Doc::new(
        "POST /escrow/fund",
        "fundEscrow",
        "Put the payer's money into an escrow",
    )
    .request_body(of_number(BodyDoc::new("EscrowToFund")))
    .idempotent()
    .response::<EscrowFunded<'_>>(200, "The money left the payer's wallet.")
    .errors(&[
        Code::EscrowWrongState,
        Code::InsufficientBalance,
        Code::NotAParty,
        Code::Frozen,
        Code::NotFound,
        Code::WalletClosed,
    ]);
    refused(doc)
}

/// Adds the refusals of a release and a dispute. A repeated one gets 409 with the first answer.
fn resolving(doc: Doc) -> Doc {
    let doc = doc.errors(&[
        Code::EscrowWrongState,
        Code::NotAParty,
        Code::NotFound,
        Code::EscrowResolved,
        Code::WalletClosed,
        Code::BalanceLimit,
    ]);
    refused(doc).error_field(
        "success",
        flag(),
        "`false`; true where this very call was done before and is repeated.",
    )
}

fn release() -> Doc {
    let doc = Doc::new(
        "POST /escrow/release",
        "releaseEscrow",
        "Release an escrow to its payee",
    )
    .description(
        "Either party can. A repeated release answers 409 with `replayed: true` and what it answered first.",
    )
    .request_body(of_number(BodyDoc::new("EscrowToRelease")))
    .idempotent()
    .response::<EscrowResolved<'_>>(200, "The money is the payee's.");
    resolving(doc)
}

fn dispute() -> Doc {
    let body = of_number(BodyDoc::new("EscrowToDispute")).optional_or_null(
        "reason",
        lines(REASON_MAX).example("Nothing was delivered."),
        "Kept as `dispute_reason`.",
    );
    let doc = Doc::new("POST /escrow/dispute", "disputeEscrow", "Dispute an escrow")
        .description("Either party can; no money moves, and the operator resolves it. A repeated dispute answers 409 with `replayed: true`.")
        .request_body(body)
        .idempotent()
        .response::<EscrowResolved<'_>>(200, "It is disputed.")
        .errors(&[Code::InjectionDetected]);
    let reason = endpoint::doc::nullable(string());
    resolving(doc).error_field(
        "dispute_reason",
        reason,
        "The reason of the dispute that is repeated.",
    )
}

fn list() -> Doc {
    Doc::new(
        "GET /escrow",
        "listEscrows",
        "List the escrows that the account is a party to",
    )
    .query("status", is("EscrowState"), "Those in this state.")
    .query("walletId", wallet_of_path(), "Those whose payer or payee is this wallet.")
    .description("With a filter at most 1,000 escrows are read for a page, so that it can be short, or empty, and still have a `nextCursor`.")
    .lists::<EscrowView<'_>>("escrows", "A page of escrows, the newest first.")
    .partial("Only with a filter: whether there are escrows that were not read; `total` does not count them.")
}

fn get() -> Doc {
    Doc::new("GET /escrow/{id}", "getEscrow", "Show an escrow")
        .response::<EscrowAnswer<'_>>(200, "The escrow.")
        .errors(&[Code::NotFound])
}
