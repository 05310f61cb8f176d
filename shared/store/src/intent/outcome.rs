//! Possible outcomes of a request, and the resulting timelines.

use super::ApproverDecision;
use domain::intent::{EventType, IntentKind, IntentState, Reason, TimelineEntry, TimelineEvent, timeline};
use domain::money::Nanos;

/// Possible outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntentOutcome {
    Settled,
    Pending,
    Blocked(Reason),
}

impl IntentOutcome {
    pub(super) fn all(pending: bool, reasons: &[Reason]) -> impl Iterator<Item = Self> {
        let waits = pending.then_some(Self::Pending);
        let blocked = reasons.iter().copied().map(Self::Blocked);
        std::iter::once(Self::Settled).chain(waits).chain(blocked)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Settled => IntentState::Settled.as_str(),
            Self::Pending => IntentState::PendingApproval.as_str(),
            Self::Blocked(reason) => reason.as_str(),
        }
    }
}

/// Returns the hash of the last entry for each outcome, as scripts parse it.
pub(super) fn heads(
    outcomes: impl Iterator<Item = IntentOutcome>,
    events: impl Fn(IntentOutcome) -> Vec<TimelineEvent>,
) -> String {
    let word = |outcome: IntentOutcome| {
        let chained = timeline(&events(outcome));
        let head = chained.last().map(TimelineEntry::hash).unwrap_or_default();
        format!("{}={head}", outcome.word())
    };
    outcomes.map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the events of a new request. A transfer or deposit is no intent: its record has no timeline.
pub(super) fn events(
    kind: IntentKind,
    at_ms: u64,
    amount: Nanos,
    note: Option<&str>,
    outcome: IntentOutcome,
) -> Vec<TimelineEvent> {
    let event = |kind, reasoning: &str| TimelineEvent {
        at_ms,
        kind,
        reasoning: reasoning.to_owned(),
        amount,
    };
    let note = note.unwrap_or_default();
    let done = match kind {
        IntentKind::Spend => {
            let last = match outcome {
                IntentOutcome::Settled => event(EventType::SpendApproved, PASSED),
                IntentOutcome::Pending => event(EventType::ApprovalRequested, ABOVE_THRESHOLD),
                IntentOutcome::Blocked(reason) => event(EventType::SpendBlocked, reason.sentence()),
            };
            return vec![event(EventType::SpendRequested, note), last];
        }
        IntentKind::EscrowCreate => EventType::EscrowCreated,
        IntentKind::EscrowFund => EventType::EscrowFunded,
        IntentKind::EscrowRelease => EventType::EscrowReleased,
        IntentKind::EscrowDispute => EventType::EscrowDisputed,
        IntentKind::Transfer | IntentKind::Deposit => return Vec::new(),
    };
    vec![match outcome {
        IntentOutcome::Blocked(reason) => event(EventType::EscrowBlocked, reason.sentence()),
        IntentOutcome::Settled | IntentOutcome::Pending => event(done, note),
    }]
}

/// Sentence for an approved spend. Hashed: see `domain::intent`.
const PASSED: &str = "Every check passed.";
/// Sentence for a waiting spend. Hashed: see `domain::intent`.
const ABOVE_THRESHOLD: &str = "The amount is above the policy's approval threshold.";

/// Returns the events that a decision adds.
pub(super) fn decided(
    decision: &ApproverDecision,
    amount: Nanos,
    outcome: IntentOutcome,
) -> Vec<TimelineEvent> {
    let event = |kind, reasoning: &str| TimelineEvent {
        at_ms: decision.at_ms,
        kind,
        reasoning: reasoning.to_owned(),
        amount,
    };
    let by = format!("By {}.", decision.by);
    if !decision.granted {
        return vec![event(EventType::ApprovalDenied, &by)];
    }
    let last = match outcome {
        IntentOutcome::Blocked(reason) => event(EventType::SpendBlocked, reason.sentence()),
        IntentOutcome::Settled | IntentOutcome::Pending => event(EventType::SpendApproved, PASSED),
    };
    vec![event(EventType::ApprovalGranted, &by), last]
}
