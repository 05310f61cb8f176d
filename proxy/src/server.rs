//! Start and stop. All settings are checked before a port is bound. SIGTERM lets calls in flight finish; SIGQUIT hands
//! the listening sockets over to a new process.

mod bound;
mod cannot_start;
mod certificate;
pub mod components;
mod descriptors;
mod drain;
mod handover;
mod options;
mod pingora_conf;
mod service;
mod signals;
mod tls;

use crate::edge::app::EdgeApp;
use crate::edge::connections::Connections;
use crate::edge::state::EdgeState;
use crate::edge::write_buffer::WAITING_MAX;
use crate::ops::Ops;
use crate::retry_queue::RetryQueue;
use crate::upstream::Upstreams;
use bound::Bound;
use cannot_start::CannotStart;
use certificate::Certificate;
use clap::Parser as _;
use components::EdgeInputs;
use connections::allocator;
use connections::open_files;
use descriptors::{Configured, Descriptors};
use handover::Successor;
use options::Options;
use pingora::listeners::ListenerConfig;
use pingora::listeners::tls::Acceptor;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::server::{RunArgs, Server};
use pingora::services::listening::Service;
use service::{EdgeService, Telemetry};
use settings::{self, BadSettings, ProxySettings, Settings};
use signals::SignalHandler;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::Store;
use tokio::signal::unix::Signal;

/// Runs the process until a signal ends it.
pub fn run() -> ExitCode {
    // First of all, since a service manager may send SIGHUP as soon as the process runs.
    let hangups = signals::hangups();
    let file_size_limit = file_size_limit::fail_writes();
    allocator::small_pages();
    let options = Options::parse();
    let _logs = match telemetry::start() {
        Ok(logs) => logs,
        Err(error) => return CannotStart::from(error).report(),
    };
    drop(rustls::crypto::ring::default_provider().install_default());
    match file_size_limit
        .and(hangups)
        .map_err(|error| CannotStart::Temporary(format!("SIGHUP and SIGXFSZ cannot be handled: {error}")))
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
fn prepare(options: &Options, hangups: Signal) -> Result<(Server, SignalHandler), CannotStart> {
    let settings = settings::load(options.config.as_deref())?;
    let proxy = settings.proxy.clone();
    Store::check(&settings.store).map_err(|error| BadSettings(error.to_string()))?;
    let telemetry = Telemetry::new(&settings).map_err(|error| BadSettings(error.to_string()))?;
    let (state, ops_state) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let configured = Configured {
        callers: proxy.max_connections,
        of_address: proxy.max_connections_per_address,
    };
    let descriptors = Descriptors::divide(open_files::raise(), configured);
    let trusted = settings.network.trusted_proxies.clone();
    let connections = Arc::new(Connections::new(
        descriptors.callers,
        descriptors.of_address,
        trusted,
        telemetry.gauges.of_callers.clone(),
    ));
    let (tls, certificate) = tls::acceptor(&proxy)?.unzip();
    let certificate_ends = certificate.as_ref().map_or(0, Certificate::ends_s);
    telemetry.gauges.certificate_ends.set(certificate_ends);
    let listener = listener(&settings, tls, &state, &connections);
    let mut ops = Ops::new(Arc::clone(&ops_state)).service();
    ops.add_tcp(&proxy.ops_listen.to_string());

    let conf = pingora_conf::configuration(&settings);
    let inputs = inputs(settings, connections, descriptors.provider)?;
    let retry_queue = Arc::clone(&inputs.retry_queue);
    let (bound, successor) = addresses(options, &proxy, certificate.as_ref())?;
    log_start(options, &proxy, certificate.as_ref());
    let mut server = Server::new_with_opt_and_conf(pingora_conf::options(successor.is_some()), conf);
    let signals = SignalHandler {
        state: Arc::clone(&state),
        retry_queue,
        fds: Arc::default(),
        upgrade_socket: proxy.upgrade_socket,
        drain_delay: Duration::from_millis(proxy.drain_delay_ms),
    };
    let edge_handle = server.add_service(EdgeService {
        descriptors,
        configured,
        listener,
        state,
        ops_state,
        inputs: Some(inputs),
        telemetry: Some(telemetry),
        hangups: Some(hangups),
        fds: Arc::clone(&signals.fds),
        bound,
        successor,
    });
    // The ops listener of a process that takes over starts when the process is ready: until then the old process
    // answers.
    server.add_service(ops).add_dependency(&edge_handle);
    server.bootstrap();
    Ok((server, signals))
}

/// Creates the listener of callers' connections. `state` is set before it accepts one.
fn listener(
    settings: &Settings,
    tls: Option<Acceptor>,
    state: &Arc<OnceLock<Arc<EdgeState>>>,
    connections: &Arc<Connections>,
) -> Service<EdgeApp> {
    let buffers = buffers(tls.is_some());
    let app = EdgeApp::new(
        Arc::clone(state),
        Arc::new(pingora_conf::configuration(settings)),
        Arc::clone(connections),
        tls,
        Duration::from_millis(settings.proxy.client_timeout_ms),
    );
    let mut listener = app.service();
    // The edge does the TLS handshake itself: one deadline covers it and the first head.
    let address = ListenerConfig::tcp(settings.proxy.listen.to_string());
    listener.add_listener(address.l4_buffer(buffers));
    listener
}

fn log_start(options: &Options, proxy: &ProxySettings, certificate: Option<&Certificate>) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = telemetry::process::COMMIT,
        config = settings::source(options.config.as_deref()),
        listen = %proxy.listen,
        ops = %proxy.ops_listen,
        data_dir = %proxy.data_dir.display(),
        "starting"
    );
    if let Some(certificate) = certificate {
        certificate.log();
    }
    if let Err(error) = handover::check_existing(&proxy.upgrade_socket) {
        tracing::warn!("no hand-over will be possible: proxy.upgrade_socket {error}");
    }
}

/// Returns the sizes of the buffers of a caller's connection. Pingora's are needed for TLS only, which reads 4 KB at a
/// time, and whose records of HTTP/2 are sent together. Without TLS, HTTP has its own buffers.
fn buffers(is_tls: bool) -> L4BufferSettings {
    match is_tls {
        true => L4BufferSettings::default().write(WAITING_MAX),
        false => L4BufferSettings::unbuffered(),
    }
}

/// Binds `proxy.listen`, and checks that `proxy.ops_listen` is free. With `--upgrade`, if either is in use, announces
/// this process to the one that has the sockets. An address that cannot be bound for another reason ends the start.
fn addresses(
    options: &Options,
    proxy: &ProxySettings,
    certificate: Option<&Certificate>,
) -> Result<(Option<Bound>, Option<Successor>), CannotStart> {
    let bound = bind("proxy.listen", proxy.listen, options.upgrade)?;
    let ops = bind("proxy.ops_listen", proxy.ops_listen, options.upgrade)?;
    if !options.upgrade {
        return Ok((bound, None));
    }
    if bound.is_some() && ops.is_some() {
        tracing::info!("no process listens on proxy.listen and proxy.ops_listen: nothing to take over");
        return Ok((bound, None));
    }
    certificate.map_or(Ok(()), Certificate::check_takeover)?;
    let announced = Successor::announce(&proxy.upgrade_socket)
        .map_err(|error| BadSettings(format!("proxy.upgrade_socket {error}")))?;
    tracing::info!(
        "waiting for the sockets: send SIGQUIT to the running process within six seconds, or this one ends with exit \
         code 1 and the running one goes on"
    );
    Ok((bound, Some(announced)))
}

/// Binds the address of the setting `key`. Returns `None` with `--upgrade` if it is in use: the running process may
/// hand it over.
fn bind(key: &str, address: SocketAddr, upgrade: bool) -> Result<Option<Bound>, CannotStart> {
    match Bound::new(address) {
        Ok(bound) => Ok(Some(bound)),
        Err(error) if upgrade && error.kind() == ErrorKind::AddrInUse => {
            // No error reports the address later if it belongs to another program, which hands nothing over.
            tracing::warn!("{key} {address} is in use: only a running tollgate-proxy can hand it over");
            Ok(None)
        }
        Err(error) => Err(CannotStart::from_io(&format!("{key} {address}"), &error)),
    }
}

/// Reads and checks everything needed to create the components. `to_provider` is the maximum number of connections to
/// all providers.
fn inputs(
    settings: Settings,
    connections: Arc<Connections>,
    to_provider: usize,
) -> Result<EdgeInputs, CannotStart> {
    let keyring = settings.keyring()?;
    let prices = settings.prices()?;
    let plans = settings.plans()?;
    let upstreams = Upstreams::new(&settings, to_provider).map_err(BadSettings)?;
    let (dir, limit) = (&settings.proxy.data_dir, settings.proxy.retry_queue_limit);
    let retry_queue = RetryQueue::open(dir, limit)
        .map_err(|error| CannotStart::from_io(&format!("proxy.data_dir {}", dir.display()), &error))?;
    Ok(EdgeInputs {
        settings,
        keyring,
        prices,
        plans,
        upstreams,
        retry_queue: Arc::new(retry_queue),
        connections,
    })
}
