//! Twin of `escrow/resolve.lua`: one transition of an escrow, in the payer's account.

use super::{EscrowBlocked, Requester, audit_details_of};
use crate::escrow::{Escrow, EscrowStatus, Party};
use crate::intent::NewIntent;
use crate::keys::USER;
use crate::script::change::{
    AuditEvent, BUDGET, INTENT, INTENT_BUDGET, KEPT_TEXT, MONEY, Scope, unexpected_reply,
};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::transaction::{NewTransaction, TransactionText, TransactionType};
use crate::transit::Transit;
use crate::wallet::script::find_or_open_user_wallet;
use crate::{Store, StoreError};
use domain::intent::Reason;

script! {
    /// Releases or disputes an escrow, or ends its dispute.
    pub static RESOLVE = "escrow_resolve",
    kind: Change,
    source: [BUDGET, KEPT_TEXT, MONEY, INTENT, INTENT_BUDGET, include_str!("../resolve.lua")],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    /// `receiver` is the payer's leg, unused, if no wallet of its account is paid; `payee_open` is the payer's if the
    /// payee is in another account. The last three are any keys if the intent is stored elsewhere.
    keys: struct ResolveKeys: String {
        transactions, receiver[4], escrow, siblings, payer_open, payee_open, transit, intent, spare_intent,
        intent_index[6]
    },
    /// `amount` is nano-USD.
    args: struct ResolveArgs: String {
        required_status, new_status, receiver_number, amount, transaction_text, transit, transit_row, number, intent,
        spare_intent, requester, kind, dispute_reason, transaction, heads, fields[..]
    },
}

/// Every reason that the script can return.
const REASONS: &[Reason] = &[
    Reason::EscrowNotFunded,
    Reason::EscrowReleased,
    Reason::EscrowDisputed,
    Reason::EscrowRefunded,
];

/// A transition of an escrow to another status.
pub(crate) struct EscrowTransition<'a> {
    pub(crate) escrow: &'a Escrow,
    /// Actor and event in the payer's audit log.
    pub(crate) actor: &'a str,
    pub(crate) audit: &'static str,
    pub(crate) required: EscrowStatus,
    pub(crate) becomes: EscrowStatus,
    /// The party in the payer's account that is paid, if any.
    pub(crate) credit: Option<(&'a Party, TransactionType)>,
    /// Transaction id, in whichever account.
    pub(crate) transaction: &'a str,
    /// Reason of a dispute.
    pub(crate) note: Option<&'a str>,
    /// Data that the payee's account receives.
    pub(crate) transit: Option<&'a Transit>,
    /// Caller and intent; `None` if the operator ends a dispute.
    pub(crate) request: Option<(&'a Requester<'a>, &'a NewIntent<'a>)>,
}

/// Outcome of the script.
pub(crate) enum Transitioned {
    Won,
    Known,
    /// It decided before, with its intent in another account; the refusal if that intent is archived.
    DecidedBefore(EscrowBlocked),
    Refused(EscrowBlocked),
    /// The escrow is not disputed.
    WrongState(EscrowStatus),
    TooMuch,
}

/// Owner and number of the wallet to be paid.
type PaidWallet<'a> = (&'a str, u64);

impl EscrowTransition<'_> {
    /// Executes the transition. Money for a closed wallet goes to the account's user wallet.
    pub(crate) async fn execute(&self, store: &Store) -> Result<Transitioned, StoreError> {
        let target = self.credit.map(|(party, _)| (party.owner.as_str(), party.wallet));
        if let Some(outcome) = self.attempt(store, target).await? {
            return Ok(outcome);
        }
        let wallet = find_or_open_user_wallet(store, &self.scope()).await?;
        match self.attempt(store, Some((USER, wallet.number))).await? {
            Some(outcome) => Ok(outcome),
            None => unexpected_reply(&RESOLVE),
        }
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            account: &self.escrow.payer.account,
            mode: self.escrow.mode,
            actor: self.actor,
        }
    }

    /// Returns caller and intent if the intent is stored in the payer's account.
    fn local_intent(&self) -> Option<(&Requester<'_>, &NewIntent<'_>)> {
        self.request
            .filter(|(requester, _)| requester.scope.account == self.escrow.payer.account)
    }

    /// Executes the script once; `None` if the wallet is closed.
    async fn attempt(
        &self,
        store: &Store,
        target: Option<PaidWallet<'_>>,
    ) -> Result<Option<Transitioned>, StoreError> {
        let (keys, args) = (self.keys(target), self.args(target)?);
        let intent = self.request.map(|(requester, _)| requester.identity.id.as_str());
        let mut data = audit_details_of(self.escrow, intent);
        if let Some(data) = data.as_object_mut() {
            data.insert("becomes".to_owned(), self.becomes.as_str().into());
            data.extend(self.note.map(|note| ("why".to_owned(), note.into())));
        }
        let event = AuditEvent::new(self.audit, data).with_agent(self.escrow.payer.agent());
        let mut reply = self.scope().execute(store, &RESOLVE, event, keys, args).await?;
        let outcome = match reply.word()?.as_str() {
            "won" => Transitioned::Won,
            "known" => Transitioned::Known,
            "too_much" => Transitioned::TooMuch,
            "refused" if self.request.is_none() => {
                Transitioned::WrongState(reply.parsed(EscrowStatus::parse)?)
            }
            "refused" => Transitioned::Refused(refusal(&mut reply)?),
            "again" => Transitioned::DecidedBefore(refusal(&mut reply)?),
            "closed" => return Ok(None),
            _ => return reply.unexpected(),
        };
        Ok(Some(outcome))
    }

    fn keys(&self, target: Option<PaidWallet<'_>>) -> ResolveKeys {
        let escrow = self.escrow;
        let realm = escrow.payer.realm(escrow.mode);
        let (owner, _) = target.unwrap_or((&escrow.payer.owner, 0));
        let kind = self
            .credit
            .map_or(TransactionType::EscrowRelease, |(_, kind)| kind);
        let local_party = if escrow.crosses_accounts() {
            &escrow.payer
        } else {
            &escrow.payee
        };
        let local_intent = self.local_intent();
        // Declared keys that are not touched.
        let unused = || realm.record();
        ResolveKeys {
            transactions: realm.transactions(),
            receiver: realm.leg(owner, kind.as_str()),
            escrow: realm.escrow(escrow.number),
            siblings: realm.escrow_siblings(escrow.number),
            payer_open: realm.open_escrows(&escrow.payer.owner),
            payee_open: realm.open_escrows(&local_party.owner),
            transit: realm.bucket().transit(),
            intent: local_intent.map_or_else(unused, |(requester, _)| realm.intent(&requester.identity.id)),
            spare_intent: local_intent.map_or_else(unused, |(requester, _)| {
                realm.intent(&requester.identity.spare_id)
            }),
            intent_index: local_intent.map_or_else(
                || std::array::from_fn(|_| unused()),
                |(_, intent)| intent.lists().keys(&realm),
            ),
        }
    }

    fn args(&self, target: Option<PaidWallet<'_>>) -> Result<ResolveArgs, StoreError> {
        let escrow = self.escrow;
        let requester = self.request.map(|(requester, _)| requester);
        let local_intent = self.local_intent();
        let words = target.zip(self.credit).map(|((owner, _), (_, kind))| {
            let new = NewTransaction {
                id: self.transaction,
                kind,
                owner,
                intent: requester.map(|requester| requester.identity.id.as_str()),
                currency: &escrow.currency,
                tail: TransactionText {
                    counterparty: Some(format!("escrow:{}", escrow.number)),
                    memo: None,
                },
            };
            new.words()
        });
        let row = self.transit.map(serde_json::to_string).transpose();
        let row = row.map_err(|_| StoreError::unexpected("transit row"))?;
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Ok(ResolveArgs {
            required_status: self.required.as_str().to_owned(),
            new_status: self.becomes.as_str().to_owned(),
            receiver_number: target.map(|(_, number)| number.to_string()).unwrap_or_default(),
            amount: escrow.amount.get().to_string(),
            transaction_text: words.unwrap_or_default(),
            transit: text(self.transit.map(|transit| transit.id.as_str())),
            transit_row: row.unwrap_or_default(),
            number: escrow.number.to_string(),
            intent: text(requester.map(|requester| requester.identity.id.as_str())),
            spare_intent: text(requester.map(|requester| requester.identity.spare_id.as_str())),
            requester: text(requester.map(|requester| requester.scope.account)),
            kind: text(self.request.map(|(_, intent)| intent.kind.as_str())),
            dispute_reason: text(self.note),
            transaction: text(target.and(local_intent).map(|_| self.transaction)),
            heads: local_intent
                .map(|(_, intent)| intent.heads(false, REASONS))
                .unwrap_or_default(),
            fields: local_intent
                .map(|(_, intent)| intent.fields())
                .unwrap_or_default(),
        })
    }
}

/// Reads the reason of a refused transition.
fn refusal(reply: &mut ScriptReply) -> Result<EscrowBlocked, StoreError> {
    let status = reply.parsed(EscrowStatus::parse)?;
    Ok(EscrowBlocked {
        reason: reply.parsed(Reason::parse)?,
        intent: reply.word()?,
        status: Some(status),
    })
}
