//! Twin of `transit/arrive.lua`: what is in transit arrives, and is then taken off the sender's list (decision D28).

use crate::escrow::Party;
use crate::escrow::script::list_with_payee;
use crate::intent::IntentPlace;
use crate::keys::{AccountKeys, USER};
use crate::script::change::{CHANGE, INTENT, MONEY, Scope, unexpected_reply};
use crate::script::{Script, WhenFull};
use crate::transaction::{NewTransaction, Tail, TransactionType};
use crate::transit::Transit;
use crate::wallet::script::user_wallet;
use crate::{Store, StoreError};
use std::sync::LazyLock;
use std::time::Duration;

/// Lets it arrive.
pub static ARRIVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "transit_arrive",
        WhenFull::Run,
        &[CHANGE, MONEY, INTENT, include_str!("arrive.lua")],
    )
    .of_money()
});

/// How long the mark of an arrival outlives the row: no worker holds a row that long. Until the row is gone it never
/// ends.
const MARK_LIFE: Duration = Duration::from_secs(35 * 24 * 3600);

/// Lets `transit` arrive, and takes its row away. Whoever comes second finds it done. Money for a wallet that was
/// closed meanwhile goes to the account's user wallet.
///
/// # Errors
/// [`StoreError`]; the row stays, and the worker tries again.
pub async fn deliver(store: &Store, transit: &Transit) -> Result<(), StoreError> {
    if let Some(escrow) = transit.lists {
        let payee = Party {
            account: transit.to_account.clone(),
            owner: transit.to_owner.clone(),
            wallet: transit.to_wallet,
        };
        let mode = transit.mode().ok_or_else(bad_row)?;
        list_with_payee(store, &payee, mode, (escrow, false)).await?;
        // It may arrive twice, so nothing marks that it has.
        return take_row(store, transit).await;
    }
    let number = transit.to_wallet;
    if !arrive(store, transit, &transit.to_owner, number).await? {
        let mode = transit.mode().ok_or_else(bad_row)?;
        let scope = Scope {
            account: &transit.to_account,
            mode,
            actor: ACTOR,
        };
        let wallet = user_wallet(store, &scope).await?;
        if !arrive(store, transit, USER, wallet.number).await? {
            return unexpected_reply(&ARRIVE);
        }
    }
    take_row(store, transit).await?;
    let mark = AccountKeys::new(&transit.to_account)
        .bucket()
        .arrived(&transit.id);
    let mut forget = redis::cmd("PEXPIRE");
    forget.arg(mark).arg(MARK_LIFE.as_millis().to_string());
    let _: i64 = store.command(&forget).await?;
    Ok(())
}

/// Takes the row off the sender's list.
async fn take_row(store: &Store, transit: &Transit) -> Result<(), StoreError> {
    let mut taken = redis::cmd("HDEL");
    taken.arg(transit.from_keys().bucket().transit()).arg(&transit.id);
    let _: i64 = store.command(&taken).await?;
    Ok(())
}

/// Who the audit log names for a user wallet that was opened by an arrival.
const ACTOR: &str = "worker";

fn bad_row() -> StoreError {
    StoreError::UnexpectedReply("transit row".to_owned())
}

/// Runs the script for the wallet of `owner`; false when that wallet is closed.
async fn arrive(store: &Store, transit: &Transit, owner: &str, number: u64) -> Result<bool, StoreError> {
    let mode = transit.mode().ok_or_else(bad_row)?;
    let account = AccountKeys::new(&transit.to_account);
    let kind = match &transit.credit {
        None => TransactionType::TransferIn,
        Some(credit) => TransactionType::parse(&credit.kind).ok_or_else(bad_row)?,
    };
    let words = transit.credit.as_ref().map(|credit| {
        let new = NewTransaction {
            id: &credit.transaction,
            kind,
            owner,
            intent: transit.intent.as_ref().map(|intent| intent.id.as_str()),
            currency: &credit.currency,
            tail: Tail {
                counterparty: Some(credit.counterparty.clone()),
                memo: credit.memo.clone(),
            },
        };
        new.words()
    });
    let amount = transit.credit.as_ref().map(|credit| credit.nanos.to_string());
    let escrow = transit.escrow.map(|number| number.to_string());
    let mut keys = vec![account.record(), account.audit(mode), account.transactions(mode)];
    keys.extend(account.leg(mode, owner, kind.as_str()));
    keys.push(account.bucket().arrived(&transit.id));
    keys.push(account.open_escrows(mode, &transit.to_owner));
    let (number, audit) = (number.to_string(), transit.audit.as_ref().ok_or_else(bad_row)?);
    let mut args = vec![
        transit.mode.as_str(),
        audit,
        &number,
        amount.as_deref().unwrap_or_default(),
        words.as_deref().unwrap_or_default(),
        escrow.as_deref().unwrap_or_default(),
    ];
    match &transit.intent {
        None => {
            // Keys that are declared and not touched.
            keys.extend(std::iter::repeat_n(account.record(), 7));
            args.extend(["", ""]);
        }
        Some(intent) => {
            keys.push(account.intent(mode, &intent.id));
            keys.extend(
                IntentPlace {
                    kind: &intent.kind,
                    agent: &intent.agent,
                }
                .index(&account, mode),
            );
            args.extend([intent.id.as_str(), intent.heads.as_str()]);
            args.extend(intent.fields.iter().map(String::as_str));
        }
    }
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let reply: Vec<String> = store.script(&ARRIVE, &keys, &args).await?;
    match reply.first().map(String::as_str) {
        Some("done" | "again") => Ok(true),
        Some("closed") => Ok(false),
        Some("too_much") => Err(StoreError::UnexpectedReply(format!(
            "wallet {number} cannot hold what is on its way to it"
        ))),
        _ => unexpected_reply(&ARRIVE),
    }
}
