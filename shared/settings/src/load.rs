//! Loads the configuration: compiled-in defaults, then the file, then the environment.

use super::{BadSettings, Settings, StoreSettings, TelemetrySettings, UpstreamSettings};
use crate::collector::Collector;
use crate::public_url;
use crate::upstreams::{self, EnvSetting, NAME_MAX};
use domain::budget::Budgets;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use toml::{Table, Value};

/// Path of the configuration without `--config`.
pub const DEFAULT_FILE: &str = "config/tollgate.toml";
const DEFAULTS: &str = include_str!("../../../config/tollgate.toml");
const ENV_PREFIX: &str = "TOLLGATE_";
/// The section whose keys are sections with names of the operator's.
const UPSTREAMS: &str = "upstreams";
/// Longest retention of idempotency keys (decision D26).
const RETENTION_DAYS: std::ops::RangeInclusive<u64> = 30..=36_500;
/// Least memory for request bodies of the admin server: an account's quarter of it must hold the longest body.
const ADMIN_BUFFERED_BYTES_MIN: usize = 4 << 20;
/// Most key owners that an edge can cache; each takes some 400 bytes.
const REMEMBERED_KEYS: std::ops::RangeInclusive<usize> = 1..=10_000_000;
/// Longest time for a load balancer to notice, in ms.
const DRAIN_DELAY_MS_MAX: u64 = 300_000;
/// Longest configurable duration in ms: 7 days. Sums of several stay far below what timers, and doubles in the store's
/// scripts, hold exactly.
const DURATION_MS_MAX: u64 = 7 * 24 * 3_600_000;
/// Longest configurable duration in hours: a year.
const DURATION_HOURS_MAX: u64 = 365 * 24;
/// Longest configurable duration in days: that of idempotency keys.
const DURATION_DAYS_MAX: u64 = *RETENTION_DAYS.end();
/// Longest configurable lifetime of a session.
const ABSOLUTE_HOURS: std::ops::RangeInclusive<u64> = 1..=720;

/// Most that clocks of store and process may differ by, in ms: no less than the alert `TollgateStoreClock` allows, so
/// that it fires whenever everything is denied, and less than a period.
const CLOCK_DIFFERENCE_MS: std::ops::RangeInclusive<u64> = 60_000..=3_600_000;

/// `store.max_clock_difference_ms` of the compiled-in configuration; a test excludes that it cannot be parsed.
pub fn default_max_clock_difference_ms() -> u64 {
    load_from(None, std::iter::empty()).map_or(*CLOCK_DIFFERENCE_MS.start(), |settings| {
        settings.store.max_clock_difference_ms
    })
}

/// Budgets of the compiled-in configuration; a test excludes that it cannot be parsed.
pub fn default_budgets() -> Budgets {
    load_from(None, std::iter::empty()).map_or(Budgets::new(|_| 0), |settings| settings.limits.budgets())
}

/// Loads the configuration from `file` (or the default file, if it exists) and the process's environment.
///
/// # Errors
/// [`BadSettings`]: one line that names the key or file.
pub fn load(file: Option<&Path>) -> Result<Settings, BadSettings> {
    let given = match file {
        Some(path) => Some(read(path)?),
        None if Path::new(DEFAULT_FILE).exists() => Some(read(Path::new(DEFAULT_FILE))?),
        None => None,
    };
    assemble(given, environment()?.into_iter())
}

fn read(path: &Path) -> Result<Table, BadSettings> {
    let named = |error: &dyn std::fmt::Display| BadSettings(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    parse(&text).map_err(|error| named(&error))
}

/// Environment variables that may be settings; others may hold any bytes.
fn environment() -> Result<Vec<(String, String)>, BadSettings> {
    let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let ours = ours.filter(|(name, _)| name.starts_with(ENV_PREFIX));
    ours.map(|(name, value)| match value.into_string() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(BadSettings(format!("{name} is no UTF-8 text"))),
    })
    .collect()
}

/// Like [`load`], from a text and a list of variables.
///
/// # Errors
/// [`BadSettings`]: one line that names the key.
pub fn load_from(
    text: Option<&str>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Settings, BadSettings> {
    assemble(text.map(parse).transpose()?, env)
}

fn assemble(
    given: Option<Table>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Settings, BadSettings> {
    let mut settings = parse(DEFAULTS)?;
    let (mut in_file, mut in_env) = (None, Vec::new());
    if let Some(mut given) = given {
        in_file = given.remove(UPSTREAMS);
        merge(&mut settings, given)?;
    }
    for (name, value) in env {
        let setting = name
            .strip_prefix(ENV_PREFIX)
            .and_then(|rest| rest.split_once("__"));
        let Some((section, key)) = setting.map(|(section, key)| (section.to_lowercase(), key.to_lowercase()))
        else {
            continue;
        };
        match section == UPSTREAMS {
            true => in_env.push(EnvSetting {
                path: key,
                value,
                variable: name,
            }),
            false => set(&mut settings, &section, &key, &value, &name)?,
        }
    }
    let upstream = settings.get("upstream").and_then(Value::as_table);
    let named = upstreams::read(in_file, in_env, upstream.unwrap_or(&Table::new()))?;
    let mut settings: Settings = settings
        .try_into()
        .map_err(|error: toml::de::Error| one_line(&error))?;
    settings.upstreams = named;
    check(&settings)?;
    read_url(&mut settings.store)?;
    Ok(settings)
}

/// Reads the store's address from its file, if one is configured.
fn read_url(store: &mut StoreSettings) -> Result<(), BadSettings> {
    let file = &store.url_file;
    if file.as_os_str().is_empty() {
        return Ok(());
    }
    let named = |what: &str| BadSettings(format!("store.url_file {}: {what}", file.display()));
    let text: SecretString = std::fs::read_to_string(file)
        .map_err(|error| named(&error.to_string()))?
        .into();
    let mut lines = text.expose_secret().lines().map(str::trim);
    match (
        lines.next().filter(|line| !line.is_empty()),
        lines.any(|line| !line.is_empty()),
    ) {
        (Some(url), false) => store.url = url.into(),
        _ => return Err(named("it must hold one line, the address")),
    }
    Ok(())
}

fn one_line(error: &toml::de::Error) -> BadSettings {
    let key = error.to_string().lines().last().unwrap_or_default().to_owned();
    let message = error.message();
    BadSettings(if key == message {
        key
    } else {
        format!("{message} ({key})")
    })
}

fn parse(text: &str) -> Result<Table, BadSettings> {
    text.parse().map_err(|error: toml::de::Error| {
        let at = error
            .span()
            .map_or(0, |span| text[..span.start].lines().count().max(1));
        BadSettings(format!("line {at}: {}", error.message()))
    })
}

/// Overrides the defaults by the file's settings. The defaults contain every setting.
fn merge(settings: &mut Table, given: Table) -> Result<(), BadSettings> {
    for (section, keys) in given {
        let Some(Value::Table(known)) = settings.get_mut(&section) else {
            return Err(BadSettings(format!("unknown section `{section}`")));
        };
        let Value::Table(keys) = keys else {
            return Err(BadSettings(format!("`{section}` must be a section")));
        };
        for (key, value) in keys {
            let Some(slot) = known.get_mut(&key) else {
                return Err(BadSettings(format!("unknown key `{section}.{key}`")));
            };
            if !slot.same_type(&value) {
                let (wanted, found) = (slot.type_str(), value.type_str());
                return Err(BadSettings(format!(
                    "`{section}.{key}` must be a {wanted}, not a {found}"
                )));
            }
            *slot = value;
        }
    }
    Ok(())
}

/// Overrides one setting from the environment; its default determines the type.
fn set(settings: &mut Table, section: &str, key: &str, text: &str, name: &str) -> Result<(), BadSettings> {
    let slot = settings.get_mut(section).and_then(|keys| keys.get_mut(key));
    let slot = slot.ok_or_else(|| {
        BadSettings(format!(
            "unknown key `{section}.{key}` in the environment ({name})"
        ))
    })?;
    let bad = |what: &str| BadSettings(format!("{name} must be {what}"));
    *slot = match slot {
        Value::Integer(_) => Value::Integer(text.parse().map_err(|_| bad("an integer"))?),
        Value::Float(_) => Value::Float(text.parse().map_err(|_| bad("a number"))?),
        Value::Boolean(_) => Value::Boolean(text.parse().map_err(|_| bad("true or false"))?),
        Value::Array(_) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            let number = |word: &str| {
                word.parse()
                    .map_or_else(|_| Value::String(word.to_owned()), Value::Integer)
            };
            Value::Array(words.map(number).collect())
        }
        _ => Value::String(text.to_owned()),
    };
    Ok(())
}

/// Validates what the types do not express.
fn check(settings: &Settings) -> Result<(), BadSettings> {
    let positive = [
        ("store.timeout_ms", settings.store.timeout_ms),
        (
            "store.durability_timeout_ms",
            settings.store.durability_timeout_ms,
        ),
        ("proxy.client_timeout_ms", settings.proxy.client_timeout_ms),
        ("upstream.timeout_ms", settings.upstream.timeout_ms),
        ("proxy.stream_first_byte_ms", settings.proxy.stream_first_byte_ms),
        ("proxy.stream_idle_ms", settings.proxy.stream_idle_ms),
        ("proxy.stream_total_ms", settings.proxy.stream_total_ms),
        ("proxy.max_connections", settings.proxy.max_connections as u64),
        (
            "proxy.max_connections_per_address",
            settings.proxy.max_connections_per_address as u64,
        ),
        ("proxy.max_body_bytes", settings.proxy.max_body_bytes as u64),
        (
            "upstream.max_response_bytes",
            settings.upstream.max_response_bytes as u64,
        ),
        ("admin.max_connections", settings.admin.max_connections as u64),
        (
            "admin.max_connections_per_address",
            settings.admin.max_connections_per_address as u64,
        ),
        ("admin.client_timeout_ms", settings.admin.client_timeout_ms),
        ("webhooks.timeout_ms", settings.webhooks.timeout_ms),
        ("webhooks.max_attempts", settings.webhooks.max_attempts.into()),
        (
            "webhooks.endpoints_at_once",
            settings.webhooks.endpoints_at_once as u64,
        ),
        (
            "webhooks.requests_at_once",
            settings.webhooks.requests_at_once as u64,
        ),
        ("webhooks.waiting_max", settings.webhooks.waiting_max),
        ("webhooks.history_max", settings.webhooks.history_max),
        ("audit.seal_every_ms", settings.audit.seal_every_ms),
        ("audit.checkpoint_every_ms", settings.audit.checkpoint_every_ms),
        ("audit.archive_after_days", settings.audit.archive_after_days),
        (
            "audit.archive_after_entries",
            settings.audit.archive_after_entries,
        ),
        ("audit.segment_entries", settings.audit.segment_entries as u64),
        (
            "limits.test_requests_per_minute",
            settings.limits.test_requests_per_minute,
        ),
        (
            "limits.session_requests_per_minute",
            settings.limits.session_requests_per_minute,
        ),
    ];
    if let Some((key, _)) = positive.iter().find(|(_, value)| *value == 0) {
        return Err(BadSettings(format!("`{key}` must be greater than zero")));
    }
    check_durations(settings)?;
    if !(0.0..=1.0).contains(&settings.limits.guard_share) {
        return Err(BadSettings(
            "`limits.guard_share` must be from 0.0 to 1.0".to_owned(),
        ));
    }
    if settings.proxy.max_buffered_bytes / 2 < settings.proxy.max_body_bytes {
        return Err(BadSettings(
            "`proxy.max_buffered_bytes` must be at least twice `proxy.max_body_bytes`".to_owned(),
        ));
    }
    if settings.admin.max_buffered_bytes < ADMIN_BUFFERED_BYTES_MIN {
        return Err(BadSettings(format!(
            "`admin.max_buffered_bytes` must be at least {ADMIN_BUFFERED_BYTES_MIN}"
        )));
    }
    if !REMEMBERED_KEYS.contains(&settings.proxy.max_remembered_keys) {
        let (least, most) = (REMEMBERED_KEYS.start(), REMEMBERED_KEYS.end());
        return Err(BadSettings(format!(
            "`proxy.max_remembered_keys` must be from {least} to {most}"
        )));
    }
    if !CLOCK_DIFFERENCE_MS.contains(&settings.store.max_clock_difference_ms) {
        let (least, most) = (CLOCK_DIFFERENCE_MS.start(), CLOCK_DIFFERENCE_MS.end());
        return Err(BadSettings(format!(
            "`store.max_clock_difference_ms` must be from {least} to {most}"
        )));
    }
    let delays = [
        ("proxy.drain_delay_ms", settings.proxy.drain_delay_ms),
        ("admin.drain_delay_ms", settings.admin.drain_delay_ms),
    ];
    if let Some((key, _)) = delays.iter().find(|(_, delay)| *delay > DRAIN_DELAY_MS_MAX) {
        return Err(BadSettings(format!(
            "`{key}` must be at most {DRAIN_DELAY_MS_MAX}"
        )));
    }
    if !RETENTION_DAYS.contains(&settings.idempotency.retention_days) {
        let (least, most) = (RETENTION_DAYS.start(), RETENTION_DAYS.end());
        return Err(BadSettings(format!(
            "`idempotency.retention_days` must be from {least} to {most}"
        )));
    }
    check_sessions(settings)?;
    public_url::check(settings)?;
    check_telemetry(&settings.telemetry)?;
    if settings.audit.archive_intents_after_days < settings.idempotency.retention_days {
        return Err(BadSettings(
            "`audit.archive_intents_after_days` must be at least `idempotency.retention_days`".to_owned(),
        ));
    }
    let empty = |path: &Path| path.as_os_str().is_empty();
    if empty(&settings.proxy.tls_cert) != empty(&settings.proxy.tls_key) {
        return Err(BadSettings(
            "`proxy.tls_cert` and `proxy.tls_key` belong together".to_owned(),
        ));
    }
    let UpstreamSettings {
        base_url, provider, ..
    } = &settings.upstream;
    upstreams::check_base_url(base_url).map_err(|what| BadSettings(format!("`upstream.base_url` {what}")))?;
    if !upstreams::is_provider_name(provider) {
        return Err(BadSettings(format!(
            "`upstream.provider` must be 1 to {NAME_MAX} characters of a-z 0-9 . _ -"
        )));
    }
    Ok(())
}

/// Bounds every duration that no other rule bounds.
fn check_durations(settings: &Settings) -> Result<(), BadSettings> {
    let Settings {
        store,
        proxy,
        upstream,
        admin,
        webhooks,
        audit,
        ..
    } = settings;
    let millis = [
        ("store.timeout_ms", store.timeout_ms),
        ("store.durability_timeout_ms", store.durability_timeout_ms),
        ("proxy.client_timeout_ms", proxy.client_timeout_ms),
        ("proxy.hold_grace_ms", proxy.hold_grace_ms),
        ("proxy.drain_ms", proxy.drain_ms),
        ("proxy.stream_first_byte_ms", proxy.stream_first_byte_ms),
        ("proxy.stream_idle_ms", proxy.stream_idle_ms),
        ("proxy.stream_total_ms", proxy.stream_total_ms),
        ("proxy.stream_drain_ms", proxy.stream_drain_ms),
        ("upstream.timeout_ms", upstream.timeout_ms),
        ("admin.client_timeout_ms", admin.client_timeout_ms),
        ("webhooks.timeout_ms", webhooks.timeout_ms),
        ("audit.seal_every_ms", audit.seal_every_ms),
        ("audit.checkpoint_every_ms", audit.checkpoint_every_ms),
    ];
    let delays = webhooks
        .retry_delays_ms
        .iter()
        .map(|delay| ("webhooks.retry_delays_ms".to_owned(), *delay));
    let named = settings.upstreams.all().iter();
    let named = named.map(|named| (format!("upstreams.{}.timeout_ms", named.name), named.timeout_ms));
    let millis = millis.map(|(key, value)| (key.to_owned(), value));
    let millis = millis.into_iter().chain(delays).chain(named);
    let longer = [
        (
            "webhooks.secret_overlap_hours",
            webhooks.secret_overlap_hours,
            DURATION_HOURS_MAX,
        ),
        (
            "audit.archive_after_days",
            audit.archive_after_days,
            DURATION_DAYS_MAX,
        ),
        (
            "audit.archive_intents_after_days",
            audit.archive_intents_after_days,
            DURATION_DAYS_MAX,
        ),
    ];
    let longer = longer.map(|(key, value, most)| (key.to_owned(), value, most));
    let mut all = millis
        .map(|(key, value)| (key, value, DURATION_MS_MAX))
        .chain(longer);
    match all.find(|(_, value, most)| value > most) {
        Some((key, _, most)) => Err(BadSettings(format!("`{key}` must be at most {most}"))),
        None => Ok(()),
    }
}

/// Validates the export of spans, in this build.
fn check_telemetry(telemetry: &TelemetrySettings) -> Result<(), BadSettings> {
    if !(0.0..=1.0).contains(&telemetry.sample_ratio) {
        return Err(BadSettings(
            "`telemetry.sample_ratio` must be from 0.0 to 1.0".to_owned(),
        ));
    }
    let collector = Collector::from_settings(telemetry).map_err(BadSettings)?;
    if collector.is_some() && !cfg!(feature = "otlp") {
        return Err(BadSettings(
            "`telemetry.otlp_endpoint` is set, and this program was built without the feature `otlp`"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Validates idle time against lifetime.
fn check_sessions(settings: &Settings) -> Result<(), BadSettings> {
    let sessions = &settings.sessions;
    if !ABSOLUTE_HOURS.contains(&sessions.absolute_hours) {
        let (least, most) = (ABSOLUTE_HOURS.start(), ABSOLUTE_HOURS.end());
        return Err(BadSettings(format!(
            "`sessions.absolute_hours` must be from {least} to {most}"
        )));
    }
    if !(1..=sessions.absolute_hours * 60).contains(&sessions.idle_minutes) {
        return Err(BadSettings(
            "`sessions.idle_minutes` must be from 1 to `sessions.absolute_hours`".to_owned(),
        ));
    }
    Ok(())
}
