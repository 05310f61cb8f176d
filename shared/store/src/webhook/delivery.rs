//! Stored text of deliveries of webhooks. The payload is not stored, since it follows from the audit entry. Scripts
//! move a delivery between its states; see [`super::script`].

mod list;

pub(crate) use list::StoredDelivery;
pub use list::{Deliveries, DeliveryFilter, ListedDelivery};

use crate::keys::Realm;
use domain::event::EventName;
use domain::event::violations::Coalesced;
use domain::id::IdKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Maximum number of attempts that are kept from before a redelivery was requested.
pub const EARLIER_MAX: usize = 16;

domain::words! {
    /// State of a delivery.
    pub enum DeliveryState {
        /// It waits for its next attempt.
        Pending = "pending",
        /// The receiver has accepted it.
        Delivered = "delivered",
        /// Its last attempt failed.
        Failed = "failed",
        /// Never attempted, because too many others were waiting.
        Refused = "refused",
    }
}

/// One request to the receiver, with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// In ms since 1970.
    #[serde(rename = "t")]
    pub at_ms: u64,
    /// Duration in ms.
    #[serde(rename = "d")]
    pub took_ms: u64,
    /// The status that the receiver answered with.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Reason of the failure as a short text; `None` if the receiver accepted the delivery.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The start of the answer as one printable line, at most 256 bytes. Kept only for the last attempt.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// True if a redelivery was requested after this attempt: the attempts are then counted again from the next one on.
    #[serde(rename = "r", default, skip_serializing_if = "std::ops::Not::not")]
    pub redelivery_requested: bool,
}

impl Attempt {
    /// Returns whether the receiver accepted the delivery with a 2xx status.
    pub const fn accepted(&self) -> bool {
        self.error.is_none()
    }
}

/// An event for a webhook, derived from an audit entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryEvent {
    /// Number of the entry; for several violations, of the last one.
    pub seq: u64,
    /// Type of the event.
    pub event: EventName,
    /// The violations that it reports together, if it is coalesced (decision D72).
    pub coalesced: Option<Coalesced>,
}

/// A delivery: `<created ms> <state> <seq> <event>[*<coalesced>] <attempts as JSON>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Creation time, in ms since 1970.
    pub created_at_ms: u64,
    /// Current state.
    pub state: DeliveryState,
    /// Number of the audit entry that the event is derived from.
    pub seq: u64,
    /// Type of the event.
    pub event: EventName,
    /// The violations that it reports together, if it is coalesced.
    pub coalesced: Option<Coalesced>,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// Returns the id of the delivery of an event to a webhook: the same for every attempt and on every server.
pub fn delivery_id(realm: &Realm, webhook: &str, seq: u64, event: EventName) -> String {
    let (account, mode) = (realm.account(), realm.mode());
    let whole = format!("{account}\n{mode}\n{webhook}\n{seq}\n{}", event.as_str());
    let mut bits = [0; 16];
    bits.copy_from_slice(&Sha256::digest(whole.as_bytes())[..16]);
    IdKind::Delivery.derived(u128::from_be_bytes(bits))
}

/// Separates the name of an event from its coalesced violations in the text.
const COALESCED: char = '*';

/// Parses the event in a text, including the test event, which cannot be subscribed to.
fn event_of(word: &str) -> Option<(EventName, Option<Coalesced>)> {
    let (name, coalesced) = match word.split_once(COALESCED) {
        Some((name, coalesced)) => (name, Some(Coalesced::parse(coalesced)?)),
        None => (word, None),
    };
    let test = EventName::WebhookTest;
    let event = EventName::parse(name).or_else(|| (name == test.as_str()).then_some(test));
    Some((event?, coalesced))
}

/// Formats an event for a text.
fn word_of(event: EventName, coalesced: Option<Coalesced>) -> String {
    let name = event.as_str();
    coalesced.map_or_else(
        || name.to_owned(),
        |coalesced| format!("{name}{COALESCED}{}", coalesced.text()),
    )
}

impl DeliveryEvent {
    /// Creates an event that follows from a single entry.
    pub const fn new(seq: u64, event: EventName) -> Self {
        Self {
            seq,
            event,
            coalesced: None,
        }
    }
}

impl Delivery {
    /// Returns the text of a new delivery after its state, which the script adds.
    pub(crate) fn text_of_new(event: &DeliveryEvent) -> String {
        format!("{} {} []", event.seq, word_of(event.event, event.coalesced))
    }

    /// Returns its event.
    pub const fn event(&self) -> DeliveryEvent {
        DeliveryEvent {
            seq: self.seq,
            event: self.event,
            coalesced: self.coalesced,
        }
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(5, ' ');
        let created_at_ms = words.next()?.parse().ok()?;
        let state = words.next()?;
        let seq = words.next()?.parse().ok()?;
        let (event, coalesced) = event_of(words.next()?)?;
        Some(Self {
            created_at_ms,
            state: DeliveryState::parse(state)?,
            seq,
            event,
            coalesced,
            attempts: serde_json::from_str(words.next()?).ok()?,
        })
    }

    /// Returns its text.
    pub fn text(&self) -> String {
        format!(
            "{} {} {} {} {}",
            self.created_at_ms,
            self.state.as_str(),
            self.seq,
            word_of(self.event, self.coalesced),
            serde_json::json!(self.attempts)
        )
    }

    /// Returns the number of attempts since it was created or a redelivery was requested.
    pub fn attempts_of_turn(&self) -> usize {
        self.attempts
            .iter()
            .rev()
            .take_while(|attempt| !attempt.redelivery_requested)
            .count()
    }

    /// Returns the delivery for attempts from the beginning. Keeps its last [`EARLIER_MAX`] attempts.
    #[must_use]
    pub fn again(mut self) -> Self {
        let over = self.attempts.len().saturating_sub(EARLIER_MAX);
        self.attempts.drain(..over);
        if let Some(last) = self.attempts.last_mut() {
            last.redelivery_requested = true;
        }
        self.state = DeliveryState::Pending;
        self
    }

    /// Returns the delivery after one more attempt.
    #[must_use]
    pub fn attempted(mut self, attempt: Attempt, state: DeliveryState) -> Self {
        for earlier in &mut self.attempts {
            earlier.excerpt = None;
        }
        self.attempts.push(attempt);
        self.state = state;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::mode::Mode;

    #[test]
    fn a_text_is_read_back() {
        let coalesced = Coalesced {
            count: 3,
            first_seq: 4,
            first_ms: 1,
            last_ms: 5,
            of_many: false,
        };
        let event = DeliveryEvent {
            coalesced: Some(coalesced),
            ..DeliveryEvent::new(7, EventName::PolicyViolation)
        };
        let new = format!("5 pending {}", Delivery::text_of_new(&event));
        let delivery = Delivery::parse(&new).unwrap();
        assert_eq!(
            (delivery.coalesced, delivery.text()),
            (Some(coalesced), new.clone())
        );
        assert_eq!(Delivery::parse(&new.replace('*', "*x")), None);
        let event = DeliveryEvent::new(7, EventName::WebhookTest);
        let new = format!("5 pending {}", Delivery::text_of_new(&event));
        let delivery = Delivery::parse(&new).unwrap();
        assert_eq!((delivery.seq, delivery.created_at_ms), (7, 5));
        assert_eq!(delivery.text(), new);
        let attempt = |excerpt: &str| Attempt {
            at_ms: 9,
            took_ms: 1,
            code: Some(500),
            error: Some("the receiver answered 500".to_owned()),
            excerpt: Some(excerpt.to_owned()),
            redelivery_requested: false,
        };
        let once = delivery.attempted(attempt("a b \"c\""), DeliveryState::Pending);
        assert_eq!(Delivery::parse(&once.text()), Some(once.clone()));
        let twice = once.attempted(attempt("second"), DeliveryState::Failed);
        let excerpts: Vec<_> = twice
            .attempts
            .iter()
            .map(|attempt| attempt.excerpt.as_deref())
            .collect();
        assert_eq!(excerpts, [None, Some("second")], "only the last one is kept");
    }

    #[test]
    fn a_delivery_that_is_asked_for_again_begins_anew_and_keeps_some_of_its_history() {
        let attempt = |at_ms| Attempt {
            at_ms,
            took_ms: 1,
            code: Some(500),
            error: None,
            excerpt: None,
            redelivery_requested: false,
        };
        let mut delivery = Delivery {
            created_at_ms: 5,
            state: DeliveryState::Refused,
            seq: 7,
            event: EventName::AgentFrozen,
            coalesced: None,
            attempts: Vec::new(),
        };
        delivery = delivery.again();
        assert_eq!(
            (delivery.state, delivery.attempts_of_turn()),
            (DeliveryState::Pending, 0)
        );
        for at_ms in 0..EARLIER_MAX as u64 + 3 {
            delivery = delivery.attempted(attempt(at_ms), DeliveryState::Failed);
        }
        assert_eq!(delivery.attempts_of_turn(), EARLIER_MAX + 3);
        delivery = delivery.again();
        assert_eq!(
            (delivery.attempts.len(), delivery.attempts_of_turn()),
            (EARLIER_MAX, 0)
        );
        assert_eq!(delivery.attempts[0].at_ms, 3, "the oldest go");
        delivery = delivery.attempted(attempt(99), DeliveryState::Delivered);
        assert_eq!(delivery.attempts_of_turn(), 1);
        assert_eq!(Delivery::parse(&delivery.text()), Some(delivery));
    }

    #[test]
    fn each_delivery_has_an_id_of_its_own() {
        let id =
            |account, mode, webhook, seq, event| delivery_id(&Realm::new(account, mode), webhook, seq, event);
        let one = id("acct_1", Mode::Live, "wh_1", 1, EventName::AgentFrozen);
        assert!(one.starts_with("whd_") && one.len() == 30, "{one}");
        assert_eq!(one, id("acct_1", Mode::Live, "wh_1", 1, EventName::AgentFrozen));
        for other in [
            id("acct_2", Mode::Live, "wh_1", 1, EventName::AgentFrozen),
            id("acct_1", Mode::Test, "wh_1", 1, EventName::AgentFrozen),
            id("acct_1", Mode::Live, "wh_2", 1, EventName::AgentFrozen),
            id("acct_1", Mode::Live, "wh_1", 2, EventName::AgentFrozen),
            id("acct_1", Mode::Live, "wh_1", 1, EventName::WalletDeposit),
        ] {
            assert_ne!(one, other);
        }
    }
}
