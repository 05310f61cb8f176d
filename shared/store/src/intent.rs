//! The record of a request that is executed at most once: an intent, a transfer or a deposit. Parsed here, written by
//! the scripts of `spend`, `escrow`, `transfer` and `deposit` (decisions D24 to D26).
//!
//! The timeline is not stored, since it can be computed from the record. The hash of its last entry is stored with the
//! record, so that a manual change is detected.

pub mod archive;
pub mod links;
mod list;
mod lists;
mod old;
mod outcome;
mod texts;

pub use list::IntentPage;
pub use lists::IntentLists;
pub use old::SEGMENTS_AT_ONCE;
pub use texts::IntentTexts;

use self::outcome::{IntentOutcome, decided, events, heads};
use crate::keys::Realm;
use crate::record_fields::RecordFields;
use crate::{Store, StoreError};
use domain::intent::{IntentKind, IntentState, Reason, TimelineEntry, timeline};
use domain::money::Nanos;
use std::collections::HashMap;

/// The record of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentRecord {
    /// `int_…`
    pub id: String,
    /// Kind of request.
    pub kind: IntentKind,
    /// Hash of the canonical request.
    pub fingerprint: String,
    /// Current state.
    pub state: IntentState,
    /// State in the first response.
    pub first: IntentState,
    /// Reason, if it is blocked.
    pub reason: Option<Reason>,
    /// Requested amount, also of a blocked intent.
    pub amount: Nanos,
    /// `USD` or `USDC`.
    pub currency: String,
    /// API key id of the caller.
    pub actor: String,
    /// Owner of the wallet: agent id, or `user`.
    pub agent: String,
    /// Time of the request, in ms since 1970.
    pub at_ms: u64,
    /// Decision of an approver, if there was one.
    pub decision: Option<ApproverDecision>,
    /// The caller's text: description of a spend, reason of a dispute.
    pub note: Option<String>,
    /// The request's other fields, as JSON.
    pub request: String,
    /// Run of a spend; `None` without one, and for other kinds.
    pub run: Option<String>,
    /// Id of the policy that allowed a spend.
    pub policy: Option<String>,
    /// Transaction id, `txn_…`, if money moved.
    pub transaction: Option<String>,
    /// Balance afterwards, if a wallet changed.
    pub balance: Option<Nanos>,
    /// UTC day and month that a spend was charged to.
    pub charged: Option<(u64, u64)>,
    /// Escrow number.
    pub escrow: Option<u64>,
    /// Hash of the timeline's last entry.
    pub head: String,
    /// Number in the account and mode; 0 for an intent of no list, such as a confirmation.
    pub seq: u64,
    /// Number counted from its decision, if it waited for one.
    pub filed: Option<u64>,
}

/// An approver's decision on a waiting intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproverDecision {
    /// True for an approval, false for a denial.
    pub granted: bool,
    /// API key id of the approver.
    pub by: String,
    /// In ms since 1970.
    pub at_ms: u64,
}

/// A record whose outcome the store has not decided yet. Fields as in [`IntentRecord`].
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each field is described in IntentRecord")]
pub struct NewIntent<'a> {
    pub kind: IntentKind,
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
    /// Returns the lists that will name it.
    pub const fn lists(&self) -> IntentLists<'_> {
        IntentLists {
            kind: self.kind.as_str(),
            agent: self.agent,
        }
    }

    /// Returns the fields to store, with their values.
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

    /// Returns the hash of the timeline's last entry for each possible outcome, as scripts parse it: `settled=<hash>
    /// daily_limit=<hash> …`.
    pub fn heads(&self, pending: bool, reasons: &[Reason]) -> String {
        let outcomes = IntentOutcome::all(pending, reasons);
        heads(outcomes, |outcome| {
            events(self.kind, self.at_ms, self.amount, self.note, outcome)
        })
    }
}

/// Record stored under an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestLookup {
    /// The key is unused.
    Nothing,
    /// Claimed by a request that another account's bucket decides; its outcome is not known here yet.
    Claimed {
        /// Hash of that request's content.
        fingerprint: String,
    },
    /// The record of the request.
    Record(Box<IntentRecord>),
}

/// Returns whether these are the fields of a claim: see [`RequestLookup::Claimed`].
pub fn is_claim(fields: &HashMap<String, String>) -> bool {
    fields.get("state").is_some_and(|state| state == "claimed")
}

impl IntentRecord {
    /// Parses the fields of a record; `None` if they are malformed.
    pub fn from_fields(fields: &HashMap<String, String>) -> Option<Self> {
        let fields = RecordFields(fields);
        let decision = match fields.get("decided_by") {
            None => None,
            Some(by) => Some(ApproverDecision {
                granted: fields.get("decision")? == "granted",
                by: by.to_owned(),
                at_ms: fields.number("decided_at")?,
            }),
        };
        Some(Self {
            id: fields.text("id")?,
            kind: IntentKind::parse(fields.get("kind")?)?,
            fingerprint: fields.text("fp")?,
            state: IntentState::parse(fields.get("state")?)?,
            first: IntentState::parse(fields.get("first")?)?,
            reason: match fields.get("reason") {
                None | Some("") => None,
                Some(word) => Some(Reason::parse(word)?),
            },
            amount: fields.nanos("amount")?,
            currency: fields.text("currency")?,
            actor: fields.text("actor")?,
            agent: fields.text("agent")?,
            at_ms: fields.number("at")?,
            decision,
            note: fields.text("note"),
            request: fields.text("request")?,
            run: fields.text("run").filter(|run| !run.is_empty()),
            policy: fields.text("policy"),
            transaction: fields.text("txn"),
            balance: match fields.get("balance") {
                None | Some("") => None,
                Some(_) => Some(fields.nanos("balance")?),
            },
            charged: fields.optional("day")?.zip(fields.optional("month")?),
            escrow: fields.optional("escrow")?,
            head: fields.text("head")?,
            seq: fields.optional("seq")?.unwrap_or(0),
            filed: fields.optional("filed")?,
        })
    }

    /// Reads the record `id`; `None` if it does not exist.
    pub async fn read(store: &Store, realm: &Realm, id: &str) -> Result<Option<Self>, StoreError> {
        match Self::find(store, realm, id).await? {
            RequestLookup::Record(record) => Ok(Some(*record)),
            RequestLookup::Nothing | RequestLookup::Claimed { .. } => Ok(None),
        }
    }

    /// Reads the record with the id `id`.
    pub async fn find(store: &Store, realm: &Realm, id: &str) -> Result<RequestLookup, StoreError> {
        let key = realm.intent(id);
        Self::found(&store.command(redis::cmd("HGETALL").arg(key)).await?)
    }

    /// Reads the record of each of `ids` and, in the same round trip, up to [`SEGMENTS_AT_ONCE`] descriptors of
    /// segments of archived intents after the first `skip`. So an id that is archived in between is not missed.
    pub async fn find_all(
        store: &Store,
        realm: &Realm,
        (ids, skip): (&[String], usize),
    ) -> Result<(Vec<RequestLookup>, Vec<String>), StoreError> {
        let mut query = redis::pipe();
        for id in ids {
            query.cmd("HGETALL").arg(realm.intent(id));
        }
        query
            .cmd("LRANGE")
            .arg(realm.intent_segments())
            .arg(skip)
            .arg(skip + SEGMENTS_AT_ONCE - 1);
        let mut replies: Vec<redis::Value> = store.pipeline(&query).await?;
        let segments = replies.pop().unwrap_or(redis::Value::Nil);
        let segments = redis::from_redis_value(segments).map_err(StoreError::unexpected)?;
        let found = replies.into_iter().map(|reply| {
            let fields = redis::from_redis_value(reply).map_err(StoreError::unexpected)?;
            Self::found(&fields)
        });
        Ok((found.collect::<Result<_, _>>()?, segments))
    }

    fn found(fields: &HashMap<String, String>) -> Result<RequestLookup, StoreError> {
        if fields.is_empty() {
            return Ok(RequestLookup::Nothing);
        }
        if let (true, Some(fingerprint)) = (is_claim(fields), fields.get("fp")) {
            return Ok(RequestLookup::Claimed {
                fingerprint: fingerprint.clone(),
            });
        }
        let record = Self::from_fields(fields).map(Box::new).map(RequestLookup::Record);
        record.ok_or_else(|| StoreError::unexpected("intent record"))
    }

    /// Computes the chained timeline; empty for a record that is no intent.
    pub fn timeline(&self) -> Vec<TimelineEntry> {
        let outcome = |state: IntentState| match (state, self.reason) {
            (IntentState::PendingApproval, _) => IntentOutcome::Pending,
            (IntentState::Blocked, Some(reason)) => IntentOutcome::Blocked(reason),
            (IntentState::Settled | IntentState::Blocked, _) => IntentOutcome::Settled,
        };
        let note = self.note.as_deref();
        let mut all = events(self.kind, self.at_ms, self.amount, note, outcome(self.first));
        if let Some(decision) = &self.decision {
            all.extend(decided(decision, self.amount, outcome(self.state)));
        }
        timeline(&all)
    }

    /// Returns whether the record is unchanged: its timeline ends in the stored hash.
    pub fn is_intact(&self) -> bool {
        self.timeline().last().map_or("", TimelineEntry::hash) == self.head
    }

    /// Returns the hashes after a decision on this record, as scripts parse them.
    pub(crate) fn heads_of(&self, decision: &ApproverDecision, reasons: &[Reason]) -> String {
        let before = events(
            self.kind,
            self.at_ms,
            self.amount,
            self.note.as_deref(),
            IntentOutcome::Pending,
        );
        heads(IntentOutcome::all(false, reasons), |outcome| {
            let after = decided(decision, self.amount, outcome);
            before.iter().cloned().chain(after).collect()
        })
    }

    /// Returns the time of the last change, in ms since 1970.
    pub fn updated_at_ms(&self) -> u64 {
        self.decision
            .as_ref()
            .map_or(self.at_ms, |decision| decision.at_ms)
    }

    /// Returns who approved it; `None` if it is blocked or waits.
    pub fn allowed_by(&self) -> Option<&str> {
        let decided_by = self.decision.as_ref().map(|decision| decision.by.as_str());
        let allowed_by = decided_by.or(self.policy.as_deref()).unwrap_or(&self.actor);
        (self.state == IntentState::Settled).then_some(allowed_by)
    }
}

#[cfg(test)]
mod tests;
