//! The composition root: creates every component of the edge once, and gives each part of the process the components
//! that it needs. No other code has all of them.

use crate::account_views::AccountViews;
use crate::admission::RequestAdmission;
use crate::buffer_budget::BufferBudget;
use crate::call::CallPipeline;
use crate::call::authorize::Authorizer;
use crate::call::body::BodyReader;
use crate::call::call_request::RequestParser;
use crate::call::count::RequestCounter;
use crate::call::decide::Decider;
use crate::call::denials::DenialBuilder;
use crate::call::forward::Forwarder;
use crate::call::hold::HoldSettler;
use crate::call::key_owner::KeyOwnerLookup;
use crate::call::lost_writes_log::LostWritesLog;
use crate::call::settle::CallSettler;
use crate::call::stream::Streams;
use crate::call::stream::extender::Extender;
use crate::call::stream::stops::StopWatcher;
use crate::edge::address_filter::AddressFilter;
use crate::edge::connections::Connections;
use crate::edge::head::HEAD_BYTES_MAX;
use crate::edge::state::EdgeState;
use crate::edge::write::ReplyWriter;
use crate::gauges::GaugeSources;
use crate::key_owners::KeyOwners;
use crate::large_bodies::LargeBodies;
use crate::metrics::Metrics;
use crate::protected_request::RequestLimits;
use crate::provider_keys::ProviderKeys;
use crate::readiness::Readiness;
use crate::refused_accounts::RefusedAccounts;
use crate::retry_queue::RetryQueue;
use crate::routes::OfferedRoutes;
use crate::store_health::EdgeStoreHealth;
use crate::tables;
use crate::tables::plans::PlanTable;
use crate::tables::price_offers::PriceOffers;
use crate::tables::prices::Prices;
use crate::unsent_answers::UnsentAnswers;
use crate::upstream::Upstreams;
use connections::allocator;
use crypto::seal::Keyring;
use domain::budget::Budget;
use domain::plan::Plans;
use domain::price::PriceTable;
use settings::Settings;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::blocked::{BlockedCopy, REFRESH_EVERY};
use telemetry::background::keep_running;
use telemetry::store::StoreMetrics;
use tokio::signal::unix::Signal;
use tokio::sync::Mutex;
use tokio::time::interval;

/// Inputs that are read and checked before a port is bound.
pub struct EdgeInputs {
    /// Validated configuration.
    pub settings: Settings,
    /// The master keys.
    pub keyring: Keyring,
    /// The price file, without imported prices.
    pub prices: PriceTable,
    /// The plan file.
    pub plans: Plans,
    /// The clients of the providers.
    pub upstreams: Upstreams,
    /// The retry queue, with the items that earlier processes left.
    pub retry_queue: Arc<RetryQueue>,
    /// The callers' connections.
    pub connections: Arc<Connections>,
}

/// The components that several parts of the process share.
pub struct EdgeComponents {
    pub settings: Arc<Settings>,
    pub store: Store,
    pub metrics: Arc<Metrics>,
    pub admission: Arc<RequestAdmission>,
    pub connections: Arc<Connections>,
    pub budget: Arc<BufferBudget>,
    pub unsent_answers: Arc<UnsentAnswers>,
    pub owners: Arc<KeyOwners>,
    pub views: Arc<AccountViews>,
    pub health: Arc<EdgeStoreHealth>,
    pub blocked: Arc<BlockedCopy>,
    pub refused: Arc<RefusedAccounts>,
    pub lost_writes: Arc<LostWritesLog>,
    pub plans: Arc<PlanTable>,
    pub prices: Arc<Prices>,
    pub provider_keys: Arc<ProviderKeys>,
    pub upstreams: Arc<Upstreams>,
    pub retry_queue: Arc<RetryQueue>,
    pub stops: Option<Arc<StopWatcher>>,
}

impl EdgeComponents {
    /// Creates the components. Starts no task.
    pub fn new(inputs: EdgeInputs, store: Store, metrics: Arc<Metrics>) -> Self {
        let settings = Arc::new(inputs.settings);
        let proxy = &settings.proxy;
        let owners = Arc::new(KeyOwners::new(proxy.max_remembered_keys));
        let views = Arc::<AccountViews>::default();
        let address = Store::shown_address(&settings.store);
        let provider_keys = Arc::new(ProviderKeys::new(inputs.keyring));
        let health = EdgeStoreHealth::new(
            store.clone(),
            Arc::clone(&owners),
            Arc::clone(&provider_keys),
            address,
        );
        Self {
            admission: Arc::default(),
            connections: inputs.connections,
            budget: Arc::new(BufferBudget::new(
                proxy.max_buffered_bytes,
                proxy.max_body_bytes + HEAD_BYTES_MAX,
            )),
            unsent_answers: Arc::new(UnsentAnswers::new(proxy.max_buffered_bytes)),
            health: Arc::new(health),
            owners,
            blocked: Arc::default(),
            refused: Arc::new(RefusedAccounts::new(store.clone(), Arc::clone(&views))),
            views,
            lost_writes: Arc::default(),
            plans: Arc::new(PlanTable::new(&inputs.plans, settings.public_url())),
            prices: Arc::new(Prices::new(inputs.prices, store.clone(), metrics.tables.clone())),
            provider_keys,
            upstreams: Arc::new(inputs.upstreams),
            retry_queue: inputs.retry_queue,
            stops: proxy.stop_frozen_streams.then(Arc::default),
            settings,
            store,
            metrics,
        }
    }

    /// Returns the components that the hooks use.
    pub fn edge_state(&self) -> EdgeState {
        EdgeState {
            admission: Arc::clone(&self.admission),
            addresses: AddressFilter {
                blocked: Arc::clone(&self.blocked),
                store: self.store.clone(),
                trusted_proxies: self.settings.network.trusted_proxies.clone(),
            },
            calls: Arc::new(self.pipeline()),
            offered: self.offered(),
            health: Arc::clone(&self.health),
            prices: Arc::clone(&self.prices),
            upstreams: Arc::clone(&self.upstreams),
            writer: ReplyWriter {
                admission: Arc::clone(&self.admission),
                timeout: self.client_timeout(),
            },
            metrics: Arc::clone(&self.metrics),
        }
    }

    /// Returns the steps of a call.
    pub fn pipeline(&self) -> CallPipeline {
        let holds = Arc::new(self.hold_settler());
        let large_bodies = || LargeBodies::new(self.settings.proxy_threads());
        let call_settler = Arc::new(CallSettler {
            holds: Arc::clone(&holds),
            metrics: Arc::clone(&self.metrics),
        });
        let authorizer = Arc::new(Authorizer {
            store: self.store.clone(),
            health: Arc::clone(&self.health),
            plans: Arc::clone(&self.plans),
            views: Arc::clone(&self.views),
            refused: Arc::clone(&self.refused),
            retry_queue: Arc::clone(&self.retry_queue),
            lost_writes: Arc::clone(&self.lost_writes),
        });
        let denials = Arc::new(DenialBuilder {
            refused: Arc::clone(&self.refused),
            metrics: Arc::clone(&self.metrics),
            runs_max: self.store.budgets().limit(Budget::Runs),
        });
        CallPipeline {
            key_owner_lookup: self.key_owner_lookup(),
            counter: RequestCounter {
                authorizer: Arc::clone(&authorizer),
                denials: Arc::clone(&denials),
            },
            body_reader: self.body_reader(),
            large_requests: large_bodies(),
            parser: Arc::new(RequestParser {
                prices: Arc::clone(&self.prices),
                streaming: self.settings.proxy.streaming,
                upstreams: Arc::clone(&self.upstreams),
                require_token_limit: self.settings.proxy.require_token_limit,
            }),
            decider: Decider {
                authorizer,
                denials,
                provider_keys: Arc::clone(&self.provider_keys),
                holds: Arc::clone(&holds),
                hold_grace: self.settings.hold_grace(),
                stream_life: self.settings.stream_life(),
            },
            forwarder: Forwarder {
                account_calls_max: self.upstreams.account_calls_max(),
                holds,
                metrics: Arc::clone(&self.metrics),
                large_answers: large_bodies(),
                unsent_answers: Arc::clone(&self.unsent_answers),
            },
            streams: Arc::new(self.streams(Arc::clone(&call_settler))),
            call_settler,
            admission: Arc::clone(&self.admission),
            request_limits: RequestLimits::new(self.connections.max()),
        }
    }

    fn streams(&self, call_settler: Arc<CallSettler>) -> Streams {
        let proxy = &self.settings.proxy;
        Streams {
            call_settler,
            metrics: Arc::clone(&self.metrics),
            admission: Arc::clone(&self.admission),
            extender: proxy.stream_extend.then(|| Extender {
                store: self.store.clone(),
                health: Arc::clone(&self.health),
                plans: Arc::clone(&self.plans),
                views: Arc::clone(&self.views),
                hold_life: self.settings.stream_life() + self.settings.hold_grace(),
            }),
            stops: self.stops.clone(),
            total: Duration::from_millis(proxy.stream_total_ms),
            drain: Duration::from_millis(proxy.stream_drain_ms),
        }
    }

    fn offered(&self) -> OfferedRoutes {
        let proxy = &self.settings.proxy;
        OfferedRoutes {
            streaming: proxy.streaming,
            responses: proxy.responses,
            embeddings: proxy.embeddings,
        }
    }

    /// Creates step 1 of a call.
    pub fn key_owner_lookup(&self) -> KeyOwnerLookup {
        KeyOwnerLookup {
            store: self.store.clone(),
            health: Arc::clone(&self.health),
            prices: Arc::clone(&self.prices),
            owners: Arc::clone(&self.owners),
        }
    }

    /// Creates step 2 of a call.
    pub fn body_reader(&self) -> BodyReader {
        BodyReader {
            budget: Arc::clone(&self.budget),
            bytes_max: self.settings.proxy.max_body_bytes,
            timeout: self.client_timeout(),
        }
    }

    /// Creates the component that settles holds.
    pub fn hold_settler(&self) -> HoldSettler {
        HoldSettler::new(
            self.store.clone(),
            Arc::clone(&self.health),
            Arc::clone(&self.retry_queue),
            self.metrics.ledger.clone(),
        )
    }

    /// Creates the readiness check for load balancers.
    pub fn readiness(&self) -> Readiness {
        Readiness {
            admission: Arc::clone(&self.admission),
            health: Arc::clone(&self.health),
            blocked: Arc::clone(&self.blocked),
            prices: Arc::clone(&self.prices),
        }
    }

    /// Returns the components that `/metrics` reads.
    pub fn gauge_sources(&self) -> GaugeSources {
        GaugeSources {
            admission: Arc::clone(&self.admission),
            readiness: self.readiness(),
            retry_queue: Arc::clone(&self.retry_queue),
            retry_queue_limit: self.settings.proxy.retry_queue_limit,
            connections: Arc::clone(&self.connections),
            blocked: Arc::clone(&self.blocked),
            budget: Arc::clone(&self.budget),
            unsent_answers: Arc::clone(&self.unsent_answers),
            max_buffered_bytes: self.settings.proxy.max_buffered_bytes,
            owners: Arc::clone(&self.owners),
            views: Arc::clone(&self.views),
            provider_keys: Arc::clone(&self.provider_keys),
            upstreams: Arc::clone(&self.upstreams),
            lost_writes: Arc::clone(&self.lost_writes),
        }
    }

    /// Starts the background tasks in the current runtime; one that panics starts again. `hangups`: see
    /// [`tables::follow`].
    pub fn start_background_tasks(&self, store_metrics: StoreMetrics, hangups: Signal) {
        let health = Arc::clone(&self.health);
        tokio::spawn(keep_running("store_health", move || Arc::clone(&health).follow()));
        let (blocked, refused) = (Arc::clone(&self.blocked), Arc::clone(&self.refused));
        let store = self.store.clone();
        tokio::spawn(keep_running("lists", move || {
            refresh_lists(store.clone(), Arc::clone(&blocked), Arc::clone(&refused))
        }));
        self.upstreams.start_background_tasks();
        if let Some(stops) = self.stops.clone() {
            let store = self.store.clone();
            tokio::spawn(keep_running("stops", move || {
                Arc::clone(&stops).follow(store.clone())
            }));
        }
        tokio::spawn(keep_running("give_back", allocator::give_back));
        self.start_tables(hangups);
        self.start_retry_queue();
        let store = self.store.clone();
        tokio::spawn(keep_running("store_metrics", move || {
            store_metrics.clone().follow(store.clone())
        }));
        telemetry::export(&self.settings.telemetry, "tollgate-proxy");
    }

    fn start_tables(&self, hangups: Signal) {
        let (plans, prices) = (Arc::clone(&self.plans), Arc::clone(&self.prices));
        let (settings, metrics) = (Arc::clone(&self.settings), self.metrics.tables.clone());
        let (store, health) = (self.store.clone(), Arc::clone(&self.health));
        let hangups = Arc::new(Mutex::new(hangups));
        tokio::spawn(keep_running("tables", move || {
            let offers = PriceOffers::new(store.clone(), Arc::clone(&health));
            let (plans, prices, settings) = (Arc::clone(&plans), Arc::clone(&prices), Arc::clone(&settings));
            let (metrics, hangups) = (metrics.clone(), Arc::clone(&hangups));
            async move {
                let mut hangups = hangups.lock().await;
                tables::follow(plans, prices, settings, metrics, offers, &mut hangups).await;
            }
        }));
    }

    fn start_retry_queue(&self) {
        let (store, health, metrics) = (
            self.store.clone(),
            Arc::clone(&self.health),
            Arc::clone(&self.metrics),
        );
        let queue = Arc::clone(&self.retry_queue);
        tokio::spawn(keep_running("retry_queue", move || {
            Arc::clone(&queue).run(store.clone(), Arc::clone(&health), Arc::clone(&metrics))
        }));
        let queue = Arc::clone(&self.retry_queue);
        tokio::spawn(keep_running("journal", move || Arc::clone(&queue).follow_new()));
        let queue = Arc::clone(&self.retry_queue);
        tokio::spawn(keep_running("other_journals", move || {
            Arc::clone(&queue).follow_others()
        }));
    }

    fn client_timeout(&self) -> Duration {
        Duration::from_millis(self.settings.proxy.client_timeout_ms)
    }
}

/// Keeps the lists of blocked addresses and refused accounts current, forever.
async fn refresh_lists(store: Store, blocked: Arc<BlockedCopy>, refused: Arc<RefusedAccounts>) {
    let mut ticks = interval(REFRESH_EVERY);
    loop {
        ticks.tick().await;
        // Concurrently, since the server of one list may be unreachable.
        tokio::join!(blocked.refresh(&store), refused.refresh());
    }
}
