//! Telemetry: metrics ([`metrics!`], [`process`], [`store`], [`tables`]), traces ([`trace`]), logs, and tasks whose
//! panics are noticed ([`background`]).
//!
//! Logs go to stderr, as text on a terminal and as JSON lines otherwise. `RUST_LOG` sets the level (default `info`); a
//! mistake in it stops the start.
//!
//! Libraries never log below `info`, whatever `RUST_LOG` contains: at `trace` they print headers, including provider
//! keys. Pingora's proxy layer never logs: it reports an `error` for each caller who disconnects within a request head,
//! so strangers could fill the log. The edge itself logs its requests and the outcome of a hand-over.

pub mod background;
mod buffered;
mod error_chain;
mod filter;
mod json_line;
mod line_allowance;
mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
mod paced_line;
pub mod process;
pub mod registrar;
pub mod span;
pub mod store;
pub mod tables;
pub mod trace;

pub use buffered::{LogMetrics, flush};
pub use error_chain::error_chain;
pub use line_allowance::{LINES_PER_SECOND, LineAllowance};
pub use paced_line::PacedLine;
#[doc(hidden)]
pub use prometheus;

use json_line::JsonLine;
use settings::{BadSettings, TelemetrySettings};
use std::io::IsTerminal;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Guard of logging; writes the buffer when dropped.
#[derive(Debug)]
#[must_use = "log lines that wait are written when this is dropped"]
pub struct Logs(());

impl Drop for Logs {
    fn drop(&mut self) {
        flush();
    }
}

/// Starts logging for this process. Later calls have no effect. A process that ends by `exit` must call [`flush`]
/// first.
///
/// # Errors
/// [`BadSettings`] for a mistake in `RUST_LOG`.
pub fn start() -> Result<Logs, BadSettings> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter::from_env()?);
    let started = if std::io::stderr().is_terminal() {
        let text = builder.with_writer(std::io::stderr).with_target(false).finish();
        text.with(filter_fn(filter::may_be_logged)).try_init()
    } else if buffered::start().is_ok() {
        let json = builder
            .json()
            .event_format(JsonLine::new())
            .with_writer(buffered::LineCollector)
            .finish();
        json.with(filter_fn(filter::may_be_logged)).try_init()
    } else {
        let json = builder
            .json()
            .event_format(JsonLine::new())
            .with_writer(std::io::stderr)
            .finish();
        json.with(filter_fn(filter::may_be_logged)).try_init()
    };
    drop(started);
    Ok(Logs(()))
}

/// Starts the export of spans, if configured. Must be called inside the runtime that will export them.
pub fn export(settings: &TelemetrySettings, service: &'static str) {
    #[cfg(feature = "otlp")]
    otlp::start(settings, service);
    // A build without export has refused such settings.
    #[cfg(not(feature = "otlp"))]
    let _ = (settings, service);
}
