//! The record of a request that is made at most once: of an intent, a transfer or a deposit. Read here, written by the
//! scripts of `spend`, `escrow`, `transfer` and `deposit` (decisions D24 to D26).
//!
//! The timeline is not stored: it follows from the record, and the hash of its last entry is stored beside it, so that
//! a record that was changed behind our back shows.

pub mod archive;
pub mod links;
mod list;
mod old;
mod outcome;
mod place;

pub use list::{Listed, Place};
pub use place::IntentPlace;

use self::outcome::{Outcome, decided, events, heads};
use crate::keys::AccountKeys;
use crate::{Store, StoreError};
use domain::intent::{Entry, Kind, Reason, State, timeline};
use domain::mode::Mode;
use domain::money::Nanos;
use std::collections::HashMap;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRecord {
    /// `int_…`
    pub id: String,
    /// What was asked for.
    pub kind: Kind,
    /// The hash of the canonical request.
    pub fingerprint: String,
    /// Current state.
    pub state: State,
    /// Where it stood when the request was answered first.
    pub first: State,
    /// Why it is blocked.
    pub reason: Option<Reason>,
    /// Amount.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: String,
    /// Who asked: the API key's id.
    pub actor: String,
    /// The agent, or `user`, whose wallet it is about.
    pub agent: String,
    /// Time of the request, in ms since 1970.
    pub at_ms: u64,
    /// The decision of an approval, if there was one.
    pub decision: Option<Decision>,
    /// What the caller said about it: the description of a spend, the reason of a dispute.
    pub note: Option<String>,
    /// What was asked for besides, as JSON.
    pub request: String,
    /// The policy that allowed a spend.
    pub policy: Option<String>,
    /// The transaction that moved its money, `txn_…`.
    pub transaction: Option<String>,
    /// The balance after it, where a wallet moved.
    pub balance: Option<Nanos>,
    /// The UTC day and month that a spend was charged to.
    pub charged: Option<(u64, u64)>,
    /// The escrow it is about.
    pub escrow: Option<u64>,
    /// The hash of the timeline's last entry.
    pub head: String,
    /// Its number in the account and mode; 0 when an earlier version made it.
    pub seq: u64,
    /// The number that it took when it was decided, if it waited for that.
    pub filed: Option<u64>,
}

/// What somebody decided about an intent that waited for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it was approved.
    pub granted: bool,
    /// Who: the API key's id.
    pub by: String,
    /// In ms since 1970.
    pub at_ms: u64,
}

/// What a record is made of before the store has said what becomes of it. The fields are those of [`IntentRecord`].
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is described in IntentRecord")]
pub struct NewIntent<'a> {
    pub kind: Kind,
    pub fingerprint: &'a str,
    pub amount: Nanos,
    pub currency: &'a str,
    pub actor: &'a str,
    pub agent: &'a str,
    pub at_ms: u64,
    pub note: Option<&'a str>,
    pub request: &'a str,
    pub transaction: Option<&'a str>,
    pub escrow: Option<u64>,
}

impl NewIntent<'_> {
    /// Where it will be listed.
    #[must_use]
    pub const fn place(&self) -> IntentPlace<'_> {
        IntentPlace {
            kind: self.kind.as_str(),
            agent: self.agent,
        }
    }

    /// The fields to be stored, with their values.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let mut fields = vec![
            ("kind", self.kind.as_str().to_owned()),
            ("fp", self.fingerprint.to_owned()),
            ("amount", self.amount.get().to_string()),
            ("currency", self.currency.to_owned()),
            ("actor", self.actor.to_owned()),
            ("agent", self.agent.to_owned()),
            ("at", self.at_ms.to_string()),
            ("request", self.request.to_owned()),
        ];
        let optional = [
            ("note", self.note.map(str::to_owned)),
            ("txn", self.transaction.map(str::to_owned)),
            ("escrow", self.escrow.map(|number| number.to_string())),
        ];
        fields.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let words = fields.into_iter();
        words.flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// The hash of the timeline's last entry for each thing that can become of it, as the scripts read it:
    /// `settled=<hash> daily_limit=<hash> …`.
    #[must_use]
    pub fn heads(&self, pending: bool, reasons: &[Reason]) -> String {
        let outcomes = Outcome::all(pending, reasons);
        heads(outcomes, |outcome| {
            events(self.kind, self.at_ms, self.amount, self.note, outcome)
        })
    }
}

/// What is kept under the id of an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The key was not used.
    Nothing,
    /// A request took the key whose outcome another account's bucket decides, and is not known here yet.
    Claimed {
        /// The hash of that request.
        fingerprint: String,
    },
    /// The record of the request.
    Record(Box<IntentRecord>),
}

/// Whether these are the fields of a mere claim: see [`Found::Claimed`].
#[must_use]
pub fn is_claim(fields: &HashMap<String, String>) -> bool {
    fields.get("state").is_some_and(|state| state == "claimed")
}

impl IntentRecord {
    /// Parses the fields of a record; `None` if they are malformed.
    #[must_use]
    pub fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let get = |name: &str| fields.get(name);
        let number = |name: &str| get(name).map(|text| text.parse::<u64>());
        let optional = |name: &str| number(name).transpose().ok();
        let nanos = |name: &str| Some(optional(name)?.map(Nanos::from_stored));
        let decision = match get("decided_by") {
            None => None,
            Some(by) => Some(Decision {
                granted: get("decision")? == "granted",
                by: by.clone(),
                at_ms: get("decided_at")?.parse().ok()?,
            }),
        };
        Some(Self {
            id: get("id")?.clone(),
            kind: Kind::parse(get("kind")?)?,
            fingerprint: get("fp")?.clone(),
            state: State::parse(get("state")?)?,
            first: State::parse(get("first")?)?,
            reason: match get("reason").map(String::as_str) {
                None | Some("") => None,
                Some(word) => Some(Reason::parse(word)?),
            },
            amount: nanos("amount")??,
            currency: get("currency")?.clone(),
            actor: get("actor")?.clone(),
            agent: get("agent")?.clone(),
            at_ms: number("at")?.ok()?,
            decision,
            note: get("note").cloned(),
            request: get("request")?.clone(),
            policy: get("policy").cloned(),
            transaction: get("txn").cloned(),
            balance: match get("balance").map(String::as_str) {
                None | Some("") => None,
                Some(_) => nanos("balance")?,
            },
            charged: optional("day")?.zip(optional("month")?),
            escrow: optional("escrow")?,
            head: get("head")?.clone(),
            seq: optional("seq")?.unwrap_or(0),
            filed: optional("filed")?,
        })
    }

    /// The record `id`, or `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed record.
    pub async fn read(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        id: &str,
    ) -> Result<Option<Self>, StoreError> {
        match Self::find(store, account, mode, id).await? {
            Found::Record(record) => Ok(Some(*record)),
            Found::Nothing | Found::Claimed { .. } => Ok(None),
        }
    }

    /// What is kept under the id `id`.
    ///
    /// # Errors
    /// [`StoreError`], also for a malformed record.
    pub async fn find(
        store: &Store,
        account: &AccountKeys,
        mode: Mode,
        id: &str,
    ) -> Result<Found, StoreError> {
        let key = account.intent(mode, id);
        let fields: HashMap<String, String> = store.command(redis::cmd("HGETALL").arg(key)).await?;
        if fields.is_empty() {
            return Ok(Found::Nothing);
        }
        if let (true, Some(fingerprint)) = (is_claim(&fields), fields.get("fp")) {
            return Ok(Found::Claimed {
                fingerprint: fingerprint.clone(),
            });
        }
        let record = Self::from_fields(&fields).map(Box::new).map(Found::Record);
        record.ok_or_else(|| StoreError::UnexpectedReply("intent record".to_owned()))
    }

    /// What happened, chained. A record that is no intent has none.
    #[must_use]
    pub fn timeline(&self) -> Vec<Entry> {
        let outcome = |state: State| match (state, self.reason) {
            (State::PendingApproval, _) => Outcome::Pending,
            (State::Blocked, Some(reason)) => Outcome::Blocked(reason),
            (State::Settled | State::Blocked, _) => Outcome::Settled,
        };
        let note = self.note.as_deref();
        let mut all = events(self.kind, self.at_ms, self.amount, note, outcome(self.first));
        if let Some(decision) = &self.decision {
            all.extend(decided(decision, self.amount, outcome(self.state)));
        }
        timeline(&all)
    }

    /// Whether the record is the one that was written: its timeline ends in the hash stored beside it.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.timeline().last().map_or("", Entry::hash) == self.head
    }

    /// The heads of a decision on this record, as the scripts read them.
    #[must_use]
    pub fn heads_of(&self, decision: &Decision, reasons: &[Reason]) -> String {
        let before = events(
            self.kind,
            self.at_ms,
            self.amount,
            self.note.as_deref(),
            Outcome::Pending,
        );
        heads(Outcome::all(false, reasons), |outcome| {
            let after = decided(decision, self.amount, outcome);
            before.iter().cloned().chain(after).collect()
        })
    }

    /// Time of the last change, in ms since 1970.
    #[must_use]
    pub fn updated_at_ms(&self) -> u64 {
        self.decision
            .as_ref()
            .map_or(self.at_ms, |decision| decision.at_ms)
    }

    /// Who allowed it; nobody when it is blocked or waits.
    #[must_use]
    pub fn allowed_by(&self) -> Option<&str> {
        let decided_by = self.decision.as_ref().map(|decision| decision.by.as_str());
        let allowed_by = decided_by.or(self.policy.as_deref()).unwrap_or(&self.actor);
        (self.state == State::Settled).then_some(allowed_by)
    }
}

#[cfg(test)]
mod tests;
