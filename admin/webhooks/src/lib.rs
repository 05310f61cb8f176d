//! Webhooks: from a sealed audit entry to the outcome of its deliveries (decisions D41, D43, D44 and D66).
//!
//! [`dispatch`] creates the deliveries of events, [`lease`] attempts those of one webhook, and `payload` builds their
//! bodies. A URL is parsed by `target`, its name resolved by `dns`, and each address checked by `ip_policy`; only
//! then does `send` connect, to these addresses and no others, with the headers of [`sign`].
//!
//! [`Webhooks`] has the shared components. Uses the store, and the archive for events of archived entries. Contains no
//! HTTP of the management API.

mod backlog;
pub mod dispatch;
pub mod dns;
pub mod hints;
mod ip_policy;
pub mod lease;
pub mod metrics;
mod payload;
mod send;
pub mod sign;
mod target;

use archive::Archive;
use backlog::DispatchBacklog;
use crypto::seal::Keyring;
use hints::PendingHints;
use metrics::WebhookMetrics;
use send::Sender;
use settings::WebhookSettings;
use std::sync::Arc;
use store::Store;

/// The parts that dispatch and delivery of this server share.
pub struct Webhooks {
    /// Source of webhooks, events and deliveries.
    pub store: Store,
    /// Archive with the old audit entries.
    pub archive: Arc<Archive>,
    /// Opens the secrets that sign deliveries.
    pub keyring: Arc<Keyring>,
    /// Bounds, time-outs and retry delays.
    pub settings: WebhookSettings,
    /// Sends deliveries, and checks URLs that are to be registered.
    pub sender: Sender,
    /// Webhooks with pending deliveries.
    pub hints: PendingHints,
    /// Chains whose next events come from archived entries.
    pub backlog: DispatchBacklog,
    /// Metrics of webhooks.
    pub metrics: WebhookMetrics,
}

impl Webhooks {
    /// Creates the components, without hints.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(
        store: Store,
        archive: Arc<Archive>,
        keyring: Arc<Keyring>,
        settings: WebhookSettings,
        metrics: WebhookMetrics,
    ) -> Result<Self, rustls::Error> {
        Ok(Self {
            store,
            archive,
            keyring,
            sender: Sender::new(&settings)?,
            settings,
            hints: PendingHints::default(),
            backlog: DispatchBacklog::default(),
            metrics,
        })
    }
}
