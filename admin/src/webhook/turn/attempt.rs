//! One attempt of a delivery, from its text in the store to the text behind it.

use super::Receiver;
use crate::problem::chain;
use crate::serve::App;
use crate::trail::Trail;
use crate::webhook::payload;
use crate::webhook::send::{Attempted, Message};
use shared::clock::now_ms;
use shared::domain::entry::Entry;
use shared::store::StoreError;
use shared::store::delivery::{Attempt, Delivery, State, delivery_id};
use shared::store::script::webhook::Endpoint;
use shared::store::script::webhook::deliver::{Lease, Next};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an outcome is kept trying to be kept: less than the lease has left.
const KEEP: Duration = Duration::from_secs(8);
/// Pause between two tries.
const KEEP_PAUSE: Duration = Duration::from_millis(200);
/// What a delivery whose entry is gone is failed with.
const NO_ENTRY: &str = "the audit entry of this event cannot be read";

/// What one attempt came to.
pub(super) struct Attempting {
    pub(super) number: String,
    pub(super) outcome: Result<Option<bool>, StoreError>,
}

/// Attempts a delivery and keeps what came of it.
pub(super) async fn attempt(
    app: &App,
    lease: &Lease,
    with: Option<Arc<Receiver>>,
    number: String,
    text: String,
) -> Attempting {
    let outcome = match with {
        Some(with) => attempt_once(app, lease, &with, &number, &text).await,
        None => Ok(None),
    };
    Attempting { number, outcome }
}

/// Whether it was accepted; `None` when it is gone meanwhile.
async fn attempt_once(
    app: &App,
    lease: &Lease,
    with: &Receiver,
    number: &str,
    text: &str,
) -> Result<Option<bool>, StoreError> {
    let delivery = Delivery::parse(text).ok_or_else(|| StoreError::Nonsense("delivery".to_owned()))?;
    let Endpoint {
        account,
        mode,
        webhook,
    } = &lease.endpoint;
    let sealed = Trail::of(&app.store, &app.archive, account, *mode)
        .entry(delivery.seq)
        .await?;
    let entry = sealed.and_then(|sealed| Entry::of_json(&sealed.json));
    let body = entry.and_then(|entry| payload::body(&entry, delivery.event));
    let id = delivery_id(account, *mode, webhook, delivery.seq, delivery.event);
    let (made, next) = match &body {
        Some(body) => {
            let message = Message {
                id: &id,
                body,
                secrets: &with.secrets,
            };
            let made = app.sender.send(&with.url, message).await;
            let next = next(app, made.accepted(), delivery.attempts.len());
            (made, next)
        }
        None => (without_entry(), Next::Failed),
    };
    app.metrics.webhooks.attempted(&made, next);
    tracing::debug!(account, %mode, webhook, delivery = id, event = delivery.event.as_str(), http.status = made.code,
        error = made.error, "webhook attempted");
    if next == Next::Failed {
        tracing::warn!(account, %mode, webhook, delivery = id, "a webhook delivery was given up");
    }
    let accepted = made.accepted();
    let after = after(delivery, made, next);
    let kept = keep(app, lease, number, text, &after, next).await?;
    Ok(kept.then_some(accepted))
}

/// What stands in the place of an attempt when there is nothing to send.
fn without_entry() -> Attempted {
    Attempted {
        at_ms: now_ms(),
        took_ms: 0,
        code: None,
        error: Some(NO_ENTRY.to_owned()),
        excerpt: None,
    }
}

/// The delivery behind the attempt.
fn after(delivery: Delivery, made: Attempted, next: Next) -> Delivery {
    let state = match next {
        Next::Delivered => State::Delivered,
        Next::Failed => State::Failed,
        Next::Retry(_) | Next::Park => State::Pending,
    };
    let attempt = Attempt {
        at_ms: made.at_ms,
        took_ms: made.took_ms,
        code: made.code,
        error: made.error,
        excerpt: made.excerpt,
    };
    delivery.attempted(attempt, state)
}

/// What follows an attempt that came after `earlier` others.
fn next(app: &App, accepted: bool, earlier: usize) -> Next {
    let made = earlier + 1;
    if accepted {
        return Next::Delivered;
    }
    if made >= app.webhooks.max_attempts as usize {
        return Next::Failed;
    }
    let delay = app.webhooks.retry_delays_ms.get(earlier);
    delay.map_or(Next::Park, |delay| Next::Retry(Duration::from_millis(*delay)))
}

/// Tells the store; again when it does not answer at once, since it would be attempted twice otherwise.
async fn keep(
    app: &App,
    lease: &Lease,
    number: &str,
    before: &str,
    after: &Delivery,
    next: Next,
) -> Result<bool, StoreError> {
    let began = Instant::now();
    loop {
        let most = app.webhooks.history_max;
        match lease.finish(&app.store, number, before, after, next, most).await {
            Err(error) if began.elapsed() < KEEP => {
                tracing::warn!(error = %chain(&error), "an outcome of a webhook attempt is kept at the next try");
                tokio::time::sleep(KEEP_PAUSE).await;
            }
            kept => return kept,
        }
    }
}
