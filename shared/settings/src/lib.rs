//! The configuration: a TOML file, overridden by the environment, validated in full before anything starts.
//!
//! `config/tollgate.toml` is compiled in. It documents every setting and contains every default.

mod bounds;
pub mod ca_file;
pub mod collector;
pub mod durability;
mod listeners;
mod load;
mod master_key;
mod public_url;
mod slot;
pub mod tables;
pub mod upstreams;
mod variables;

use domain::blocked::parse_range;
use domain::budget::{Budget, Budgets};
use durability::Durability;
use ipnet::IpNet;
use secrecy::SecretString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use upstreams::{NamedUpstreams, Providers, StreamUsage};

pub use load::{DEFAULT_FILE, default_budgets, default_max_clock_difference_ms, load, load_from, source};

/// An invalid configuration: one line that names the setting or file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSettings(pub String);

/// All settings. `config/tollgate.toml` documents the fields.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "each section is described in config/tollgate.toml, which a test compares"
)]
pub struct Settings {
    pub store: StoreSettings,
    pub proxy: ProxySettings,
    pub upstream: UpstreamSettings,
    /// Parsed separately, since the names of the upstreams are not known in advance.
    #[serde(skip)]
    pub upstreams: NamedUpstreams,
    pub admin: AdminSettings,
    pub sessions: SessionSettings,
    pub webhooks: WebhookSettings,
    pub audit: AuditSettings,
    pub injection: InjectionSettings,
    pub idempotency: IdempotencySettings,
    pub secrets: SecretSettings,
    pub network: NetworkSettings,
    pub limits: LimitSettings,
    pub plans: PlanSettings,
    pub prices: FileSettings,
    pub telemetry: TelemetrySettings,
}

/// `[store]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct StoreSettings {
    pub url: SecretString,
    pub url_file: PathBuf,
    pub ca_file: PathBuf,
    pub timeout_ms: u64,
    pub durability: Durability,
    pub durability_timeout_ms: u64,
    pub max_clock_difference_ms: u64,
}

/// `[proxy]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct ProxySettings {
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    #[serde(deserialize_with = "listen_address")]
    pub ops_listen: SocketAddr,
    pub public_url: String,
    pub tls_cert: PathBuf,
    pub tls_key: PathBuf,
    pub threads: usize,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    pub max_body_bytes: usize,
    pub require_token_limit: bool,
    pub max_buffered_bytes: usize,
    pub max_remembered_keys: usize,
    pub client_timeout_ms: u64,
    pub data_dir: PathBuf,
    pub retry_queue_limit: usize,
    pub hold_grace_ms: u64,
    pub drain_ms: u64,
    pub drain_delay_ms: u64,
    pub upgrade_socket: PathBuf,
    pub streaming: bool,
    pub responses: bool,
    pub embeddings: bool,
    pub stream_first_byte_ms: u64,
    pub stream_idle_ms: u64,
    pub stream_total_ms: u64,
    pub stream_drain_ms: u64,
    pub stream_extend: bool,
    pub stop_frozen_streams: bool,
}

/// `[upstream]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct UpstreamSettings {
    pub base_url: String,
    pub provider: String,
    pub ca_file: PathBuf,
    pub timeout_ms: u64,
    pub max_response_bytes: usize,
    pub forward_headers: Vec<String>,
    pub reported_cost: bool,
    pub usage_tokens_max: u64,
    pub stream_usage: StreamUsage,
}

/// `[admin]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct AdminSettings {
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    #[serde(deserialize_with = "listen_address")]
    pub ops_listen: SocketAddr,
    pub public_url: String,
    pub max_connections: usize,
    pub max_connections_per_address: usize,
    pub client_timeout_ms: u64,
    pub max_buffered_bytes: usize,
    pub drain_delay_ms: u64,
}

/// `[sessions]`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct SessionSettings {
    pub idle_minutes: u64,
    pub absolute_hours: u64,
}

/// `[webhooks]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct WebhookSettings {
    pub allow_private: bool,
    pub retry_delays_ms: Vec<u64>,
    pub max_attempts: u32,
    pub timeout_ms: u64,
    pub endpoints_at_once: usize,
    pub requests_at_once: usize,
    pub waiting_max: u64,
    pub history_max: u64,
    pub secret_overlap_hours: u64,
}

/// `[audit]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct AuditSettings {
    pub seal_every_ms: u64,
    pub checkpoint_every_ms: u64,
    pub archive: String,
    pub archive_after_days: u64,
    pub archive_after_entries: u64,
    pub segment_entries: usize,
    pub archive_intents_after_days: u64,
    pub s3_endpoint: String,
    pub s3_region: String,
    pub s3_access_key_id: String,
    pub s3_secret_access_key: SecretString,
}

/// `[injection]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct InjectionSettings {
    pub enabled: bool,
    pub patterns: Vec<String>,
}

/// `[idempotency]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct IdempotencySettings {
    pub retention_days: u64,
}

/// `[secrets]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct SecretSettings {
    pub master_key_file: PathBuf,
    pub master_key: SecretString,
}

/// `[network]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct NetworkSettings {
    #[serde(deserialize_with = "canonical_ranges")]
    pub trusted_proxies: Vec<IpNet>,
}

/// Parses an address to listen on. The message of the standard library says neither the value nor its form.
fn listen_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map_err(|_| D::Error::custom(format!("{text:?} is not IP:PORT, such as 127.0.0.1:8080")))
}

/// Converts ranges to the canonical form in which client addresses are compared.
fn canonical_ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let ranges = texts.iter().map(|text| {
        let wrong = || {
            D::Error::custom(format!(
                "`{text}` is neither an IP address nor a range such as 10.0.0.0/8"
            ))
        };
        parse_range(text).ok_or_else(wrong)
    });
    ranges.collect()
}

/// `[limits]`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct LimitSettings {
    pub test_requests_per_minute: u64,
    pub session_requests_per_minute: u64,
    pub agents: u64,
    pub policies: u64,
    pub provider_keys: u64,
    pub keys: u64,
    pub runs: u64,
    pub intents: u64,
    pub text_bytes: u64,
    pub transactions: u64,
    pub escrows: u64,
    pub deposits: u64,
    pub refusals: u64,
    pub audit_entries: u64,
    pub audit_text: u64,
    pub guard_share: f64,
}

impl LimitSettings {
    /// Returns the budgets of records.
    pub fn budgets(&self) -> Budgets {
        Budgets::new(|budget| match budget {
            Budget::Agents => self.agents,
            Budget::Policies => self.policies,
            Budget::ProviderKeys => self.provider_keys,
            Budget::Keys => self.keys,
            Budget::Runs => self.runs,
            Budget::Intents => self.intents,
            Budget::TextBytes => self.text_bytes,
            Budget::Transactions => self.transactions,
            Budget::Escrows => self.escrows,
            Budget::Deposits => self.deposits,
            Budget::Refusals => self.refusals,
            Budget::AuditEntries => self.audit_entries,
            Budget::AuditText => self.audit_text,
        })
    }
}

/// `[plans]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct PlanSettings {
    pub file: PathBuf,
    pub self_service: bool,
}

/// `[prices]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct FileSettings {
    pub file: PathBuf,
}

/// `[telemetry]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each key is described in config/tollgate.toml")]
pub struct TelemetrySettings {
    pub otlp_endpoint: String,
    pub otlp_headers: SecretString,
    pub sample_ratio: f64,
}

impl Settings {
    /// Returns how long a hold stays open after the deadline of its upstream.
    pub const fn hold_grace(&self) -> Duration {
        Duration::from_millis(self.proxy.hold_grace_ms)
    }

    /// Returns how many threads of the edge serve callers: as many as there are processors, unless set.
    pub fn proxy_threads(&self) -> usize {
        match self.proxy.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }

    /// Returns a warning if a range of `network.trusted_proxies` contains every address.
    pub fn trusted_proxies_warning(&self) -> Option<String> {
        let trusted = &self.network.trusted_proxies;
        let all = trusted.iter().find(|network| network.prefix_len() == 0)?;
        Some(format!(
            "network.trusted_proxies contains {all}, which is every address: any caller chooses, by X-Forwarded-For, the \
             address that blocked addresses and limits are compared with"
        ))
    }

    /// Returns the names of all providers.
    pub fn providers(&self) -> Providers {
        Providers::new(self.upstream.provider.clone(), self.upstreams.clone())
    }

    /// Returns the longest duration of a stream, including the wait for its usage.
    pub const fn stream_life(&self) -> Duration {
        Duration::from_millis(self.proxy.stream_total_ms + self.proxy.stream_drain_ms)
    }

    /// Returns the lifetime of a transfer's or deposit's idempotency record.
    pub const fn idempotency_life(&self) -> Duration {
        Duration::from_secs(self.idempotency.retention_days * 24 * 3600)
    }

    /// Returns the longest idle time of a dashboard session.
    pub const fn session_idle(&self) -> Duration {
        Duration::from_secs(self.sessions.idle_minutes * 60)
    }

    /// Returns the longest lifetime of a dashboard session.
    pub const fn session_life(&self) -> Duration {
        Duration::from_secs(self.sessions.absolute_hours * 3600)
    }

    /// Returns the base URL of the admin server in links.
    pub fn public_url(&self) -> String {
        let configured = public_url::normalized(&self.admin.public_url);
        configured.unwrap_or_else(|| format!("http://{}", self.admin.listen))
    }

    /// Returns the base URL of the edge for users, without `/v1`.
    pub fn edge_url(&self) -> String {
        let scheme = if self.proxy.tls_cert.as_os_str().is_empty() {
            "http"
        } else {
            "https"
        };
        let configured = self.public_edge_url();
        configured.unwrap_or_else(|| format!("{scheme}://{}", self.proxy.listen))
    }

    /// Returns the configured base URL of the edge, without `/v1`; `None` if `proxy.public_url` is empty.
    pub fn public_edge_url(&self) -> Option<String> {
        public_url::normalized(&self.proxy.public_url)
    }

    /// Returns a line about calls that a stop would cut off: `proxy.drain_ms` is less than an upstream's deadline.
    pub fn drain_warning(&self) -> Option<String> {
        let drain_ms = self.proxy.drain_ms;
        let default = std::iter::once(("upstream".to_owned(), self.upstream.timeout_ms));
        let named = self.upstreams.all().iter();
        let mut deadlines = default
            .chain(named.map(|upstream| (format!("upstreams.{}", upstream.name), upstream.timeout_ms)));
        let (section, timeout_ms) = deadlines.find(|(_, timeout_ms)| drain_ms < *timeout_ms)?;
        Some(format!(
            "proxy.drain_ms ({drain_ms}) is less than {section}.timeout_ms ({timeout_ms}): a stop can cut calls \
             off, and their estimates stay charged"
        ))
    }
}

#[cfg(test)]
mod tests;
