//! Telemetry: metrics ([`metrics!`], [`process`], [`store`], [`tables`]), traces ([`trace`]), and logs.
//!
//! Logs go to stderr, as text on a terminal and as JSON lines otherwise. `RUST_LOG` sets the level (default `info`).
//!
//! Libraries never log below `info`, whatever `RUST_LOG` says: at `trace` they print headers, and with them provider
//! keys. Pingora's proxy layer never logs: it reports an `error` for each caller who disconnects within a request head,
//! so strangers could fill the log. The edge logs its requests itself.

mod buffered;
mod error_chain;
mod json_line;
mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod process;
pub mod registrar;
pub mod span;
pub mod store;
pub mod tables;
pub mod trace;

pub use buffered::{LogMetrics, flush};
pub use error_chain::error_chain;
#[doc(hidden)]
pub use prometheus;

use json_line::JsonLine;
use settings::TelemetrySettings;
use std::io::IsTerminal;
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Crates whose events contain no secrets at any level.
const OWN_CRATES: [&str; 15] = [
    "api",
    "archive",
    "cli",
    "connections",
    "endpoint",
    "password",
    "people",
    "proxy",
    "sandbox",
    "server",
    "store",
    "store_health",
    "telemetry",
    "webhooks",
    "workers",
];

/// Pingora's proxy layer.
const UNHEARD: &str = "pingora_proxy";

/// Guard of logging; writes the buffer when dropped.
#[derive(Debug)]
#[must_use = "log lines that wait are written when this is dropped"]
pub struct Logs(());

impl Drop for Logs {
    fn drop(&mut self) {
        flush();
    }
}

/// Starts logging for this process. Later calls do nothing. A process that ends by `exit` calls [`flush`] first.
pub fn start() -> Logs {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,pingora=warn,pingora_core=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    let started = if std::io::stderr().is_terminal() {
        let text = builder.with_writer(std::io::stderr).with_target(false).finish();
        text.with(filter_fn(may_be_logged)).try_init()
    } else if buffered::start().is_ok() {
        let json = builder
            .json()
            .event_format(JsonLine::new())
            .with_writer(buffered::Collector)
            .finish();
        json.with(filter_fn(may_be_logged)).try_init()
    } else {
        let json = builder
            .json()
            .event_format(JsonLine::new())
            .with_writer(std::io::stderr)
            .finish();
        json.with(filter_fn(may_be_logged)).try_init()
    };
    drop(started);
    Logs(())
}

/// Starts the export of spans, if configured. Must be called inside the runtime that will do it.
pub fn export(settings: &TelemetrySettings, service: &'static str) {
    #[cfg(feature = "otlp")]
    otlp::start(settings, service);
    // A build without export has refused such settings.
    #[cfg(not(feature = "otlp"))]
    let _ = (settings, service);
}

fn may_be_logged(event: &Metadata<'_>) -> bool {
    let origin = event.target().split("::").next().unwrap_or_default();
    OWN_CRATES.contains(&origin) || (*event.level() <= Level::INFO && origin != UNHEARD)
}
