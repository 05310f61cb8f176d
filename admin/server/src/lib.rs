//! `tollgate-admin serve`: the management API, its ops listener and its workers, from settings to the last answer.
//!
//! [`serve`] is the only entry point. The composition root creates every part and passes each the parts that it needs;
//! the listener accepts connections; the ops listener provides metrics and health. Uses every crate of the management
//! server except the command line.

mod composition;
mod connection_metrics;
mod error;
mod listener;
mod metrics;
mod ops;
mod removed_plans;

pub use error::ServeError;

use api::ApiState;
use axum::Router;
use composition::Server;
use connections::limit::ConnectionLimit;
use connections::{allocator, open_files};
use endpoint::{Admission, Paths};
use people::PeopleState;
use settings::Settings;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use telemetry::background::keep_running;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Longest time for requests in flight and turns of workers after SIGTERM or SIGINT.
const DRAIN: Duration = Duration::from_secs(15);
/// Open files reserved for everything except clients: the store's connections, receivers of webhooks, the archive.
const FILES_SET_ASIDE: usize = 512;
/// Time limit of the export of the last spans.
const DRAIN_SPANS: Duration = Duration::from_secs(1);

/// Serves until SIGTERM or SIGINT. Then readiness fails for `admin.drain_delay_ms` (a second signal skips the rest of
/// it), requests in flight are answered, and the workers end after their current turns. SIGHUP reads the tables again.
/// The store may be down: every operation then answers 503 until it is back. `config` says in the log where the
/// settings come from.
///
/// # Errors
/// [`ServeError`] if it cannot start; everything is checked before a port is bound.
pub async fn serve(settings: Settings, config: &str) -> Result<(), ServeError> {
    // First of all, since SIGHUP would end a process without a handler.
    let mut signals = Signals::new().map_err(|error| ServeError::SetUp(error.to_string()))?;
    allocator::small_pages();
    let Server {
        api,
        people,
        admission,
        workers,
        running,
    } = Server::new(&settings)?;
    let management = bind("admin.listen", settings.admin.listen).await?;
    let operations = bind("admin.ops_listen", settings.admin.ops_listen).await?;
    warn(&settings);
    let (stop, stopping) = watch::channel(false);
    telemetry::export(&settings.telemetry, "tollgate-admin");
    let working = workers.start(&stopping);
    let (store, store_metrics) = (admission.store.clone(), running.metrics.store.clone());
    let follow_store = move || store_metrics.clone().follow(store.clone());
    tokio::spawn(keep_running("store_metrics", follow_store));
    tokio::spawn(keep_running("give_back", allocator::give_back));
    let router = router(&settings, admission, &api, &people);
    let open_files = open_files::raise();
    let [for_people, for_operators] = &running.metrics.connections;
    let serving = tokio::spawn(listener::serve(
        management,
        router,
        limits(&settings, open_files),
        for_people.clone(),
        stopping.clone(),
    ));
    let operating = tokio::spawn(listener::serve(
        operations,
        ops::router(Arc::clone(&running)),
        limits(&settings, open_files),
        for_operators.clone(),
        stopping,
    ));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = telemetry::process::COMMIT,
        config,
        listen = %settings.admin.listen,
        ops = %settings.admin.ops_listen,
        "serving"
    );

    let settings = Arc::new(settings);
    while signals.next().await == SignalAction::Reload {
        running.reload(&settings).await;
    }
    tracing::info!("stopping");
    running.leaving.store(true, Ordering::Release);
    let delay = Duration::from_millis(settings.admin.drain_delay_ms);
    drop(tokio::time::timeout(delay, signals.stop_again()).await);
    stop.send_replace(true);
    drain([serving, operating], working).await;
    Ok(())
}

fn warn(settings: &Settings) {
    let warnings = [settings.master_key_warning(), settings.trusted_proxies_warning()];
    for warning in warnings.iter().flatten() {
        tracing::warn!("{warning}");
    }
}

/// Returns the router of the management API, the dashboard and the reference pages.
fn router(
    settings: &Settings,
    admission: Arc<Admission>,
    api: &Arc<ApiState>,
    people: &Arc<PeopleState>,
) -> Router {
    let mut paths = Paths::new(admission);
    paths.mount(api::operations(), api);
    paths.mount(people::operations(), people);
    let pages = dashboard::router();
    let pages = pages.merge(api_docs::reference::router());
    paths.into_router(pages, settings.public_edge_url().as_deref())
}

/// Waits until both listeners and all workers have ended, at most [`DRAIN`], and exports the last spans.
async fn drain([serving, operating]: [JoinHandle<()>; 2], mut working: JoinSet<()>) {
    let drained = tokio::time::timeout(DRAIN, async {
        let workers_end = async { while working.join_next().await.is_some() {} };
        tokio::join!(serving, operating, workers_end)
    });
    let drained = drained.await;
    drop(tokio::time::timeout(DRAIN_SPANS, telemetry::span::flush()).await);
    match drained {
        Ok(_) => tracing::info!("stopped"),
        Err(_elapsed) => tracing::warn!("stopped with requests in flight, or in a worker's turn"),
    }
}

/// Returns the limits of each of the two listeners, which count their own connections. Each gets half of the
/// `open_files` that are not reserved.
fn limits(settings: &Settings, open_files: usize) -> listener::ListenerLimits {
    let admin = &settings.admin;
    let most = (open_files.saturating_sub(FILES_SET_ASIDE) / 2).max(1);
    if most < admin.max_connections {
        tracing::warn!(
            wanted = admin.max_connections,
            most,
            open_files,
            "admin.max_connections is lowered: the system allows this process too few open files"
        );
    }
    let wanted_of_address = admin.max_connections_per_address;
    let in_all = admin.max_connections.min(most);
    let of_address = open_files::of_one_address(wanted_of_address, admin.max_connections, in_all);
    if of_address < wanted_of_address {
        tracing::warn!(
            wanted = wanted_of_address,
            of_address,
            "admin.max_connections_per_address is lowered to a quarter of the possible connections"
        );
    }
    listener::ListenerLimits {
        connections: ConnectionLimit::new(in_all, of_address, settings.network.trusted_proxies.clone()),
        client_timeout: Duration::from_millis(admin.client_timeout_ms),
    }
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| ServeError::Bind { key, address, source })
}

/// The action that a signal requests.
#[derive(Debug, PartialEq, Eq)]
enum SignalAction {
    Reload,
    Stop,
}

struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal to stop.
    async fn stop_again(&mut self) {
        while self.next().await == SignalAction::Reload {}
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.term.recv() => SignalAction::Stop,
            _ = self.interrupt.recv() => SignalAction::Stop,
            _ = self.hangup.recv() => SignalAction::Reload,
        }
    }
}
