//! OpenAPI documentation of deposits.

use super::{DepositAnswer, DepositView};
use endpoint::doc::field::{amount, currency, flag, is, line, plain_line, wallet};
use endpoint::doc::{Body, Doc, Section};
use endpoint::problem::Code;
use store::deposit::REFERENCE_MAX;

pub(crate) fn section() -> Section {
    let about = "Money that enters. In live mode an owner's session or the operator makes deposits, in test mode any write key. \
                 Each has a rail reference: the same reference again is the same deposit.";
    Section::new("Deposits", about, vec![list(), create(), confirm()])
}

fn list() -> Doc {
    let partial = "Whether there are deposits that were not read; `total` does not count them.";
    Doc::new("GET /wallet/deposits", "listDeposits", "List deposits")
        .says("Read from the audit trail: at most 1,000 deposits for a page, so that with `state` it can be short, or empty, and still have a `nextCursor`.")
        .query("state", is("DepositWord"), "Those in this state.")
        .lists::<DepositView<'_>>("deposits", "A page of deposits, the newest first.")
        .can_have("partial", flag(), partial)
}

/// Example of a reference for the documents.
const EXAMPLE: &str = "wire-2026-000117";

fn create() -> Doc {
    let body = Body::new("NewDeposit")
        .must(
            "wallet",
            wallet(),
            "A wallet of yours: its number, its id, an agent's id, or `user`.",
        )
        .must("amount", amount(), "USD, above zero.")
        .must(
            "reference",
            plain_line(REFERENCE_MAX).eg(EXAMPLE),
            "The rail's own reference: one visible line without blanks at its ends.",
        )
        .may("currency", currency(), "One unit of account at par.")
        .may(
            "pending",
            flag().with("x-default", false),
            "Whether it counts as pending until it is confirmed.",
        );
    Doc::new("POST /wallet/deposits", "createDeposit", "Take a deposit in")
        .takes(body)
        .once()
        .gives::<DepositAnswer<'_>>(200, "The deposit; as it was the first time when it is repeated.")
        .refuses(&[
            Code::OwnerRequired,
            Code::NotAParty,
            Code::NotFound,
            Code::WalletClosed,
            Code::BalanceLimit,
        ])
        .adds("replayed", flag(), "True in the answer to a repeated request.")
}

fn confirm() -> Doc {
    let reference = line(REFERENCE_MAX).eg(EXAMPLE);
    let body = Body::new("DepositToConfirm").must("reference", reference, "The reference of the deposit.");
    Doc::new(
        "POST /wallet/deposits/confirm",
        "confirmDeposit",
        "Confirm a pending deposit",
    )
    .takes(body)
    .once()
    .gives::<DepositAnswer<'_>>(200, "The deposit, confirmed.")
    .refuses(&[
        Code::OwnerRequired,
        Code::NotFound,
        Code::Conflict,
        Code::WalletClosed,
        Code::BalanceLimit,
    ])
    .adds("replayed", flag(), "True in the answer to a repeated request.")
}
