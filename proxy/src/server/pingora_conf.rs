//! The part of the settings that Pingora reads.

use pingora::server::configuration::{Opt, ServerConf};
use settings::Settings;
use std::path::Path;

/// File of the certificates that Pingora's own connector trusts: none. The edge uses its own connector for the
/// provider, so Pingora's need not read the system's certificates.
const NO_CERTIFICATES: &str = "/dev/null";
/// Time that Pingora waits beyond `proxy.drain_ms`. The drain ends the process before that.
const DRAIN_MARGIN_S: u64 = 10;

/// Returns the options of Pingora's server. A process that `takes_over` receives the sockets of the running one.
pub fn options(takes_over: bool) -> Option<Opt> {
    Some(Opt {
        upgrade: takes_over,
        ..Opt::default()
    })
}

/// Returns the configuration of Pingora's server and of its HTTP.
pub fn configuration(settings: &Settings) -> ServerConf {
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
