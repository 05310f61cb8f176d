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
    /// The store.
    pub store: Store,
    /// Whether the store may be trusted: asked before a decision is predicted.
    pub health: Arc<StoreHealth>,
    /// The accounts that are refused what makes records, as last read: shown in the overview, and predicted.
    pub refused: Arc<RefusedCopy>,
    /// Seals provider keys and webhooks' secrets.
    pub keyring: Arc<Keyring>,
    /// The plans in force; SIGHUP replaces them as a whole.
    pub plans: Arc<ArcSwap<Plans>>,
    /// Whether owners change their account's plan themselves.
    pub self_service_plans: bool,
    /// `proxy.require_token_limit`: a dry run refuses calls without a limit of the answer, as edges do.
    pub require_token_limit: bool,
    /// `proxy.streaming`: a dry run takes calls for a stream, as edges do.
    pub streaming: bool,
    /// The prices in force, for predictions.
    pub prices: Arc<Prices>,
    /// The names of the providers that proxied calls go to.
    pub providers: Providers,
    /// URL of the edge for agents, without `/v1` (`proxy.public_url`).
    pub edge_url: String,
    /// The address of this server in links.
    pub public_url: String,
    /// How long the record of a transfer or deposit made under an idempotency key is kept (decision D26).
    pub idempotency_life: Duration,
    /// The patterns that the free text of a spend must not match; `None` when it is not searched (decision D45).
    pub injections: Option<Injections>,
    /// Old audit entries and intents.
    pub archive: Arc<Archive>,
    /// Bounds how many trails are verified at the same time.
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

/// Attempts at a change whose account gets another plan between the read and the script.
pub(crate) const PLAN_ATTEMPTS: usize = 4;
