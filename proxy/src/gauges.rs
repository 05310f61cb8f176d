//! Gauges of the edge: calls in flight, queues, caches, the process. Their values are read from the components when
//! `/metrics` is scraped.

use crate::account_views::AccountViews;
use crate::admission::Admission;
use crate::buffer_budget::BufferBudget;
use crate::edge::connections::Connections;
use crate::key_owners::KeyOwners;
use crate::pending::Pending;
use crate::provider_keys::ProviderKeys;
use crate::readiness::Readiness;
use crate::upstream::Upstreams;
use connections::limit::Refused;
use prometheus::{IntCounter, IntGauge, Result};
use std::sync::Arc;
use store::blocked::BlockedCopy;
use telemetry::process::ProcessMetrics;
use telemetry::registrar::{Registrar, level};
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;

/// Labels of the caches.
const CACHES: [&str; 4] = ["owners", "unknown", "views", "provider_keys"];
/// Labels of connections to the provider.
const CONNECTIONS: [&str; 2] = ["new", "reused"];

/// Gauges of the edge, and counters that components keep by themselves.
#[derive(Debug, Clone)]
pub struct Gauges {
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
    blocked_kept: IntGauge,
    body_bytes: IntGauge,
    body_bytes_max: IntGauge,
    caches: Vec<IntGauge>,
    connections: Vec<IntCounter>,
    process: ProcessMetrics,
    spans: SpanMetrics,
    /// Collected by a task of its own.
    pub store: StoreMetrics,
}

/// The components whose values are collected.
pub struct GaugeSources {
    /// Requests in flight.
    pub admission: Arc<Admission>,
    /// Readiness.
    pub readiness: Readiness,
    /// Retry queue.
    pub pending: Arc<Pending>,
    /// `proxy.retry_queue_limit`
    pub retry_queue_limit: usize,
    /// Callers' connections.
    pub connections: Arc<Connections>,
    /// Blocked addresses.
    pub blocked: Arc<BlockedCopy>,
    /// Memory of bodies.
    pub budget: Arc<BufferBudget>,
    /// `proxy.max_buffered_bytes`
    pub max_buffered_bytes: usize,
    /// Cache of key owners.
    pub owners: Arc<KeyOwners>,
    /// Cache of account views.
    pub views: Arc<AccountViews>,
    /// Cache of provider keys.
    pub provider_keys: Arc<ProviderKeys>,
    /// Connections to providers.
    pub upstreams: Arc<Upstreams>,
}

impl Gauges {
    /// Registers all of them.
    ///
    /// # Errors
    /// A malformed or duplicate name, which a test would find.
    pub fn new(metrics: &Registrar) -> Result<Self> {
        Ok(Self {
            in_flight: metrics.gauge("in_flight", "Requests in flight.")?,
            pending: metrics.gauge("pending", "Settlements and voids that wait for the store.")?,
            pending_elsewhere: metrics.gauge(
                "pending_elsewhere",
                "Settlements and voids that wait for another ledger, or for writes of their account that the store lacks.",
            )?,
            pending_limit: metrics.gauge(
                "pending_limit",
                "Limit of the retry queue (proxy.retry_queue_limit).",
            )?,
            pending_dropped: metrics.counter(
                "pending_dropped_total",
                "Settlements and voids that did not fit into the retry queue, or on which the script failed again \
                 and again; estimates stay charged.",
            )?,
            journal_lines: metrics.gauge(
                "pending_journal_lines",
                "Lines of the queue's journal.",
            )?,
            ready: metrics.gauge("ready", "1 when calls can be decided.")?,
            draining: metrics.gauge(
                "draining",
                "1 while this process lets its calls finish before it ends.",
            )?,
            callers: metrics.gauge("connections", "Open connections of callers.")?,
            callers_max: metrics.gauge(
                "connections_max",
                "Limit of callers' connections (proxy.max_connections, or what open files leave).",
            )?,
            callers_refused: metrics.counters(
                "connections_refused_total",
                "Connections closed at once: all (proxy.max_connections), address (proxy.max_connections_per_address).",
                "limit",
                Refused::LABELS,
            )?,
            closed_for_others: metrics.counter(
                "connections_closed_for_others_total",
                "Connections without a known caller's request, closed for new ones at a limit.",
            )?,
            blocked_kept: metrics.gauge(
                "blocked_ranges_kept",
                "Ranges of addresses that the store lost and this server keeps blocked; block them again.",
            )?,
            body_bytes: metrics.gauge(
                "body_memory_bytes",
                "Memory reserved by request bodies.",
            )?,
            body_bytes_max: metrics.gauge(
                "body_memory_max_bytes",
                "Limit of the memory of request bodies (proxy.max_buffered_bytes).",
            )?,
            caches: metrics.gauges(
                "cache_entries",
                "Entries of caches: owners of keys, hashes that no key has, accounts' versions, opened provider keys.",
                "cache",
                CACHES,
            )?,
            connections: metrics.counters(
                "upstream_connections_total",
                "Exchanges with the provider, by connection: new or reused.",
                "kind",
                CONNECTIONS,
            )?,
            process: ProcessMetrics::new(metrics)?,
            spans: SpanMetrics::new(metrics)?,
            store: StoreMetrics::new(metrics)?,
        })
    }

    fn refresh(&self, sources: &GaugeSources) {
        let [owners, unknown] = sources.owners.sizes();
        let caches = [owners, unknown, sources.views.len(), sources.provider_keys.len()];
        for (gauge, value) in [
            (&self.in_flight, sources.admission.in_flight()),
            (&self.pending, sources.pending.len()),
            (&self.pending_elsewhere, sources.pending.elsewhere()),
            (&self.pending_limit, sources.retry_queue_limit),
            (&self.journal_lines, sources.pending.journal_lines()),
            (&self.ready, usize::from(sources.readiness.is_ready())),
            (&self.draining, usize::from(sources.admission.is_draining())),
            (&self.callers, sources.connections.open()),
            (&self.callers_max, sources.connections.max()),
            (&self.blocked_kept, sources.blocked.kept()),
            (&self.body_bytes, sources.budget.taken()),
            (&self.body_bytes_max, sources.max_buffered_bytes),
        ] {
            gauge.set(level(value));
        }
        for (gauge, entries) in self.caches.iter().zip(caches) {
            gauge.set(level(entries));
        }
        for (counter, count) in self.connections.iter().zip(sources.upstreams.connected()) {
            raise(counter, count);
        }
        for (counter, count) in self.callers_refused.iter().zip(sources.connections.refused()) {
            raise(counter, count);
        }
        raise(&self.closed_for_others, sources.connections.closed_for_others());
        raise(&self.pending_dropped, sources.pending.dropped());
        self.process.update();
        self.spans.refresh();
        self.store.refresh();
    }
}

/// Raises a counter to the count that a component keeps.
fn raise(counter: &IntCounter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}

/// The text of `/metrics`.
pub struct Exposition {
    /// All metrics of the process.
    pub registrar: Registrar,
    /// Refreshed before each text.
    pub gauges: Gauges,
    /// Read by the refresh.
    pub sources: GaugeSources,
}

impl Exposition {
    /// Refreshes the gauges and returns the text; empty if it cannot be encoded.
    pub fn text(&self) -> Vec<u8> {
        let refresh = || self.gauges.refresh(&self.sources);
        self.registrar.text_after(refresh).map_or_else(
            |error| {
                tracing::error!(%error, "the metrics cannot be written");
                Vec::new()
            },
            String::into_bytes,
        )
    }
}
