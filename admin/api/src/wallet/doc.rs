//! OpenAPI documentation of wallets.

use super::super::agent::NAME_MAX;
use super::{PAGE_DEFAULT, WalletAnswer, WalletList, WalletSnapshotView};
use endpoint::doc::field::{
    CURSOR_SAYS, agent_id, cursor, line, new_agent_id, offset, wallet_of_path, whole,
};
use endpoint::doc::{BodyDoc, Doc, Section};
use endpoint::{Code, PAGE_MAX};

pub(crate) fn section() -> Section {
    let about = "Wallets: one for each agent that was made with one, and the account's own user wallet. A wallet is named by its \
                 number or its id; in requests that move money also by its agent's id, or by `user`.";
    Section::new("Wallets", about, vec![create(), get(), get_by_agent(), list()]).param(
        "id",
        wallet_of_path(),
        "The wallet's number or its id.",
    )
}

fn create() -> Doc {
    let body = BodyDoc::new("NewWallet")
        .required("botId", new_agent_id(), "The id of the agent, which you choose.")
        .optional_or_null(
            "name",
            line(NAME_MAX).example("Research bot"),
            "Display name; the id by default.",
        );
    Doc::new(
        "POST /wallets/create",
        "createWallet",
        "Make the wallet of an agent whose id you choose",
    )
    .request_body(body)
    .response::<WalletAnswer<'_>>(200, "The wallet.")
    .errors(&[Code::TierLimit, Code::Conflict, Code::NotFound])
}

fn get() -> Doc {
    Doc::new("GET /wallets/{id}", "getWallet", "Show a wallet")
        .response::<WalletAnswer<'_>>(200, "The wallet.")
        .errors(&[Code::NotFound])
}

fn get_by_agent() -> Doc {
    Doc::new(
        "GET /agents/{id}/wallet",
        "getAgentWallet",
        "Show the wallet of an agent, exactly",
    )
    .param("id", agent_id(), "The agent.")
    .response::<WalletSnapshotView<'_>>(200, "The wallet's snapshot.")
    .errors(&[Code::NotFound])
}

fn list() -> Doc {
    let limit = whole(1, PAGE_MAX).with("x-default", PAGE_DEFAULT.parse().unwrap_or(PAGE_MAX));
    Doc::new(
        "GET /wallet",
        "listWallets",
        "Show the user wallet, a page of the agents' wallets, and the totals",
    )
    .query("limit", limit, "Most wallets of agents on the page.")
    .query(
        "offset",
        offset(),
        "Wallets of agents to leave out at the beginning.",
    )
    .query("cursor", cursor(), CURSOR_SAYS)
    .response::<WalletList<'_>>(200, "The wallets.")
}
