//! Payout intents: requests and their outcomes (specification "Payout intent", decisions D23 to D26, D50).
//!
//! The whole timeline is hashed and exported. So the texts of this file are part of the data: a text in use never
//! changes, and different wording needs a new reason.

pub use crate::reason::Reason;

use super::chain::{GENESIS, canonical, entry_hash};
use super::money::Nanos;
use crate::schema as is;
use crate::timestamp::iso_from_ms;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

crate::words! {
    /// Kind of request that a record belongs to. The last two are also executed at most once, but are not intents.
    pub enum IntentKind {
        /// `POST /spend`
        Spend = "spend",
        /// `POST /escrow/create`
        EscrowCreate = "escrow_create",
        /// `POST /escrow/fund`
        EscrowFund = "escrow_fund",
        /// `POST /escrow/release`
        EscrowRelease = "escrow_release",
        /// `POST /escrow/dispute`
        EscrowDispute = "escrow_dispute",
        /// `POST /wallet/transfer` and `POST /wallets/transfer`
        Transfer = "transfer",
        /// `POST /wallet/deposits`
        Deposit = "deposit",
    }
}

crate::words! {
    /// State of an intent. The last two are final.
    pub enum IntentState {
        /// It waits for somebody to approve or deny it.
        PendingApproval = "pending_approval",
        /// It was carried out.
        Settled = "settled",
        /// It was refused; `blocked_reason` says why.
        Blocked = "blocked",
    }
}

crate::words! {
    /// Type of an event in the life of an intent. `replayed` of decision D24 never occurs: a replay changes nothing.
    pub enum EventType {
        /// A spend was requested.
        SpendRequested = "spend_requested",
        /// Its money moved.
        SpendApproved = "spend_approved",
        /// It was refused.
        SpendBlocked = "spend_blocked",
        /// It waits for approval.
        ApprovalRequested = "approval_requested",
        /// Somebody approved it.
        ApprovalGranted = "approval_granted",
        /// Somebody denied it.
        ApprovalDenied = "approval_denied",
        /// An escrow was made.
        EscrowCreated = "escrow_created",
        /// The payer's money went into it.
        EscrowFunded = "escrow_funded",
        /// The money went to the payee.
        EscrowReleased = "escrow_released",
        /// A party disputed it.
        EscrowDisputed = "escrow_disputed",
        /// A call on it was refused.
        EscrowBlocked = "escrow_blocked",
    }
}

crate::schema_types! {
    /// An event in the life of an intent.
    IntentEvent = is::words(EventType::ALL.iter().map(|event| event.as_str()));
}

/// An event of a timeline, not yet chained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEvent {
    /// Time in ms since 1970.
    pub at_ms: u64,
    /// Type of the event.
    pub kind: EventType,
    /// Reason; for a request, the caller's text.
    pub reasoning: String,
    /// The intent's amount.
    pub amount: Nanos,
}

/// A chained event in exported form: exactly the hashed fields, and the hash.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub struct TimelineEntry {
    #[schema(value_type = is::Time)]
    at: String,
    #[schema(value_type = IntentEvent)]
    event_type: &'static str,
    /// Action, for people.
    #[schema(example = "Spend requested")]
    action: &'static str,
    /// Reason, for people.
    #[schema(example = "12.5 USD for agent research-bot.")]
    reasoning: String,
    /// The double nearest to the amount, in the text of its canonical form.
    #[serde(serialize_with = "as_hashed")]
    #[schema(example = 12.5)]
    amount: f64,
    #[serde(rename = "amountNanos")]
    #[schema(value_type = is::NanoUsd)]
    amount_nanos: String,
    #[schema(value_type = is::PreviousHash)]
    previous_entry_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = is::Sha256)]
    entry_hash: Option<String>,
}

/// Writes a number in its canonical form: serde writes `10.0` and `1e-6` for `10` and `0.000001`.
fn as_hashed<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let text = canonical(number).and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| S::Error::custom("a number without canonical form"))?;
    let raw = RawValue::from_string(text).map_err(S::Error::custom)?;
    raw.serialize(serializer)
}

impl TimelineEntry {
    /// Returns the hash in hex; empty before the entry is chained.
    pub fn hash(&self) -> &str {
        self.entry_hash.as_deref().unwrap_or_default()
    }
}

/// Chains the events of a timeline, oldest first.
pub fn timeline(events: &[TimelineEvent]) -> Vec<TimelineEntry> {
    let mut previous = GENESIS.to_owned();
    let chained = events.iter().map(|event| {
        let mut entry = TimelineEntry {
            at: iso_from_ms(event.at_ms),
            event_type: event.kind.as_str(),
            action: event.kind.action(),
            reasoning: event.reasoning.clone(),
            amount: event.amount.as_double(),
            amount_nanos: event.amount.get().to_string(),
            previous_entry_hash: previous.clone(),
            entry_hash: None,
        };
        // Converted to a value, since the canonical form does not accept numbers as text.
        let value = serde_json::to_value(&entry).ok();
        let hash = value
            .and_then(|value| entry_hash(&previous, &value))
            .unwrap_or_default();
        previous.clone_from(&hash);
        entry.entry_hash = Some(hash);
        entry
    });
    chained.collect()
}

impl EventType {
    /// Returns the action, for people.
    const fn action(self) -> &'static str {
        match self {
            Self::SpendRequested => "Spend requested",
            Self::SpendApproved => "Spend approved and settled",
            Self::SpendBlocked => "Spend blocked",
            Self::ApprovalRequested => "Approval requested",
            Self::ApprovalGranted => "Approval granted",
            Self::ApprovalDenied => "Approval denied",
            Self::EscrowCreated => "Escrow created",
            Self::EscrowFunded => "Escrow funded",
            Self::EscrowReleased => "Escrow released",
            Self::EscrowDisputed => "Escrow disputed",
            Self::EscrowBlocked => "Escrow call blocked",
        }
    }
}

#[cfg(test)]
mod tests;
