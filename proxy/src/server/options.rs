//! The command line of the edge.

use clap::Parser;
use std::path::PathBuf;

/// Runs the edge: it decides on every call, forwards the approved ones, and settles them
///
/// Agents use proxy.listen as their OpenAI base address, with a virtual key. Metrics and readiness are on
/// proxy.ops_listen. It stays in the foreground and logs to standard error: text on a terminal, JSON lines otherwise.
#[derive(Debug, Parser)]
#[command(name = "tollgate-proxy", version, max_term_width = 100, after_long_help = AFTER_HELP)]
pub struct Options {
    /// Configuration file [default: config/tollgate.toml, if there is one]; every key also as TOLLGATE_<SECTION>__<KEY>
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Take over the listening sockets of the running process, which is then sent SIGQUIT; when none runs, start as
    /// usual
    #[arg(long)]
    pub upgrade: bool,
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
  3  a full disk, an address that is in use or not there yet; starting again can help
  4  stopped by a signal; settlements reached neither the store nor proxy.data_dir, the log names them";
