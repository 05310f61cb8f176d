//! Logs: to stderr, as text on a terminal and as JSON lines otherwise. `RUST_LOG` sets the level (default `info`).
//!
//! Libraries never log below `info`, whatever `RUST_LOG` says: at `trace` they print the headers that they send, and
//! with them the provider's keys.

use std::io::IsTerminal;
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The crates whose own events are free of secrets at every level.
const OWN_CRATES: [&str; 3] = ["shared", "proxy", "admin"];

/// Starts logging for this process. Later calls do nothing.
pub fn start() {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,pingora=warn,pingora_core=warn"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = if std::io::stderr().is_terminal() {
        let text = builder.with_target(false).finish();
        text.with(filter_fn(may_be_logged)).try_init()
    } else {
        let json = builder.json().flatten_event(true).finish();
        json.with(filter_fn(may_be_logged)).try_init()
    };
    drop(started);
}

fn may_be_logged(event: &Metadata<'_>) -> bool {
    let origin = event.target().split("::").next().unwrap_or_default();
    *event.level() <= Level::INFO || OWN_CRATES.contains(&origin)
}
