//! OpenAPI documentation of deposits.

use super::{DepositAnswer, DepositView};
use endpoint::doc::field::{amount, currency, flag, is, line, plain_line, wallet};
use endpoint::doc::{BodyDoc, Doc, Section};
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
        .description("Read from the audit trail: at most 1,000 deposits for a page, so that with `state` it can be short, or empty, and still have a `nextCursor`.")
        .query("state", is("DepositWord"), "Those in this state.")
        .lists::<DepositView<'_>>("deposits", "A page of deposits, the newest first.")
        .partial(partial)
}

/// Example of a reference for the documents.
const EXAMPLE: &str = "wire-2026-000117";

fn create() -> Doc {
    let body = BodyDoc::new("NewDeposit")
        .required(
            "wallet",
            wallet(),
            "A wallet of yours: its number, its id, an agent's id, or `user`.",
        )
        .required("amount", amount(), "USD, above zero.")
        .required(
            "reference",
            plain_line(REFERENCE_MAX).example(EXAMPLE),
            "The rail's own reference: one visible line without blanks at its ends.",
        )
        .optional_or_null("currency", currency(), "One unit of account at par.")
        .optional_or_null(
            "pending",
            flag().with("x-default", false),
            "Whether it counts as pending until it is confirmed.",
        );
    Doc::new("POST /wallet/deposits", "createDeposit", "Take a deposit in")
        .request_body(body)
        .idempotent()
        .response::<DepositAnswer<'_>>(200, "The deposit; a repeated request returns the first answer.")
        .errors(&[
            Code::OwnerRequired,
            Code::NotAParty,
            Code::NotFound,
            Code::WalletClosed,
            Code::BalanceLimit,
        ])
        .error_field("replayed", flag(), "True in the answer to a repeated request.")
}

fn confirm() -> Doc {
    let reference = line(REFERENCE_MAX).example(EXAMPLE);
    let body =
        BodyDoc::new("DepositToConfirm").required("reference", reference, "The reference of the deposit.");
    Doc::new(
        "POST /wallet/deposits/confirm",
        "confirmDeposit",
        "Confirm a pending deposit",
    )
    .request_body(body)
    .idempotent()
    .response::<DepositAnswer<'_>>(200, "The deposit, confirmed.")
    .errors(&[
        Code::OwnerRequired,
        Code::NotFound,
        Code::Conflict,
        Code::WalletClosed,
        Code::BalanceLimit,
    ])
    .error_field("replayed", flag(), "True in the answer to a repeated request.")
}
