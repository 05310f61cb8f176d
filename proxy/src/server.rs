//! Start and stop. All settings are checked before a port is bound. SIGTERM lets calls in flight finish; SIGQUIT hands
//! the listening sockets over to a new process.

mod cannot_start;
mod certificate;
pub mod components;
mod descriptors;
mod drain;
mod handover;
mod signals;
mod tls;

use crate::admission::Admission;
use crate::edge::app::EdgeApp;
use crate::edge::connections::Connections;
use crate::edge::state::EdgeState;
use crate::gauges::{Exposition, Gauges};
use crate::metrics::Metrics;
use crate::ops::{Ops, OpsState};
use crate::pending::Pending;
use crate::readiness::Readiness;
use crate::upstream::Upstreams;
use async_trait::async_trait;
use cannot_start::CannotStart;
use certificate::Certificate;
use clap::Parser;
use components::{Components, Parts};
use connections::allocator;
use connections::open_files;
use descriptors::{Configured, Descriptors};
use handover::Successor;
use parking_lot::Mutex;
use pingora::listeners::ListenerConfig;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::server::configuration::{Opt, ServerConf};
use pingora::server::{ListenFds, RunArgs, Server, ShutdownWatch};
use pingora::services::listening::Service;
use pingora::services::{ServiceReadyNotifier, ServiceWithDependents};
use settings::{self, BadSettings, ProxySettings, Settings};
use signals::{Fds, Signals};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::Store;
use telemetry::registrar::Registrar;
use tokio::signal::unix::Signal;

/// Exit code of a process that could not take over.
const NOT_TAKEN_OVER: i32 = 1;
/// Write buffer of a connection, in bytes: head and body of a usual answer are sent in one system call instead of two.
/// Pingora's default of 1,460 bytes is less than a head and a short answer.
const WRITE_BUFFER: usize = 16 << 10;
/// Interval at which a process that takes over checks its readiness.
const READY_CHECK_EVERY: Duration = Duration::from_millis(20);
/// File of the certificates that Pingora's own connector trusts: none. The edge uses its own connector for the
/// provider, so Pingora's need not read the system's certificates.
const NO_CERTIFICATES: &str = "/dev/null";
/// Time that Pingora waits beyond `proxy.drain_ms`. The drain ends the process before that.
const DRAIN_MARGIN_S: u64 = 10;

/// Runs the edge: it decides on every call, forwards the approved ones, and settles them
///
/// Agents use proxy.listen as their OpenAI base address, with a virtual key. Metrics and readiness are on
/// proxy.ops_listen. It stays in the foreground and logs to standard error: text on a terminal, JSON lines otherwise.
#[derive(Debug, Parser)]
#[command(name = "tollgate-proxy", version, max_term_width = 100, after_long_help = AFTER_HELP)]
struct Options {
    /// Configuration file [default: config/tollgate.toml, if there is one]; every key also as TOLLGATE_<SECTION>__<KEY>
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take over the listening sockets of the running process, which is then sent SIGQUIT; when none runs, start as
    /// usual
    #[arg(long)]
    upgrade: bool,
}

const AFTER_HELP: &str = "\
Signals (docs/guides/upgrading.md):
  SIGTERM  readiness fails for proxy.drain_delay_ms, calls in flight finish, then it ends
  SIGHUP   plans and prices are read again
  SIGQUIT  the sockets go to the process that was started with --upgrade
  SIGINT   ends at once; calls in flight stay charged at their estimates

Example:
  TOLLGATE_STORE__URL=redis://127.0.0.1:6379 tollgate-proxy --config /etc/tollgate/tollgate.toml

Until the store is a ledger (`tollgate-admin store init`) every call is answered with 503.

Exit codes:
  0  stopped by a signal
  1  --upgrade: no sockets, or no usable store; the running process goes on
  2  wrong usage or configuration, said in one line; nothing was served
  3  a full disk, an address that is in use; starting again can help
  4  stopped by a signal; settlements reached neither the store nor proxy.data_dir, the log names them";

/// Runs the process until a signal ends it.
pub fn run() -> ExitCode {
    // First of all, since a service manager may send SIGHUP as soon as the process runs.
    let hangups = signals::hangups();
    allocator::small_pages();
    let options = Options::parse();
    let _logs = match telemetry::start() {
        Ok(logs) => logs,
        Err(error) => return CannotStart::from(error).report(),
    };
    drop(rustls::crypto::ring::default_provider().install_default());
    match hangups
        .map_err(|error| CannotStart::Temporary(format!("SIGHUP cannot be handled: {error}")))
        .and_then(|hangups| prepare(&options, hangups))
    {
        Ok((server, signals)) => {
            server.run(RunArgs {
                shutdown_signal: Box::new(signals),
            });
            ExitCode::SUCCESS
        }
        Err(error) => error.report(),
    }
}

/// Checks everything that can be checked without a port, and prepares the services.
fn prepare(options: &Options, hangups: Signal) -> Result<(Server, Signals), CannotStart> {
    let settings = settings::load(options.config.as_deref())?;
    let proxy = settings.proxy.clone();
    Store::check(&settings.store).map_err(|error| BadSettings(error.to_string()))?;
    let telemetry = Telemetry::new(&settings).map_err(|error| BadSettings(error.to_string()))?;
    let (state, ops_state) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let first_head_within = Duration::from_millis(proxy.client_timeout_ms);
    let configured = Configured {
        callers: proxy.max_connections,
        of_address: proxy.max_connections_per_address,
    };
    let descriptors = Descriptors::divide(open_files::raise(), configured);
    let trusted = settings.network.trusted_proxies.clone();
    let connections = Connections::new(descriptors.callers, descriptors.of_address, trusted);
    let connections = Arc::new(connections);
    let (tls, certificate) = tls::acceptor(&proxy)?.unzip();
    let certificate_ends = certificate.as_ref().map_or(0, Certificate::ends_s);
    telemetry.gauges.certificate_ends.set(certificate_ends);
    let mut buffers = L4BufferSettings::default().write(WRITE_BUFFER);
    if tls.is_none() {
        // The read buffer is only needed for TLS, which reads 4 KB at a time. HTTP has its own.
        buffers = buffers.read(0);
    }
    let edge = EdgeApp::new(
        Arc::clone(&state),
        Arc::new(pingora_conf(&settings)),
        Arc::clone(&connections),
        tls,
        first_head_within,
    );
    let mut listener = edge.service();
    // The edge does the TLS handshake itself: one deadline covers it and the first head.
    listener.add_listener(ListenerConfig::tcp(proxy.listen.to_string()).l4_buffer(buffers));
    let mut ops = Service::new(
        "ops".to_owned(),
        Ops {
            state: Arc::clone(&ops_state),
        },
    );
    ops.add_tcp(&proxy.ops_listen.to_string());

    let conf = pingora_conf(&settings);
    let parts = parts(settings, connections, descriptors.provider)?;
    let pending = Arc::clone(&parts.pending);
    let successor = successor(options, &proxy, certificate.as_ref())?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = telemetry::process::COMMIT,
        config = settings::source(options.config.as_deref()),
        listen = %proxy.listen,
        ops = %proxy.ops_listen,
        data_dir = %proxy.data_dir.display(),
        "starting"
    );
    certificate.iter().for_each(Certificate::log);
    let mut server = Server::new_with_opt_and_conf(pingora_options(successor.is_some()), conf);
    let signals = Signals {
        state: Arc::clone(&state),
        pending,
        fds: Arc::default(),
        upgrade_socket: proxy.upgrade_socket,
        drain_delay: Duration::from_millis(proxy.drain_delay_ms),
    };
    let edge = server.add_service(EdgeService {
        descriptors,
        configured,
        listener,
        state,
        ops_state,
        parts: Mutex::new(Some(parts)),
        telemetry: Mutex::new(Some(telemetry)),
        hangups: Mutex::new(Some(hangups)),
        fds: Arc::clone(&signals.fds),
        successor: Mutex::new(successor),
    });
    // The ops listener of a process that takes over starts when the process is ready: until then the old process
    // answers.
    server.add_service(ops).add_dependency(&edge);
    server.bootstrap();
    Ok((server, signals))
}

/// Announces this process to the one that has the sockets; `None` if no process listens on the addresses.
fn successor(
    options: &Options,
    proxy: &ProxySettings,
    certificate: Option<&Certificate>,
) -> Result<Option<Successor>, CannotStart> {
    let free = check_free("proxy.listen", proxy.listen)
        .and_then(|()| check_free("proxy.ops_listen", proxy.ops_listen));
    if !options.upgrade {
        return free.map(|()| None);
    }
    if free.is_ok() {
        tracing::info!("nobody listens on proxy.listen and proxy.ops_listen: nothing to take over");
        return Ok(None);
    }
    certificate.map_or(Ok(()), Certificate::check_takeover)?;
    let announced = Successor::announce(&proxy.upgrade_socket)
        .map_err(|error| BadSettings(format!("proxy.upgrade_socket {error}")))?;
    tracing::info!("waiting for the sockets: send SIGQUIT to the running process within six seconds");
    Ok(Some(announced))
}

/// Reads and checks everything needed to create the components.
fn parts(
    settings: Settings,
    connections: Arc<Connections>,
    to_provider: usize,
) -> Result<Parts, CannotStart> {
    let keyring = settings.keyring()?;
    let prices = settings.prices()?;
    let plans = settings.plans()?;
    let upstreams = Upstreams::new(&settings, to_provider).map_err(BadSettings)?;
    let (dir, limit) = (&settings.proxy.data_dir, settings.proxy.retry_queue_limit);
    let pending = Pending::open(dir, limit)
        .map_err(|error| CannotStart::from_io(&format!("proxy.data_dir {}", dir.display()), &error))?;
    Ok(Parts {
        settings,
        keyring,
        prices,
        plans,
        upstreams,
        pending: Arc::new(pending),
        connections,
    })
}

/// Reports an occupied address at once. Pingora would report it only after many retries.
fn check_free(key: &str, address: SocketAddr) -> Result<(), CannotStart> {
    TcpListener::bind(address)
        .map(drop)
        .map_err(|error| CannotStart::from_io(&format!("{key} {address}"), &error))
}

fn pingora_options(takes_over: bool) -> Option<Opt> {
    Some(Opt {
        upgrade: takes_over,
        ..Opt::default()
    })
}

fn pingora_conf(settings: &Settings) -> ServerConf {
    let proxy = &settings.proxy;
    let threads = settings.proxy_threads();
    ServerConf {
        threads,
        // A single thread has no other to steal work from, and the single-threaded runtime costs less.
        work_stealing: threads > 1,
        // Without this file, as in a bare image, Pingora reads the system's certificates.
        ca_file: Path::new(NO_CERTIFICATES)
            .exists()
            .then(|| NO_CERTIFICATES.to_owned()),
        upgrade_sock: proxy.upgrade_socket.display().to_string(),
        grace_period_seconds: Some(proxy.drain_ms.div_ceil(1000) + DRAIN_MARGIN_S),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    }
}

/// Metrics of the process, registered before it starts.
struct Telemetry {
    registrar: Registrar,
    metrics: Metrics,
    gauges: Gauges,
}

impl Telemetry {
    fn new(settings: &Settings) -> prometheus::Result<Self> {
        let registrar = Registrar::new("tollgate_proxy");
        Ok(Self {
            metrics: Metrics::new(&registrar, &settings.providers())?,
            gauges: Gauges::new(&registrar)?,
            registrar,
        })
    }
}

/// The edge's listener, with everything that lives in its runtime: the store connection and the background tasks.
struct EdgeService {
    descriptors: Descriptors,
    configured: Configured,
    listener: Service<EdgeApp>,
    state: Arc<OnceLock<Arc<EdgeState>>>,
    ops_state: Arc<OnceLock<OpsState>>,
    parts: Mutex<Option<Parts>>,
    telemetry: Mutex<Option<Telemetry>>,
    hangups: Mutex<Option<Signal>>,
    fds: Arc<OnceLock<Fds>>,
    successor: Mutex<Option<Successor>>,
}

/// The components of a started edge that its service uses.
struct Started {
    readiness: Readiness,
    admission: Arc<Admission>,
    pending: Arc<Pending>,
    drain_within: Duration,
}

impl EdgeService {
    /// Creates the components and starts the background tasks. The store must be opened in the runtime that uses it.
    fn start(&self) -> Option<Started> {
        let parts = take(&self.parts)?;
        let Telemetry {
            registrar,
            metrics,
            gauges,
        } = take(&self.telemetry)?;
        let hangups = take(&self.hangups)?;
        let settings = &parts.settings;
        for warning in settings
            .drain_warning()
            .iter()
            .chain(&settings.master_key_warning())
        {
            tracing::warn!("{warning}");
        }
        let budgets = parts.settings.limits.budgets();
        let store = Store::from_settings(&parts.settings.store)
            .ok()?
            .with_budgets(budgets);
        let components = Components::new(parts, store, Arc::new(metrics));
        self.state.get_or_init(|| Arc::new(components.edge_state()));
        self.descriptors.warn_if_below(self.configured);
        components.start_background_tasks(gauges.store.clone(), hangups);
        self.ops_state.get_or_init(|| OpsState {
            readiness: components.readiness(),
            exposition: Exposition {
                registrar,
                gauges,
                sources: components.gauge_sources(),
            },
        });
        Some(Started {
            readiness: components.readiness(),
            drain_within: Duration::from_millis(components.settings.proxy.drain_ms),
            admission: components.admission,
            pending: components.pending,
        })
    }

    /// In a process that takes over: waits until calls can be decided, then notifies the old process, which accepts
    /// connections until then. Both processes share the sockets, so connections made in between wait in the sockets'
    /// queue.
    async fn take_over(&self, started: &Started) {
        let Some(successor) = take(&self.successor) else {
            return;
        };
        let deadline = tokio::time::Instant::now() + handover::READY_WITHIN;
        while !started.readiness.is_ready() {
            if tokio::time::Instant::now() > deadline {
                let reason = started.readiness.reason();
                tracing::error!(reason, "not taken over, the running process goes on");
                not_taken_over(&started.pending);
            }
            tokio::time::sleep(READY_CHECK_EVERY).await;
        }
        match successor.serves() {
            Ok(()) => tracing::info!("taken over"),
            Err(error) => {
                tracing::error!(error, "not taken over, the running process goes on");
                not_taken_over(&started.pending);
            }
        }
    }
}

/// Takes a value that is needed only once, when the service starts.
fn take<T>(once: &Mutex<Option<T>>) -> Option<T> {
    once.lock().take()
}

/// Ends a process that failed to take over. It served no call, so its journal has only items taken over from others.
fn not_taken_over(pending: &Pending) -> ! {
    telemetry::flush();
    pending.close();
    std::process::exit(NOT_TAKEN_OVER);
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
        let Some(started) = self.start() else {
            tracing::error!("the edge cannot start");
            return;
        };
        if let Some(fds) = &fds {
            self.fds.get_or_init(|| Fds(Arc::clone(fds)));
        }
        self.take_over(&started).await;
        let Started {
            admission,
            pending,
            drain_within,
            ..
        } = started;
        tokio::spawn(drain::exit_when_drained(
            admission,
            pending,
            drain_within,
            shutdown.clone(),
        ));
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
