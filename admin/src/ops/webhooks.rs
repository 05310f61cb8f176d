//! What is measured of webhooks.

use crate::webhook::send::Attempted;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use shared::store::script::webhook::deliver::Next;

/// Counters and gauges of the dispatcher and the deliverer of this server.
pub struct WebhookMetrics {
    events: IntCounter,
    deliveries: IntCounter,
    refused: IntCounter,
    attempts: IntCounterVec,
    given_up: IntCounter,
    parked: IntCounter,
    waiting: IntGauge,
    lag_ms: IntGauge,
    /// Webhooks that this server delivers to at the moment.
    pub turns: IntGauge,
    /// Turns that a store failure cut off.
    pub turns_failed: IntCounter,
    /// Looks for ready webhooks that a store failure cut off.
    pub looks_failed: IntCounter,
}

impl WebhookMetrics {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(format!("tollgate_admin_webhook_{name}"), help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok::<_, prometheus::Error>(counter)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(format!("tollgate_admin_webhook_{name}"), help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let attempts = Opts::new(
            "tollgate_admin_webhook_attempts_total",
            "Attempts to deliver, by what they came to: accepted, refused (another status than 2xx) or unanswered.",
        );
        let attempts = IntCounterVec::new(attempts, &["result"])?;
        registry.register(Box::new(attempts.clone()))?;
        Ok(Self {
            events: counter("events_total", "Events of accounts that have webhooks.")?,
            deliveries: counter("deliveries_total", "Deliveries made of them.")?,
            refused: counter(
                "deliveries_refused_total",
                "Deliveries never attempted, since too many waited for the same webhook.",
            )?,
            attempts,
            given_up: counter(
                "deliveries_given_up_total",
                "Deliveries whose last attempt failed.",
            )?,
            parked: counter(
                "parked_total",
                "Times that a delivery began to wait for a later event.",
            )?,
            waiting: gauge(
                "ready",
                "Webhooks that had something to deliver and no turn yet, at the last look at the store.",
            )?,
            lag_ms: gauge(
                "lag_milliseconds",
                "How long the one that waited longest had done so by then.",
            )?,
            turns: gauge("turns", "Webhooks that this server delivers to at the moment.")?,
            turns_failed: counter(
                "turns_failed_total",
                "Turns of webhooks that a store failure cut off.",
            )?,
            looks_failed: counter(
                "looks_failed_total",
                "Looks for ready webhooks that a store failure cut off.",
            )?,
        })
    }

    /// Counts a row of events that was dispatched.
    pub fn dispatched(&self, events: u64, deliveries: u64, refused: u64) {
        self.events.inc_by(events);
        self.deliveries.inc_by(deliveries);
        self.refused.inc_by(refused);
    }

    /// Counts an attempt.
    pub fn attempted(&self, made: &Attempted, next: Next) {
        let result = match made.code {
            _ if made.accepted() => "accepted",
            Some(_) => "refused",
            None => "unanswered",
        };
        self.attempts.with_label_values(&[result]).inc();
        match next {
            Next::Failed => self.given_up.inc(),
            Next::Park => self.parked.inc(),
            Next::Delivered | Next::Retry(_) => {}
        }
    }

    /// What a look at the store found.
    pub fn looked(&self, ready: usize, lag_ms: u64) {
        self.waiting.set(i64::try_from(ready).unwrap_or(i64::MAX));
        self.lag_ms.set(i64::try_from(lag_ms).unwrap_or(i64::MAX));
    }
}
