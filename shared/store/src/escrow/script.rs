//! Twins of `escrow/*.lua`: create, fund, release and dispute an escrow, and end its dispute (specification "Escrow",
//! decisions D26 to D28).

mod create;
mod fund;
mod listing;
mod outbound_transfer;
mod resolve;
mod step;

use create::{CreateArgs, CreateKeys};
pub use create::{CreatedEscrow, NewEscrow};
pub use fund::fund;
use fund::{FundArgs, FundKeys};
pub(crate) use listing::list_with_payee;
use listing::{ListArgs, ListKeys};
pub use resolve::{Ended, Verdict, Winner, decide, end_dispute};
use step::{ResolveArgs, ResolveKeys};

use crate::escrow::{Escrow, EscrowStatus, Party};
use crate::intent::NewIntent;
use crate::once::Once;
use crate::script::change::{BUDGET, CAUSED, CHANGE, Event, INTENT, LOW_BALANCE, MONEY, Scope};
use crate::script::names::{Names, inputs};
use crate::script::{Script, WhenFull};
use crate::{Store, StoreError};
use clock::now_ms;
use domain::id::Kind as Id;
use domain::intent::Reason;
use domain::money::Nanos;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Creates an escrow.
pub static CREATE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, BUDGET, INTENT, include_str!("create.lua")];
    let inputs = Names::of_change(CreateKeys::NAMES, CreateArgs::NAMES);
    Script::new("escrow_create", WhenFull::Refuse, inputs, &parts)
        .of_money()
        .with_budgets()
});

/// Adds it to the list of a payee in another account.
pub static LIST: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("list.lua")];
    let inputs = Names::new(ListKeys::NAMES, ListArgs::NAMES);
    Script::new("escrow_list", WhenFull::Run, inputs, &parts).of_names()
});

/// Moves the payer's money into it.
pub static FUND: LazyLock<Script> = LazyLock::new(|| {
    let own = include_str!("fund.lua");
    let parts = [CHANGE, BUDGET, CAUSED, MONEY, INTENT, LOW_BALANCE, own];
    let inputs = Names::of_change(FundKeys::NAMES, FundArgs::NAMES);
    Script::new("escrow_fund", WhenFull::Refuse, inputs, &parts)
        .of_money()
        .with_budgets()
});

/// Releases or disputes it, or ends its dispute.
pub static RESOLVE: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, BUDGET, MONEY, INTENT, include_str!("resolve.lua")];
    let inputs = Names::of_change(ResolveKeys::NAMES, ResolveArgs::NAMES);
    Script::new("escrow_resolve", WhenFull::Refuse, inputs, &parts)
        .of_money()
        .with_budgets()
});

/// Stores a refused intent, and nothing else.
pub static BLOCKED: LazyLock<Script> = LazyLock::new(|| {
    let parts = [CHANGE, BUDGET, INTENT, include_str!("blocked.lua")];
    let inputs = Names::of_change(BlockedKeys::NAMES, BlockedArgs::NAMES);
    Script::new("intent_blocked", WhenFull::Refuse, inputs, &parts)
        .of_money()
        .with_budgets()
});

/// Claims a caller's idempotency key for a request that another account's bucket decides.
pub static CLAIM: LazyLock<Script> = LazyLock::new(|| {
    let parts = [include_str!("claim.lua")];
    let inputs = Names::new(ClaimKeys::NAMES, ClaimArgs::NAMES);
    Script::new("intent_claim", WhenFull::Refuse, inputs, &parts).of_money()
});

inputs! {
    /// The keys of a refused intent.
    struct BlockedKeys: String { intent, intent_index[6], claim }
}
inputs! {
    /// The arguments of a refused intent.
    struct BlockedArgs<'a>: &'a str { intent, reason, heads, fingerprint, fields[..] }
}
inputs! {
    /// The keys of a claim.
    struct ClaimKeys<'a>: &'a str { intent }
}
inputs! {
    /// The arguments of a claim.
    struct ClaimArgs<'a>: &'a str { intent, fingerprint }
}

/// The caller of an escrow operation and the identity of its request.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// Account, mode and API key of the caller.
    pub scope: Scope<'a>,
    /// Identity of the request.
    pub once: &'a Once,
    /// Time of the request, in ms since 1970.
    pub at_ms: u64,
}

/// Outcome of a call on an escrow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CallOutcome<T> {
    /// Done.
    Done(T),
    /// Refused; an intent says so.
    Blocked(Blocked),
    /// The caller's idempotency key already has a record; nothing changed.
    Known,
    /// The receiving wallet's balance would exceed its maximum; nothing changed.
    TooMuch,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Id of the stored intent.
    pub intent: String,
    /// Why.
    pub reason: Reason,
    /// Status of the escrow at that time; `None` if it was not created.
    pub status: Option<EscrowStatus>,
}

/// Composes the audit details of an escrow.
fn facts(
    number: Option<u64>,
    (payer, payee): (&Party, &Party),
    (amount, currency): (Nanos, &str),
    intent: Option<&str>,
) -> Value {
    json!({ "escrowId": number, "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": amount,
        "amountNanos": amount.get().to_string(), "currency": currency, "intentId": intent })
}

/// [`facts`] of an existing escrow.
fn facts_of(escrow: &Escrow, intent: Option<&str>) -> Value {
    let parties = (&escrow.payer, &escrow.payee);
    facts(
        Some(escrow.number),
        parties,
        (escrow.amount, &escrow.currency),
        intent,
    )
}

/// Composes the request part of an escrow call's intent.
fn request_of(number: u64) -> String {
    json!({ "escrowId": number }).to_string()
}

/// Returns a new transaction id.
fn mint_transaction() -> Result<String, StoreError> {
    let id = Id::Transaction.mint(now_ms());
    id.map_err(|error| StoreError::UnexpectedReply(error.to_string()))
}

/// Claims the caller's key in the caller's account. Returns false if it has a record, or another request's claim.
async fn claim(store: &Store, asked: &Requester<'_>) -> Result<bool, StoreError> {
    let once = asked.once;
    let key = asked.scope.keys().intent(asked.scope.mode, &once.id);
    let keys = ClaimKeys { intent: &key };
    let args = ClaimArgs {
        intent: &once.id,
        fingerprint: &once.fingerprint,
    };
    let mut reply = store.reply(&CLAIM, keys, args).await?;
    match reply.word()?.as_str() {
        "claimed" => Ok(true),
        "known" => Ok(false),
        _ => reply.unexpected(),
    }
}

/// Stores `new` as refused, under the id of `refusal`, in the caller's account.
async fn keep_blocked<T>(
    store: &Store,
    asked: &Requester<'_>,
    new: &NewIntent<'_>,
    event: Event<'_>,
    refusal: Blocked,
) -> Result<CallOutcome<T>, StoreError> {
    let (account, mode) = (asked.scope.keys(), asked.scope.mode);
    let keys = BlockedKeys {
        intent: account.intent(mode, &refusal.intent),
        intent_index: new.place().index(&account, mode),
        claim: account.intent(mode, &asked.once.id),
    };
    let (heads, fields) = (new.heads(false, &[refusal.reason]), new.fields());
    let args = BlockedArgs {
        intent: &refusal.intent,
        reason: refusal.reason.as_str(),
        heads: &heads,
        fingerprint: new.fingerprint,
        fields: fields.iter().map(String::as_str).collect(),
    };
    let mut reply = asked.scope.execute(store, &BLOCKED, event, keys, args).await?;
    match reply.word()?.as_str() {
        "blocked" => Ok(CallOutcome::Blocked(refusal)),
        "known" => Ok(CallOutcome::Known),
        _ => reply.unexpected(),
    }
}
