//! One attempt of a delivery: reads its event, sends it, and stores the outcome.

use super::{TakenDelivery, lease_life};
use crate::Webhooks;
use crate::payload;
use crate::send::OutgoingDelivery;
use bytes::Bytes;
use clock::now_ms;
use domain::entry::{Entry, Sealed};
use domain::event::EventName;
use history::trail::Trail;
use std::time::Duration;
use store::StoreError;
use store::webhook::delivery::{Attempt, Delivery, DeliveryEvent, DeliveryState, delivery_id};
use store::webhook::script::WebhookLocation;
use store::webhook::script::deliver::{AfterAttempt, AttemptOutcome, Lease};
use telemetry::error_chain;
use tokio::time::Instant;

/// Time limit of retries to store an outcome. Shorter than the remaining lease.
const STORE_RETRY_MAX: Duration = Duration::from_secs(8);
/// Pause between two retries.
const STORE_RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Error of a delivery whose entry is gone.
const NO_ENTRY: &str = "the audit entry of this event cannot be read";
/// Error of an attempt when the archive is missing or damaged.
const NO_ARCHIVE: &str = "the archive that holds the audit entry of this event cannot be read";
/// Error of a delivery whose record cannot be parsed.
const UNREADABLE: &str = "the delivery record is malformed";

/// Result of one delivery attempt.
pub(super) struct AttemptResult {
    /// Number of the delivery.
    pub(super) number: String,
    /// `true` if the receiver accepted it; `None` if the delivery was deleted meanwhile or not sent.
    pub(super) outcome: Result<Option<bool>, StoreError>,
}

/// Returns until when a delivery taken at `taken_at` may be sent: the lease must last for the longest attempt and for
/// storing its outcome.
pub(super) fn send_by(taken_at: Instant, timeout_ms: u64) -> Instant {
    let needed = Duration::from_millis(timeout_ms) + STORE_RETRY_MAX;
    taken_at + lease_life(timeout_ms).saturating_sub(needed)
}

#[derive(Debug, PartialEq, Eq)]
enum DeliveryContent {
    Body(Bytes),
    /// Unavailable now: this attempt fails.
    Unavailable(&'static str),
    /// Lost: the delivery fails without further attempts.
    Lost(&'static str),
}

/// Builds the body of an event. An archive that cannot be read fails only this attempt; a store that cannot be read
/// fails the turn.
fn content(
    found: Result<Option<Sealed>, StoreError>,
    event: DeliveryEvent,
) -> Result<DeliveryContent, StoreError> {
    let sealed = match found {
        Ok(sealed) => sealed,
        Err(StoreError::Archive(_) | StoreError::ArchiveUnavailable(_)) => {
            return Ok(DeliveryContent::Unavailable(NO_ARCHIVE));
        }
        Err(error) => return Err(error),
    };
    let entry = sealed.and_then(|sealed| Entry::from_json(&sealed.json));
    let body = entry.and_then(|entry| payload::body(&entry, &event));
    Ok(body.map_or(DeliveryContent::Lost(NO_ENTRY), DeliveryContent::Body))
}

/// Returns a delivery for a record that cannot be parsed, with the fields that can, so that it is listed as failed.
fn placeholder(text: &str) -> Delivery {
    let word = |at: usize| text.split(' ').nth(at);
    let number = |at: usize| word(at).and_then(|word| word.parse().ok());
    Delivery {
        created_at_ms: number(0).unwrap_or_else(now_ms),
        state: DeliveryState::Pending,
        seq: number(2).unwrap_or(0),
        event: word(3)
            .and_then(EventName::parse)
            .unwrap_or(EventName::WebhookTest),
        coalesced: None,
        attempts: Vec::new(),
    }
}

/// Attempts a delivery and stores the outcome.
pub(super) async fn attempt(webhooks: &Webhooks, lease: &Lease, taken: TakenDelivery) -> AttemptResult {
    let outcome = attempt_once(webhooks, lease, &taken).await;
    AttemptResult {
        number: taken.number,
        outcome,
    }
}

/// Returns whether it was accepted; `None` if the delivery was deleted meanwhile, or not sent because it would outlast
/// the lease, also since its account had no turn at the address before: then it is taken again.
async fn attempt_once(
    webhooks: &Webhooks,
    lease: &Lease,
    TakenDelivery {
        number,
        text,
        receiver,
    }: &TakenDelivery,
) -> Result<Option<bool>, StoreError> {
    let WebhookLocation { realm, webhook } = &lease.endpoint;
    let (account, mode) = (realm.account(), realm.mode());
    let (delivery, content) = match Delivery::parse(text) {
        Some(delivery) => {
            let trail = Trail::new(&webhooks.store, &webhooks.archive, realm.clone());
            let content = content(trail.entry(delivery.seq).await, delivery.event())?;
            (delivery, content)
        }
        None => (placeholder(text), DeliveryContent::Lost(UNREADABLE)),
    };
    let id = delivery_id(realm, webhook, delivery.seq, delivery.event);
    let (made, next) = match &content {
        DeliveryContent::Body(_) if Instant::now() > receiver.send_by => return Ok(None),
        DeliveryContent::Body(body) => {
            let message = OutgoingDelivery {
                account,
                id: &id,
                body,
                secrets: &receiver.secrets,
            };
            let sent = webhooks
                .sender
                .send(&receiver.url, message, receiver.send_by)
                .await;
            let Some(made) = sent else { return Ok(None) };
            let next = next(webhooks, made.accepted(), delivery.attempts_of_turn());
            (made, next)
        }
        DeliveryContent::Unavailable(why) => {
            (unsent(why), next(webhooks, false, delivery.attempts_of_turn()))
        }
        DeliveryContent::Lost(why) => (unsent(why), AfterAttempt::Failed),
    };
    webhooks.metrics.attempted(&made, next);
    tracing::debug!(account, %mode, webhook, delivery = id, event = delivery.event.as_str(), http.status = made.code,
        error = made.error, "webhook attempted");
    if next == AfterAttempt::Failed {
        tracing::warn!(account, %mode, webhook, delivery = id, "a webhook delivery was given up");
    }
    let accepted = made.accepted();
    let outcome = AttemptOutcome {
        number,
        before: text,
        after: &after(delivery, made, next),
        next,
    };
    let is_stored = store_outcome(webhooks, lease, &outcome).await?;
    Ok(is_stored.then_some(accepted))
}

/// Returns the record of an attempt that sent nothing.
fn unsent(why: &str) -> Attempt {
    Attempt {
        at_ms: now_ms(),
        took_ms: 0,
        code: None,
        error: Some(why.to_owned()),
        excerpt: None,
        redelivery_requested: false,
    }
}

/// Returns the delivery after the attempt.
fn after(delivery: Delivery, made: Attempt, next: AfterAttempt) -> Delivery {
    let state = match next {
        AfterAttempt::Delivered => DeliveryState::Delivered,
        AfterAttempt::Failed => DeliveryState::Failed,
        AfterAttempt::Retry(_) | AfterAttempt::Park => DeliveryState::Pending,
    };
    delivery.attempted(made, state)
}

/// Returns the next step after an attempt that followed `earlier` others.
fn next(webhooks: &Webhooks, accepted: bool, earlier: usize) -> AfterAttempt {
    let made = earlier + 1;
    if accepted {
        return AfterAttempt::Delivered;
    }
    if made >= webhooks.settings.max_attempts as usize {
        return AfterAttempt::Failed;
    }
    let delay = webhooks.settings.retry_delays_ms.get(earlier);
    delay.map_or(AfterAttempt::Park, |delay| {
        AfterAttempt::Retry(Duration::from_millis(*delay))
    })
}

/// Stores the outcome. Retries if the store does not reply: otherwise the delivery would be attempted again. Returns
/// whether the delivery still exists.
async fn store_outcome(
    webhooks: &Webhooks,
    lease: &Lease,
    outcome: &AttemptOutcome<'_>,
) -> Result<bool, StoreError> {
    let began = Instant::now();
    loop {
        let most = webhooks.settings.history_max;
        match lease.finish(&webhooks.store, outcome, most).await {
            Err(error) if began.elapsed() < STORE_RETRY_MAX => {
                tracing::warn!(error = %error_chain(&error), "the outcome of a webhook attempt was not stored; retrying");
                tokio::time::sleep(STORE_RETRY_PAUSE).await;
            }
            stored => return stored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_archive_fails_one_attempt_and_an_unreadable_store_the_turn() {
        let of = |found| content(found, DeliveryEvent::new(1, EventName::AgentFrozen));
        let archive = of(Err(StoreError::Archive("damaged".to_owned())));
        assert_eq!(archive.ok(), Some(DeliveryContent::Unavailable(NO_ARCHIVE)));
        assert_eq!(of(Ok(None)).ok(), Some(DeliveryContent::Lost(NO_ENTRY)));
        of(Err(StoreError::unexpected("x"))).unwrap_err();
    }

    #[test]
    fn a_record_that_cannot_be_parsed_becomes_a_failed_delivery() {
        for (text, seq, event) in [
            ("5 pending 7 agent.frozen [{", 7, EventName::AgentFrozen),
            ("", 0, EventName::WebhookTest),
        ] {
            assert_eq!(Delivery::parse(text), None);
            let failed = after(placeholder(text), unsent(UNREADABLE), AfterAttempt::Failed);
            let read = Delivery::parse(&failed.text()).unwrap();
            assert_eq!(
                (read.seq, read.event, read.state),
                (seq, event, DeliveryState::Failed)
            );
            assert_eq!(read.attempts[0].error.as_deref(), Some(UNREADABLE));
        }
    }

    #[test]
    fn an_attempt_begins_only_when_the_lease_outlasts_it() {
        let taken_at = Instant::now();
        for timeout_ms in [1, 10_000, 60_000] {
            let latest = send_by(taken_at, timeout_ms);
            assert!(
                latest > taken_at + super::super::QUEUED_MAX,
                "what waited may be sent"
            );
            let over = latest + Duration::from_millis(timeout_ms) + STORE_RETRY_MAX;
            assert!(over <= taken_at + lease_life(timeout_ms));
        }
    }
}
