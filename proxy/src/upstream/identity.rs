//! Everything that follows from the name of an upstream: which key it receives and how, its paths, and the names under
//! which its models are priced.

use super::usage::UsageReader;
use domain::measured::Endpoint;
use http::StatusCode;
use settings::UpstreamSettings;
use settings::upstreams::{Auth, NamedUpstream, PathTemplate, StreamUsage};
use std::borrow::Cow;

/// Paths of the endpoints, including the path of the base URL.
#[derive(Debug)]
pub struct EndpointPaths {
    /// Chat completions.
    pub chat: PathTemplate,
    /// Responses.
    pub responses: PathTemplate,
    /// Embeddings.
    pub embeddings: PathTemplate,
}

/// Settings of an upstream except its connections.
#[derive(Debug)]
pub struct UpstreamIdentity {
    /// Name of a section `[upstreams.<name>]`; `None` for `[upstream]`.
    pub name: Option<String>,
    /// Provider; the agent's key of this provider is sent. Also the label of metrics.
    pub provider: String,
    /// Index among the upstreams, 0 for `[upstream]`.
    pub index: usize,
    /// Form in which the key is sent.
    pub auth: Auth,
    /// Paths of the endpoints.
    pub paths: EndpointPaths,
    /// Precedes the name of a model in the price table.
    pub price_prefix: String,
    /// True if the cost that the provider reports is charged if it exceeds the cost by the price table.
    pub reported_cost: bool,
    /// Most tokens of a prompt, and of a completion, that a usage can have.
    pub usage_tokens_max: u64,
    /// Client errors (4xx) that the provider can bill, so that the estimate of a call stays charged.
    pub billed_statuses: Vec<u16>,
    /// Method by which the upstream is made to report the usage of a streamed chat completion.
    pub stream_usage: StreamUsage,
}

impl UpstreamIdentity {
    /// Creates the identity of `[upstream]`.
    pub fn default_upstream(settings: &UpstreamSettings) -> Self {
        let path = |path: &str| PathTemplate::fixed(path.to_owned()).under(base_path(&settings.base_url));
        Self {
            name: None,
            provider: settings.provider.clone(),
            index: 0,
            auth: Auth::Bearer,
            paths: EndpointPaths {
                chat: path("/chat/completions"),
                responses: path("/responses"),
                embeddings: path("/embeddings"),
            },
            price_prefix: String::new(),
            reported_cost: settings.reported_cost,
            usage_tokens_max: settings.usage_tokens_max,
            billed_statuses: Vec::new(),
            stream_usage: settings.stream_usage,
        }
    }

    /// Creates the identity of `[upstreams.<name>]`.
    pub fn named(settings: &NamedUpstream, index: usize) -> Self {
        let path = |path: &PathTemplate| path.under(base_path(&settings.base_url));
        Self {
            name: Some(settings.name.clone()),
            provider: settings.name.clone(),
            index,
            auth: settings.auth,
            paths: EndpointPaths {
                chat: path(&settings.chat_path),
                responses: path(&settings.responses_path),
                embeddings: path(&settings.embeddings_path),
            },
            price_prefix: settings.price_prefix.clone(),
            reported_cost: settings.reported_cost,
            usage_tokens_max: settings.usage_tokens_max,
            billed_statuses: settings.billed_statuses.clone(),
            stream_usage: settings.stream_usage,
        }
    }

    /// Returns the path of a call.
    pub fn path<'a>(&'a self, endpoint: Endpoint, model: &str) -> Cow<'a, str> {
        let path = match endpoint {
            Endpoint::Chat => &self.paths.chat,
            Endpoint::Responses => &self.paths.responses,
            Endpoint::Embeddings => &self.paths.embeddings,
        };
        path.for_model(model)
    }

    /// Returns the section of the settings, for errors.
    pub fn section(&self) -> Cow<'static, str> {
        match &self.name {
            None => "upstream".into(),
            Some(name) => format!("upstreams.{name}").into(),
        }
    }

    /// Returns whether an answer with this status costs nothing: a client error (specification "Proxy spend ledger"),
    /// unless the provider bills it.
    pub fn releases(&self, status: StatusCode) -> bool {
        status.is_client_error() && !self.billed_statuses.contains(&status.as_u16())
    }

    /// Returns the rules by which the usage in answers of an endpoint is read.
    pub const fn usage_reader(&self, endpoint: Endpoint) -> UsageReader {
        UsageReader {
            endpoint,
            cost_counts: self.reported_cost,
            tokens_max: self.usage_tokens_max,
        }
    }

    /// Returns whether the upstream reports the tier that served a call. `[upstream]` does, as OpenAI. A named upstream
    /// may not, so a requested tier is held, and without a report charged, at no less than the table's `auto_tier`.
    pub const fn reports_tier(&self) -> bool {
        self.name.is_none()
    }

    /// Returns the prefix of its models in the price table, if it is not the default one of its name.
    pub fn notable_price_prefix(&self) -> Option<&str> {
        let (name, prefix) = (
            self.name.as_deref().unwrap_or_default(),
            self.price_prefix.as_str(),
        );
        let default = if name.is_empty() { "" } else { "/" };
        (prefix.strip_prefix(name) != Some(default)).then_some(prefix)
    }

    /// Returns the name of `model` in the price table.
    pub fn price_name<'a>(&self, model: &'a str) -> Cow<'a, str> {
        match self.price_prefix.as_str() {
            "" => model.into(),
            prefix => [prefix, model].concat().into(),
        }
    }
}

/// Returns the path of a base URL; empty if it has none. URLs that cannot be parsed are refused elsewhere.
fn base_path(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or("", |(_, rest)| rest);
    rest.find('/').map_or("", |at| &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::price::USAGE_TOKENS_MAX;
    use http::Uri;

    #[test]
    fn each_upstream_has_its_paths_and_prices() {
        let text = "[upstream]\nbase_url = \"https://a/v1/\"\n[upstreams.azure]\nbase_url = \"https://b/x\"\n\
            models = [\"*\"]\nchat_path = \"/{model}/c\"\nquery = \"q=1\"\nusage_tokens_max = 7\n";
        let settings = settings::load_from(Some(text), std::iter::empty()).unwrap();
        let default = UpstreamIdentity::default_upstream(&settings.upstream);
        let EndpointPaths {
            chat,
            responses,
            embeddings,
        } = &default.paths;
        let paths = [chat, responses, embeddings].map(|path| path.for_model("m"));
        assert_eq!(paths, ["/v1/chat/completions", "/v1/responses", "/v1/embeddings"]);
        assert_eq!(
            (default.section(), default.price_name("m")),
            ("upstream".into(), "m".into())
        );
        assert!(default.reports_tier());
        let azure = UpstreamIdentity::named(&settings.upstreams.all()[0], 1);
        let EndpointPaths {
            chat,
            responses,
            embeddings,
        } = &azure.paths;
        let paths = [chat, responses, embeddings].map(|path| path.for_model("m"));
        assert_eq!(paths, ["/x/m/c?q=1", "/x/responses?q=1", "/x/embeddings?q=1"]);
        assert_eq!(
            (azure.section(), azure.price_name("m")),
            ("upstreams.azure".into(), "azure/m".into())
        );
        assert!(!azure.reports_tier());
        let bound = |identity: &UpstreamIdentity| identity.usage_reader(Endpoint::Embeddings).tokens_max;
        assert_eq!([bound(&default), bound(&azure)], [USAGE_TOKENS_MAX, 7]);
        // The record of a call names a prefix from which its upstream's name does not follow.
        let notable = |prefix: &str| {
            let mut settings = settings.upstreams.all()[0].clone();
            settings.price_prefix = prefix.to_owned();
            let identity = UpstreamIdentity::named(&settings, 1);
            identity.notable_price_prefix().map(str::to_owned)
        };
        assert_eq!((default.notable_price_prefix(), notable("azure/")), (None, None));
        for prefix in ["", "azure", "azure//", "/", "other/"] {
            assert_eq!(notable(prefix).as_deref(), Some(prefix), "{prefix:?}");
        }
    }

    #[test]
    fn paths_are_below_that_of_the_base_url() {
        for (base_url, path) in [
            ("https://api.example.com/v1/", "/v1/"),
            ("http://127.0.0.1:8090", ""),
            ("http://[::1]:80/a/b", "/a/b"),
        ] {
            assert_eq!(base_path(base_url), path);
            assert_eq!(
                base_url.parse::<Uri>().unwrap().path().trim_end_matches('/'),
                path.trim_end_matches('/')
            );
        }
    }
}
