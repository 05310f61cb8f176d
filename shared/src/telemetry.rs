//! Logs: to stderr, as text on a terminal and as JSON lines otherwise. `RUST_LOG` sets the level (default `info`).

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging for this process. Later calls do nothing.
pub fn start() {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,pingora=warn,pingora_core=warn"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = if std::io::stderr().is_terminal() {
        builder.with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
    drop(started);
}
