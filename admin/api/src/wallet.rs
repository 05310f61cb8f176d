//! Wallets: create one for an agent, show one, and list all (specification §4.1 and §4.3, decisions D14, D16).

mod doc;
pub(crate) mod find;

pub(crate) use doc::section;

use super::agent::{NAME_MAX, create_agent, no_wallet};
use super::wallet::find::{FoundWallet, find_wallet};
use crate::state::{ApiState, Call};
use domain::money::{Nanos, NanosSum};
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{
    Answer, CURRENCIES, Code, PAGING, Problem, Reply, TextForm, WalletName, operations, require_new_agent_id,
};
use serde::Serialize;
use store::wallet::Wallet;
use store::wallet::aggregate::WalletAggregate;
use store::wallet::script::find_or_open_user_wallet;
use utoipa::ToSchema;

operations! {
    /// Operations on wallets by their names.
    ROUTES: ApiState, Management;

    POST "/wallets/create", key(Write, Admin), Both, WalletMinute, create, Confirmed, Budgeted;
    GET  "/wallets/{id}",   key(Read, Viewer), Both, WalletMinute, get;
}

operations! {
    /// Operations on the wallets of the account.
    OF_ACCOUNT: ApiState, Management;

    GET "/agents/{id}/wallet", key(Read, Viewer), Both, PerDay,    get_by_agent;
    GET "/wallet",             key(Read, Viewer), Both, PerMinute, list, Query, Confirmed;
}

/// Default page size of `GET /wallet`.
const PAGE_DEFAULT: &str = "200";

/// A wallet as the wallet-centric listing shows it (specification §4.1), with its number and currency.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Wallet)]
struct WalletView<'a> {
    #[schema(value_type = is::WalletId)]
    id: &'a str,
    #[schema(value_type = is::WalletNumber)]
    wallet_id: u64,
    /// The agent; null for the account's own wallet.
    #[schema(value_type = Option<is::AgentId>)]
    bot_id: Option<&'a str>,
    #[schema(example = "Research bot")]
    name: &'a str,
    /// Rounded down to two fraction digits; the snapshot has the exact amount.
    #[schema(pattern = r"^[0-9]+\.[0-9]{2}$", example = "12.50")]
    balance: String,
    #[schema(value_type = is::Currency)]
    currency: &'static str,
    #[schema(value_type = is::WalletState)]
    status: &'static str,
    #[schema(value_type = is::Time)]
    created_at: String,
}

endpoint::answer! { WalletAnswer<'a>, wallet: WalletView<'a> }

/// The wallet snapshot (decision D16).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WalletSnapshot)]
struct WalletSnapshotView<'a> {
    /// Present if the snapshot is the whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    success: Option<bool>,
    /// Null for the account's own wallet.
    #[schema(value_type = Option<is::AgentId>)]
    agent_id: Option<&'a str>,
    #[schema(value_type = is::WalletNumber)]
    wallet_id: u64,
    #[schema(value_type = is::WalletId)]
    wallet: &'a str,
    /// Balance.
    usdc: Nanos,
    /// Deposits that are not confirmed.
    usdc_pending: Nanos,
    /// Maximum amount that `POST /spend` may take from it in a UTC day.
    spend_limit: Option<Nanos>,
    #[schema(value_type = is::WalletState)]
    status: &'static str,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = is::Time)]
    updated_at: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Wallets)]
struct WalletList<'a> {
    success: bool,
    user_wallet: WalletSnapshotView<'a>,
    agent_wallets: Vec<WalletSnapshotView<'a>>,
    totals: WalletTotalsView,
    /// Number of agents' wallets.
    #[schema(example = 1)]
    total: u64,
    #[schema(example = 200)]
    limit: usize,
    #[schema(example = 0)]
    offset: usize,
    /// Value of `cursor` for the next page; null at the end.
    #[serde(rename = "nextCursor")]
    #[schema(value_type = Option<String>, example = json!(null))]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WalletTotals)]
struct WalletTotalsView {
    /// Sum of all wallets, including those on other pages. With up to 500 agents all amounts of the answer are of one
    /// moment; with more, money that moves meanwhile can count twice or not at all.
    usdc: NanosSum,
    usdc_pending: NanosSum,
    #[schema(example = 2)]
    wallets: u64,
    /// True if the sums only include the user wallet and the newest 10,000 agents' wallets, because there are more.
    #[schema(example = false)]
    partial: bool,
}

impl<'a> WalletView<'a> {
    fn new(wallet: &'a Wallet) -> Self {
        Self {
            id: &wallet.id,
            wallet_id: wallet.number,
            bot_id: wallet.agent(),
            name: &wallet.name,
            balance: wallet.balance.two_digits(),
            currency: CURRENCIES[0],
            status: wallet.status.as_str(),
            created_at: iso_from_ms(wallet.created_at_ms),
        }
    }
}

impl<'a> WalletSnapshotView<'a> {
    fn new(wallet: &'a Wallet) -> Self {
        Self {
            success: None,
            agent_id: wallet.agent(),
            wallet_id: wallet.number,
            wallet: &wallet.id,
            usdc: wallet.balance,
            usdc_pending: wallet.pending,
            spend_limit: wallet.spend_limit,
            status: wallet.status.as_str(),
            created_at: iso_from_ms(wallet.created_at_ms),
            updated_at: iso_from_ms(wallet.updated_at_ms),
        }
    }
}

/// `POST /wallets/create`
///
/// # Errors
/// 400, 403 `TIER_LIMIT`, 409 if the bot already has a wallet, 503.
pub async fn create(call: Call) -> Answer {
    let body = call.body()?.only(&["botId", "name"])?;
    let bot = body.string("botId")?.required("botId")?;
    require_new_agent_id("botId", &bot)?;
    let name = body.text("name", TextForm::Line, NAME_MAX)?.value();
    create_agent(&call, &bot, name.as_deref().unwrap_or(&bot), None, None).await?;
    show(&find_agent_wallet(&call, &bot).await?)
}

/// `GET /wallets/{id}`
///
/// # Errors
/// 404, also for a wallet of another account; 503.
pub async fn get(call: Call) -> Answer {
    show(&require_own(&call).await?.wallet)
}

/// `GET /agents/{id}/wallet`
///
/// # Errors
/// 404, 503.
pub async fn get_by_agent(call: Call) -> Answer {
    let wallet = find_agent_wallet(&call, call.agent()?).await?;
    Reply::ok(&WalletSnapshotView {
        success: Some(true),
        ..WalletSnapshotView::new(&wallet)
    })
}

/// `GET /wallet`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let query = call
        .query(&PAGING)?
        .with_default("limit", PAGE_DEFAULT.to_owned());
    let paging = call.paging(&query, "agent_wallets")?;
    let (store, realm) = (&call.state.store, call.realm());
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let user = find_or_open_user_wallet(store, &call.scope()).await?;
    let WalletAggregate { user, agents, totals } =
        WalletAggregate::read(store, &realm, user, paging.page()).await?;
    Reply::ok(&WalletList {
        success: true,
        user_wallet: WalletSnapshotView::new(&user),
        agent_wallets: agents.records.iter().map(WalletSnapshotView::new).collect(),
        totals: WalletTotalsView {
            usdc: totals.balance,
            usdc_pending: totals.pending,
            wallets: totals.wallets,
            partial: totals.partial,
        },
        total: agents.total,
        limit: paging.limit(),
        offset: paging.offset(),
        next_cursor: paging.cursor(agents.next.as_deref()),
    })
}

/// Finds the wallet in the path, among those of the caller's account and mode; it may be closed.
///
/// # Errors
/// 404 if there is none, 503.
pub(super) async fn require_own(call: &Call) -> Result<FoundWallet, Problem> {
    let found = match WalletName::from_path(call.param("id")) {
        None => None,
        Some(name) => find_wallet(&call.state.store, &call.scope(), &name).await?,
    };
    let own = found.filter(|found| found.is_of(call));
    own.ok_or_else(|| {
        Problem::new(
            Code::NotFound,
            "No wallet of yours has this number or id (wal_…).",
        )
    })
}

async fn find_agent_wallet(call: &Call, id: &str) -> Result<Wallet, Problem> {
    let wallet = Wallet::find_by_owner(&call.state.store, &call.realm(), id).await?;
    wallet.ok_or_else(|| no_wallet(id))
}

fn show(wallet: &Wallet) -> Answer {
    Reply::ok(&WalletAnswer::new(WalletView::new(wallet)))
}
