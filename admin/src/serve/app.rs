//! What all requests and workers share.

use super::{Prices, ServeError};
use crate::injection::Injections;
use crate::metrics::Metrics;
use crate::routes::BodyMemory;
use arc_swap::ArcSwap;
use archive::Archive;
use audit_verify::Turns;
use crypto::seal::Sealer;
use domain::plan::Plans;
use ipnet::IpNet;
use password::Passwords;
use settings::{AuditSettings, LimitSettings, Settings};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::Store;
use store::account::refused::RefusedCopy;
use store::blocked::BlockedCopy;
use store_health::StoreHealth;
use telemetry::registrar::Registrar;
use telemetry::tables::Table;
use webhooks::Webhooks;
use webhooks::metrics::WebhookMetrics;
use workers::metrics::WorkerMetrics;

/// The server's state.
pub struct App {
    /// The store.
    pub store: Store,
    /// Seals provider keys.
    pub sealer: Arc<Sealer>,
    /// The plans, replaced as a whole on SIGHUP.
    pub plans: ArcSwap<Plans>,
    /// Whether owners change their account's plan themselves.
    pub self_service_plans: bool,
    /// `proxy.require_token_limit`: a dry run refuses calls without a limit of the answer, as edges do.
    pub require_token_limit: bool,
    /// The prices, read again on SIGHUP.
    pub prices: Prices,
    /// The provider that proxied calls go to.
    pub provider: String,
    /// The address of this server in links.
    pub public_url: String,
    /// The address of the edge, as the dashboard tells it.
    pub edge_url: String,
    /// How long a session of the dashboard may pause.
    pub session_idle: Duration,
    /// How long it lives at most.
    pub session_life: Duration,
    /// Hashes and verifies passwords.
    pub passwords: Passwords,
    /// How long the record of a transfer or deposit made under an idempotency key is kept (decision D26).
    pub idempotency_life: Duration,
    /// What the free text of a spend must not say, unless it is not looked at (decision D45).
    pub injections: Option<Injections>,
    /// How the audit trail is sealed and archived.
    pub audit: AuditSettings,
    /// Webhooks: dispatch and delivery.
    pub webhooks: Arc<Webhooks>,
    /// What left the store.
    pub archive: Arc<Archive>,
    /// Who verifies a trail just now.
    pub verifying: Arc<Turns>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Limits that hold for every plan (decision D71).
    pub limits: LimitSettings,
    /// The addresses that are not answered, as last read.
    pub blocked: Arc<BlockedCopy>,
    /// The accounts that are refused what makes records, as last read.
    pub refused: Arc<RefusedCopy>,
    /// Whether the store may be trusted, as last checked.
    pub health: Arc<StoreHealth>,
    /// Whether the server is about to end: balancers are told to turn to others.
    pub leaving: AtomicBool,
    /// The memory for request bodies.
    pub body_memory: Arc<BodyMemory>,
    /// The longest time for a request's body to arrive.
    pub client_timeout: Duration,
    /// Counters and gauges.
    pub metrics: Metrics,
}

impl App {
    /// Reads everything that the settings name.
    ///
    /// # Errors
    /// [`ServeError`] names the key or file.
    pub fn new(settings: &Settings) -> Result<(Self, WorkerMetrics), ServeError> {
        let store = Store::of(&settings.store)?.with_budgets(settings.limits.budgets());
        let set_up = |error: &dyn std::error::Error| ServeError::SetUp(error.to_string());
        let registrar = Registrar::new("tollgate_admin");
        let worker_metrics = WorkerMetrics::new(&registrar).map_err(|error| set_up(&error))?;
        let sealer = Arc::new(settings.sealer()?);
        let archive = Arc::new(Archive::of(&settings.audit)?);
        let webhook_metrics = WebhookMetrics::new(&registrar).map_err(|error| set_up(&error))?;
        let webhooks = Webhooks::new(
            store.clone(),
            Arc::clone(&archive),
            Arc::clone(&sealer),
            settings.webhooks.clone(),
            webhook_metrics,
        );
        let app = Self {
            store,
            sealer,
            plans: ArcSwap::from_pointee(settings.plans()?),
            self_service_plans: settings.plans.self_service,
            require_token_limit: settings.proxy.require_token_limit,
            prices: Prices::new(settings)?,
            provider: settings.upstream.provider.clone(),
            public_url: settings.public_url(),
            edge_url: settings.edge_url(),
            session_idle: settings.session_idle(),
            session_life: settings.session_life(),
            passwords: Passwords::new().map_err(|error| ServeError::SetUp(error.to_string()))?,
            idempotency_life: settings.idempotency_life(),
            injections: Injections::of(&settings.injection)?,
            audit: settings.audit.clone(),
            webhooks: Arc::new(webhooks.map_err(|error| set_up(&error))?),
            archive,
            verifying: Arc::new(Turns::default()),
            trusted_proxies: settings.network.trusted_proxies.clone(),
            limits: settings.limits,
            blocked: Arc::default(),
            refused: Arc::default(),
            health: Arc::default(),
            leaving: AtomicBool::new(false),
            body_memory: BodyMemory::new(settings.admin.max_buffered_bytes),
            client_timeout: Duration::from_millis(settings.admin.client_timeout_ms),
            metrics: Metrics::new(registrar).map_err(|error| set_up(&error))?,
        };
        Ok((app, worker_metrics))
    }

    /// Reads plans and prices again. A table with a mistake changes nothing.
    pub fn reload(&self, settings: &Settings) {
        let plans = settings.plans();
        self.metrics.tables.read_again(Table::Plans, plans.is_ok());
        match plans {
            Ok(plans) => {
                self.plans.store(Arc::new(plans));
                tracing::info!("plans reloaded");
            }
            Err(error) => tracing::error!(%error, "plans not reloaded; the old ones stay"),
        }
        let prices = self.prices.reload(settings);
        self.metrics.tables.read_again(Table::Prices, prices.is_ok());
        match prices {
            Ok(()) => tracing::info!("prices reloaded"),
            Err(error) => tracing::error!(%error, "prices not reloaded; the old ones stay"),
        }
    }
}
