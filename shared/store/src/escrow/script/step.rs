//! One execution of `escrow/resolve.lua` in the payer's account.

use super::{Blocked, RESOLVE, Requester, blocked, facts_of};
use crate::escrow::{Escrow, EscrowStatus, Party};
use crate::intent::NewIntent;
use crate::keys::USER;
use crate::script::change::{Event, Scope, unexpected_reply};
use crate::transaction::{NewTransaction, Tail, TransactionType};
use crate::transit::Transit;
use crate::wallet::script::user_wallet;
use crate::{Store, StoreError};
use domain::intent::Reason;

/// Every reason that the script can return.
const REASONS: &[Reason] = &[
    Reason::EscrowNotFunded,
    Reason::EscrowReleased,
    Reason::EscrowDisputed,
    Reason::EscrowRefunded,
];

/// A transition of an escrow.
pub(crate) struct Step<'a> {
    pub(crate) escrow: &'a Escrow,
    /// Actor and event in the payer's audit log.
    pub(crate) actor: &'a str,
    pub(crate) audit: &'static str,
    pub(crate) needs: EscrowStatus,
    pub(crate) becomes: EscrowStatus,
    /// The party in the payer's account that is paid, if one is.
    pub(crate) credit: Option<(&'a Party, TransactionType)>,
    /// Transaction id, in whichever account.
    pub(crate) transaction: &'a str,
    /// Reason of a dispute.
    pub(crate) note: Option<&'a str>,
    /// What the payee's account receives.
    pub(crate) transit: Option<&'a Transit>,
    /// Caller and intent; `None` if the operator ends a dispute.
    pub(crate) asked: Option<(&'a Requester<'a>, &'a NewIntent<'a>)>,
}

/// Outcome of the script.
pub(crate) enum Stepped {
    Won,
    Known,
    /// It won before, with its intent in another account; the refusal if that is archived.
    Again(Blocked),
    Refused(Blocked),
    /// The escrow is not disputed.
    WrongState(EscrowStatus),
    TooMuch,
}

/// Owner and number of the wallet that is paid.
type Target<'a> = (&'a str, u64);

impl Step<'_> {
    /// Executes the transition. Money for a closed wallet goes to the account's user wallet.
    pub(crate) async fn take(&self, store: &Store) -> Result<Stepped, StoreError> {
        let target = self.credit.map(|(party, _)| (party.owner.as_str(), party.wallet));
        if let Some(stepped) = self.attempt(store, target).await? {
            return Ok(stepped);
        }
        let wallet = user_wallet(store, &self.scope()).await?;
        match self.attempt(store, Some((USER, wallet.number))).await? {
            Some(stepped) => Ok(stepped),
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
    fn keeps_intent(&self) -> Option<(&Requester<'_>, &NewIntent<'_>)> {
        self.asked
            .filter(|(asked, _)| asked.scope.account == self.escrow.payer.account)
    }

    /// `None` if the wallet is closed.
    async fn attempt(
        &self,
        store: &Store,
        target: Option<Target<'_>>,
    ) -> Result<Option<Stepped>, StoreError> {
        let keys = self.keys(target);
        let args = self.args(target)?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let intent = self.asked.map(|(asked, _)| asked.once.id.as_str());
        let mut data = facts_of(self.escrow, intent);
        if let Some(data) = data.as_object_mut() {
            data.insert("becomes".to_owned(), self.becomes.as_str().into());
            data.extend(self.note.map(|note| ("why".to_owned(), note.into())));
        }
        let event = Event {
            kind: self.audit,
            agent: self.escrow.payer.agent(),
            data,
        };
        let reply = self.scope().execute(store, &RESOLVE, event, &keys, &args).await?;
        let stepped = match reply.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["won"] => Stepped::Won,
            ["known"] => Stepped::Known,
            ["too_much"] => Stepped::TooMuch,
            [word @ ("refused" | "again"), status, reason, intent] => {
                let refusal = blocked(&RESOLVE, status, reason, intent)?;
                match *word {
                    "again" => Stepped::Again(refusal),
                    _ => Stepped::Refused(refusal),
                }
            }
            ["refused", status] => match EscrowStatus::parse(status) {
                Some(status) => Stepped::WrongState(status),
                None => return unexpected_reply(&RESOLVE),
            },
            ["closed"] => return Ok(None),
            _ => return unexpected_reply(&RESOLVE),
        };
        Ok(Some(stepped))
    }

    fn keys(&self, target: Option<Target<'_>>) -> Vec<String> {
        let (escrow, mode) = (self.escrow, self.escrow.mode);
        let account = escrow.payer.keys();
        let (owner, _) = target.unwrap_or((&escrow.payer.owner, 0));
        let kind = self
            .credit
            .map_or(TransactionType::EscrowRelease, |(_, kind)| kind);
        let here = if escrow.crosses_accounts() {
            &escrow.payer
        } else {
            &escrow.payee
        };
        let mut keys = vec![account.transactions(mode)];
        keys.extend(account.leg(mode, owner, kind.as_str()));
        keys.extend([
            account.escrow(mode, escrow.number),
            account.escrow_siblings(mode, escrow.number),
            account.open_escrows(mode, &escrow.payer.owner),
            account.open_escrows(mode, &here.owner),
            account.bucket().transit(),
        ]);
        match self.keeps_intent() {
            // Declared keys that are not touched.
            None => keys.extend(std::iter::repeat_n(account.record(), 8)),
            Some((asked, intent)) => {
                keys.extend([&asked.once.id, &asked.once.spare_id].map(|id| account.intent(mode, id)));
                keys.extend(intent.place().index(&account, mode));
            }
        }
        keys
    }

    fn args(&self, target: Option<Target<'_>>) -> Result<Vec<String>, StoreError> {
        let escrow = self.escrow;
        let asked = self.asked.map(|(asked, _)| asked);
        let kept = self.keeps_intent();
        let words = target.zip(self.credit).map(|((owner, _), (_, kind))| {
            let new = NewTransaction {
                id: self.transaction,
                kind,
                owner,
                intent: asked.map(|asked| asked.once.id.as_str()),
                currency: &escrow.currency,
                tail: Tail {
                    counterparty: Some(format!("escrow:{}", escrow.number)),
                    memo: None,
                },
            };
            new.words()
        });
        let row = self.transit.map(serde_json::to_string).transpose();
        let row = row.map_err(|_| StoreError::UnexpectedReply("transit row".to_owned()))?;
        let own = target.and(kept).map(|_| self.transaction.to_owned());
        let optional = [
            target.map(|(_, number)| number.to_string()),
            Some(escrow.amount.get().to_string()),
            words,
            self.transit.map(|transit| transit.id.clone()),
            row,
            Some(escrow.number.to_string()),
            asked.map(|asked| asked.once.id.clone()),
            asked.map(|asked| asked.once.spare_id.clone()),
            asked.map(|asked| asked.scope.account.to_owned()),
            self.asked.map(|(_, intent)| intent.kind.as_str().to_owned()),
            self.note.map(str::to_owned),
            own,
            kept.map(|(_, intent)| intent.heads(false, REASONS)),
        ];
        let mut args = vec![self.needs.as_str().to_owned(), self.becomes.as_str().to_owned()];
        args.extend(optional.map(Option::unwrap_or_default));
        args.extend(kept.into_iter().flat_map(|(_, intent)| intent.fields()));
        Ok(args)
    }
}
