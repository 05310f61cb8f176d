//! `/wallet/deposits` and `POST /wallet/deposits/confirm`: money that enters (decisions D17, D26, D56, D59).
//!
//! A deposit is created once for each rail reference; a repetition receives the first answer again.

mod doc;
mod list;

pub(crate) use doc::section;
use list::list;

use super::idempotency::{IdentifiedRequest, identify, require_earlier};
use super::wallet::find::{WALLET_ATTEMPTS, canonical, require_wallet};
use crate::state::{ApiState, Call};
use clock::now_ms;
use domain::id::IdKind;
use domain::intent::{IntentState, Reason};
use domain::mode::Mode;
use domain::money::Nanos;
use domain::role::Role;
use domain::timestamp::iso_from_ms;
use endpoint::caller::Credential;
use endpoint::doc::is;
use endpoint::{Answer, Code, Fields, Problem, Reply, WalletName, operations};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::deposit::script::{DepositConfirmation, DepositConfirmed, DepositMade, NewDeposit};
use store::deposit::{Deposit, DepositState, is_reference};
use store::intent::IntentRecord;
use utoipa::ToSchema;

operations! {
    /// Operations on deposits.
    ROUTES: ApiState, Management;

    GET  "/wallet/deposits",         key(Read, Viewer), Both, PerMinute, list, Query;
    POST "/wallet/deposits",         key(Write, Owner), Both, PerMinute, create, Confirmed, Budgeted;
    POST "/wallet/deposits/confirm", key(Write, Owner), Both, PerMinute, confirm, Confirmed, AlwaysAllowed;
}

/// Rules for the reference of a deposit.
pub const PLAIN: &str = "1 to 200 characters in one visible line: no blanks at its ends, no other white space than single spaces, letters in \
                         their composed form (NFC), and no characters that show nothing or turn the text";

/// The body of a deposit, read.
struct DepositRequest {
    wallet: WalletName,
    amount: Nanos,
    currency: &'static str,
    reference: String,
    state: DepositState,
    identified: IdentifiedRequest,
}

/// The `request` field of the record.
#[derive(Serialize, Deserialize)]
struct StoredDeposit {
    reference: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Deposit)]
struct DepositView<'a> {
    #[schema(value_type = is::TransactionId)]
    id: &'a str,
    /// The rail's reference, unique in the account and mode.
    #[schema(example = "wire-2026-000117")]
    reference: &'a str,
    #[schema(value_type = is::WalletNumber)]
    wallet_id: u64,
    amount: Nanos,
    #[schema(value_type = is::Currency)]
    currency: &'a str,
    #[schema(value_type = is::DepositWord)]
    state: &'static str,
    #[schema(value_type = is::Time)]
    created_at: String,
    #[schema(value_type = Option<is::Time>)]
    confirmed_at: Option<String>,
    /// When the operator took it back, if it never arrived.
    #[schema(value_type = Option<is::Time>)]
    cancelled_at: Option<String>,
}

impl<'a> DepositView<'a> {
    /// The deposit in a state that it has, or had.
    fn new(deposit: &'a Deposit, state: DepositState, confirmed_at_ms: Option<u64>) -> Self {
        let cancelled_ms = deposit.cancelled_ms.filter(|_| state == DepositState::Cancelled);
        Self {
            id: &deposit.id,
            reference: &deposit.reference,
            wallet_id: deposit.wallet,
            amount: deposit.amount,
            currency: &deposit.currency,
            state: state.as_str(),
            created_at: iso_from_ms(deposit.at_ms),
            confirmed_at: confirmed_at_ms.map(iso_from_ms),
            cancelled_at: cancelled_ms.map(iso_from_ms),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DepositAnswer)]
struct DepositAnswer<'a> {
    success: bool,
    deposit: DepositView<'a>,
    #[schema(value_type = is::TransactionId)]
    transaction_id: &'a str,
    /// Balance of the wallet afterwards.
    balance: Nanos,
    /// True in the answer to a repeated request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    replayed: Option<bool>,
}

/// `POST /wallet/deposits`
pub async fn create(call: Call) -> Answer {
    require_owner(&call)?;
    let body = call.body()?;
    let request = DepositRequest::read(&call, &body).await?;
    if let Some(record) = &request.identified.record {
        return replay(&call, record).await;
    }
    for _ in 0..WALLET_ATTEMPTS {
        if let Some(answer) = attempt(&call, &request).await? {
            return answer;
        }
    }
    Err(Code::ServiceUnavailable.into())
}

/// `POST /wallet/deposits/confirm`
pub async fn confirm(call: Call) -> Answer {
    require_owner(&call)?;
    let body = call.body()?;
    body.require_only_with_key(&["reference"])?;
    let reference = reference(&body)?;
    let request = json!(StoredDeposit {
        reference: reference.clone()
    });
    let identified = identify(&call, &body, "deposit_confirm", &request).await?;
    if let Some(record) = &identified.record {
        return replay_confirmation(&call, record, &reference).await;
    }
    let confirmation = DepositConfirmation {
        identity: &identified.identity,
        record_life: identified.record_life,
        reference: &reference,
        request: &request.to_string(),
        at_ms: now_ms(),
    };
    match confirmation.execute(&call.state.store, &call.scope()).await? {
        DepositConfirmed::Done { deposit, again } => show_confirmed(&deposit, again),
        DepositConfirmed::Known => {
            let record = require_earlier(&call, &identified.identity).await?;
            replay_confirmation(&call, &record, &reference).await
        }
        DepositConfirmed::Missing => Err(Problem::new(
            Code::NotFound,
            "reference: there is no deposit of this reference.",
        )),
        DepositConfirmed::Cancelled => Err(cancelled()),
        DepositConfirmed::Closed => Err(Code::WalletClosed.into()),
        DepositConfirmed::TooMuch => Err(Code::BalanceLimit.into()),
    }
}

/// Checks the caller: only an owner in the dashboard or the operator can deposit live money, never an API key (D17).
fn require_owner(call: &Call) -> Result<(), Problem> {
    match (call.caller.mode, &call.caller.credential) {
        (Mode::Test, _)
        | (
            Mode::Live,
            Credential::Session {
                role: Role::Owner, ..
            },
        ) => Ok(()),
        (Mode::Live, _) => Err(Code::OwnerRequired.into()),
    }
}

fn reference(body: &Fields<'_>) -> Result<String, Problem> {
    let reference = body.string("reference")?.required("reference")?;
    match is_reference(&reference) {
        true => Ok(reference),
        false => Err(Problem::validation(format!("reference must be {PLAIN}."))),
    }
}

impl DepositRequest {
    async fn read(call: &Call, body: &Fields<'_>) -> Result<Self, Problem> {
        let mine = ["wallet", "amount", "reference", "currency", "pending"];
        body.require_only_with_key(&mine)?;
        let wallet = body.wallet("wallet")?;
        let (amount, currency) = (body.amount("amount")?, body.currency()?);
        let reference = reference(body)?;
        let state = match body.flag("pending")?.value() {
            Some(true) => DepositState::Pending,
            Some(false) | None => DepositState::Confirmed,
        };
        let request = json!({ "wallet": canonical(&wallet), "amountNanos": amount.get().to_string(),
            "currency": currency, "reference": reference, "state": state.as_str() });
        let identified = identify(call, body, "deposit", &request).await?;
        Ok(Self {
            wallet,
            amount,
            currency,
            reference,
            state,
            identified,
        })
    }
}

/// Reads the wallet and makes the deposit; `None` when the wallet changed between the two.
async fn attempt(call: &Call, request: &DepositRequest) -> Result<Option<Answer>, Problem> {
    let found = require_wallet(call, "wallet", &request.wallet).await?;
    found.require_own(call, "wallet")?;
    let kept = StoredDeposit {
        reference: request.reference.clone(),
    };
    let now = now_ms();
    let deposit = NewDeposit {
        identity: &request.identified.identity,
        record_life: request.identified.record_life,
        wallet: &found.place,
        closed: found.is_closed(),
        amount: request.amount,
        currency: request.currency,
        reference: &request.reference,
        state: request.state,
        transaction: &IdKind::Transaction.mint(now)?,
        request: &json!(kept).to_string(),
        at_ms: now,
    };
    let answer = match deposit.execute(&call.state.store, &call.scope()).await? {
        DepositMade::Done { deposit, again } => show_made(&deposit, again),
        DepositMade::Blocked(reason) => Err(refusal(reason)),
        DepositMade::OtherDeposit => Err(Problem::new(
            Code::IdempotencyKeyReused,
            "reference: this reference was used for another deposit.",
        )),
        DepositMade::OtherState { now } => {
            let message = format!("reference: {}.", other_state(now));
            Err(Problem::new(Code::IdempotencyKeyReused, message))
        }
        DepositMade::TooMuch => Err(Code::BalanceLimit.into()),
        DepositMade::Known => replay(call, &require_earlier(call, &request.identified.identity).await?).await,
        DepositMade::Changed => return Ok(None),
    };
    Ok(Some(answer))
}

/// Returns the advice for a deposit that was announced and is sent as arrived, or the other way round, or that was
/// cancelled.
pub fn other_state(now: DepositState) -> &'static str {
    match now {
        DepositState::Pending => "this deposit is pending: confirm it",
        DepositState::Confirmed => "this deposit has arrived already",
        DepositState::Cancelled => "this deposit was cancelled: use another reference",
    }
}

fn refusal(reason: Reason) -> Problem {
    match reason {
        Reason::WalletClosed => Problem::new(Code::WalletClosed, "wallet: this wallet is closed."),
        _ => Code::Internal.into(),
    }
}

/// Returns the first answer to a request with this key again (decision D26).
async fn replay(call: &Call, record: &IntentRecord) -> Answer {
    if let (IntentState::Blocked, Some(reason)) = (record.state, record.reason) {
        return Err(refusal(reason).with("replayed", true));
    }
    let malformed = || {
        tracing::error!(record = record.id, "a deposit's record cannot be parsed");
        Problem::from(Code::Internal)
    };
    let kept: StoredDeposit = serde_json::from_str(&record.request).map_err(|_| malformed())?;
    show_made(&recorded(call, &kept.reference).await?, true)
}

/// Returns the first answer to a confirmation with this key again (decision D26). Without a reason it was refused since
/// the deposit was cancelled.
async fn replay_confirmation(call: &Call, record: &IntentRecord, reference: &str) -> Answer {
    let refusal = match (record.state, record.reason) {
        (IntentState::Blocked, Some(Reason::WalletClosed)) => Code::WalletClosed.into(),
        (IntentState::Blocked, _) => cancelled(),
        _ => return show_confirmed(&recorded(call, reference).await?, true),
    };
    Err(refusal.with("replayed", true))
}

fn cancelled() -> Problem {
    let message = format!("reference: {}.", other_state(DepositState::Cancelled));
    Problem::new(Code::Conflict, message)
}

/// Returns the deposit of a reference that a record names.
async fn recorded(call: &Call, reference: &str) -> Result<Deposit, Problem> {
    let realm = call.realm();
    let deposit = Deposit::read(&call.state.store, &realm, reference).await?;
    deposit.ok_or_else(|| {
        tracing::error!("a record names a deposit that is not there");
        Code::Internal.into()
    })
}

/// Answers with the deposit as of its creation.
fn show_made(deposit: &Deposit, replayed: bool) -> Answer {
    let confirmed_at_ms = (deposit.first == DepositState::Confirmed).then_some(deposit.at_ms);
    let then = DepositThen {
        state: deposit.first,
        confirmed_at_ms,
        balance: deposit.first_balance,
    };
    show(deposit, &then, replayed)
}

/// Answers with the deposit as of its confirmation.
fn show_confirmed(deposit: &Deposit, replayed: bool) -> Answer {
    let (at_ms, balance) = deposit.confirmed.ok_or(Code::Internal)?;
    let then = DepositThen {
        state: deposit.state,
        confirmed_at_ms: Some(at_ms),
        balance,
    };
    show(deposit, &then, replayed)
}

/// The fields of a deposit that differ between its creation and its confirmation.
struct DepositThen {
    state: DepositState,
    confirmed_at_ms: Option<u64>,
    /// Balance of the wallet.
    balance: Nanos,
}

fn show(deposit: &Deposit, then: &DepositThen, replayed: bool) -> Answer {
    Reply::ok(&DepositAnswer {
        success: true,
        deposit: DepositView::new(deposit, then.state, then.confirmed_at_ms),
        transaction_id: &deposit.id,
        balance: then.balance,
        replayed: replayed.then_some(true),
    })
}
