//! Twin of `transit/arrive.lua`: delivers a transit row and removes it from the sender (decision D28).

use crate::escrow::Party;
use crate::escrow::script::listing::list_with_payee;
use crate::intent::IntentLists;
use crate::keys::{AccountKeys, Realm, USER};
use crate::script::change::{INTENT, KEPT_TEXT, MONEY, Scope, unexpected_reply};
use crate::script::script;
use crate::transaction::{NewTransaction, TransactionText, TransactionType};
use crate::transit::{IntentParts, Transit};
use crate::wallet::script::find_or_open_user_wallet;
use crate::{Store, StoreError};
use std::time::Duration;

script! {
    /// Delivers a row.
    pub static ARRIVE = "transit_arrive",
    kind: Change,
    source: [KEPT_TEXT, MONEY, INTENT, include_str!("arrive.lua")],
    when_full: Run,
    marks: [confirmed],
    keys: struct ArriveKeys: String {
        transactions, wallet[4], arrival, notice, intent, intent_index[6]
    },
    /// `amount` is nano-USD.
    args: struct ArriveArgs<'a>: &'a str {
        wallet_number, amount, transaction_text, escrow, intent, heads, fields[..]
    },
}

/// Last part of the mark that a row's escrow and intent were written while its money waits for room. The mark does not
/// expire: the arrival of the money removes it.
const NOTICE: &str = "notice";

/// Time for which the mark of an arrival stays after its row: no worker keeps a row for that long. The mark does not
/// expire while the row exists.
const MARK_LIFE: Duration = Duration::from_secs(35 * 24 * 3600);

/// Outcome of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// It has arrived, now or before, and its row is removed.
    Arrived,
    /// The receiving wallet's balance would exceed [`BALANCE_MAX`](crate::wallet::BALANCE_MAX). The row stays with the
    /// money; the end of an escrow and an intent in it are written.
    NoRoom,
}

/// Outcome of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Done,
    Closed,
    NoRoom,
}

/// Delivers `transit` and removes its row; idempotent. Money for a wallet that was closed meanwhile goes to the
/// account's user wallet.
///
/// # Errors
/// [`StoreError`]; the row stays, and the transit worker retries.
pub async fn deliver(store: &Store, transit: &Transit) -> Result<Delivered, StoreError> {
    if let Some(escrow) = transit.lists {
        let payee = Party {
            account: transit.to_account.clone(),
            owner: transit.to_owner.clone(),
            wallet: transit.to_wallet,
        };
        let mode = transit.mode().ok_or_else(bad_row)?;
        list_with_payee(store, &payee, mode, escrow).await?;
        // Listing twice is harmless, so no mark is set.
        take_row(store, transit).await?;
        return Ok(Delivered::Arrived);
    }
    let mut arrival = arrive(store, transit, &transit.to_owner, transit.to_wallet).await?;
    if arrival == Arrival::Closed {
        let mode = transit.mode().ok_or_else(bad_row)?;
        let scope = Scope {
            account: &transit.to_account,
            mode,
            actor: ACTOR,
        };
        let wallet = find_or_open_user_wallet(store, &scope).await?;
        arrival = arrive(store, transit, USER, wallet.number).await?;
    }
    match arrival {
        Arrival::Done => {}
        Arrival::NoRoom => return Ok(Delivered::NoRoom),
        Arrival::Closed => return unexpected_reply(&ARRIVE),
    }
    take_row(store, transit).await?;
    let mark = AccountKeys::new(&transit.to_account)
        .bucket()
        .arrived(&transit.id);
    let mut forget = redis::cmd("PEXPIRE");
    forget.arg(mark).arg(MARK_LIFE.as_millis().to_string());
    let _: i64 = store.command(&forget).await?;
    Ok(Delivered::Arrived)
}

/// Removes the row from the sender's bucket.
async fn take_row(store: &Store, transit: &Transit) -> Result<(), StoreError> {
    let mut taken = redis::cmd("HDEL");
    taken
        .arg(transit.sender_keys().bucket().transit())
        .arg(&transit.id);
    let _: i64 = store.command(&taken).await?;
    Ok(())
}

/// Actor in the audit log for a user wallet that an arrival opens.
const ACTOR: &str = "worker";

fn bad_row() -> StoreError {
    StoreError::unexpected("transit row")
}

/// Returns the text of the receiver's transaction, if money arrives.
fn credit_text(transit: &Transit, kind: TransactionType, owner: &str) -> Option<String> {
    let credit = transit.credit.as_ref()?;
    let new = NewTransaction {
        id: &credit.transaction,
        kind,
        owner,
        intent: transit.intent.as_ref().map(|intent| intent.id.as_str()),
        currency: &credit.currency,
        tail: TransactionText {
            counterparty: Some(credit.counterparty.clone()),
            memo: credit.memo.clone(),
        },
    };
    Some(new.words())
}

/// Returns the keys of the intent that arrives, and of the lists that will name it. Without an intent they are declared
/// and not touched.
fn intent_keys(realm: &Realm, intent: Option<&IntentParts>) -> (String, [String; 6]) {
    let Some(intent) = intent else {
        return (realm.record(), std::array::from_fn(|_| realm.record()));
    };
    let lists = IntentLists {
        kind: &intent.kind,
        agent: &intent.agent,
    };
    (realm.intent(&intent.id), lists.keys(realm))
}

/// Executes the script for the wallet of `owner`.
async fn arrive(store: &Store, transit: &Transit, owner: &str, number: u64) -> Result<Arrival, StoreError> {
    let mode = transit.mode().ok_or_else(bad_row)?;
    let realm = Realm::new(&transit.to_account, mode);
    let kind = match &transit.credit {
        None => TransactionType::TransferIn,
        Some(credit) => TransactionType::parse(&credit.kind).ok_or_else(bad_row)?,
    };
    let words = credit_text(transit, kind, owner);
    let amount = transit.credit.as_ref().map(|credit| credit.nanos.to_string());
    let escrow = transit.escrow.map(|number| number.to_string());
    let (number, audit) = (number.to_string(), transit.audit.as_ref().ok_or_else(bad_row)?);
    let intent = transit.intent.as_ref();
    let (intent_key, intent_index) = intent_keys(&realm, intent);
    let keys = ArriveKeys {
        transactions: realm.transactions(),
        wallet: realm.leg(owner, kind.as_str()),
        arrival: realm.bucket().arrived(&transit.id),
        notice: realm.bucket().arrived(&format!("{}:{NOTICE}", transit.id)),
        intent: intent_key,
        intent_index,
    };
    let fields = intent.map_or(&[][..], |intent| &intent.fields);
    let args = ArriveArgs {
        wallet_number: &number,
        amount: amount.as_deref().unwrap_or_default(),
        transaction_text: words.as_deref().unwrap_or_default(),
        escrow: escrow.as_deref().unwrap_or_default(),
        intent: intent.map_or("", |intent| &intent.id),
        heads: intent.map_or("", |intent| &intent.heads),
        fields: fields.iter().map(String::as_str).collect(),
    };
    let scope = Scope {
        account: &transit.to_account,
        mode,
        actor: ACTOR,
    };
    let mut reply = scope
        .execute_with_entry(store, &ARRIVE, audit.clone(), keys, args)
        .await?;
    match reply.word()?.as_str() {
        "done" | "again" => Ok(Arrival::Done),
        "closed" => Ok(Arrival::Closed),
        "too_much" => Ok(Arrival::NoRoom),
        _ => reply.unexpected(),
    }
}
