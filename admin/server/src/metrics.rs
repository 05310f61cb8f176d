//! The server's metrics: those that its crates registered, and those of the process. docs/reference/observability.md
//! lists them.

use crate::connection_metrics::ListenerMetrics;
use telemetry::LogMetrics;
use telemetry::process::ProcessMetrics;
use telemetry::registrar::Registrar;
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;
use telemetry::tables::TableMetrics;

/// Metrics of process, log, spans, listeners, store and tables, with the registry of the whole server.
pub struct ServerMetrics {
    registrar: Registrar,
    process: ProcessMetrics,
    logs: LogMetrics,
    spans: SpanMetrics,
    /// Connections of the management listener and of the ops listener.
    pub connections: [ListenerMetrics; 2],
    /// Metrics of the store, kept up to date by a separate task.
    pub store: StoreMetrics,
    /// The tables that are read again.
    pub tables: TableMetrics,
}

impl ServerMetrics {
    /// Registers the server's own metrics in addition to those in `registrar`.
    ///
    /// # Errors
    /// Two metrics have the same name, which a test excludes.
    pub fn new(registrar: Registrar) -> prometheus::Result<Self> {
        Ok(Self {
            process: ProcessMetrics::new(&registrar)?,
            logs: LogMetrics::new(&registrar)?,
            spans: SpanMetrics::new(&registrar)?,
            connections: ListenerMetrics::both(&registrar)?,
            store: StoreMetrics::new(&registrar)?,
            tables: TableMetrics::new(&registrar)?,
            registrar,
        })
    }

    /// Returns the text of `/metrics`.
    ///
    /// # Errors
    /// The values cannot be encoded, which does not occur.
    pub fn text(&self) -> prometheus::Result<String> {
        self.registrar.text_after(|| {
            self.process.update();
            self.logs.refresh();
            self.spans.refresh();
            self.store.refresh();
        })
    }
}
