//! OpenAPI documentation of escrow.

use super::answer::{EscrowCreated, Funded, Resolved};
use super::view::Record;
use super::{EscrowAnswer, REASON_MAX};
use endpoint::doc::field::{
    amount, count, currency, flag, free, is, lines, number, string, wallet, wallet_of_path,
};
use endpoint::doc::{Body, Doc, Section};
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
        count(1).eg(Json::from_serialize(&42)),
        "The escrow's number.",
    )
}

/// Adds the fields of a refused call's answer in addition to the error. Its intent has the same values.
fn refused(doc: Doc) -> Doc {
    doc.names_intent()
        .adds("escrowId", is("EscrowNumber"), "The escrow.")
        .adds("status", is("EscrowState"), "Where the escrow stands.")
        .adds("intentId", is("IntentId"), "The intent that keeps the refusal.")
        .adds("state", is("IntentState"), "`blocked`")
        .adds("success", flag(), "`false`")
        .adds("reason", is("BlockedReason"), "Why, for programs.")
        .adds("blocked_reason", string(), "Why, for people.")
        .adds("replayed", flag(), "True in the answer to a repeated request.")
}

fn of_number(body: Body) -> Body {
    body.must("escrowId", number(), "The escrow's number.")
}

fn create() -> Doc {
    let body = Body::new("NewEscrow")
        .must("fromWalletId", wallet(), "The payer's wallet, one of yours.")
        .must(
            "toWalletId",
            wallet().eg("supplier-bot"),
            "The payee's wallet; another account's by number or id.",
        )
        .must("amount", amount(), "USD, above zero.")
        .may("currency", currency(), "One unit of account at par.")
        .may(
            "conditions",
            free().eg(Json::from_serialize(&json!({ "deliver": "report.pdf" }))),
            "Free-form and not enforced; at most 16 KiB.",
        );
    let doc = Doc::new("POST /escrow/create", "createEscrow", "Make an escrow")
        .says("No money moves yet.")
        .takes(body)
        .once()
        .gives::<EscrowCreated<'_>>(200, "The escrow.")
        .refuses(&[
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
    .takes(of_number(Body::new("EscrowToFund")))
    .once()
    .gives::<Funded<'_>>(200, "The money left the payer's wallet.")
    .refuses(&[
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
    let doc = doc.refuses(&[
        Code::EscrowWrongState,
        Code::NotAParty,
        Code::NotFound,
        Code::EscrowResolved,
        Code::WalletClosed,
        Code::BalanceLimit,
    ]);
    refused(doc).adds(
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
    .says(
        "Either party can. A repeated release answers 409 with `replayed: true` and what it answered first.",
    )
    .takes(of_number(Body::new("EscrowToRelease")))
    .once()
    .gives::<Resolved<'_>>(200, "The money is the payee's.");
    resolving(doc)
}

fn dispute() -> Doc {
    let body = of_number(Body::new("EscrowToDispute")).may(
        "reason",
        lines(REASON_MAX).eg("Nothing was delivered."),
        "Kept as `dispute_reason`.",
    );
    let doc = Doc::new("POST /escrow/dispute", "disputeEscrow", "Dispute an escrow")
        .says("Either party can; no money moves, and the operator resolves it. A repeated dispute answers 409 with `replayed: true`.")
        .takes(body)
        .once()
        .gives::<Resolved<'_>>(200, "It is disputed.")
        .refuses(&[Code::InjectionDetected]);
    let reason = endpoint::doc::nullable(string());
    resolving(doc).adds(
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
    .says("With a filter at most 1,000 escrows are read for a page, so that it can be short, or empty, and still have a `nextCursor`.")
    .lists::<Record<'_>>("escrows", "A page of escrows, the newest first.")
    .can_have(
        "partial",
        flag(),
        "Only with a filter: whether there are escrows that were not read; `total` does not count them.",
    )
}

fn get() -> Doc {
    Doc::new("GET /escrow/{id}", "getEscrow", "Show an escrow")
        .gives::<EscrowAnswer<'_>>(200, "The escrow.")
        .refuses(&[Code::NotFound])
}
