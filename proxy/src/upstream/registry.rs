//! All upstreams of the edge: `[upstream]` and the named ones. The model of a request selects one.

use super::client::{ClientSettings, Deadlines, Upstream};
use super::connection_budget::ConnectionBudget;
use super::identity::UpstreamIdentity;
use settings::upstreams::NamedUpstreams;
use settings::{ProxySettings, Settings};
use std::sync::Arc;
use std::time::Duration;
use telemetry::background::keep_running;

/// Divisor of one account's share of all connections: half, so that its slow calls leave some to other accounts.
const ACCOUNT_DIVISOR: usize = 2;

/// Returns the deadlines of an upstream, which can have its own for the head of a stream and between its pieces.
fn deadlines(proxy: &ProxySettings, whole_ms: u64, own_ms: (Option<u64>, Option<u64>)) -> Deadlines {
    let (head_ms, idle_ms) = own_ms;
    Deadlines {
        whole: Duration::from_millis(whole_ms),
        stream_head: Duration::from_millis(head_ms.unwrap_or(proxy.stream_first_byte_ms)),
        stream_idle: Duration::from_millis(idle_ms.unwrap_or(proxy.stream_idle_ms)),
    }
}

/// The upstreams. Each has its own connections, deadlines and trusted certificates.
pub struct Upstreams {
    default: Arc<Upstream>,
    /// In the order of `patterns`.
    named: Vec<Arc<Upstream>>,
    patterns: NamedUpstreams,
    account_calls_max: usize,
}

impl Upstreams {
    /// Creates the clients, with at most `connections_max` connections in total.
    ///
    /// # Errors
    /// One line that names the setting.
    pub fn new(settings: &Settings, connections_max: usize) -> Result<Self, String> {
        let (default, named) = (&settings.upstream, settings.upstreams.all());
        let proxy = &settings.proxy;
        let mut budgets = ConnectionBudget::divide(connections_max, named.len() + 1);
        let mut client = |identity: UpstreamIdentity, settings: ClientSettings<'_>| match budgets.next() {
            Some(budget) => Upstream::new(identity, &settings, budget).map(Arc::new),
            None => Err(format!("`{}` has no connections", identity.section())),
        };
        let default_client = client(
            UpstreamIdentity::default_upstream(default),
            ClientSettings {
                base_url: &default.base_url,
                ca_file: &default.ca_file,
                deadlines: deadlines(proxy, default.timeout_ms, (None, None)),
                forward_headers: &default.forward_headers,
                max_response_bytes: default.max_response_bytes,
            },
        )?;
        let clients = named.iter().enumerate().map(|(at, upstream)| {
            let client_settings = ClientSettings {
                base_url: &upstream.base_url,
                ca_file: &upstream.ca_file,
                deadlines: deadlines(
                    proxy,
                    upstream.timeout_ms,
                    (upstream.stream_first_byte_ms, upstream.stream_idle_ms),
                ),
                forward_headers: &upstream.forward_headers,
                max_response_bytes: default.max_response_bytes,
            };
            client(UpstreamIdentity::named(upstream, at + 1), client_settings)
        });
        Ok(Self {
            named: clients.collect::<Result<_, _>>()?,
            default: default_client,
            patterns: settings.upstreams.clone(),
            account_calls_max: (connections_max / ACCOUNT_DIVISOR).max(1),
        })
    }

    /// Returns the first upstream whose patterns match, else `[upstream]`.
    pub fn choose(&self, model: &str) -> &Arc<Upstream> {
        let at = self.patterns.position(model);
        at.and_then(|at| self.named.get(at)).unwrap_or(&self.default)
    }

    /// `[upstream]`
    pub const fn default_upstream(&self) -> &Arc<Upstream> {
        &self.default
    }

    /// Returns all upstreams in the order of their indexes.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        std::iter::once(&self.default).chain(&self.named)
    }

    /// Returns the maximum of concurrent calls of one account, to all upstreams together. The limits on callers'
    /// connections do not limit calls: an HTTP/2 connection carries a hundred calls, and a call continues when its
    /// caller disconnects.
    pub const fn account_calls_max(&self) -> usize {
        self.account_calls_max
    }

    /// Returns the counts of exchanges with all upstreams, on a new connection and on a reused one.
    pub fn connected(&self) -> [u64; 2] {
        self.all().fold([0, 0], |[new, reused], upstream| {
            let [more_new, more_reused] = upstream.connected();
            [new + more_new, reused + more_reused]
        })
    }

    /// Keeps addresses and idle connections fresh, in tasks of the current runtime; one that panics starts again.
    pub fn start_background_tasks(&self) {
        for upstream in self.all() {
            let of = Arc::clone(upstream);
            tokio::spawn(keep_running("upstream_address", move || {
                Arc::clone(&of).follow_address()
            }));
            let of = Arc::clone(upstream);
            tokio::spawn(keep_running("idle_connections", move || {
                Arc::clone(&of).keep_idle_fresh()
            }));
        }
    }

    /// Returns the models that callers can request and that have a price, each with its provider. Names with the prefix
    /// of an upstream stand for the models of that upstream, without the prefix.
    pub fn priced<'a>(&'a self, names: impl Iterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
        let mut models: Vec<_> = names.filter_map(|name| self.priced_model(name)).collect();
        models.sort_unstable();
        models.dedup_by_key(|(model, _)| *model);
        models
    }

    /// Returns whether the price of a model is its own: `false` if the name of its price has the prefix of an upstream
    /// that does not serve the model under this name.
    pub fn has_own_price(&self, model: &str) -> bool {
        let price_name = self.choose(model).identity().price_name(model);
        self.priced_model(&price_name)
            .is_some_and(|(priced, _)| priced == model)
    }

    /// Returns the model whose price is listed under a name, and its provider. A name with the prefix of an upstream is
    /// a price of that upstream's models only.
    fn priced_model<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let prefixes = self.all().map(|upstream| &*upstream.identity().price_prefix);
        let stripped = prefixes.filter(|prefix| !prefix.is_empty());
        let mut stripped = stripped.filter_map(|prefix| name.strip_prefix(prefix)).peekable();
        let is_priced_so = |model: &str| self.choose(model).identity().price_name(model) == name;
        let model = match stripped.peek() {
            Some(_) => stripped.find(|model| is_priced_so(model))?,
            None => Some(name).filter(|name| is_priced_so(name))?,
        };
        Some((model, &self.choose(model).identity().provider))
    }
}
