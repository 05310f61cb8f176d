//! `[upstreams.<name>]`: further providers by name, and which of them serves a model.

mod path_template;
mod pattern;
mod read;
#[cfg(test)]
mod tests;

pub use path_template::PathTemplate;
pub use pattern::ModelPattern;
pub(crate) use read::{EnvSetting, read};

use serde::Deserialize;
use std::path::PathBuf;

/// Most named upstreams. With `[upstream]` they are as many as the providers that an agent can have keys for.
pub(crate) const UPSTREAMS_MAX: usize = 31;
/// Longest name, in characters.
pub const NAME_MAX: usize = 40;
/// Most patterns of models of one upstream.
pub const PATTERNS_MAX: usize = 64;
/// The provider whose keys start with [`OPENAI_KEY_PREFIX`] in every configuration (specification "Provider keys").
pub const OPENAI: &str = "openai";
/// Prefix of the keys of OpenAI, and of every provider that is not a named upstream.
const OPENAI_KEY_PREFIX: &str = "sk-";

/// Whether provider keys can be stored under a name: 1 to [`NAME_MAX`] characters of `a-z 0-9 . _ -`.
pub fn is_provider_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain)
}

/// Checks a `base_url`; the path of a call is appended to it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_base_url(base_url: &str) -> Result<(), &'static str> {
    match base_url {
        text if !text.starts_with("https://") && !text.starts_with("http://") => {
            Err("must start with https:// or http://")
        }
        text if text.contains('#') => Err("must not have a fragment"),
        _ => Ok(()),
    }
}

/// How a request carries the provider key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer <key>`
    Bearer,
    /// `api-key: <key>`, as Azure reads it.
    ApiKey,
}

/// How a provider comes to report the usage of a streamed chat completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum StreamUsage {
    /// `stream_options.include_usage` is put into the request, where the caller did not do that.
    Ask,
    /// It reports it unasked, or not at all: the request stays as it is.
    Unasked,
}

impl TryFrom<String> for StreamUsage {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "ask" => Ok(Self::Ask),
            "unasked" => Ok(Self::Unasked),
            other => Err(format!("`stream_usage` must be ask or unasked, not `{other}`")),
        }
    }
}

/// `[upstreams.<name>]`
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct NamedUpstream {
    /// 1 to [`NAME_MAX`] characters of `a-z 0-9 _ -`; also the provider name of the keys that are sent to it.
    pub name: String,
    pub base_url: String,
    pub auth: Auth,
    /// Its query is that of `query`, as for the next two.
    pub chat_path: PathTemplate,
    pub responses_path: PathTemplate,
    pub embeddings_path: PathTemplate,
    pub models: Vec<ModelPattern>,
    pub timeout_ms: u64,
    pub ca_file: PathBuf,
    pub key_prefix: String,
    pub price_prefix: String,
    pub forward_headers: Vec<String>,
    pub reported_cost: bool,
    pub stream_usage: StreamUsage,
}

impl NamedUpstream {
    /// Whether calls for `model` can be sent to it: a pattern matches, and the model stays within its segment of the
    /// path.
    pub fn serves(&self, model: &str) -> bool {
        let has_segment = [&self.chat_path, &self.responses_path, &self.embeddings_path]
            .iter()
            .any(|path| path.names_model());
        self.models.iter().any(|pattern| pattern.matches(model))
            && (!has_segment || path_template::is_one_segment(model))
    }
}

/// The named upstreams, in the order in which they are tried: that of the file, then those that only the environment
/// names, by name.
#[derive(Debug, Clone, Default)]
pub struct NamedUpstreams(Vec<NamedUpstream>);

impl NamedUpstreams {
    /// Returns the position of the first upstream that serves `model`; `None` for `[upstream]`.
    pub fn position(&self, model: &str) -> Option<usize> {
        self.0.iter().position(|upstream| upstream.serves(model))
    }

    /// The upstreams, in order.
    pub fn all(&self) -> &[NamedUpstream] {
        &self.0
    }

    fn named(&self, name: &str) -> Option<&NamedUpstream> {
        self.0.iter().find(|upstream| upstream.name == name)
    }
}

/// The upstream of a call, as far as names go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served<'a> {
    /// Name of the upstream; `None` for `[upstream]`.
    pub upstream: Option<&'a str>,
    /// Provider whose key of the agent is sent.
    pub provider: &'a str,
    /// Precedes the model's name in the price table.
    pub price_prefix: &'a str,
}

impl Served<'_> {
    /// Whether calls go to OpenAI itself, as far as names say so.
    pub fn is_openai(&self) -> bool {
        self.upstream.is_none() && self.provider == OPENAI
    }

    /// Whether the upstream reports the tier that served a call: `[upstream]`, as OpenAI does. Of one by name that is
    /// not known.
    pub const fn reports_tier(&self) -> bool {
        self.upstream.is_none()
    }
}

/// The names of all providers, for what needs no connection: provider keys, prices, predictions.
#[derive(Debug, Clone)]
pub struct Providers {
    /// `upstream.provider`
    default: String,
    named: NamedUpstreams,
}

impl Providers {
    /// Creates the names from `upstream.provider` and `[upstreams]`.
    pub const fn new(default: String, named: NamedUpstreams) -> Self {
        Self { default, named }
    }

    /// `upstream.provider`
    pub fn default_name(&self) -> &str {
        &self.default
    }

    /// Returns the upstream that serves `model`.
    pub fn serving(&self, model: &str) -> Served<'_> {
        match self.named.position(model).and_then(|at| self.named.all().get(at)) {
            Some(upstream) => Served {
                upstream: Some(&upstream.name),
                provider: &upstream.name,
                price_prefix: &upstream.price_prefix,
            },
            None => Served {
                upstream: None,
                provider: &self.default,
                price_prefix: "",
            },
        }
    }

    /// Returns what a key for `provider` must start with; empty for a named upstream without `key_prefix`.
    pub fn key_prefix(&self, provider: &str) -> &str {
        match self.named.named(provider) {
            Some(upstream) if !upstream.key_prefix.is_empty() => &upstream.key_prefix,
            Some(_) if provider != OPENAI => "",
            _ => OPENAI_KEY_PREFIX,
        }
    }

    /// The names under which agents' keys are used: `upstream.provider`, then the named upstreams in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let named = self.named.all().iter().map(|upstream| &*upstream.name);
        std::iter::once(&*self.default).chain(named)
    }
}
