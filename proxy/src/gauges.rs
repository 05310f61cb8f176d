//! Gauges of the edge: calls in flight, queues, caches, the process. Their values are read from the components when
//! `/metrics` is scraped.

use crate::account_views::AccountViews;
use crate::admission::RequestAdmission;
use crate::buffer_budget::BufferBudget;
use crate::call::lost_writes_log::LostWritesLog;
use crate::edge::connections::Connections;
use crate::key_owners::KeyOwners;
use crate::metrics::connections::ConnectionMetrics;
use crate::provider_keys::ProviderKeys;
use crate::readiness::Readiness;
use crate::retry_queue::RetryQueue;
use crate::unsent_answers::UnsentAnswers;
use crate::upstream::Upstreams;
use std::sync::Arc;
use store::blocked::BlockedCopy;
use telemetry::LogMetrics;
use telemetry::process::ProcessMetrics;
use telemetry::registrar::{Registrar, level, raise};
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;

/// Labels of the caches.
const CACHES: [&str; 4] = ["owners", "unknown", "views", "provider_keys"];
/// Labels of connections to the provider.
const CONNECTIONS: [&str; 2] = ["new", "reused"];

telemetry::metrics! {
    /// Gauges of the edge, and counters that other components maintain.
    #[derive(Debug, Clone)]
    pub struct Gauges {
        /// Requests in flight.
        in_flight: gauge("in_flight"),
        /// Settlements and voids that wait for the store.
        pending: gauge("pending"),
        /// Settlements and voids that wait for another ledger, or for writes of their account that the store lacks.
        pending_elsewhere: gauge("pending_elsewhere"),
        /// Limit of the retry queue (proxy.retry_queue_limit).
        pending_limit: gauge("pending_limit"),
        /// Settlements and voids that did not fit into the retry queue, or on which the script failed again and again;
        /// estimates stay charged.
        pending_dropped: counter("pending_dropped_total"),
        /// Lines of the queue's journal.
        journal_lines: gauge("pending_journal_lines"),
        /// Settlements and voids in memory alone: the journal could not be written.
        unwritten: gauge("pending_unwritten"),
        /// 1 when calls can be decided.
        ready: gauge("ready"),
        /// 1 while this process lets its calls finish before it ends.
        draining: gauge("draining"),
        /// Open connections of callers.
        callers: gauge("connections"),
        /// Limit of callers' connections (proxy.max_connections, or the number that the limit of open files allows).
        callers_max: gauge("connections_max"),
        /// Decisions refused because the store lost writes of the account; its calls are denied.
        lost_writes: counter("lost_writes_refusals_total"),
        /// Ranges of addresses that the store lost and this server keeps blocked; block them again.
        blocked_kept: gauge("blocked_ranges_kept"),
        /// Memory reserved by request bodies.
        body_bytes: gauge("body_memory_bytes"),
        /// Limit of the memory of request bodies (proxy.max_buffered_bytes).
        body_bytes_max: gauge("body_memory_max_bytes"),
        /// Memory of answers over 16 KiB that wait for their callers, without streams.
        unsent_answers: gauge("unsent_answers_bytes"),
        /// Entries of caches: owners of keys, hashes that no key has, accounts' versions, opened provider keys.
        caches: gauges("cache_entries", "cache", CACHES),
        /// Exchanges with the provider, by connection: new or reused.
        connections: counters("upstream_connections_total", "kind", CONNECTIONS),
        /// End of the edge's certificate (proxy.tls_cert), in seconds since 1970; 0 without TLS.
        pub certificate_ends: gauge("certificate_expires_timestamp_seconds"),
        /// Counted where connections are accepted.
        pub of_callers: ConnectionMetrics,
        process: ProcessMetrics,
        logs: LogMetrics,
        spans: SpanMetrics,
        /// Collected by a separate task.
        pub store: StoreMetrics,
    }
}

/// The components whose values are collected.
pub struct GaugeSources {
    /// Requests in flight.
    pub admission: Arc<RequestAdmission>,
    pub readiness: Readiness,
    pub retry_queue: Arc<RetryQueue>,
    /// `proxy.retry_queue_limit`
    pub retry_queue_limit: usize,
    /// Callers' connections.
    pub connections: Arc<Connections>,
    /// Blocked addresses.
    pub blocked: Arc<BlockedCopy>,
    /// Memory of bodies.
    pub budget: Arc<BufferBudget>,
    /// Memory of answers that wait for their callers.
    pub unsent_answers: Arc<UnsentAnswers>,
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
    /// Accounts of which the store lost writes.
    pub lost_writes: Arc<LostWritesLog>,
}

impl Gauges {
    fn refresh(&self, sources: &GaugeSources) {
        let [owners, unknown] = sources.owners.sizes();
        let caches = [owners, unknown, sources.views.len(), sources.provider_keys.len()];
        for (gauge, value) in [
            (&self.in_flight, sources.admission.in_flight()),
            (&self.pending, sources.retry_queue.len()),
            (&self.pending_elsewhere, sources.retry_queue.elsewhere()),
            (&self.pending_limit, sources.retry_queue_limit),
            (&self.journal_lines, sources.retry_queue.journal_lines()),
            (&self.unwritten, sources.retry_queue.unwritten()),
            (&self.ready, usize::from(sources.readiness.is_ready())),
            (&self.draining, usize::from(sources.admission.is_draining())),
            (&self.callers, sources.connections.open()),
            (&self.callers_max, sources.connections.max()),
            (&self.blocked_kept, sources.blocked.kept()),
            (&self.body_bytes, sources.budget.taken()),
            (&self.body_bytes_max, sources.max_buffered_bytes),
            (&self.unsent_answers, sources.unsent_answers.bytes()),
        ] {
            gauge.set(level(value));
        }
        for (gauge, entries) in self.caches.iter().zip(caches) {
            gauge.set(level(entries));
        }
        for (counter, count) in self.connections.iter().zip(sources.upstreams.connected()) {
            raise(counter, count);
        }
        raise(&self.pending_dropped, sources.retry_queue.dropped());
        raise(&self.lost_writes, sources.lost_writes.refusals());
        self.process.update();
        self.logs.refresh();
        self.spans.refresh();
        self.store.refresh();
    }
}

/// Builder of the text of `/metrics`.
pub struct Exposition {
    /// All metrics of the process.
    pub registrar: Registrar,
    /// Refreshed before each scrape.
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
