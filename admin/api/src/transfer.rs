//! `POST /wallet/transfer` and `POST /wallets/transfer`: money between two wallets (decisions D18, D26, D28, D67).

mod doc;

pub(crate) use doc::section;

use super::idempotency::{IdentifiedRequest, identify, require_earlier};
use super::spend::require_harmless;
use super::wallet::find::{FoundWallet, WALLET_ATTEMPTS, canonical, require_wallet};
use crate::state::{ApiState, Call};
use clock::now_ms;
use domain::id::IdKind;
use domain::intent::{IntentState, Reason};
use domain::money::Nanos;
use domain::timestamp::iso_from_ms;
use endpoint::doc::is;
use endpoint::{Answer, Code, Fields, Problem, Reply, TextForm, WalletName, operations};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::intent::IntentRecord;
use store::transfer::{NewTransfer, Transferred};
use store::wallet::{BALANCE_BY_OTHERS_MAX, BALANCE_MAX};
use utoipa::ToSchema;

operations! {
    /// Transfers, under the path of wallets.
    BETWEEN_WALLETS: ApiState, Management;

    POST "/wallets/transfer", key(Write, Admin), Both, WalletMinute, create, Confirmed, Budgeted;
}

operations! {
    /// Transfers, under the path of the account.
    ROUTES: ApiState, Management;

    POST "/wallet/transfer", key(Write, Admin), Both, PerDay, create, Confirmed, Budgeted;
}

/// Longest memo.
const MEMO_MAX: usize = 500;

/// The body of a transfer, read.
struct TransferRequest {
    from: WalletName,
    to: WalletName,
    amount: Nanos,
    currency: &'static str,
    memo: Option<String>,
    identified: IdentifiedRequest,
}

/// The `request` field of the record.
#[derive(Serialize, Deserialize)]
struct StoredTransfer {
    from: u64,
    to: u64,
    /// The field that named a closed wallet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    closed: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Transfer)]
struct TransferView<'a> {
    #[schema(value_type = is::TransactionId)]
    id: &'a str,
    #[schema(value_type = is::WalletNumber)]
    from: u64,
    #[schema(value_type = is::WalletNumber)]
    to: u64,
    amount: Nanos,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    #[schema(example = "for the search API")]
    memo: Option<&'a str>,
    #[schema(value_type = is::Time)]
    created_at: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransferAnswer)]
struct TransferAnswer<'a> {
    success: bool,
    transfer: TransferView<'a>,
    #[schema(value_type = is::TransactionId)]
    transaction_id: &'a str,
    /// Remaining balance of the paying wallet.
    balance: Nanos,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    replayed: Option<bool>,
}

/// `POST /wallet/transfer`, `POST /wallets/transfer`
///
/// # Errors
/// 400, 402 `INJECTION_DETECTED`, 403 `FROZEN`, 404, 409 `WALLET_CLOSED` and `BALANCE_LIMIT`, 422, 503.
pub async fn create(call: Call) -> Answer {
    let body = call.body()?;
    let request = TransferRequest::read(&call, &body).await?;
    if let Some(record) = &request.identified.record {
        return replay(record);
    }
    for _ in 0..WALLET_ATTEMPTS {
        if let Some(answer) = attempt(&call, &request).await? {
            return answer;
        }
    }
    Err(Code::ServiceUnavailable.into())
}

impl TransferRequest {
    async fn read(call: &Call, body: &Fields<'_>) -> Result<Self, Problem> {
        let mine = ["from", "to", "amount", "currency", "memo"];
        body.require_only_with_key(&mine)?;
        let (from, to) = (body.wallet("from")?, body.wallet("to")?);
        let (amount, currency) = (body.amount("amount")?, body.currency()?);
        let memo = body.text("memo", TextForm::Line, MEMO_MAX)?.value();
        let request = json!({ "from": canonical(&from), "to": canonical(&to),
            "amountNanos": amount.get().to_string(), "currency": currency, "memo": memo });
        let identified = identify(call, body, "transfer", &request).await?;
        Ok(Self {
            from,
            to,
            amount,
            currency,
            memo,
            identified,
        })
    }

    fn view<'a>(&'a self, transaction: &'a str, kept: &StoredTransfer, at_ms: u64) -> TransferView<'a> {
        TransferView {
            id: transaction,
            from: kept.from,
            to: kept.to,
            amount: self.amount,
            currency: self.currency,
            memo: self.memo.as_deref(),
            created_at: iso_from_ms(at_ms),
        }
    }
}

/// Reads the wallets and moves the money; `None` when a wallet changed between the two.
async fn attempt(call: &Call, request: &TransferRequest) -> Result<Option<Answer>, Problem> {
    let from = require_wallet(call, "from", &request.from).await?;
    from.require_own(call, "from")?;
    let to = require_wallet(call, "to", &request.to).await?;
    if from.wallet.number == to.wallet.number {
        return Err(Problem::validation("to must be another wallet than from."));
    }
    let closed = closed_field(&from, &to);
    // A caller without enough money learns only that. The other answers would disclose the balance of a stranger's
    // wallet.
    let has_money = from.wallet.balance >= request.amount;
    if closed.is_none() && has_money && !has_room(call, &to, request.amount) {
        return Err(Code::BalanceLimit.into());
    }
    if let (false, Some(memo)) = (to.is_of(call), &request.memo) {
        require_harmless(call, "memo", &memo.as_str().into())?;
    }
    let kept = StoredTransfer {
        from: from.wallet.number,
        to: to.wallet.number,
        closed: closed.map(str::to_owned),
    };
    let now = now_ms();
    let (transaction, arrival) = (IdKind::Transaction.mint(now)?, IdKind::Transaction.mint(now)?);
    let transfer = NewTransfer {
        identity: &request.identified.identity,
        record_life: request.identified.record_life,
        from: &from.place,
        to: &to.place,
        amount: request.amount,
        currency: request.currency,
        memo: request.memo.as_deref(),
        transaction: &transaction,
        arrival: &arrival,
        closed: closed.is_some(),
        request: &json!(kept).to_string(),
        at_ms: now,
    };
    let answer = match transfer.execute(&call.state.store, &call.scope()).await? {
        Transferred::Done { balance, at_ms } => show(request.view(&transaction, &kept, at_ms), balance, None),
        Transferred::Blocked(reason) => Err(refusal(reason, closed)),
        Transferred::Insufficient => Err(Code::InsufficientBalance.into()),
        Transferred::TooMuch => Err(Code::BalanceLimit.into()),
        Transferred::Known => replay(&require_earlier(call, &request.identified.identity).await?),
        Transferred::Changed => return Ok(None),
    };
    Ok(Some(answer))
}

/// Returns whether a wallet may receive `amount`. The sender of another account fills it only up to
/// [`BALANCE_BY_OTHERS_MAX`].
fn has_room(call: &Call, to: &FoundWallet, amount: Nanos) -> bool {
    let most = if to.is_of(call) {
        BALANCE_MAX
    } else {
        BALANCE_BY_OTHERS_MAX
    };
    amount.saturating_add(to.wallet.balance) <= most
}

fn closed_field(from: &FoundWallet, to: &FoundWallet) -> Option<&'static str> {
    [("from", from), ("to", to)]
        .into_iter()
        .find_map(|(field, found)| found.is_closed().then_some(field))
}

fn refusal(reason: Reason, closed: Option<&str>) -> Problem {
    match (reason, closed) {
        (Reason::WalletClosed, Some(field)) => {
            Problem::new(Code::WalletClosed, format!("{field}: this wallet is closed."))
        }
        (Reason::Frozen, _) => Code::Frozen.into(),
        _ => Code::Internal.into(),
    }
}

/// Returns the first answer again (decision D26).
fn replay(record: &IntentRecord) -> Answer {
    let malformed = || {
        tracing::error!(record = record.id, "a transfer's record cannot be parsed");
        Problem::from(Code::Internal)
    };
    let kept: StoredTransfer = serde_json::from_str(&record.request).map_err(|_| malformed())?;
    if let (IntentState::Blocked, Some(reason)) = (record.state, record.reason) {
        return Err(refusal(reason, kept.closed.as_deref()).with("replayed", true));
    }
    let transaction = record.transaction.as_deref().ok_or_else(malformed)?;
    let transfer = TransferView {
        id: transaction,
        from: kept.from,
        to: kept.to,
        amount: record.amount,
        currency: &record.currency,
        memo: record.note.as_deref(),
        created_at: iso_from_ms(record.at_ms),
    };
    show(transfer, record.balance.ok_or_else(malformed)?, Some(true))
}

fn show(transfer: TransferView<'_>, balance: Nanos, replayed: Option<bool>) -> Answer {
    Reply::ok(&TransferAnswer {
        success: true,
        transaction_id: transfer.id,
        transfer,
        balance,
        replayed,
    })
}
