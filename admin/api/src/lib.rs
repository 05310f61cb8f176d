//! The operations of the management API on resources: bodies in, records out.
//!
//! Each resource is a folder, named as in the store: its routes, bodies, answers, and their documents. [`operations`] and
//! [`sections`] list them for the table and the documents. [`ApiState`] is what their functions need.
//!
//! Uses the store and the readers of the archive, webhooks and verification. What is common to all operations is
//! `endpoint`'s; what people do about themselves is in the crate `people`.

mod account;
mod agent;
mod api_key;
mod audit;
mod catch_up;
mod checks;
mod decision;
mod deposit;
mod dry_run;
mod escrow;
mod intent;
pub mod metrics;
mod once;
mod overview;
mod policy;
pub mod prices;
mod provider_key;
mod run;
mod spend;
mod transaction;
mod transfer;
mod upgrade;
mod usage;
mod virtual_key;
mod wallet;
mod webhook;

pub use api_key::View as ApiKeyView;
pub use spend::injection::Injections;
pub use wallet::name::{Found as FoundWallet, look_up as look_up_wallet};

use arc_swap::ArcSwap;
use archive::Archive;
use audit_verify::Turns;
use crypto::seal::Sealer;
use domain::plan::Plans;
use endpoint::Operation;
use endpoint::caller::Caller;
use endpoint::doc::Section;
use metrics::SpendMetrics;
use prices::Prices;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::account::refused::RefusedCopy;
use store_health::StoreHealth;
use webhooks::Webhooks;

/// A call of one of these operations.
pub(crate) type Call<C = Caller> = endpoint::Call<ApiState, C>;

/// Attempts at a change whose plan limit is of another plan than the account has meanwhile.
const PLAN_ATTEMPTS: usize = 4;

/// What the operations on resources need beside their calls.
pub struct ApiState {
    /// The store.
    pub store: Store,
    /// Whether the store may be trusted: asked before a decision is predicted.
    pub health: Arc<StoreHealth>,
    /// The accounts that are refused what makes records, as last read: shown in the overview, and predicted.
    pub refused: Arc<RefusedCopy>,
    /// Seals provider keys and webhooks' secrets.
    pub sealer: Arc<Sealer>,
    /// The plans in force; SIGHUP replaces them as a whole.
    pub plans: Arc<ArcSwap<Plans>>,
    /// Whether owners change their account's plan themselves.
    pub self_service_plans: bool,
    /// `proxy.require_token_limit`: a dry run refuses calls without a limit of the answer, as edges do.
    pub require_token_limit: bool,
    /// The prices in force, for predictions.
    pub prices: Arc<Prices>,
    /// The provider that proxied calls go to.
    pub provider: String,
    /// The address of this server in links.
    pub public_url: String,
    /// How long the record of a transfer or deposit made under an idempotency key is kept (decision D26).
    pub idempotency_life: Duration,
    /// What the free text of a spend must not say, unless it is not looked at (decision D45).
    pub injections: Option<Injections>,
    /// Old audit entries and intents.
    pub archive: Arc<Archive>,
    /// Bounds how many trails are verified at the same time.
    pub verifying: Arc<Turns>,
    /// Webhooks: registrations are judged, and new deliveries announced.
    pub webhooks: Arc<Webhooks>,
    /// What is counted of spends.
    pub metrics: SpendMetrics,
}

/// Every operation, in the order in which the document lists their paths.
pub fn operations() -> impl Iterator<Item = &'static Operation<ApiState>> {
    [
        agent::ROUTES,
        provider_key::ROUTES,
        virtual_key::ROUTES,
        usage::ROUTES,
        overview::ROUTES,
        account::ROUTES,
        policy::ROUTES,
        wallet::ROUTES,
        transaction::OF_WALLET,
        transfer::BETWEEN_WALLETS,
        wallet::OF_ACCOUNT,
        transfer::ROUTES,
        deposit::ROUTES,
        transaction::ROUTES,
        escrow::ROUTES,
        audit::ROUTES,
        spend::ROUTES,
        intent::ROUTES,
        dry_run::ROUTES,
        decision::ROUTES,
        run::ROUTES,
        webhook::ROUTES,
        api_key::ROUTES,
    ]
    .into_iter()
    .flatten()
}

/// What the document says of every operation, in the order in which it lists the resources.
#[must_use]
pub fn sections() -> Vec<Section> {
    vec![
        overview::section(),
        agent::section(),
        usage::section(),
        policy::section(),
        provider_key::section(),
        virtual_key::section(),
        wallet::section(),
        deposit::section(),
        transfer::section(),
        transaction::section(),
        spend::section(),
        escrow::section(),
        intent::section(),
        decision::section(),
        dry_run::section(),
        run::section(),
        audit::section(),
        webhook::section(),
        account::section(),
        api_key::section(),
    ]
}
