//! OpenAPI documentation of transfers.

use super::{MEMO_MAX, TransferAnswer};
use endpoint::doc::field::{amount, currency, flag, line, wallet};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "Money between two wallets, also of different accounts.";
    let agent = (
        "POST /wallet/transfer",
        "transfer",
        "Move money between two wallets",
    );
    let wallet = (
        "POST /wallets/transfer",
        "transferBetweenWallets",
        "Move money between two wallets, in the wallet-centric listing",
    );
    Section::new("Transfers", about, vec![create(agent), create(wallet)])
}

/// Both paths have the same handler.
fn create((route, id, summary): (&'static str, &'static str, &'static str)) -> Doc {
    let body = BodyDoc::new("NewTransfer")
        .required(
            "from",
            wallet(),
            "A wallet of yours: its number, its id, an agent's id, or `user`.",
        )
        .required(
            "to",
            wallet().example("supplier-bot"),
            "Any wallet of the same mode; another account's by number or id.",
        )
        .required("amount", amount(), "USD, above zero.")
        .optional_or_null("currency", currency(), "One unit of account at par.")
        .optional_or_null(
            "memo",
            line(MEMO_MAX).example("for the search API"),
            "Kept with both transactions.",
        );
    Doc::new(route, id, summary)
        .request_body(body)
        .idempotent()
        .response::<TransferAnswer<'_>>(
            200,
            "The money moved; the same again when it is repeated with its key.",
        )
        .errors(&[
            Code::NotFound,
            Code::NotAParty,
            Code::Frozen,
            Code::InsufficientBalance,
            Code::WalletClosed,
            Code::BalanceLimit,
            Code::InjectionDetected,
        ])
        .error_field("replayed", flag(), "True in the answer to a repeated request.")
}
