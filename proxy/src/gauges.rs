//! What the edge is like at the moment somebody asks: calls under way, what waits, caches, the process. Read when
//! `/metrics` is, from what is there anyway.

use crate::gate::Gate;
use connections::limit::Refused;
use prometheus::{IntCounter, IntGauge, Result};
use telemetry::process::ProcessMetrics;
use telemetry::registrar::{Registrar, level};
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;

/// Caches whose size is told, in the order of [`Gate::cached`].
const CACHES: [&str; 4] = ["owners", "unknown", "views", "provider_keys"];
/// Whether a connection to the provider was there already.
const CONNECTIONS: [&str; 2] = ["new", "reused"];

/// The gauges of the moment.
#[derive(Debug, Clone)]
pub struct State {
    in_flight: IntGauge,
    pending: IntGauge,
    pending_elsewhere: IntGauge,
    pending_limit: IntGauge,
    pending_dropped: IntCounter,
    journal_lines: IntGauge,
    ready: IntGauge,
    draining: IntGauge,
    callers: IntGauge,
    callers_max: IntGauge,
    callers_refused: Vec<IntCounter>,
    closed_for_others: IntCounter,
    body_bytes: IntGauge,
    body_bytes_max: IntGauge,
    caches: Vec<IntGauge>,
    connections: Vec<IntCounter>,
    process: ProcessMetrics,
    spans: SpanMetrics,
    /// The store, which a task of its own looks at.
    pub store: StoreMetrics,
}

impl State {
    pub(crate) fn new(metrics: &Registrar) -> Result<Self> {
        Ok(Self {
            in_flight: metrics.gauge("in_flight", "Requests in flight.")?,
            pending: metrics.gauge("pending", "Settlements and voids that wait for the store.")?,
            pending_elsewhere: metrics.gauge(
                "pending_elsewhere",
                "Of these, how many wait for another ledger than the store is, or for writes of their account that it lacks.",
            )?,
            pending_limit: metrics.gauge(
                "pending_limit",
                "How many may wait (proxy.retry_queue_limit).",
            )?,
            pending_dropped: metrics.counter(
                "pending_dropped_total",
                "Settlements and voids that did not fit into the retry queue, or on which the store's script broke off again and again; their estimates stay charged.",
            )?,
            journal_lines: metrics.gauge(
                "pending_journal_lines",
                "Lines of the retry queue's journal on disk.",
            )?,
            ready: metrics.gauge("ready", "1 when calls can be decided.")?,
            draining: metrics.gauge(
                "draining",
                "1 while this process is about to end and lets its calls finish.",
            )?,
            callers: metrics.gauge("connections", "Open connections of callers.")?,
            callers_max: metrics.gauge(
                "connections_max",
                "How many there can be (proxy.max_connections, or what the system's limit of open files leaves).",
            )?,
            callers_refused: metrics.counters(
                "connections_refused_total",
                "Connections that were closed at once, by limit: all (proxy.max_connections), address (proxy.max_connections_per_address).",
                "limit",
                Refused::LABELS,
            )?,
            closed_for_others: metrics.counter(
                "connections_closed_for_others_total",
                "Connections without a known caller's request that were closed for new ones, since a limit was reached.",
            )?,
            body_bytes: metrics.gauge(
                "body_memory_bytes",
                "Memory that request bodies have reserved.",
            )?,
            body_bytes_max: metrics.gauge(
                "body_memory_max_bytes",
                "How much they may (proxy.max_buffered_bytes).",
            )?,
            caches: metrics.gauges(
                "cache_entries",
                "Entries of the caches of things that never change: owners of keys, hashes that no key has, accounts' versions, opened provider keys.",
                "cache",
                CACHES,
            )?,
            connections: metrics.counters(
                "upstream_connections_total",
                "Exchanges with the provider, by whether the connection was new or reused.",
                "kind",
                CONNECTIONS,
            )?,
            process: ProcessMetrics::new(metrics)?,
            spans: SpanMetrics::new(metrics)?,
            store: StoreMetrics::new(metrics)?,
        })
    }

    pub(crate) fn look(&self, gate: &Gate) {
        for (gauge, value) in [
            (&self.in_flight, gate.in_flight()),
            (&self.pending, gate.pending.len()),
            (&self.pending_elsewhere, gate.pending.elsewhere()),
            (&self.pending_limit, gate.settings.proxy.retry_queue_limit),
            (&self.journal_lines, gate.pending.journal_lines()),
            (&self.ready, usize::from(gate.is_ready())),
            (&self.draining, usize::from(gate.is_draining())),
            (&self.callers, gate.connections.open()),
            (&self.callers_max, gate.connections.max()),
            (&self.body_bytes, gate.body_room.taken()),
            (&self.body_bytes_max, gate.settings.proxy.max_buffered_bytes),
        ] {
            gauge.set(level(value));
        }
        for (gauge, entries) in self.caches.iter().zip(gate.cached()) {
            gauge.set(level(entries));
        }
        for (counter, count) in self.connections.iter().zip(gate.upstream.connected()) {
            counter.inc_by(count.saturating_sub(counter.get()));
        }
        for (counter, count) in self.callers_refused.iter().zip(gate.connections.refused()) {
            counter.inc_by(count.saturating_sub(counter.get()));
        }
        let closed = &self.closed_for_others;
        closed.inc_by(gate.connections.closed_for_others().saturating_sub(closed.get()));
        let dropped = &self.pending_dropped;
        dropped.inc_by(gate.pending.dropped().saturating_sub(dropped.get()));
        self.process.look();
        self.spans.refresh();
        self.store.refresh();
    }
}
