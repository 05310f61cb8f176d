//! The client of a provider: its settings, its connections, and the tasks that refresh them.

use super::connection_budget::ConnectionBudget;
use super::header_lines::HeaderLines;
use super::headers::ForwardList;
use super::identity::UpstreamIdentity;
use super::idle::{Idle, SWEEP_EVERY};
use super::sent_body::SentBody;
use super::target::{RESOLVE_EVERY, UpstreamTarget};
use http::HeaderMap;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use settings::ca_file;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use telemetry::trace::ContinuedTrace;
use tokio::time::interval;

/// Client of a provider: identity, address, TLS settings and connection pool.
pub struct Upstream {
    identity: UpstreamIdentity,
    pub(super) connector: TransportConnector,
    pub(super) idle: Arc<Idle>,
    pub(super) target: UpstreamTarget,
    pub(super) deadlines: Deadlines,
    pub(super) max_response_bytes: usize,
    forward_list: ForwardList,
    /// Number of connections that may still be opened.
    pub(super) budget: ConnectionBudget,
    /// Counts of exchanges on a new connection and on a reused one.
    pub(super) connected: [AtomicU64; 2],
}

/// Longest times of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Until a whole answer is received.
    pub whole: Duration,
    /// Until the head of a stream is received.
    pub stream_head: Duration,
    /// Between two pieces of a stream.
    pub stream_idle: Duration,
}

/// Address and bounds of a client.
#[derive(Debug, Clone, Copy)]
pub struct ClientSettings<'a> {
    pub base_url: &'a str,
    /// Empty to use the system's certificates.
    pub ca_file: &'a Path,
    pub deadlines: Deadlines,
    pub forward_headers: &'a [String],
    pub max_response_bytes: usize,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Creates a client whose connections are within `budget`.
    ///
    /// # Errors
    /// One line that names the setting.
    pub fn new(
        identity: UpstreamIdentity,
        settings: &ClientSettings<'_>,
        budget: ConnectionBudget,
    ) -> Result<Self, String> {
        let section = identity.section();
        let target = UpstreamTarget::parse(&section, &identity.provider, settings.base_url)?;
        // The connector's own pool stays empty.
        let mut options = ConnectorOptions::new(1);
        let trusted = ca_file::read(&section, settings.ca_file);
        if trusted.map_err(|error| error.to_string())?.is_some() {
            options.ca_file = Some(settings.ca_file.display().to_string());
        }
        Ok(Self {
            connector: TransportConnector::new(Some(options)),
            idle: Arc::default(),
            target,
            deadlines: settings.deadlines,
            max_response_bytes: settings.max_response_bytes,
            budget,
            forward_list: ForwardList::parse(&section, settings.forward_headers)?,
            connected: Default::default(),
            identity,
        })
    }

    pub const fn identity(&self) -> &UpstreamIdentity {
        &self.identity
    }

    /// Returns the deadlines of an exchange.
    pub const fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Returns the length of the longest answer, and of the longest decoded one, in bytes.
    pub const fn max_response_bytes(&self) -> usize {
        self.max_response_bytes
    }

    pub fn host(&self) -> &str {
        &self.target.host
    }

    #[cfg(test)]
    pub const fn target(&self) -> &UpstreamTarget {
        &self.target
    }

    /// Builds the headers of a request except the provider key. Includes the headers of `caller` that are on this
    /// upstream's list.
    pub fn headers(&self, caller: &HeaderMap, sent: SentBody, trace: Option<&ContinuedTrace>) -> HeaderLines {
        let host = &self.target.authority;
        self.forward_list.outbound(caller, host, sent, trace)
    }

    /// Returns the counts of exchanges on a new connection and on a reused one.
    pub fn connected(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.connected[at].load(Ordering::Relaxed))
    }

    /// Resolves the provider's name every [`RESOLVE_EVERY`], forever.
    pub async fn follow_address(self: Arc<Self>) {
        let mut ticks = interval(RESOLVE_EVERY);
        loop {
            ticks.tick().await;
            self.target.refresh_addresses().await;
        }
    }

    /// Closes idle connections that must no longer be used, every [`SWEEP_EVERY`], forever.
    pub async fn keep_idle_fresh(self: Arc<Self>) {
        let mut ticks = interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.idle.sweep();
        }
    }
}
