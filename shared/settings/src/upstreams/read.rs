//! Reads `[upstreams]` from the file and the environment.

use super::path_template::{PATH_BYTES_MAX, PathTemplate, is_query};
use super::pattern::{ModelPattern, PATTERN_BYTES_MAX};
use super::{
    Auth, NAME_MAX, NamedUpstream, NamedUpstreams, OPENAI, OPENAI_KEY_PREFIX, PATTERNS_MAX, StreamUsage,
    UPSTREAMS_MAX, check_base_url,
};
use crate::BadSettings;
use crate::bounds::{USAGE_TOKENS, WEEK_MS, check_number};
use crate::slot::{fill, fill_from_env};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use toml::{Table, Value};

/// Longest `key_prefix` and `price_prefix`, in characters.
pub(super) const PREFIX_MAX: usize = 64;
/// Values of `billed_statuses`.
const CLIENT_ERRORS: RangeInclusive<u16> = 400..=499;
/// Bounds of a time.
const MILLISECONDS: &RangeInclusive<i64> = &(1..=WEEK_MS);
/// Keys that an upstream inherits from `[upstream]` if they are not set.
const INHERITED: [&str; 2] = ["timeout_ms", "forward_headers"];

/// The setting in one variable, `TOLLGATE_UPSTREAMS__<NAME>__<KEY>`.
pub(crate) struct EnvSetting {
    /// Name of the variable.
    pub(crate) variable: String,
    /// Name and key, in lower case: `azure__base_url`.
    pub(crate) path: String,
    /// Value of the variable.
    pub(crate) value: String,
}

/// Reads the upstreams of the file and of the environment. `upstream` is the complete section `[upstream]`.
///
/// # Errors
/// [`BadSettings`]: one line that names the key.
pub(crate) fn read(
    file: Option<Value>,
    mut env: Vec<EnvSetting>,
    upstream: &Table,
) -> Result<NamedUpstreams, BadSettings> {
    let mut all: Vec<UpstreamSection> = Vec::new();
    for (name, keys) in table("upstreams", file.unwrap_or_else(|| Value::Table(Table::new())))? {
        let mut section = UpstreamSection::new(name, upstream)?;
        let name = section.name.clone();
        for (key, value) in table(&format!("upstreams.{name}"), keys)? {
            fill(section.slot(&key)?, &format!("upstreams.{name}.{key}"), value)?;
        }
        all.push(section);
    }
    env.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    for setting in env {
        set(&mut all, &setting, upstream)?;
    }
    if all.len() > UPSTREAMS_MAX {
        return Err(BadSettings(format!(
            "`upstreams` must be at most {UPSTREAMS_MAX}"
        )));
    }
    let provider = upstream
        .get("provider")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let read = all.iter().map(|section| {
        if section.name.eq_ignore_ascii_case(provider) {
            return Err(BadSettings(format!(
                "`upstreams.{}` has the name of `upstream.provider`: the same key would be sent to both",
                section.name
            )));
        }
        section.upstream()
    });
    read.collect::<Result<_, _>>().map(NamedUpstreams)
}

fn table(named: &str, value: Value) -> Result<Table, BadSettings> {
    match value {
        Value::Table(table) => Ok(table),
        _ => Err(BadSettings(format!("`{named}` must be a section"))),
    }
}

/// Returns the defaults of an upstream, which contain every key.
fn defaults(name: &str, upstream: &Table) -> Result<Table, BadSettings> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if !(1..=NAME_MAX).contains(&name.len()) || !name.bytes().all(plain) {
        return Err(BadSettings(format!(
            "`upstreams.{name}`: a name has 1 to {NAME_MAX} characters of a-z 0-9 _ -"
        )));
    }
    let texts = [
        ("base_url", String::new()),
        ("auth", "bearer".to_owned()),
        ("chat_path", "/chat/completions".to_owned()),
        ("responses_path", "/responses".to_owned()),
        ("embeddings_path", "/embeddings".to_owned()),
        ("query", String::new()),
        ("ca_file", String::new()),
        ("stream_usage", "ask".to_owned()),
        ("key_prefix", String::new()),
        ("price_prefix", format!("{name}/")),
    ];
    let mut settings: Table = texts
        .into_iter()
        .map(|(key, text)| (key.to_owned(), Value::String(text)))
        .collect();
    for key in ["models", "billed_statuses"] {
        settings.insert(key.to_owned(), Value::Array(Vec::new()));
    }
    settings.insert("reported_cost".to_owned(), Value::Boolean(false));
    settings.insert("usage_tokens_max".to_owned(), Value::Integer(*USAGE_TOKENS.end()));
    for key in ["stream_first_byte_ms", "stream_idle_ms"] {
        settings.insert(key.to_owned(), Value::Integer(0));
    }
    for key in INHERITED {
        if let Some(value) = upstream.get(key) {
            settings.insert(key.to_owned(), value.clone());
        }
    }
    Ok(settings)
}

/// Overrides one key from the environment. The name ends at the last `__`, since keys do not contain it.
fn set(all: &mut Vec<UpstreamSection>, setting: &EnvSetting, upstream: &Table) -> Result<(), BadSettings> {
    let EnvSetting {
        variable,
        path,
        value,
    } = setting;
    let bad = |what: &str| BadSettings(format!("{variable} must be {what}"));
    let (name, key) = path
        .rsplit_once("__")
        .ok_or_else(|| bad("TOLLGATE_UPSTREAMS__<NAME>__<KEY>"))?;
    let known = all.iter().position(|section| section.name == name);
    let at = known.unwrap_or(all.len());
    if known.is_none() {
        all.push(UpstreamSection::new(name.to_owned(), upstream)?);
    }
    let slot = all[at]
        .slot(key)
        .map_err(|error| BadSettings(format!("{error} in the environment ({variable})")))?;
    fill_from_env(slot, variable, value, |word| Value::String(word.to_owned()))
}

struct UpstreamSection {
    name: String,
    /// Values of all keys.
    settings: Table,
    /// Keys that are not at their defaults.
    own: HashSet<String>,
}

impl UpstreamSection {
    fn new(name: String, upstream: &Table) -> Result<Self, BadSettings> {
        Ok(Self {
            settings: defaults(&name, upstream)?,
            own: HashSet::new(),
            name,
        })
    }

    /// Returns the place of a key that is about to be set.
    fn slot(&mut self, key: &str) -> Result<&mut Value, BadSettings> {
        let unknown = || BadSettings(format!("unknown key `upstreams.{}.{key}`", self.name));
        let slot = self.settings.get_mut(key).ok_or_else(unknown)?;
        self.own.insert(key.to_owned());
        Ok(slot)
    }

    fn upstream(&self) -> Result<NamedUpstream, BadSettings> {
        let query = self.text("query");
        if !is_query(query) {
            return Err(self.wrong(
                "query",
                &format!("must be at most {PATH_BYTES_MAX} characters of a query, without `?` at its start"),
            ));
        }
        let path =
            |key: &str| PathTemplate::parse(self.text(key), query).map_err(|what| self.wrong(key, what));
        Ok(NamedUpstream {
            name: self.name.to_owned(),
            base_url: self.base_url()?,
            auth: self.auth()?,
            chat_path: path("chat_path")?,
            responses_path: path("responses_path")?,
            embeddings_path: path("embeddings_path")?,
            models: self.models()?,
            timeout_ms: self.number("timeout_ms", MILLISECONDS)?,
            // A caller who waits longer for a whole answer waits as long for the head of a stream.
            stream_first_byte_ms: match self.own_milliseconds("stream_first_byte_ms")? {
                None => self.own_milliseconds("timeout_ms")?,
                own => own,
            },
            stream_idle_ms: self.own_milliseconds("stream_idle_ms")?,
            ca_file: PathBuf::from(self.text("ca_file")),
            key_prefix: self.key_prefix()?,
            price_prefix: self.prefix("price_prefix")?,
            forward_headers: self.texts("forward_headers")?,
            reported_cost: self.boolean("reported_cost"),
            usage_tokens_max: self.number("usage_tokens_max", &USAGE_TOKENS)?,
            billed_statuses: self.billed_statuses()?,
            stream_usage: self.stream_usage()?,
        })
    }

    fn wrong(&self, key: &str, what: &str) -> BadSettings {
        BadSettings(format!("`upstreams.{}.{key}` {what}", self.name))
    }

    /// The defaults ensure that every key has the right type.
    fn text(&self, key: &str) -> &str {
        self.settings.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn boolean(&self, key: &str) -> bool {
        let value = self.settings.get(key).and_then(Value::as_bool);
        value.unwrap_or_default()
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, BadSettings> {
        let values = self.settings.get(key).and_then(Value::as_array);
        let texts = values
            .into_iter()
            .flatten()
            .map(|value| value.as_str().map(str::to_owned));
        texts
            .collect::<Option<_>>()
            .ok_or_else(|| self.wrong(key, "must be a list of strings"))
    }

    fn base_url(&self) -> Result<String, BadSettings> {
        let base = self.text("base_url");
        check_base_url(base).map_err(|what| self.wrong("base_url", what))?;
        Ok(base.to_owned())
    }

    fn auth(&self) -> Result<Auth, BadSettings> {
        match self.text("auth") {
            "bearer" => Ok(Auth::Bearer),
            "api-key" => Ok(Auth::ApiKey),
            other => Err(self.wrong("auth", &format!("must be bearer or api-key, not `{other}`"))),
        }
    }

    fn stream_usage(&self) -> Result<StreamUsage, BadSettings> {
        let text = self.text("stream_usage");
        StreamUsage::try_from(text.to_owned())
            .map_err(|_| self.wrong("stream_usage", &format!("must be ask or unasked, not `{text}`")))
    }

    /// Numbers, or texts if they come from the environment.
    fn billed_statuses(&self) -> Result<Vec<u16>, BadSettings> {
        let values = self.settings.get("billed_statuses").and_then(Value::as_array);
        let statuses = values.into_iter().flatten().map(|value| {
            let text = value.as_str().and_then(|text| text.parse().ok());
            let number = value.as_integer().and_then(|number| u16::try_from(number).ok());
            text.or(number).filter(|status| CLIENT_ERRORS.contains(status))
        });
        statuses
            .collect::<Option<_>>()
            .ok_or_else(|| self.wrong("billed_statuses", "must be a list of statuses from 400 to 499"))
    }

    fn models(&self) -> Result<Vec<ModelPattern>, BadSettings> {
        let patterns = self.texts("models")?;
        if !(1..=PATTERNS_MAX).contains(&patterns.len()) {
            let what = format!("must be 1 to {PATTERNS_MAX} patterns of models, such as `gpt-*`");
            return Err(self.wrong("models", &what));
        }
        let parse = |text: &String| {
            let what = || {
                format!(
                    "must have patterns of 1 to {PATTERN_BYTES_MAX} printable characters without spaces, not `{text}`"
                )
            };
            ModelPattern::parse(text).ok_or_else(|| self.wrong("models", &what()))
        };
        patterns.iter().map(parse).collect()
    }

    /// `None` if it is not set.
    fn own_milliseconds(&self, key: &str) -> Result<Option<u64>, BadSettings> {
        let is_own = self.own.contains(key);
        is_own.then(|| self.number(key, MILLISECONDS)).transpose()
    }

    fn number(&self, key: &str, bounds: &RangeInclusive<i64>) -> Result<u64, BadSettings> {
        let value = self.settings.get(key).and_then(Value::as_integer);
        let value = value.unwrap_or_default();
        check_number(value, bounds).map_err(|what| self.wrong(key, &what))?;
        Ok(value.unsigned_abs())
    }

    fn prefix(&self, key: &str) -> Result<String, BadSettings> {
        let prefix = self.text(key);
        match prefix.len() <= PREFIX_MAX && prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(prefix.to_owned()),
            false => Err(self.wrong(
                key,
                &format!("must be at most {PREFIX_MAX} printable characters without spaces"),
            )),
        }
    }

    fn key_prefix(&self) -> Result<String, BadSettings> {
        let prefix = self.prefix("key_prefix")?;
        if self.name == OPENAI && !prefix.is_empty() && !prefix.starts_with(OPENAI_KEY_PREFIX) {
            return Err(self.wrong("key_prefix", "must start with sk-, as keys of openai do"));
        }
        Ok(prefix)
    }
}
