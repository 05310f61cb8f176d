//! The composition root: creates every part of the server from the settings, and passes each the parts that it needs.

use crate::error::ServeError;
use crate::metrics::ServerMetrics;
use crate::removed_plans;
use api::metrics::SpendMetrics;
use api::prices::LoadedPrices;
use api::{ApiState, EdgeFacts, LargeLists, Spends, Verification};
use arc_swap::ArcSwap;
use archive::Archive;
use crypto::seal::Keyring;
use domain::plan::Plans;
use endpoint::metrics::RequestMetrics;
use endpoint::{Admission, LargeReads, SharedMemory};
use people::PeopleState;
use people::metrics::LoginMetrics;
use settings::Settings;
use settings::tables::Tables;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use store::Store;
use store_health::StoreHealth;
use telemetry::registrar::Registrar;
use telemetry::tables::Table;
use webhooks::Webhooks;
use webhooks::metrics::WebhookMetrics;
use workers::Workers;
use workers::metrics::WorkerMetrics;

/// All parts of the server, before it listens.
pub(crate) struct Server {
    /// State of the operations on resources.
    pub(crate) api: Arc<ApiState>,
    /// State of the operations of the user API.
    pub(crate) people: Arc<PeopleState>,
    /// State of the steps before every operation.
    pub(crate) admission: Arc<Admission>,
    /// The background workers, not yet started.
    pub(crate) workers: Workers,
    /// The parts that signals and the ops listener use while the server runs.
    pub(crate) running: Arc<Running>,
}

/// The parts that signals change and the ops listener shows.
pub(crate) struct Running {
    /// State of the steps before every operation.
    pub(crate) admission: Arc<Admission>,
    /// Set when the server begins to shut down: readiness then fails, so that load balancers choose other servers.
    pub(crate) leaving: AtomicBool,
    /// The metrics of the process.
    pub(crate) metrics: ServerMetrics,
    prices: Arc<LoadedPrices>,
}

impl Server {
    /// Creates the server from the settings and the files in them.
    ///
    /// # Errors
    /// [`ServeError`] with the key or file.
    pub(crate) fn new(settings: &Settings) -> Result<Self, ServeError> {
        let registrar = Registrar::new("tollgate_admin");
        let store = Store::from_settings(&settings.store)?.with_budgets(settings.limits.budgets());
        let keyring = Arc::new(settings.keyring()?);
        let plans = Arc::new(ArcSwap::from_pointee(settings.plans()?));
        let prices = Arc::new(LoadedPrices::new(settings)?);
        let archive = Arc::new(Archive::from_settings(&settings.audit)?);
        let admission = Arc::new(admission(
            settings,
            store.clone(),
            Arc::clone(&keyring),
            plans,
            &registrar,
        )?);
        let webhooks = Arc::new(webhooks(settings, &store, &archive, &keyring, &registrar)?);
        let people = people(settings, &admission, &keyring, &registrar)?;
        let workers = workers(settings, &admission, &archive, &keyring, &webhooks, &registrar)?;
        let api = ApiState {
            store,
            keyring,
            self_service_plans: settings.plans.self_service,
            edge: EdgeFacts {
                url: settings.edge_url(),
                providers: settings.providers(),
                require_token_limit: settings.proxy.require_token_limit,
                streaming: settings.proxy.streaming,
                prices: Arc::clone(&prices),
            },
            spends: Spends {
                injections: api::Injections::from_settings(&settings.injection)?,
                metrics: SpendMetrics::new(&registrar).map_err(set_up)?,
            },
            idempotency_life: settings.idempotency_life(),
            archive,
            verification: Verification {
                slots: Arc::default(),
                checkpoint_every: Duration::from_millis(settings.audit.checkpoint_every_ms),
            },
            large_lists: LargeLists::default(),
            webhooks,
        };
        Ok(Self {
            api: Arc::new(api),
            people: Arc::new(people),
            workers,
            running: Arc::new(Running {
                admission: Arc::clone(&admission),
                leaving: AtomicBool::new(false),
                metrics: ServerMetrics::new(registrar).map_err(set_up)?,
                prices,
            }),
            admission,
        })
    }
}

fn admission(
    settings: &Settings,
    store: Store,
    keyring: Arc<Keyring>,
    plans: Arc<ArcSwap<Plans>>,
    registrar: &Registrar,
) -> Result<Admission, ServeError> {
    Ok(Admission {
        store,
        health: Arc::new(StoreHealth::new(keyring)),
        blocked: Arc::default(),
        refused: Arc::default(),
        plans,
        limits: settings.limits,
        trusted_proxies: settings.network.trusted_proxies.clone(),
        public_url: settings.public_url(),
        session_idle: settings.session_idle(),
        body_memory: SharedMemory::for_bodies(settings.admin.max_buffered_bytes),
        answer_memory: SharedMemory::for_answers(),
        large_reads: LargeReads::default(),
        client_timeout: Duration::from_millis(settings.admin.client_timeout_ms),
        metrics: RequestMetrics::new(registrar).map_err(set_up)?,
    })
}

fn webhooks(
    settings: &Settings,
    store: &Store,
    archive: &Arc<Archive>,
    keyring: &Arc<Keyring>,
    registrar: &Registrar,
) -> Result<Webhooks, ServeError> {
    let metrics = WebhookMetrics::new(registrar).map_err(set_up)?;
    let (archive, keyring) = (Arc::clone(archive), Arc::clone(keyring));
    Webhooks::new(
        store.clone(),
        archive,
        keyring,
        settings.webhooks.clone(),
        metrics,
    )
    .map_err(set_up)
}

fn workers(
    settings: &Settings,
    admission: &Admission,
    archive: &Arc<Archive>,
    keyring: &Arc<Keyring>,
    webhooks: &Arc<Webhooks>,
    registrar: &Registrar,
) -> Result<Workers, ServeError> {
    Ok(Workers {
        store: admission.store.clone(),
        health: Arc::clone(&admission.health),
        archive: Arc::clone(archive),
        audit: settings.audit.clone(),
        keyring: Arc::clone(keyring),
        guard_share: settings.limits.guard_share,
        refused: Arc::clone(&admission.refused),
        blocked: Arc::clone(&admission.blocked),
        plans: Arc::clone(&admission.plans),
        webhooks: Arc::clone(webhooks),
        metrics: WorkerMetrics::new(registrar).map_err(set_up)?,
    })
}

fn people(
    settings: &Settings,
    admission: &Arc<Admission>,
    keyring: &Arc<Keyring>,
    registrar: &Registrar,
) -> Result<PeopleState, ServeError> {
    Ok(PeopleState {
        store: admission.store.clone(),
        health: Arc::clone(&admission.health),
        admission: Arc::clone(admission),
        keyring: Arc::clone(keyring),
        passwords: password::Passwords::new().map_err(set_up)?,
        accepting: people::accepting(),
        public_url: settings.public_url(),
        session_idle: settings.session_idle(),
        session_life: settings.session_life(),
        metrics: LoginMetrics::new(registrar).map_err(set_up)?,
    })
}

fn set_up<E: Error>(error: E) -> ServeError {
    ServeError::SetUp(error.to_string())
}

impl Running {
    /// Reads plans and prices again. A table with a mistake changes nothing.
    pub(crate) async fn reload(&self, settings: &Arc<Settings>) {
        let Tables { plans, prices } = settings.read_tables_again().await;
        self.metrics.tables.read_again(Table::Plans, plans.is_ok());
        match plans {
            Ok(plans) => {
                let plans = Arc::new(plans);
                let before = self.admission.plans.swap(Arc::clone(&plans));
                let removed = plans.absent(before.names());
                let removed = removed.into_iter().map(str::to_owned).collect();
                removed_plans::warn(self.admission.store.clone(), removed);
                tracing::info!("plans reloaded");
            }
            Err(error) => tracing::error!(%error, "plans not reloaded; the old ones stay"),
        }
        self.metrics.tables.read_again(Table::Prices, prices.is_ok());
        match prices {
            Ok(file) => {
                self.prices.replace_file(file);
                tracing::info!("prices reloaded");
            }
            Err(error) => tracing::error!(%error, "prices not reloaded; the old ones stay"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that does not exist: creating the server sends it nothing.
    fn settings() -> Settings {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let env = [("TOLLGATE_SECRETS__MASTER_KEY".to_owned(), key.to_owned())];
        settings::load_from(None, env.into_iter()).unwrap()
    }

    #[tokio::test]
    async fn every_metric_is_exported_under_a_known_prefix() {
        let server = Server::new(&settings()).unwrap();
        let metrics = &server.running.metrics;
        metrics.tables.read_again(Table::Prices, false);
        let text = metrics.text().unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let known = ["tollgate_admin_", "process_", "tollgate_build_info{"];
            assert!(known.iter().any(|prefix| line.starts_with(prefix)), "{line}");
        }
        let line = r#"tollgate_admin_table_reads_total{result="failed",table="prices"} 1"#;
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}
