//! Creates an escrow: draws a number, then one script writes the escrow with its place. A crash in between leaves an
//! unused number.

use super::transit_to_payee::deliver_now;
use super::{CallOutcome, EscrowBlocked, Requester, audit_details, listing, store_blocked_intent};
use crate::escrow::Party;
use crate::intent::NewIntent;
use crate::keys::{Bucket, Series};
use crate::number;
use crate::script::change::{AuditEvent, BUDGET, CHANGE_ATTEMPTS, INTENT, INTENT_BUDGET, unexpected_reply};
use crate::script::reply::ScriptReply;
use crate::script::script;
use crate::transit::Transit;
use crate::{Store, StoreError};
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;
use domain::number::Number;

script! {
    /// Creates an escrow.
    pub static CREATE = "escrow_create",
    kind: Change,
    source: [BUDGET, INTENT, INTENT_BUDGET, include_str!("../create.lua")],
    when_full: Refuse,
    marks: [confirmed, with_budgets],
    /// `payee` is the payer's wallet if the payee is in another account.
    keys: struct CreateKeys: String {
        payer, payee, intent, intent_index[6], escrow, escrows, place, transit
    },
    /// `fields` are the `own_count` texts of the escrow, then those of the intent.
    args: struct CreateArgs<'a>: &'a str {
        payer_number, payee_number, number, intent, heads, place, transit, transit_row, own_count, fields[..]
    },
}

/// Arguments of a new escrow.
#[derive(Debug, Clone, Copy)]
pub struct NewEscrow<'a> {
    /// Payer: the caller's account.
    pub payer: &'a Party,
    /// Owner of the wallet that a release credits.
    pub payee: &'a Party,
    /// Debited when the escrow is funded, not before.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: &'a str,
    /// The parties' conditions, a JSON object.
    pub conditions: &'a str,
}

/// Values that the creation assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedEscrow {
    /// Unique in the store.
    pub number: u64,
    /// In ms since 1970.
    pub at_ms: u64,
}

impl NewEscrow<'_> {
    /// Creates the escrow, unless a wallet is closed.
    ///
    /// # Errors
    /// [`StoreError`]; if the script may have run, the escrow may exist.
    pub async fn create(
        &self,
        store: &Store,
        requester: &Requester<'_>,
    ) -> Result<CallOutcome<CreatedEscrow>, StoreError> {
        for _ in 0..CHANGE_ATTEMPTS {
            let number = number::draw(store, requester.scope.keys().bucket(), Series::Escrow).await?;
            let mode = requester.scope.mode;
            let row = self
                .crosses_accounts()
                .then(|| listing::row(number, mode, (self.payer, self.payee)));
            let mut reply = self.execute(store, requester, number, row.as_ref()).await?;
            return match reply.word()?.as_str() {
                "settled" => {
                    let at_ms = reply.number()?;
                    // The transit worker retries a failed delivery.
                    let _logged = deliver_now(store, row.as_ref()).await;
                    let number = number.get();
                    Ok(CallOutcome::Done(CreatedEscrow { number, at_ms }))
                }
                "known" => Ok(CallOutcome::Known),
                "closed" => self.refuse(store, requester).await,
                "taken" => continue,
                _ => reply.unexpected(),
            };
        }
        unexpected_reply(&CREATE)
    }

    /// Stores the intent of an escrow that was not created because a wallet is closed.
    /// Safe to retry.
    pub async fn refuse(
        &self,
        store: &Store,
        requester: &Requester<'_>,
    ) -> Result<CallOutcome<CreatedEscrow>, StoreError> {
        let refusal = EscrowBlocked {
            intent: requester.identity.id.clone(),
            reason: Reason::WalletClosed,
            status: None,
        };
        let intent = self.intent(requester, None);
        store_blocked_intent(store, requester, &intent, self.event(requester, None), refusal).await
    }

    async fn execute(
        &self,
        store: &Store,
        requester: &Requester<'_>,
        number: Number,
        row: Option<&Transit>,
    ) -> Result<ScriptReply, StoreError> {
        let realm = requester.scope.realm();
        let elsewhere = self.crosses_accounts();
        let payee_owner = if elsewhere {
            &self.payer.owner
        } else {
            &self.payee.owner
        };
        let intent = self.intent(requester, Some(number.get()));
        let keys = CreateKeys {
            payer: realm.wallet(&self.payer.owner),
            payee: realm.wallet(payee_owner),
            intent: realm.intent(&requester.identity.id),
            intent_index: intent.lists().keys(&realm),
            escrow: realm.escrow(number.get()),
            escrows: realm.escrows(),
            place: Bucket::escrow_place(number),
            transit: realm.bucket().transit(),
        };
        let (from, to) = (self.payer.wallet.to_string(), self.payee.wallet.to_string());
        let own = self.fields(&from, &to, &requester.identity.id);
        let own_count = own.len().to_string();
        let (heads, fields) = (intent.heads(false, &[]), intent.fields());
        let event = self.event(requester, Some(number.get()));
        let (place, number) = (realm.to_string(), number.to_string());
        let row_id = row.map_or("", |row| row.id.as_str());
        let row = row.map(serde_json::to_string).transpose();
        let row = row.map_err(|_| StoreError::unexpected("transit row"))?;
        let row = row.unwrap_or_default();
        let args = CreateArgs {
            payer_number: &from,
            payee_number: if elsewhere { "" } else { &to },
            number: &number,
            intent: &requester.identity.id,
            heads: &heads,
            place: &place,
            transit: row_id,
            transit_row: &row,
            own_count: &own_count,
            fields: own.iter().chain(&fields).map(String::as_str).collect(),
        };
        requester.scope.execute(store, &CREATE, event, keys, args).await
    }

    /// Returns the immutable fields of the record.
    fn fields(&self, from: &str, to: &str, intent: &str) -> Vec<String> {
        let amount = self.amount.get().to_string();
        let fields = [
            ("amount", amount.as_str()),
            ("currency", self.currency),
            ("from", from),
            ("from_owner", &self.payer.owner),
            ("to", to),
            ("to_account", &self.payee.account),
            ("to_owner", &self.payee.owner),
            ("conditions", self.conditions),
            ("intent", intent),
        ];
        fields
            .iter()
            .flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()])
            .collect()
    }

    fn intent<'a>(&'a self, requester: &'a Requester<'_>, escrow: Option<u64>) -> NewIntent<'a> {
        NewIntent {
            kind: IntentKind::EscrowCreate,
            fingerprint: &requester.identity.fingerprint,
            amount: self.amount,
            currency: self.currency,
            actor: requester.scope.actor,
            agent: &self.payer.owner,
            at_ms: requester.at_ms,
            note: None,
            request: "{}",
            transaction: None,
            escrow,
        }
    }

    fn event(&self, requester: &Requester<'_>, number: Option<u64>) -> AuditEvent<'_> {
        let amount = (self.amount, self.currency);
        let data = audit_details(
            number,
            (self.payer, self.payee),
            amount,
            Some(&requester.identity.id),
        );
        AuditEvent::new("escrow.create", data).with_agent(self.payer.agent())
    }

    fn crosses_accounts(&self) -> bool {
        self.payer.account != self.payee.account
    }
}
