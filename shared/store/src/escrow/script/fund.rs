//! Funds an escrow: moves the payer's money into it. From then on it is open for the wallets of the payer's account:
//! an escrow that another account pays does not keep its payee's agent from being deleted.

use super::{CallOutcome, EscrowBlocked, Requester, audit_details_of, mint_transaction, request_json};
use crate::escrow::{Escrow, EscrowStatus};
use crate::script::change::{
    AuditEvent, BUDGET, CAUSED, INTENT, INTENT_BUDGET, KEPT_TEXT, LOW_BALANCE, MONEY,
};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::transaction::{NewTransaction, TransactionText, TransactionType};
use crate::wallet::{Wallet, WalletPlace, WalletStatus};
use crate::{Store, StoreError};
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;

/// Type of the payer's transaction.
const KIND: TransactionType = TransactionType::EscrowFund;

/// Every reason that the script can return.
const REASONS: &[Reason] = &[
    Reason::EscrowNotPending,
    Reason::WalletClosed,
    Reason::Frozen,
    Reason::InsufficientBalance,
];

script! {
    /// Moves the payer's money into an escrow.
    pub static FUND = "escrow_fund",
    kind: Change,
    source: [BUDGET, CAUSED, KEPT_TEXT, MONEY, INTENT, INTENT_BUDGET, LOW_BALANCE, include_str!("../fund.lua")],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    /// The last two are the payer's if the payee is in another account.
    keys: struct FundKeys: String {
        transactions, payer[4], intent, spare_intent, intent_index[6], escrow, payer_open, payee, payee_open
    },
    /// `amount` is nano-USD.
    args: struct FundArgs<'a>: &'a str {
        payer_number, payee_number, payee_closed, number, amount, transaction, transaction_text, intent, spare_intent,
        heads, fields[..]
    },
}

/// Funds the escrow for its payer, the caller. Returns the remaining balance.
///
/// A payee's wallet in another account cannot be checked in the same step. If it is closed in between, a release pays
/// its account's user wallet, as for any closed wallet.
/// Safe to retry.
pub async fn fund(
    store: &Store,
    requester: &Requester<'_>,
    escrow: &Escrow,
) -> Result<CallOutcome<Nanos>, StoreError> {
    let closed = escrow.crosses_accounts() && payee_is_closed(store, escrow).await?;
    let mut reply = execute(store, requester, escrow, closed).await?;
    match reply.word()?.as_str() {
        "settled" => reply.nanos().map(CallOutcome::Done),
        "blocked" => Ok(CallOutcome::Blocked(EscrowBlocked {
            reason: reply.parsed(Reason::parse)?,
            intent: reply.word()?,
            status: Some(reply.parsed(EscrowStatus::parse)?),
        })),
        "known" => Ok(CallOutcome::Known),
        _ => reply.unexpected(),
    }
}

async fn payee_is_closed(store: &Store, escrow: &Escrow) -> Result<bool, StoreError> {
    let place = WalletPlace {
        account: escrow.payee.account.clone(),
        mode: escrow.mode,
        owner: escrow.payee.owner.clone(),
        number: escrow.payee.wallet,
    };
    let wallet = Wallet::at(store, &place).await?;
    Ok(wallet.is_none_or(|wallet| wallet.status == WalletStatus::Closed))
}

async fn execute(
    store: &Store,
    requester: &Requester<'_>,
    escrow: &Escrow,
    payee_closed: bool,
) -> Result<ScriptReply, StoreError> {
    let (realm, identity) = (requester.scope.realm(), requester.identity);
    let (payer, payee) = (&escrow.payer, &escrow.payee);
    let request = request_json(escrow.number);
    let intent = requester.intent(IntentKind::EscrowFund, escrow, &payer.owner, &request);
    let local_party = if escrow.crosses_accounts() { payer } else { payee };
    let keys = FundKeys {
        transactions: realm.transactions(),
        payer: realm.leg(&payer.owner, KIND.as_str()),
        intent: realm.intent(&identity.id),
        spare_intent: realm.intent(&identity.spare_id),
        intent_index: intent.lists().keys(&realm),
        escrow: realm.escrow(escrow.number),
        payer_open: realm.open_escrows(&payer.owner),
        payee: realm.wallet(&local_party.owner),
        payee_open: realm.open_escrows(&local_party.owner),
    };
    let transaction = mint_transaction()?;
    let (from, to) = (payer.wallet.to_string(), payee.wallet.to_string());
    let (number, amount) = (escrow.number.to_string(), escrow.amount.get().to_string());
    let (heads, fields) = (intent.heads(false, REASONS), intent.fields());
    let args = FundArgs {
        payer_number: &from,
        payee_number: if escrow.crosses_accounts() { "" } else { &to },
        payee_closed: if payee_closed { "1" } else { "" },
        number: &number,
        amount: &amount,
        transaction: &transaction,
        transaction_text: &payment(escrow, &transaction, &identity.id),
        intent: &identity.id,
        spare_intent: &identity.spare_id,
        heads: &heads,
        fields: fields.iter().map(String::as_str).collect(),
    };
    let event = AuditEvent::new("escrow.fund", audit_details_of(escrow, Some(&identity.id)))
        .with_agent(payer.agent());
    requester.scope.execute(store, &FUND, event, keys, args).await
}

/// Returns the text of the payer's transaction.
fn payment(escrow: &Escrow, transaction: &str, intent: &str) -> String {
    let new = NewTransaction {
        id: transaction,
        kind: KIND,
        owner: &escrow.payer.owner,
        intent: Some(intent),
        currency: &escrow.currency,
        tail: TransactionText {
            counterparty: Some(format!("escrow:{}", escrow.number)),
            memo: None,
        },
    };
    new.words()
}
