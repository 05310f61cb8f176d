//! The contenders: the provider itself, nginx, a bare Pingora, and Tollgate in several states.

use crate::ledger::Ledger;
use gate_bench_rig::outcome::WatchedProcess;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The name under which the measured proxy's CPU time is reported.
pub(crate) const EDGE: &str = "edge";
/// Name of Redis in the report.
pub(crate) const STORE: &str = "store";
/// Name of the provider in the report.
pub(crate) const UPSTREAM: &str = "upstream";

/// A measured system or state of it: one row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Name {
    /// No proxy: what the rig itself can do.
    Direct,
    /// (a) in the report.
    Nginx,
    /// (b) in the report.
    PassThrough,
    /// (c), everything on, as `make run` starts it.
    Tollgate,
    /// (c) with `RUST_LOG=warn`: no log line a call.
    TollgateQuiet,
    /// (c) with a Unix socket to its store.
    TollgateSocket,
    /// (c) with a store that writes no append-only file.
    TollgateMemory,
    /// (c) without log line and append-only file.
    TollgateBare,
    /// (c), every call denied by the agent's daily limit: three more checks would follow.
    DeniedByDay,
    /// (c), every call denied because the agent is frozen: the first of Cap's checks.
    DeniedByFreeze,
    /// (c), every call denied by the key's rate, before Cap.
    DeniedByRate,
    /// (c), every call with a key that was revoked.
    DeniedByRevocation,
    /// (c), every call with an invented key: denied without the store, and the connection closed.
    DeniedInMemory,
}

impl Name {
    /// The contenders that a section compares side by side.
    pub(crate) const PROXIES: [Self; 3] = [Self::Nginx, Self::PassThrough, Self::Tollgate];

    /// Its name in the report.
    pub(crate) const fn shown(self) -> &'static str {
        match self {
            Self::Direct => "direct, no proxy",
            Self::Nginx => "(a) nginx proxy_pass",
            Self::PassThrough => "(b) bare Pingora pass-through",
            Self::Tollgate => "(c) Tollgate, everything on",
            Self::TollgateQuiet => "(c) no log line a call",
            Self::TollgateSocket => "(c) store over a Unix socket",
            Self::TollgateMemory => "(c) store without append-only file",
            Self::TollgateBare => "(c) neither",
            Self::DeniedByDay => "(c) all denied: daily limit, 402",
            Self::DeniedByFreeze => "(c) all denied: frozen, 403",
            Self::DeniedByRate => "(c) all denied: rate, 429",
            Self::DeniedByRevocation => "(c) all denied: revoked key, 401",
            Self::DeniedInMemory => "(c) all denied: invented key, 401*",
        }
    }

    /// Its name in the plots.
    pub(crate) const fn short(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::PassThrough => "Pingora",
            Self::Tollgate => "Tollgate",
            Self::TollgateQuiet => "no log",
            Self::TollgateSocket => "Unix socket",
            Self::TollgateMemory => "no AOF",
            Self::TollgateBare => "neither",
            Self::DeniedByDay => "402 day",
            Self::DeniedByFreeze => "403 frozen",
            Self::DeniedByRate => "429 rate",
            Self::DeniedByRevocation => "401 revoked",
            Self::DeniedInMemory => "401 invented",
        }
    }
}

/// A contender under load: its addresses, keys and watched processes.
#[derive(Debug, Clone)]
pub(crate) struct Contender<'a> {
    pub(crate) name: Name,
    /// Addresses that receive the load; connections take turns.
    pub(crate) targets: Vec<SocketAddr>,
    /// File of the virtual keys, one a line.
    pub(crate) keys: PathBuf,
    /// The statuses that an answer may have.
    pub(crate) expect: Vec<u16>,
    /// The processes whose CPU time counts.
    pub(crate) watched: Vec<WatchedProcess>,
    /// Ledger in which each approved call must be charged.
    pub(crate) ledger: Option<&'a Ledger>,
}

pub(crate) fn watched(name: &str, pid: u32) -> WatchedProcess {
    WatchedProcess {
        name: name.to_owned(),
        pid,
    }
}
