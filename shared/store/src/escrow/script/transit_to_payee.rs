//! The row in transit for a payee in another account, when an escrow ends or is disputed (decision D28): the money, the
//! status and the payee's intent.

use super::{Requester, audit_details_of};
use crate::audit;
use crate::escrow::{Escrow, EscrowStatus, Party};
use crate::intent::NewIntent;
use crate::keys::USER;
use crate::transaction::TransactionType;
use crate::transit::script::deliver;
use crate::transit::{Credit, ESCROW_DISPUTED, ESCROW_REFUNDED, ESCROW_RELEASED, IntentParts, Transit};
use crate::wallet::Wallet;
use crate::{Store, StoreError};
use domain::money::Nanos;

/// Last part of the transit id for an operator's decision. For a party's decision it is the new status of the escrow.
pub(crate) const RESOLVED: &str = "resolved";

/// Contents of the row for the payee's account.
pub(crate) struct TransitToPayee<'a> {
    pub(crate) escrow: &'a Escrow,
    /// Last part of the transit id.
    pub(crate) name: &'a str,
    pub(crate) becomes: EscrowStatus,
    pub(crate) actor: &'a str,
    /// Transaction id, if money moves.
    pub(crate) credit: Option<&'a String>,
    /// The payee's intent, if the payee is the caller.
    pub(crate) intent: Option<(&'a Requester<'a>, &'a NewIntent<'a>)>,
}

impl TransitToPayee<'_> {
    pub(crate) fn to_transit(&self) -> Transit {
        let escrow = self.escrow;
        let Party {
            account,
            owner,
            wallet,
        } = &escrow.payee;
        let credit = self.credit.map(|transaction| Credit {
            nanos: escrow.amount.get(),
            kind: TransactionType::EscrowRelease.as_str().to_owned(),
            transaction: transaction.clone(),
            counterparty: format!("escrow:{}", escrow.number),
            currency: escrow.currency.clone(),
            memo: None,
        });
        let intent = self.intent.map(|(requester, new)| IntentParts {
            id: requester.identity.id.clone(),
            kind: new.kind.as_str().to_owned(),
            agent: new.agent.to_owned(),
            heads: new.heads(false, &[]),
            fields: new.fields(),
        });
        let event = match self.becomes {
            EscrowStatus::Disputed => ESCROW_DISPUTED,
            EscrowStatus::Refunded => ESCROW_REFUNDED,
            _ => ESCROW_RELEASED,
        };
        let intent_id = intent.as_ref().map(|intent| intent.id.as_str());
        let audit = audit::entry(
            event,
            escrow.payee.agent(),
            self.actor,
            &audit_details_of(escrow, intent_id),
        );
        Transit {
            id: transit_id(escrow.number, self.name),
            from_account: escrow.payer.account.clone(),
            to_account: account.clone(),
            mode: escrow.mode.as_str().to_owned(),
            to_owner: owner.clone(),
            to_wallet: *wallet,
            credit,
            // A disputed escrow stays open for the wallet (decision D67).
            escrow: (self.becomes != EscrowStatus::Disputed).then_some(escrow.number),
            intent,
            audit: Some(audit),
            lists: None,
        }
    }
}

fn transit_id(escrow: u64, name: &str) -> String {
    format!("escrow:{escrow}:{name}")
}

/// Delivers immediately, without waiting for the transit worker. Money that does not fit into the wallet stays in
/// transit; everything else has arrived.
pub(crate) async fn deliver_now(store: &Store, transit: Option<&Transit>) -> Result<(), StoreError> {
    let Some(transit) = transit else { return Ok(()) };
    let delivered = deliver(store, transit).await;
    if let Err(error) = &delivered {
        tracing::warn!(transit = transit.id, %error, "not delivered yet; the worker goes on");
    }
    delivered.map(|_| ())
}

/// Returns whether the payee's wallet, in another account, would hold at most `most` nano-USD with the money. It cannot
/// be checked in the same step: money that finds no room all the same waits in transit.
pub(crate) async fn has_payee_room(store: &Store, escrow: &Escrow, most: Nanos) -> Result<bool, StoreError> {
    let Party { owner, wallet, .. } = &escrow.payee;
    let realm = escrow.payee.realm(escrow.mode);
    let named = Wallet::find_by_owner(store, &realm, owner).await?;
    let receiver = match named.filter(|found| found.number == *wallet) {
        Some(found) => Some(found),
        None => Wallet::find_by_owner(store, &realm, USER).await?,
    };
    Ok(receiver.is_none_or(|found| found.balance.saturating_add(escrow.amount) <= most))
}

/// Delivers the transit row that an earlier attempt of the payee left: the first decision counts.
pub(crate) async fn deliver_earlier_decision(store: &Store, escrow: &Escrow) -> Result<(), StoreError> {
    let mut query = redis::cmd("HMGET");
    query.arg(escrow.payer.realm(escrow.mode).keys().bucket().transit());
    for status in [EscrowStatus::Released, EscrowStatus::Disputed] {
        query.arg(transit_id(escrow.number, status.as_str()));
    }
    let rows: Vec<Option<String>> = store.command(&query).await?;
    for row in rows.into_iter().flatten() {
        let transit = serde_json::from_str(&row);
        let transit: Transit = transit.map_err(|_| StoreError::unexpected("transit row"))?;
        deliver(store, &transit).await?;
    }
    Ok(())
}
