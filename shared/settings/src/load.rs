//! Loads the configuration: compiled-in defaults, then the file, then the environment.

use super::{BadSettings, Settings, StoreSettings, TelemetrySettings, UpstreamSettings};
use crate::bounds::{self, CLOCK_DIFFERENCE_MS_MIN};
use crate::collector::Collector;
use crate::upstreams::{self, EnvSetting, NAME_MAX};
use crate::{listeners, master_key, public_url, slot, variables};
use domain::budget::Budgets;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use toml::{Table, Value};

/// Path of the configuration without `--config`.
pub const DEFAULT_FILE: &str = "config/tollgate.toml";
const DEFAULTS: &str = include_str!("../../../config/tollgate.toml");
/// End of the parser's message about an integer of more than 64 bits.
const NO_TOML_NUMBER: &str = "expected any valid TOML value";
/// The section whose keys are subsections with names chosen by the operator.
const UPSTREAMS: &str = "upstreams";

/// Returns `store.max_clock_difference_ms` of the compiled-in configuration. A test verifies that it can be parsed.
pub fn default_max_clock_difference_ms() -> u64 {
    load_from(None, std::iter::empty()).map_or(CLOCK_DIFFERENCE_MS_MIN.unsigned_abs(), |settings| {
        settings.store.max_clock_difference_ms
    })
}

/// Returns the budgets of the compiled-in configuration. A test verifies that they can be parsed.
pub fn default_budgets() -> Budgets {
    load_from(None, std::iter::empty()).map_or(Budgets::new(|_| 0), |settings| settings.limits.budgets())
}

/// Loads the configuration from `file` (or the default file, if it exists) and the process's environment.
///
/// # Errors
/// [`BadSettings`]: one line that names the key or file.
pub fn load(file: Option<&Path>) -> Result<Settings, BadSettings> {
    let base = match path_of(file) {
        Some(path) => read(path)?,
        None => BaseSettings::new(None)?,
    };
    assemble(base, variables::read()?.into_iter())
}

/// Returns the file that [`load`] reads; `None` if it takes only the environment and the defaults.
fn path_of(file: Option<&Path>) -> Option<&Path> {
    let default = Path::new(DEFAULT_FILE);
    file.or_else(|| default.exists().then_some(default))
}

/// Returns where the settings come from, for a log line at the start of a server.
pub fn source(file: Option<&Path>) -> String {
    path_of(file).map_or_else(
        || format!("no file: there is no {DEFAULT_FILE} in the working directory"),
        |path| path.display().to_string(),
    )
}

/// The defaults, overridden by the settings of a file.
struct BaseSettings {
    settings: Table,
    /// `[upstreams]` of the file.
    upstreams: Option<Value>,
}

impl BaseSettings {
    fn new(given: Option<Table>) -> Result<Self, BadSettings> {
        let (mut settings, mut upstreams) = (parse(DEFAULTS)?, None);
        if let Some(mut given) = given {
            upstreams = given.remove(UPSTREAMS);
            master_key::check_file(&given)?;
            merge(&mut settings, given)?;
        }
        Ok(Self { settings, upstreams })
    }
}

/// Reads a file. Errors name it.
fn read(path: &Path) -> Result<BaseSettings, BadSettings> {
    let named = |error: &dyn std::fmt::Display| BadSettings(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let base = parse(&text).and_then(|given| BaseSettings::new(Some(given)));
    base.map_err(|error| named(&error))
}

/// Like [`load`], from a text and a list of variables.
///
/// # Errors
/// [`BadSettings`]: one line that names the key.
pub fn load_from(
    text: Option<&str>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Settings, BadSettings> {
    assemble(BaseSettings::new(text.map(parse).transpose()?)?, env)
}

fn assemble(
    base: BaseSettings,
    env: impl Iterator<Item = (String, String)>,
) -> Result<Settings, BadSettings> {
    let BaseSettings {
        mut settings,
        upstreams: in_file,
    } = base;
    let mut in_env = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in env {
        let Some(rest) = name.strip_prefix(variables::PREFIX) else {
            continue;
        };
        let Some((section, key)) = rest.split_once("__") else {
            variables::check_name(&name, &settings, &[UPSTREAMS])?;
            continue;
        };
        let (section, key) = (section.to_lowercase(), key.to_lowercase());
        if section == UPSTREAMS {
            in_env.push(EnvSetting {
                path: key,
                value,
                variable: name,
            });
            continue;
        }
        set(&mut settings, &section, &key, &value, &name)?;
        if section == master_key::SECTION && !value.is_empty() {
            secrets.push((name, key));
        }
    }
    let secrets = secrets.iter().map(|(name, key)| (name.as_str(), key.as_str()));
    master_key::apply_environment_override(&mut settings, secrets)?;
    bounds::check(&settings)?;
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
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).map_or(0, |before| before.matches('\n').count());
        let key = text.lines().nth(line).and_then(known_key);
        let key = key.map_or_else(String::new, |key| format!("`{key}`: "));
        let message = match error.message() {
            message if message.ends_with(NO_TOML_NUMBER) => "the number has more than 64 bits",
            message => message,
        };
        BadSettings(format!("line {}: {key}{message}", line + 1))
    })
}

/// Returns the key of a line, if it is one of the configuration: any other text of the line can be a secret.
fn known_key(line: &str) -> Option<&str> {
    let key = key_of(line)?;
    let mut known = DEFAULTS.lines().map(|line| line.trim_start_matches("# "));
    known.any(|line| key_of(line) == Some(key)).then_some(key)
}

fn key_of(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
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
            slot::fill(slot, &format!("{section}.{key}"), value)?;
        }
    }
    Ok(())
}

/// Overrides one setting from the environment. The type of the default determines the type.
fn set(settings: &mut Table, section: &str, key: &str, text: &str, name: &str) -> Result<(), BadSettings> {
    let slot = settings.get_mut(section).and_then(|keys| keys.get_mut(key));
    let slot = slot.ok_or_else(|| {
        BadSettings(format!(
            "unknown key `{section}.{key}` in the environment ({name})"
        ))
    })?;
    slot::fill_from_env(slot, name, text, |word| {
        word.parse()
            .map_or_else(|_| Value::String(word.to_owned()), Value::Integer)
    })
}

/// Validates rules that neither the types nor the [bounds](bounds::BOUNDS) express.
fn check(settings: &Settings) -> Result<(), BadSettings> {
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
    listeners::check(settings)?;
    check_sessions(settings)?;
    public_url::check(settings)?;
    check_telemetry(&settings.telemetry)?;
    if settings.audit.archive_intents_after_days < settings.idempotency.retention_days {
        return Err(BadSettings(
            "`audit.archive_intents_after_days` must be at least `idempotency.retention_days`".to_owned(),
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
    if !(1..=sessions.absolute_hours * 60).contains(&sessions.idle_minutes) {
        return Err(BadSettings(
            "`sessions.idle_minutes` must be from 1 to `sessions.absolute_hours`".to_owned(),
        ));
    }
    Ok(())
}
