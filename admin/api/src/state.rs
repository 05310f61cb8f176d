//! The state of the operations of this crate.

use crate::metrics::SpendMetrics;
use crate::prices::Prices;
use crate::spend::injection::Injections;
use arc_swap::ArcSwap;
use archive::Archive;
use audit_verify::Turns;
use crypto::seal::Keyring;
use domain::plan::Plans;
use endpoint::caller::Caller;
use settings::upstreams::Providers;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::account::refused::RefusedCopy;
use store_health::StoreHealth;
use webhooks::Webhooks;

/// The state of the operations on resources.
pub struct ApiState {
    /// Connection to the ledger's store.
    pub store: Store,
    /// Whether the store can be trusted: checked before a decision is predicted.
    pub health: Arc<StoreHealth>,
    /// Accounts that may not create records, as last read: shown in the overview, and used in predictions.
    pub refused: Arc<RefusedCopy>,
    /// Opens the key of checkpoints.
    pub keyring: Arc<Keyring>,
    /// The plans in force. SIGHUP replaces them as a whole.
    pub plans: Arc<ArcSwap<Plans>>,
    /// Whether owners may change their account's plan themselves.
    pub self_service_plans: bool,
    /// `proxy.require_token_limit`: a dry run refuses calls without a token limit, like the edges.
    pub require_token_limit: bool,
    /// `proxy.streaming`: a dry run accepts calls that request a stream, like the edges.
    pub streaming: bool,
    /// The prices in force, for predictions.
    pub prices: Arc<Prices>,
    /// The names of the providers that proxied calls go to.
    pub providers: Providers,
    /// URL of the edge for agents, without `/v1` (`proxy.public_url`).
    pub edge_url: String,
    /// The address of this server in links.
    pub public_url: String,
    /// Lifetime of the record of a transfer or deposit with an idempotency key (decision D26).
    pub idempotency_life: Duration,
    /// Patterns that the free text of a spend must not match; `None` if it is not searched (decision D45).
    pub injections: Option<Injections>,
    /// Old audit entries and intents.
    pub archive: Arc<Archive>,
    /// Limits the number of trails that are verified concurrently.
    pub verifying: Arc<Turns>,
    /// How often the end of a trail that has grown is signed (`audit.checkpoint_every_ms`).
    pub checkpoint_every: Duration,
    /// Webhooks: checks receivers, and dispatches events.
    pub webhooks: Arc<Webhooks>,
    /// Metrics of spends.
    pub metrics: SpendMetrics,
}

/// A call of one of these operations.
pub(crate) type Call<C = Caller> = endpoint::Call<ApiState, C>;
