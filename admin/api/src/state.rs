//! The state of the operations of this crate. What the steps before an operation use too, such as the plans and the
//! health of the store, is in [`Admission`](endpoint::Admission).

use crate::large_list::LargeLists;
use crate::metrics::SpendMetrics;
use crate::prices::LoadedPrices;
use crate::spend::injection::Injections;
use archive::Archive;
use audit_verify::VerificationSlots;
use crypto::seal::Keyring;
use endpoint::caller::Caller;
use settings::upstreams::Providers;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use webhooks::Webhooks;

/// The state of the operations on resources.
pub struct ApiState {
    /// Connection to the ledger's store.
    pub store: Store,
    /// Opens the key of checkpoints and compares secrets of webhooks.
    pub keyring: Arc<Keyring>,
    /// True if owners may change their account's plan themselves.
    pub self_service_plans: bool,
    /// The edges, as agents reach them and dry runs predict them.
    pub edge: EdgeFacts,
    /// Rules and metrics of spends.
    pub spends: Spends,
    /// Lifetime of the record of a transfer or deposit with an idempotency key (decision D26).
    pub idempotency_life: Duration,
    /// Old audit entries and intents.
    pub archive: Arc<Archive>,
    /// Verification of trails.
    pub verification: Verification,
    /// Limits the number of pages of large records that an account reads concurrently.
    pub large_lists: LargeLists,
    /// Webhooks: checks receivers, and dispatches events.
    pub webhooks: Arc<Webhooks>,
}

/// The edges' address and the settings by which they decide.
pub struct EdgeFacts {
    /// URL for agents, without `/v1` (`proxy.public_url`).
    pub url: String,
    /// The names of the providers that proxied calls go to.
    pub providers: Providers,
    /// `proxy.require_token_limit`: calls without a token limit are refused.
    pub require_token_limit: bool,
    /// `proxy.streaming`: calls that request a stream are accepted.
    pub streaming: bool,
    /// The prices in force.
    pub prices: Arc<LoadedPrices>,
}

/// Rules and metrics of spends.
pub struct Spends {
    /// Patterns that the free text of a spend must not match; `None` if it is not searched (decision D45).
    pub injections: Option<Injections>,
    /// Spends by result.
    pub metrics: SpendMetrics,
}

/// Verification of trails on this server.
pub struct Verification {
    /// Limits the number of trails that are verified concurrently.
    pub slots: Arc<VerificationSlots>,
    /// Interval of signing the end of a trail that has grown (`audit.checkpoint_every_ms`).
    pub checkpoint_every: Duration,
}

/// A call of one of these operations.
pub(crate) type Call<C = Caller> = endpoint::Call<ApiState, C>;
