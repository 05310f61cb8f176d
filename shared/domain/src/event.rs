//! Webhook events (specification "Events", decisions D41, D45). An event is a pure function of its audit entry, so none
//! can be missed or invented. docs/reference/webhooks.md describes the fields.

mod payload;
pub mod violations;

use super::decision;
use super::denial::{Denial, DenialStage};
use super::entry::Entry;
use super::intent::Reason;
use crate::timestamp::iso_from_ms;
use payload::Payload;
use serde_json::{Map, Value};

macro_rules! events {
    ($($(#[$doc:meta])+ $name:ident = $word:literal;)+) => {
        /// Type of a webhook event, to which a webhook subscribes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventName {
            $($(#[$doc])+ $name,)+
            /// The owner of a webhook tries it out. It goes to that webhook alone, and nobody subscribes to it.
            WebhookTest,
        }

        impl EventName {
            /// All events that a webhook can subscribe to: the eight of the specification.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the name used in payloads and subscriptions.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                    Self::WebhookTest => "webhook.test",
                }
            }

            /// Parses the name of an event that a webhook can subscribe to.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|event| event.as_str() == name)
            }
        }
    };
}

events! {
    /// An agent run finished successfully.
    AgentRunCompleted = "agent.run.completed";
    /// An agent run ended as failed.
    AgentRunFailed = "agent.run.failed";
    /// An agent was frozen.
    AgentFrozen = "agent.frozen";
    /// A spend waits for approval.
    AgentApprovalRequired = "agent.approval_required";
    /// A deposit was confirmed.
    WalletDeposit = "wallet.deposit";
    /// A debit took a wallet below its threshold.
    WalletLowBalance = "wallet.low_balance";
    /// A call or a spend was denied by Cap, a policy or the plan.
    PolicyViolation = "policy.violation";
    /// A spend was blocked since its text tries to instruct the agent.
    AuditInjectionDetected = "audit.injection_detected";
}

/// Maximum number of events that one entry causes.
pub const EVENTS_MAX: usize = 2;

/// A webhook event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Webhooks that subscribe to it receive the event.
    pub name: EventName,
    /// The affected agent.
    pub agent: Option<String>,
    /// The fields, including `agentId` and `auditSeq`.
    pub data: Map<String, Value>,
}

/// Type of the entry that causes [`EventName::WebhookTest`]; its data names the webhook.
pub const TESTED: &str = "webhook.tested";

/// Returns the events that `entry` causes, at most [`EVENTS_MAX`].
pub fn from_entry(entry: &Entry) -> Vec<Event> {
    let events = [happened(entry), low_balance(entry)];
    events.into_iter().flatten().collect()
}

/// Returns the event for the entry's type, without a low-balance event.
fn happened(entry: &Entry) -> Option<Event> {
    let payload = Payload::new(entry);
    match entry.kind.as_str() {
        "agent.run.completed" => Some(run_ended(payload, EventName::AgentRunCompleted)),
        "agent.run.failed" => Some(run_ended(payload, EventName::AgentRunFailed)),
        "agent.frozen" => {
            let payload = payload.value("by", entry.actor.as_str()).copy("authority");
            let payload = payload.value("at", iso_from_ms(entry.at_ms));
            Some(payload.event(EventName::AgentFrozen))
        }
        "spend.requested" | "spend.approved" => spend(entry, payload),
        decision::DENIED => denied_call(entry, payload),
        "deposit.requested" => {
            let confirmed = entry.says("outcome", "settled") && entry.says("state", "confirmed");
            confirmed.then(|| deposit(payload))
        }
        "deposit.confirmed" => Some(deposit(payload)),
        TESTED => Some(payload.copy("webhookId").event(EventName::WebhookTest)),
        _ => None,
    }
}

fn run_ended(payload: Payload<'_>, name: EventName) -> Event {
    let payload = payload
        .copy("runId")
        .copy("status")
        .count("calls")
        .count("denied");
    payload.amount("spentUsd", "spentNanos").event(name)
}

fn deposit(payload: Payload<'_>) -> Event {
    let payload = ["walletId", "owner", "transactionId", "reference", "currency"]
        .into_iter()
        .fold(payload, Payload::copy);
    let payload = payload.amount("amount", "amountNanos");
    let payload = payload.renamed("balance", "balanceUsd").copy("balanceNanos");
    payload.event(EventName::WalletDeposit)
}

/// Returns the event of a spend that waits, or was blocked when it was requested or approved.
fn spend(entry: &Entry, payload: Payload<'_>) -> Option<Event> {
    let payload = payload.copy("intentId").amount("amount", "amountNanos");
    let payload = payload.copy("currency").copy("runId");
    if entry.says("outcome", "pending_approval") {
        let payload = payload.copy("recipient").copy("description");
        return Some(payload.event(EventName::AgentApprovalRequired));
    }
    if !entry.says("outcome", "blocked") {
        return None;
    }
    let reason = Reason::parse(entry.data.get("reason")?.as_str()?)?;
    let payload = payload.value("reason", reason.as_str());
    let payload = payload.value("message", reason.sentence());
    if reason == Reason::InjectionDetected {
        let of_text = |name: &str| entry.data.get("injection").and_then(|found| found.get(name));
        let payload = payload.value("field", of_text("field").cloned());
        let payload = payload.value("pattern", of_text("pattern").cloned());
        return Some(payload.event(EventName::AuditInjectionDetected));
    }
    reason.is_violation().then(|| {
        let payload = payload.value("source", "spend").copy("recipient");
        let payload = match reason {
            Reason::PlanAgentLimit => payload
                .count_as("limit", "limitAgents")
                .count_as("spent", "spentAgents"),
            _ => payload
                .renamed("limit", "limitUsd")
                .copy("limitNanos")
                .renamed("spent", "spentUsd")
                .copy("spentNanos"),
        };
        payload.event(EventName::PolicyViolation)
    })
}

/// Returns the event of a call denied by Cap or by the plan's limits that follow it. A refusal before Cap is not a
/// policy violation.
fn denied_call(entry: &Entry, payload: Payload<'_>) -> Option<Event> {
    let denial = Denial::from_reason(entry.data.get("reason")?.as_str()?)?;
    if denial.stage() == DenialStage::BeforeCap {
        return None;
    }
    let payload = payload.value("source", "call");
    let payload = payload.value("decisionId", entry.id.as_str());
    let payload = payload.value("reason", denial.reason());
    let payload = payload.value("message", denial.message());
    let payload = payload.copy("keyId").copy("model").copy("runId");
    let payload = payload.amount("estimateUsd", "estimateNanos");
    let decided = entry.data.get("checks").and_then(Value::as_array);
    let decided = decided.and_then(|checks| {
        let same = |check: &&Value| check.get("check").and_then(Value::as_str) == Some(denial.reason());
        checks.iter().find(same)
    });
    let names = ["limit", "limitNanos", "spent", "spentNanos", "held", "heldNanos"];
    let payload = names.into_iter().fold(payload, |payload, name| {
        payload.value(name, decided.and_then(|check| check.get(name)).cloned())
    });
    Some(payload.event(EventName::PolicyViolation))
}

/// Returns the event of a debit that crossed the wallet's threshold, whatever its purpose.
fn low_balance(entry: &Entry) -> Option<Event> {
    let owner = entry.data.get("lowOwner")?.as_str()?;
    let payload = Payload::new(entry).value("owner", owner);
    let payload = payload.renamed("balance", "balanceUsd").copy("balanceNanos");
    let payload = payload
        .renamed("threshold", "lowUsd")
        .renamed("thresholdNanos", "lowNanos");
    let payload = payload.value("cause", entry.kind.as_str());
    Some(payload.event(EventName::WalletLowBalance))
}

#[cfg(test)]
mod tests;
