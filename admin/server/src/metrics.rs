//! The server's metrics: those that its crates registered, and those of the process. docs/reference/observability.md
//! lists them.

use crate::connection_metrics::ConnectionMetrics;
use telemetry::LogMetrics;
use telemetry::process::ProcessMetrics;
use telemetry::registrar::Registrar;
use telemetry::span::SpanMetrics;
use telemetry::store::StoreMetrics;
use telemetry::tables::TableMetrics;

/// All metrics of the server.
pub struct ServerMetrics {
    registrar: Registrar,
    process: ProcessMetrics,
    logs: LogMetrics,
    spans: SpanMetrics,
    /// Connections of the management listener and of the ops listener.
    pub connections: [ConnectionMetrics; 2],
    /// The store; a task of their own keeps them up to date.
    pub store: StoreMetrics,
    /// The tables that are read again.
    pub tables: TableMetrics,
}

impl ServerMetrics {
    /// Registers the server's own metrics beside those that are in `registrar`.
    ///
    /// # Errors
    /// When two metrics have one name, which a test excludes.
    pub fn new(registrar: Registrar) -> prometheus::Result<Self> {
        Ok(Self {
            process: ProcessMetrics::new(&registrar)?,
            logs: LogMetrics::new(&registrar)?,
            spans: SpanMetrics::new(&registrar)?,
            connections: ConnectionMetrics::both(&registrar)?,
            store: StoreMetrics::new(&registrar)?,
            tables: TableMetrics::new(&registrar)?,
            registrar,
        })
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// When the values cannot be written, which they can.
    pub fn text(&self) -> prometheus::Result<String> {
        self.registrar.text_after(|| {
            self.process.update();
            self.logs.refresh();
            self.spans.refresh();
            self.store.refresh();
        })
    }
}
