//! `[upstreams.<name>]`: further providers by name, and the models that each serves.

mod path_template;
mod pattern;
mod read;
#[cfg(test)]
mod tests;

pub use path_template::PathTemplate;
pub use pattern::ModelPattern;
pub(crate) use read::{EnvSetting, read};

use http::Uri;
use serde::Deserialize;
use std::num::NonZeroU16;
use std::path::PathBuf;

/// Maximum number of named upstreams. Together with `[upstream]` this is the number of providers for which an agent can
/// have keys.
pub(crate) const UPSTREAMS_MAX: usize = 31;
/// Longest name, in characters.
pub const NAME_MAX: usize = 40;
/// Maximum number of model patterns of one upstream.
pub const PATTERNS_MAX: usize = 64;
/// The provider whose keys start with [`OPENAI_KEY_PREFIX`] in every configuration (specification "Provider keys").
pub const OPENAI: &str = "openai";
/// Prefix of OpenAI's keys, and of the keys of every provider that is not a named upstream.
const OPENAI_KEY_PREFIX: &str = "sk-";

/// Returns whether provider keys can be stored under a name: 1 to [`NAME_MAX`] characters of `a-z 0-9 . _ -`.
pub fn is_provider_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(plain)
}

/// Checks a `base_url`; the path of a call is appended to it.
///
/// # Errors
/// The fault of the URL.
pub(crate) fn check_base_url(base_url: &str) -> Result<(), &'static str> {
    match base_url {
        text if !text.starts_with("https://") && !text.starts_with("http://") => {
            Err("must start with https:// or http://")
        }
        text if text.contains('#') => Err("must not have a fragment"),
        text if !has_valid_port(text) => Err("must have a port from 1 to 65535, or none"),
        _ => Ok(()),
    }
}

/// Returns whether the port of a URL, if it names one, can be connected to. `http` parses any number, and takes one
/// that is too large for none.
pub(crate) fn has_valid_port(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return true };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.rsplit_once(':') {
        // The last colon of an IPv6 address belongs to the address.
        Some((_, port)) if !port.ends_with(']') => port.parse::<NonZeroU16>().is_ok(),
        _ => true,
    }
}

/// Form in which a request sends the provider key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer <key>`
    Bearer,
    /// `api-key: <key>`, as Azure expects it.
    ApiKey,
}

/// Method by which a provider is made to report the usage of a streamed chat completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum StreamUsage {
    /// The edge adds `stream_options.include_usage` to the request if the caller did not.
    Ask,
    /// The provider reports it without a request, or not at all: the request is not changed.
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
    /// 1 to [`NAME_MAX`] characters of `a-z 0-9 _ -`; also the provider name of the keys sent to it.
    pub name: String,
    pub base_url: String,
    pub auth: Auth,
    /// Includes the query of the setting `query`, like the next two.
    pub chat_path: PathTemplate,
    pub responses_path: PathTemplate,
    pub embeddings_path: PathTemplate,
    pub models: Vec<ModelPattern>,
    pub timeout_ms: u64,
    /// `None` for the value of `[proxy]`, like the next one.
    pub stream_first_byte_ms: Option<u64>,
    pub stream_idle_ms: Option<u64>,
    pub ca_file: PathBuf,
    pub key_prefix: String,
    pub price_prefix: String,
    pub forward_headers: Vec<String>,
    pub reported_cost: bool,
    pub usage_tokens_max: u64,
    pub billed_statuses: Vec<u16>,
    pub stream_usage: StreamUsage,
}

impl NamedUpstream {
    /// Returns whether calls for `model` can be sent to it: a pattern matches, and the model's name stays within its
    /// path segment.
    pub fn serves(&self, model: &str) -> bool {
        let has_segment = [&self.chat_path, &self.responses_path, &self.embeddings_path]
            .iter()
            .any(|path| path.names_model());
        self.models.iter().any(|pattern| pattern.matches(model))
            && (!has_segment || path_template::is_one_segment(model))
    }
}

/// The named upstreams in the order in which they are tried: the order of the file, then those that only the
/// environment names, by name.
#[derive(Debug, Clone, Default)]
pub struct NamedUpstreams(Vec<NamedUpstream>);

impl NamedUpstreams {
    /// Returns the position of the first upstream that serves `model`; `None` for `[upstream]`.
    pub fn position(&self, model: &str) -> Option<usize> {
        self.0.iter().position(|upstream| upstream.serves(model))
    }

    /// Returns the upstreams, in order.
    pub fn all(&self) -> &[NamedUpstream] {
        &self.0
    }

    fn named(&self, name: &str) -> Option<&NamedUpstream> {
        self.0.iter().find(|upstream| upstream.name == name)
    }
}

/// The upstream of a call, judged by names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served<'a> {
    /// Name of the upstream; `None` for `[upstream]`.
    pub upstream: Option<&'a str>,
    /// Provider; the agent's key of this provider is sent.
    pub provider: &'a str,
    /// Precedes the model's name in the price table.
    pub price_prefix: &'a str,
}

impl Served<'_> {
    /// Returns whether the upstream reports the tier that served a call. `[upstream]` does, as OpenAI; for a named
    /// upstream it is unknown.
    pub const fn reports_tier(&self) -> bool {
        self.upstream.is_none()
    }
}

/// The names of all providers, for uses without a connection: provider keys, prices, predictions.
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

    /// Returns the required prefix of a key for `provider`; empty for a named upstream without `key_prefix`.
    pub fn key_prefix(&self, provider: &str) -> &str {
        match self.named.named(provider) {
            Some(upstream) if !upstream.key_prefix.is_empty() => &upstream.key_prefix,
            Some(_) if provider != OPENAI => "",
            _ => OPENAI_KEY_PREFIX,
        }
    }

    /// Returns the providers whose keys of agents are used: `upstream.provider`, then the named upstreams in their
    /// order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let named = self.named.all().iter().map(|upstream| &*upstream.name);
        std::iter::once(&*self.default).chain(named)
    }
}
