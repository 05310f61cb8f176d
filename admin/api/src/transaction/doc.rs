//! OpenAPI documentation of transactions.

use super::export::COLUMNS;
use super::{FORMATS, TransactionView};
use crate::spreadsheet;
use endpoint::doc::field::{agent_id, is, time, wallet_of_path, words};
use endpoint::doc::{Doc, Section};
use endpoint::problem::Code;

pub(crate) fn section() -> Section {
    let about = "Each movement of a wallet, with the balance after it.";
    Section::new("Transactions", about, vec![list(), list_by_wallet()]).param(
        "id",
        wallet_of_path(),
        "The wallet's number or its id.",
    )
}

fn filtered(doc: Doc) -> Doc {
    doc.query("type", is("TransactionKind"), "Those of this type.")
        .query("from", time(), "Those from this moment on.")
        .query("to", time(), "Those before this moment.")
        .query("format", words(FORMATS).with("x-default", FORMATS[0]), "The form of the answer. A CSV file has all of them, without `limit`, `offset` and `cursor`, and is refused where there are more than 100,000.")
        .lists::<TransactionView<'_>>("transactions", "A page of transactions, the newest first; or a file with all of them.")
        .file(spreadsheet::CONTENT_TYPE, "A page of transactions, the newest first; or a file with all of them.", spreadsheet::header(&COLUMNS))
        .errors(&[Code::Conflict])
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

fn list_by_wallet() -> Doc {
    let doc = Doc::new(
        "GET /wallets/{id}/transactions",
        "listWalletTransactions",
        "List the transactions of a wallet",
    );
    filtered(doc).errors(&[Code::NotFound])
}
