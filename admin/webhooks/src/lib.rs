//! Webhooks: from a sealed audit entry to the outcome of its deliveries (decisions D41, D43, D44 and D66).
//!
//! [`dispatch`] makes the deliveries of what happened, [`lease`] attempts those of one webhook, and `payload` writes
//! their bodies. A URL is parsed by `target`, its name resolved by `resolve`, each address checked by `ip_policy`; only
//! then does `send` connect, to these addresses and no other, with the headers of [`sign`].
//!
//! [`Webhooks`] has the parts that they share. Uses the store, and the archive for events of archived entries. Knows no
//! HTTP of the management API.

mod backlog;
pub mod dispatch;
pub mod hints;
mod ip_policy;
pub mod lease;
pub mod metrics;
mod payload;
pub mod resolve;
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
    /// The store.
    pub store: Store,
    /// Where old audit entries are read from.
    pub archive: Arc<Archive>,
    /// Opens the secrets that sign deliveries.
    pub keyring: Arc<Keyring>,
    /// Bounds, time-outs and retry delays.
    pub settings: WebhookSettings,
    /// Sends deliveries, and checks URLs that are to be registered.
    pub sender: Sender,
    /// Webhooks with pending deliveries.
    pub hints: PendingHints,
    /// Chains whose next events are those of archived entries.
    pub backlog: DispatchBacklog,
    /// Metrics of webhooks.
    pub metrics: WebhookMetrics,
}

impl Webhooks {
    /// Webhooks with no hints yet.
    ///
    /// # Errors
    /// When the cryptography of connections cannot be set up.
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
