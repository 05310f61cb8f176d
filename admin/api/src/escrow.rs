//! `/escrow`: money held between two wallets (specification "Escrow", decisions D3, D26, D27, D54, D59).

mod doc;

pub(crate) use doc::section;

mod answer;
mod view;

use super::idempotency::{IdentifiedRequest, ResolvedKey, earlier};
use super::spend::require_harmless;
use super::wallet::find::{FoundWallet, canonical, find_wallet_place, require_wallet};
use crate::state::{ApiState, Call};
use endpoint::{Answer, Code, Fields, Problem, QueryParams, Reply, TextForm, operations, whole_number};
use serde_json::{Value, json};
use store::StoreError;
use store::escrow::script::{self, CallOutcome, NewEscrow, PartyDecision, Requester};
use store::escrow::search::EscrowFilter;
use store::escrow::{Escrow, EscrowStatus, Party};
use store::idempotency::RequestIdentity;
use store::page::Page;
use store::wallet::WalletStatus;

operations! {
    /// Operations on escrows.
    ROUTES: ApiState, Management;

    POST "/escrow/create",  key(Write, Admin),   Both, WalletMinute, create, Confirmed, Budgeted;
    POST "/escrow/fund",    key(Write, Admin),   Both, PerMinute,    fund, Confirmed, Budgeted;
    POST "/escrow/release", key(Write, Manager), Both, WalletMinute, release, Confirmed, Budgeted, AlwaysAllowed;
    POST "/escrow/dispute", key(Write, Manager), Both, PerMinute,    dispute, Confirmed, Budgeted, AlwaysAllowed;
    GET  "/escrow",         key(Read, Viewer),   Both, PerMinute,    list, Query;
    GET  "/escrow/{id}",    key(Read, Viewer),   Both, PerMinute,    get;
}

/// Longest reason of a dispute.
const REASON_MAX: usize = 500;

endpoint::answer! { EscrowAnswer<'a>, escrow: view::EscrowView<'a> }

/// `POST /escrow/create`
///
/// # Errors
/// 400, 402 `INJECTION_DETECTED`, 403 `NOT_A_PARTY`, 404, 409 `WALLET_CLOSED`, 422, 503.
pub async fn create(call: Call) -> Answer {
    let body = call.body()?;
    let key = ResolvedKey::read(&call, &body).await?;
    key.add_intent_id(create_with_key(&call, &body, &key).await)
}

async fn create_with_key(call: &Call, body: &Fields<'_>, key: &ResolvedKey) -> Answer {
    body.require_only_with_key(&["fromWalletId", "toWalletId", "amount", "currency", "conditions"])?;
    let (from, to) = (body.wallet("fromWalletId")?, body.wallet("toWalletId")?);
    let (amount, currency) = (body.amount("amount")?, body.currency()?);
    let conditions = body.object("conditions")?.value().unwrap_or_else(|| json!({}));
    let request = json!({ "fromWalletId": canonical(&from), "toWalletId": canonical(&to),
        "amountNanos": amount.get().to_string(), "currency": currency, "conditions": conditions });
    let IdentifiedRequest { identity, record, .. } = key.identify(call, "escrow/create", &request).await?;
    if let Some(record) = record {
        return answer::replay(call, &record).await;
    }
    let from = require_wallet(call, "fromWalletId", &from).await?;
    from.require_own(call, "fromWalletId")?;
    let to = require_wallet(call, "toWalletId", &to).await?;
    if from.place.number == to.place.number {
        let message = "toWalletId must name another wallet than fromWalletId.";
        return Err(Problem::validation(message));
    }
    if !to.is_of(call) {
        require_harmless(call, "conditions", &conditions)?;
    }
    let conditions = conditions.to_string();
    let (payer, payee) = (party(&from), party(&to));
    let new = NewEscrow {
        payer: &payer,
        payee: &payee,
        amount,
        currency,
        conditions: &conditions,
    };
    let (store, requester) = (&call.state.store, requester(call, &identity, key.at_ms));
    let closed = [&from, &to]
        .map(|found| found.wallet.status)
        .contains(&WalletStatus::Closed);
    let outcome = match closed {
        true => new.refuse(store, &requester).await?,
        false => new.create(store, &requester).await?,
    };
    match outcome {
        CallOutcome::Done(created) => answer::created(&new, created, &identity.id),
        other => answer_other(call, &identity, None, &other).await,
    }
}

/// `POST /escrow/fund`
///
/// # Errors
/// 400 `ESCROW_WRONG_STATE` and `INSUFFICIENT_BALANCE`, 403 `NOT_A_PARTY` and `FROZEN`, 404, 409 `WALLET_CLOSED`, 422,
/// 503.
pub async fn fund(call: Call) -> Answer {
    let body = call.body()?;
    let key = ResolvedKey::read(&call, &body).await?;
    key.add_intent_id(fund_with_key(&call, &body, &key).await)
}

async fn fund_with_key(call: &Call, body: &Fields<'_>, key: &ResolvedKey) -> Answer {
    body.require_only_with_key(&["escrowId"])?;
    let number = body.number("escrowId")?;
    let request = json!({ "escrowId": number.to_string() });
    let IdentifiedRequest { identity, record, .. } = key.identify(call, "escrow/fund", &request).await?;
    if let Some(record) = record {
        return answer::replay(call, &record).await;
    }
    let escrow = require_escrow(call, number).await?;
    if escrow.payer.account != call.caller.account {
        return Err(Code::NotAParty.into());
    }
    match script::fund(&call.state.store, &requester(call, &identity, key.at_ms), &escrow).await? {
        CallOutcome::Done(balance) => answer::funded(number, balance, &identity.id),
        other => answer_other(call, &identity, Some(number), &other).await,
    }
}

/// `POST /escrow/release`
///
/// # Errors
/// 400 `ESCROW_WRONG_STATE`, 403 `NOT_A_PARTY`, 404, 409 `ESCROW_RESOLVED`, `WALLET_CLOSED` and `BALANCE_LIMIT`, 422,
/// 503.
pub async fn release(call: Call) -> Answer {
    let body = call.body()?;
    let key = ResolvedKey::read(&call, &body).await?;
    key.add_intent_id(release_with_key(&call, &body, &key).await)
}

async fn release_with_key(call: &Call, body: &Fields<'_>, key: &ResolvedKey) -> Answer {
    body.require_only_with_key(&["escrowId"])?;
    let number = body.number("escrowId")?;
    let request = json!({ "escrowId": number.to_string() });
    decide_with_key(
        call,
        key,
        ("escrow/release", &request),
        number,
        PartyDecision::Release,
    )
    .await
}

/// `POST /escrow/dispute`
///
/// # Errors
/// Those of [`release`], and 402 `INJECTION_DETECTED`.
pub async fn dispute(call: Call) -> Answer {
    let body = call.body()?;
    let key = ResolvedKey::read(&call, &body).await?;
    key.add_intent_id(dispute_with_key(&call, &body, &key).await)
}

async fn dispute_with_key(call: &Call, body: &Fields<'_>, key: &ResolvedKey) -> Answer {
    body.require_only_with_key(&["escrowId", "reason"])?;
    let number = body.number("escrowId")?;
    let reason = body.text("reason", TextForm::Lines, REASON_MAX)?.value();
    let reason = reason.filter(|reason| !reason.is_empty());
    let request = json!({ "escrowId": number.to_string(), "reason": reason });
    let decision = PartyDecision::Dispute(reason.as_deref());
    decide_with_key(call, key, ("escrow/dispute", &request), number, decision).await
}

async fn decide_with_key(
    call: &Call,
    key: &ResolvedKey,
    (route, request): (&'static str, &Value),
    number: u64,
    decision: PartyDecision<'_>,
) -> Answer {
    let IdentifiedRequest { identity, record, .. } = key.identify(call, route, request).await?;
    if let Some(record) = record {
        return answer::replay(call, &record).await;
    }
    let escrow = require_escrow(call, number).await?;
    if !escrow.has_party(&call.caller.account) {
        return Err(Code::NotAParty.into());
    }
    if let (PartyDecision::Dispute(Some(reason)), true) = (decision, escrow.crosses_accounts()) {
        require_harmless(call, "reason", &reason.into())?;
    }
    match script::decide(
        &call.state.store,
        &requester(call, &identity, key.at_ms),
        &escrow,
        decision,
    )
    .await?
    {
        CallOutcome::Done(()) => answer::resolved(number, decision, &identity.id),
        other => answer_other(call, &identity, Some(number), &other).await,
    }
}

/// `GET /escrow`
///
/// # Errors
/// 400, 429 while the account reads as many lists as it may, 503.
pub async fn list(call: Call) -> Answer {
    let query = call.list_query(&["status", "walletId"])?;
    let paging = call.paging(&query, "escrows")?;
    let (store, scope) = (&call.state.store, &call.realm());
    let _permit = call.state.large_lists.acquire(&call.caller.account).await?;
    let (part, partial) = match filter(&call, &query).await? {
        None => (Page::empty(), Some(false)),
        Some(filter) if filter.is_all() => (Escrow::list(store, scope, paging.page()).await?, None),
        Some(filter) => {
            let found = Escrow::search(store, scope, &filter, paging.page()).await?;
            (found.part, Some(found.is_partial))
        }
    };
    let views: Result<_, Problem> = part.records.iter().map(view::record).collect();
    Reply::ok(&paging.listing_of(&part, views?).partial(partial))
}

/// Returns the filter of a query; `None` if it names a wallet that does not exist.
async fn filter(call: &Call, query: &QueryParams) -> Result<Option<EscrowFilter>, Problem> {
    let statuses = EscrowStatus::ALL.iter().map(|status| status.as_str());
    let status = query.value("status", statuses, EscrowStatus::parse)?;
    let Some(text) = query.get("walletId") else {
        return Ok(Some(EscrowFilter { status, wallet: None }));
    };
    let found = find_wallet_place(call, text).await?;
    let found = found.filter(|place| place.mode == call.caller.mode);
    Ok(found.map(|place| EscrowFilter {
        status,
        wallet: Some(place.number),
    }))
}

/// `GET /escrow/{id}`
///
/// # Errors
/// 404, also for an account that is not a party (decision D54), 503.
pub async fn get(call: Call) -> Answer {
    let number = whole_number(call.param("id")).ok_or_else(|| {
        let message = "There is no such escrow: id must be the number of one.";
        Problem::new(Code::NotFound, message)
    })?;
    let escrow = require_escrow(&call, number).await?;
    match escrow.has_party(&call.caller.account) {
        true => Reply::ok(&EscrowAnswer::new(view::record(&escrow)?)),
        false => Err(missing(number)),
    }
}

/// Reads the escrow with this number in the caller's mode, with any parties.
async fn require_escrow(call: &Call, number: u64) -> Result<Escrow, Problem> {
    let escrow = Escrow::read(&call.state.store, number).await?;
    escrow
        .filter(|escrow| escrow.mode == call.caller.mode)
        .ok_or_else(|| missing(number))
}

fn missing(number: u64) -> Problem {
    let message = format!("escrowId: there is no escrow {number}.");
    Problem::new(Code::NotFound, message)
}

/// Answers a call that changed nothing: it was refused, or a concurrent request had the same key.
async fn answer_other<T>(
    call: &Call,
    identity: &RequestIdentity,
    number: Option<u64>,
    outcome: &CallOutcome<T>,
) -> Answer {
    match outcome {
        CallOutcome::Blocked(blocked) => Err(answer::refused(number, blocked)),
        CallOutcome::TooMuch => Err(Code::BalanceLimit.into()),
        CallOutcome::Known | CallOutcome::Done(_) => match earlier(call, identity).await? {
            Some(record) => answer::replay(call, &record).await,
            None => Err(StoreError::unexpected("an intent that is known and not there").into()),
        },
    }
}

fn requester<'a>(call: &'a Call, identity: &'a RequestIdentity, at_ms: u64) -> Requester<'a> {
    Requester {
        scope: call.scope(),
        identity,
        at_ms,
    }
}

fn party(found: &FoundWallet) -> Party {
    Party {
        account: found.place.account.clone(),
        owner: found.place.owner.clone(),
        wallet: found.place.number,
    }
}
