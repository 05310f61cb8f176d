//! Metrics of webhooks. The help texts stand beside the names; both are a contract with dashboards and alerts.

use crate::send::Attempted;
use prometheus::{Gauge, IntCounter, IntGauge};
use std::time::Duration;
use store::webhook::script::deliver::Next;
use telemetry::registrar::{Registrar, level};

/// Results of an attempt.
const ATTEMPTS: [&str; 3] = ["accepted", "refused", "unanswered"];

/// Counters and gauges of the dispatcher and the deliverer of this server.
pub struct WebhookMetrics {
    events: IntCounter,
    coalesced: IntCounter,
    behind: IntGauge,
    deliveries: IntCounter,
    refused: IntCounter,
    attempts: Vec<IntCounter>,
    given_up: IntCounter,
    parked: IntCounter,
    ready: IntGauge,
    lag: Gauge,
    /// Deliveries that wait for their turn.
    pub waiting: IntGauge,
    /// Webhooks that this server delivers to at the moment.
    pub turns: IntGauge,
    /// Turns that a store failure cut off.
    pub turns_failed: IntCounter,
    /// Scans for ready webhooks that a store failure cut off.
    pub scans_failed: IntCounter,
    /// Dispatches of archived entries that failed and are tried again.
    pub catch_ups_failed: IntCounter,
}

impl WebhookMetrics {
    /// Registers them, all at zero.
    pub fn new(metrics: &Registrar) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| metrics.counter(&format!("webhook_{name}"), help);
        let gauge = |name: &str, help: &str| metrics.gauge(&format!("webhook_{name}"), help);
        Ok(Self {
            events: counter("events_total", "Events of accounts that have webhooks.")?,
            coalesced: counter(
                "violations_coalesced_total",
                "Violations beyond the first ten of an agent in a minute.",
            )?,
            behind: gauge("chains_behind", "Chains whose next events are in the archive.")?,
            catch_ups_failed: counter(
                "catch_ups_failed_total",
                "Dispatches of archived entries that failed and are tried again.",
            )?,
            deliveries: counter("deliveries_total", "Deliveries made of events.")?,
            refused: counter(
                "deliveries_refused_total",
                "Deliveries never attempted, since too many waited.",
            )?,
            attempts: metrics.counters(
                "webhook_attempts_total",
                "Attempts to deliver: accepted, refused (another status than 2xx) or unanswered.",
                "result",
                ATTEMPTS,
            )?,
            given_up: counter(
                "deliveries_given_up_total",
                "Deliveries whose last attempt failed.",
            )?,
            parked: counter("parked_total", "Deliveries that began to wait for a later event.")?,
            ready: gauge("ready", "Webhooks with something to deliver and no turn yet.")?,
            lag: metrics.fraction("webhook_lag_seconds", "Longest wait of a webhook for its turn.")?,
            waiting: gauge("deliveries_waiting", "Deliveries that wait for their turn.")?,
            turns: gauge("turns", "Webhooks that this server delivers to now.")?,
            turns_failed: counter(
                "turns_failed_total",
                "Turns of webhooks that a store failure cut off.",
            )?,
            scans_failed: counter(
                "looks_failed_total",
                "Scans for ready webhooks that a store failure cut off.",
            )?,
        })
    }

    /// Counts the events of a step of the dispatcher.
    pub fn dispatched(&self, events: u64, deliveries: u64, refused: u64) {
        self.events.inc_by(events);
        self.deliveries.inc_by(deliveries);
        self.refused.inc_by(refused);
    }

    /// Counts violations that wait for their minute's end.
    pub fn coalesced(&self, violations: u64) {
        self.coalesced.inc_by(violations);
    }

    /// Notes how many chains have their next events in the archive.
    pub fn behind(&self, chains: usize) {
        self.behind.set(level(chains));
    }

    /// Counts an attempt.
    pub fn attempted(&self, made: &Attempted, next: Next) {
        let result = match made.code {
            _ if made.accepted() => 0,
            Some(_) => 1,
            None => 2,
        };
        self.attempts[result].inc();
        match next {
            Next::Failed => self.given_up.inc(),
            Next::Park => self.parked.inc(),
            Next::Delivered | Next::Retry(_) => {}
        }
    }

    /// Notes the result of a scan of the store.
    pub fn scanned(&self, ready: usize, lag_ms: u64) {
        self.ready.set(level(ready));
        self.lag.set(Duration::from_millis(lag_ms).as_secs_f64());
    }
}
