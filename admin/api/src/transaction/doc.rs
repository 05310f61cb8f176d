//! OpenAPI documentation of transactions.

use super::TransactionView;
use endpoint::doc::field::{agent_id, is, time, wallet_of_path};
use endpoint::doc::{Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "Each movement of a wallet, with the balance after it.";
    Section::new("Transactions", about, vec![list(), list_of_wallet()]).param(
        "id",
        wallet_of_path(),
        "The wallet's number or its id.",
    )
}

fn filtered(doc: Doc) -> Doc {
    doc.query("type", is("TransactionKind"), "Those of this type.")
        .query("from", time(), "Those from this moment on.")
        .query("to", time(), "Those before this moment.")
        .lists::<TransactionView<'_>>("transactions", "A page of transactions, the newest first.")
}

fn list() -> Doc {
    let doc = Doc::new(
        "GET /transactions",
        "listTransactions",
        "List the transactions of the account",
    )
    .query("agentId", agent_id(), "Those of this agent's wallet.")
    .query("walletId", wallet_of_path(), "Those of this wallet.");
    filtered(doc)
}

fn list_of_wallet() -> Doc {
    let doc = Doc::new(
        "GET /wallets/{id}/transactions",
        "listWalletTransactions",
        "List the transactions of a wallet",
    );
    filtered(doc).refuses(&[Code::NotFound])
}
