//! `GET /transactions` and `GET /wallets/{id}/transactions`: movements of wallets (decisions D19, D56).

mod doc;
mod export;

pub(crate) use doc::section;

use super::wallet::find::find_wallet_place;
use super::wallet::require_own;
use crate::state::{ApiState, Call};
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Paging, Problem, QueryParams, Reply, TimeRange, operations};
use export::TransactionExport;
use serde::Serialize;
use store::keys::closed_holder;
use store::page::Page;
use store::transaction::list::{TransactionFilter, list as list_transactions};
use store::transaction::{Transaction, TransactionType};
use store::wallet::{Wallet, WalletPlace, WalletStatus};
use utoipa::ToSchema;

operations! {
    /// Operations on the transactions of a wallet.
    OF_WALLET: ApiState, Management;

    GET "/wallets/{id}/transactions", key(Read, Viewer), Both, WalletMinute, list_by_wallet, Query;
}

operations! {
    /// Operations on transactions.
    ROUTES: ApiState, Management;

    GET "/transactions", key(Read, Viewer), Both, PerDay, list, Query;
}

/// Field of the answer with the records.
const PLURAL: &str = "transactions";
/// Forms of the answer.
const FORMATS: [&str; 2] = ["json", "csv"];

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Transaction)]
struct TransactionView<'a> {
    #[schema(value_type = is::TransactionId)]
    id: &'a str,
    #[schema(value_type = is::WalletNumber)]
    wallet_id: u64,
    #[serde(rename = "type")]
    #[schema(value_type = is::TransactionKind)]
    kind: &'static str,
    /// Amount without a sign. Credit or debit follows from `type`.
    amount: Nanos,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    /// The other side: a wallet, an escrow, a recipient or a rail reference.
    #[schema(example = "18")]
    counterparty: Option<&'a str>,
    #[schema(value_type = Option<is::IntentId>)]
    intent_id: Option<&'a str>,
    /// Balance of the wallet right afterwards.
    balance_after: Nanos,
    #[schema(example = "for the search API")]
    memo: Option<&'a str>,
    #[schema(value_type = is::Time)]
    created_at: String,
}

impl<'a> TransactionView<'a> {
    fn new(transaction: &'a Transaction) -> Self {
        Self {
            id: &transaction.id,
            wallet_id: transaction.wallet,
            kind: transaction.kind.as_str(),
            amount: transaction.amount,
            currency: &transaction.currency,
            counterparty: transaction.tail.counterparty.as_deref(),
            intent_id: transaction.intent.as_deref(),
            balance_after: transaction.balance_after,
            memo: transaction.tail.memo.as_deref(),
            created_at: iso_from_ms(transaction.at_ms),
        }
    }
}

/// The wallets whose transactions are requested.
enum WalletScope {
    /// All of the account.
    All,
    /// One wallet, by its holder in the lists.
    OfHolder(String),
    /// None: the filters name no wallet of the account, or contradict each other.
    Empty,
}

/// `GET /transactions`
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["agentId", "walletId", "type", "from", "to", "format"])?;
    let filter = filter_of(&query)?;
    let agent = query.agent_id("agentId")?;
    let scope = match query.get("walletId") {
        None => agent.map_or(WalletScope::All, |agent| WalletScope::OfHolder(agent.to_owned())),
        Some(text) => find_wallet_scope(&call, text, agent).await?,
    };
    answer(call, &query, filter, scope).await
}

/// `GET /wallets/{id}/transactions`
pub async fn list_by_wallet(call: Call) -> Answer {
    let query = call.list_query(&["type", "from", "to", "format"])?;
    let filter = filter_of(&query)?;
    let found = require_own(&call).await?;
    let scope = WalletScope::OfHolder(holder(&found.wallet));
    answer(call, &query, filter, scope).await
}

/// Finds the wallet in `walletId`, if it belongs to the caller and, if an agent is also named, to that agent.
async fn find_wallet_scope(call: &Call, text: &str, agent: Option<&str>) -> Result<WalletScope, Problem> {
    let store = &call.state.store;
    let mine = |place: &WalletPlace| place.account == call.caller.account && place.mode == call.caller.mode;
    let Some(place) = find_wallet_place(call, text).await?.filter(mine) else {
        return Ok(WalletScope::Empty);
    };
    let wallet = Wallet::at(store, &place).await?;
    let agrees = |wallet: &Wallet| agent.is_none_or(|agent| agent == wallet.owner);
    let holder = wallet.filter(agrees).map(|wallet| holder(&wallet));
    Ok(holder.map_or(WalletScope::Empty, WalletScope::OfHolder))
}

/// Returns the holder under which the wallet's transactions are listed.
fn holder(wallet: &Wallet) -> String {
    match wallet.status {
        WalletStatus::Closed => closed_holder(wallet.number),
        WalletStatus::Active | WalletStatus::Frozen => wallet.owner.clone(),
    }
}

/// Type and span of time of a query.
fn filter_of(query: &QueryParams) -> Result<TransactionFilter<'static>, Problem> {
    let known = TransactionType::ALL.map(TransactionType::as_str);
    let kind = query.value("type", known, TransactionType::parse)?;
    let TimeRange { from_ms, to_ms } = TimeRange::from_query(query)?;
    Ok(TransactionFilter {
        holder: None,
        kind,
        from_ms,
        to_ms,
    })
}

/// Answers with a page of the list, or with all of it as a file.
async fn answer(
    call: Call,
    query: &QueryParams,
    filter: TransactionFilter<'static>,
    scope: WalletScope,
) -> Answer {
    if query.word("format", FORMATS)? != Some("csv") {
        let paging = call.paging(query, PLURAL)?;
        return show(&call, &paging, filter, &scope).await;
    }
    export::require_whole(query)?;
    let holder = match scope {
        WalletScope::Empty => return export::empty(&call),
        WalletScope::All => None,
        WalletScope::OfHolder(holder) => Some(holder),
    };
    let export = TransactionExport { call, filter, holder };
    export.stream().await
}

async fn show(call: &Call, paging: &Paging, filter: TransactionFilter<'_>, scope: &WalletScope) -> Answer {
    let holder = match scope {
        WalletScope::All | WalletScope::Empty => None,
        WalletScope::OfHolder(holder) => Some(holder.as_str()),
    };
    let part = match scope {
        WalletScope::Empty => Page::empty(),
        WalletScope::All | WalletScope::OfHolder(_) => {
            let filter = TransactionFilter { holder, ..filter };
            list_transactions(&call.state.store, &call.realm(), filter, paging.page()).await?
        }
    };
    Reply::ok(&paging.listing(&part, TransactionView::new))
}
