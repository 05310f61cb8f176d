//! Selects the events to log: those that `RUST_LOG` enables, of those that any deployment may log.

use settings::BadSettings;
use std::env::VarError;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;

/// The variable that sets levels.
const VARIABLE: &str = "RUST_LOG";
/// Default of `RUST_LOG`, also if it is empty.
const DEFAULT: &str = "info,pingora=warn,pingora_core=warn";

/// Crates whose events contain no secrets at any level.
pub(super) const OWN_CRATES: [&str; 15] = [
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
/// Pingora's side of a hand-over, which logs an error for each second that a new process waits for the sockets.
/// Tollgate itself logs the outcome of the hand-over on both sides.
const SILENCED_HANDOVER: &str = "pingora_core::server::transfer_fd";

/// Reads `RUST_LOG`.
///
/// # Errors
/// [`BadSettings`]: a mistake in it, which could also silence errors.
pub(super) fn from_env() -> Result<EnvFilter, BadSettings> {
    match std::env::var(VARIABLE) {
        Ok(value) => parse(&value),
        Err(VarError::NotPresent) => parse(""),
        Err(VarError::NotUnicode(_)) => Err(BadSettings(format!("{VARIABLE} is no UTF-8 text"))),
    }
}

/// Parses a value. Each word is a level or names the level of a target: the library takes any other word for a target,
/// and then logs nothing else.
fn parse(value: &str) -> Result<EnvFilter, BadSettings> {
    let value = match value.trim() {
        "" => DEFAULT,
        value => value,
    };
    let bad = || {
        BadSettings(format!(
            "{VARIABLE} is `{}`: it must be off, error, warn, info, debug or trace, or a list such as \
             info,store=debug",
            value.escape_debug()
        ))
    };
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    if !words.iter().all(|word| names_level(word)) {
        return Err(bad());
    }
    let filter = EnvFilter::builder().parse(words.join(","));
    filter.map_err(|_| bad())
}

fn names_level(word: &str) -> bool {
    let level = word.rsplit_once('=').map_or(word, |(_, level)| level);
    !level.is_empty() && level.parse::<LevelFilter>().is_ok()
}

pub(super) fn may_be_logged(event: &Metadata<'_>) -> bool {
    is_logged(event.target(), *event.level())
}

fn is_logged(target: &str, level: Level) -> bool {
    let origin = target.split("::").next().unwrap_or_default();
    OWN_CRATES.contains(&origin) || (level <= Level::INFO && origin != UNHEARD && target != SILENCED_HANDOVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_logged_without_details_and_pingora_without_what_is_usual() {
        for (target, level, logged) in [
            ("proxy::call::request_trace", Level::DEBUG, true),
            ("rustls::conn", Level::WARN, true),
            ("hyper::client", Level::DEBUG, false),
            ("pingora_proxy", Level::ERROR, false),
            ("pingora_core::server::transfer_fd", Level::ERROR, false),
            ("pingora_core::server", Level::ERROR, true),
        ] {
            assert_eq!(is_logged(target, level), logged, "{target} {level}");
        }
    }

    #[test]
    fn levels_and_levels_of_targets_are_read() {
        for (value, most) in [
            ("warn", LevelFilter::WARN),
            ("WARN", LevelFilter::WARN),
            ("off", LevelFilter::OFF),
            ("trace", LevelFilter::TRACE),
            ("info,store=debug", LevelFilter::DEBUG),
            ("warn, proxy::call=info", LevelFilter::INFO),
            ("", LevelFilter::INFO),
            (" ", LevelFilter::INFO),
        ] {
            let filter = parse(value).unwrap();
            assert_eq!(filter.max_level_hint(), Some(most), "{value}");
        }
    }

    /// Such a word was read as a target at `trace`, so that nothing else was logged, or as the default.
    #[test]
    fn a_word_that_is_no_level_is_refused_with_its_value_and_what_is_allowed() {
        for value in [
            "warning",
            "inof",
            "store",
            "info,stroe",
            "info,",
            "store=",
            "store=verbose",
            "foo=bar=baz",
            "[span",
            "7",
        ] {
            let error = parse(value).unwrap_err().to_string();
            let named = format!("RUST_LOG is `{value}`: it must be off, error, warn, info");
            assert!(error.starts_with(&named), "{error}");
        }
    }
}
