//! Starting and stopping: settings are checked in full before a port is bound, SIGTERM lets calls in flight finish,
//! SIGQUIT hands the listening sockets to a new process (Pingora's graceful upgrade).

use crate::edge::Edge;
use crate::edge::opening::Opening;
use crate::gate::{Gate, Parts};
use crate::metrics::Metrics;
use crate::ops::Ops;
use crate::pending::Pending;
use crate::pending::journal::Journal;
use crate::upstream::Upstream;
use crate::watch;
use async_trait::async_trait;
use clap::Parser;
use pingora_core::listeners::tls::TlsSettings;
use pingora_core::server::configuration::{Opt, ServerConf};
use pingora_core::server::{ListenFds, RunArgs, Server, ShutdownWatch};
use pingora_core::services::listening::Service;
use pingora_core::services::{ServiceReadyNotifier, ServiceWithDependents};
use shared::settings::{self, BadSettings, Settings};
use shared::store::Store;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Exit code for a configuration that cannot be used.
const BAD_CONFIGURATION: u8 = 2;
/// How often the drain looks whether the last call is done.
const DRAIN_LOOK: Duration = Duration::from_millis(20);
/// How long connections that are open when the edge stops may still bring a request. Its answer says `Connection: close`,
/// so their callers turn to whoever listens then, instead of meeting a connection that dies under their request.
const DRAIN_CONNECTIONS: Duration = Duration::from_secs(1);
/// How long the drain waits for the retry queue, once no call is in flight; what is left is in the journal.
const DRAIN_PENDING: Duration = Duration::from_secs(2);

/// Runs the edge: it decides on every call, forwards the approved ones, and settles them
///
/// Agents use proxy.listen as their OpenAI base address, with a virtual key. Metrics and readiness are on
/// proxy.ops_listen. It stays in the foreground and logs to standard error: text on a terminal, JSON lines otherwise.
#[derive(Debug, Parser)]
#[command(name = "tollgate-proxy", version, max_term_width = 100, after_long_help = AFTER_HELP)]
struct Options {
    /// Configuration file [default: config/tollgate.toml]; every key also as TOLLGATE_<SECTION>__<KEY>
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take over the listening sockets of the running process, which is then sent SIGQUIT
    #[arg(long)]
    upgrade: bool,
}

const AFTER_HELP: &str = "\
Signals:
  SIGTERM  calls in flight finish, then it ends
  SIGHUP   plans and prices are read again
  SIGQUIT  the sockets go to the process that was started with --upgrade

Example:
  TOLLGATE_STORE__URL=redis://127.0.0.1:6379 tollgate-proxy --config /etc/tollgate/tollgate.toml

The store must be a ledger (`tollgate-admin store init`); until then every call is answered with 503.

Exit codes:
  0  stopped by a signal
  2  wrong usage or configuration, said in one line; nothing was served";

/// The whole process.
#[must_use]
pub fn run() -> ExitCode {
    let options = Options::parse();
    let _logs = shared::telemetry::start();
    drop(rustls::crypto::ring::default_provider().install_default());
    match prepare(&options) {
        Ok(server) => {
            server.run(RunArgs::default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tollgate-proxy: {error}");
            ExitCode::from(BAD_CONFIGURATION)
        }
    }
}

/// Checks everything that can be checked without a port.
fn prepare(options: &Options) -> Result<Server, BadSettings> {
    let settings = settings::load(options.config.as_deref())?;
    let proxy = settings.proxy.clone();
    Store::check(&settings.store).map_err(|error| BadSettings(error.to_string()))?;
    let metrics = Metrics::new().map_err(|error| BadSettings(error.to_string()))?;
    let gate = Arc::new(OnceLock::new());
    let first_bytes_within = Duration::from_millis(proxy.client_timeout_ms);
    let edge = Opening::new(Edge::new(Arc::clone(&gate)), first_bytes_within);
    let mut listener = Service::new("edge".to_owned(), edge);
    if proxy.tls_cert.as_os_str().is_empty() {
        listener.add_tcp(&proxy.listen.to_string());
    } else {
        listener.add_tls_with_settings(&proxy.listen.to_string(), None, tls(&settings)?);
    }
    let mut ops = Service::new(
        "ops".to_owned(),
        Ops {
            gate: Arc::clone(&gate),
        },
    );
    ops.add_tcp(&proxy.ops_listen.to_string());

    let mut server = Server::new_with_opt_and_conf(pingora_options(options), pingora_conf(&settings));
    let parts = Mutex::new(Some(parts(settings)?));
    if !options.upgrade {
        check_free("proxy.listen", proxy.listen)?;
        check_free("proxy.ops_listen", proxy.ops_listen)?;
    }
    server.add_service(EdgeService {
        listener,
        gate,
        parts,
        metrics,
    });
    server.add_service(ops);
    server.bootstrap();
    Ok(server)
}

fn parts(settings: Settings) -> Result<Parts, BadSettings> {
    let sealer = settings.sealer()?;
    let prices = settings.prices()?;
    let plans = settings.plans()?;
    let upstream = Upstream::new(&settings.upstream).map_err(BadSettings)?;
    let (dir, limit) = (&settings.proxy.data_dir, settings.proxy.retry_queue_limit);
    let (journal, left_behind) = Journal::open(dir, limit)
        .map_err(|error| BadSettings(format!("proxy.data_dir {}: {error}", dir.display())))?;
    let pending = Pending::new(journal, left_behind, limit);
    Ok(Parts {
        settings,
        sealer,
        prices,
        plans,
        upstream,
        pending,
    })
}

/// Says at once what Pingora would find out after many retries.
fn check_free(key: &str, address: SocketAddr) -> Result<(), BadSettings> {
    TcpListener::bind(address)
        .map(drop)
        .map_err(|error| BadSettings(format!("{key} {address}: {error}")))
}

fn tls(settings: &Settings) -> Result<TlsSettings, BadSettings> {
    let (cert, key) = (
        settings.proxy.tls_cert.display().to_string(),
        settings.proxy.tls_key.display().to_string(),
    );
    let mut tls = TlsSettings::intermediate(&cert, &key)
        .map_err(|error| BadSettings(format!("proxy.tls_cert {cert}, proxy.tls_key {key}: {error}")))?;
    tls.enable_h2();
    Ok(tls)
}

fn pingora_options(options: &Options) -> Option<Opt> {
    Some(Opt {
        upgrade: options.upgrade,
        ..Opt::default()
    })
}

fn pingora_conf(settings: &Settings) -> ServerConf {
    let proxy = &settings.proxy;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ServerConf {
        threads: if proxy.threads == 0 { cores } else { proxy.threads },
        upgrade_sock: proxy.upgrade_socket.display().to_string(),
        grace_period_seconds: Some(proxy.drain_ms.div_ceil(1000)),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    }
}

/// The edge's listener, with everything else that lives in its runtime: the store connection and the watchers.
struct EdgeService {
    listener: Service<Opening>,
    gate: Arc<OnceLock<Arc<Gate>>>,
    parts: Mutex<Option<Parts>>,
    metrics: Metrics,
}

impl EdgeService {
    /// Opens the gate; it can only be opened inside the runtime that will use it.
    fn open(&self) -> Option<Arc<Gate>> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let store = Store::of(&parts.settings.store).ok()?;
        let gate = Arc::new(Gate::new(parts, store, self.metrics.clone()));
        Some(Arc::clone(self.gate.get_or_init(|| gate)))
    }
}

#[async_trait]
impl ServiceWithDependents for EdgeService {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
        ready: ServiceReadyNotifier,
    ) {
        let Some(gate) = self.open() else {
            tracing::error!("the edge cannot start");
            return;
        };
        watch::start(&gate);
        tokio::spawn(exit_when_drained(gate, shutdown.clone()));
        self.listener
            .start_service(fds, shutdown, listeners_per_fd, ready)
            .await;
    }

    fn name(&self) -> &str {
        "edge"
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        self.listener.listen_addresses()
    }
}

/// Ends the process as soon as the last call is done, instead of sleeping through the whole grace period.
async fn exit_when_drained(gate: Arc<Gate>, mut shutdown: ShutdownWatch) {
    if shutdown.wait_for(|stopping| *stopping).await.is_err() {
        return;
    }
    tokio::time::sleep(DRAIN_CONNECTIONS).await;
    while gate.in_flight() > 0 {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
    let deadline = tokio::time::Instant::now() + DRAIN_PENDING;
    while !gate.pending.is_empty() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
    tracing::info!(pending = gate.pending.len(), "drained");
    gate.pending.close();
    shared::telemetry::flush();
    std::process::exit(0);
}
