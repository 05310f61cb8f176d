//! Metrics of webhooks. Names and help texts are a contract with dashboards and alerts.

use std::time::Duration;
use store::webhook::delivery::Attempt;
use store::webhook::script::deliver::AfterAttempt;
use telemetry::registrar::level;

const ATTEMPT_RESULTS: [&str; 3] = ["accepted", "refused", "unanswered"];

telemetry::metrics! {
    /// Counters and gauges of the dispatcher and the deliverer of this server.
    pub struct WebhookMetrics {
        /// Events of accounts that have webhooks.
        events: counter("webhook_events_total"),
        /// Violations beyond the first ten of an agent in a minute.
        coalesced: counter("webhook_violations_coalesced_total"),
        /// Chains whose next events are in the archive.
        behind: gauge("webhook_chains_behind"),
        /// Deliveries made of events.
        deliveries: counter("webhook_deliveries_total"),
        /// Deliveries never attempted, since too many waited.
        refused: counter("webhook_deliveries_refused_total"),
        /// Attempts to deliver: accepted, refused (another status than 2xx) or unanswered.
        attempts: counters("webhook_attempts_total", "result", ATTEMPT_RESULTS),
        /// Deliveries whose last attempt failed.
        given_up: counter("webhook_deliveries_given_up_total"),
        /// Deliveries that began to wait for a later event.
        parked: counter("webhook_parked_total"),
        /// Webhooks with something to deliver and no turn yet.
        ready: gauge("webhook_ready"),
        /// Longest wait of a webhook for its turn.
        lag: fraction("webhook_lag_seconds"),
        /// Deliveries that wait for their turn.
        pub waiting: gauge("webhook_deliveries_waiting"),
        /// Webhooks that this server delivers to now.
        pub turns: gauge("webhook_turns"),
        /// Turns of webhooks that a store failure cut off.
        pub turns_failed: counter("webhook_turns_failed_total"),
        /// Scans for ready webhooks that a store failure cut off.
        pub scans_failed: counter("webhook_looks_failed_total"),
        /// Dispatches of archived entries that failed and are tried again.
        pub archived_failed: counter("webhook_catch_ups_failed_total"),
    }
}

impl WebhookMetrics {
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

    /// Records the number of chains whose next events are in the archive.
    pub fn behind(&self, chains: usize) {
        self.behind.set(level(chains));
    }

    /// Counts an attempt.
    pub fn attempted(&self, made: &Attempt, next: AfterAttempt) {
        let result = match made.code {
            _ if made.accepted() => 0,
            Some(_) => 1,
            None => 2,
        };
        self.attempts[result].inc();
        match next {
            AfterAttempt::Failed => self.given_up.inc(),
            AfterAttempt::Park => self.parked.inc(),
            AfterAttempt::Delivered | AfterAttempt::Retry(_) => {}
        }
    }

    /// Notes the result of a scan of the store.
    pub fn scanned(&self, ready: usize, lag_ms: u64) {
        self.ready.set(level(ready));
        self.lag.set(Duration::from_millis(lag_ms).as_secs_f64());
    }
}
