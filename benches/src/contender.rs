//! The contenders: the provider itself, nginx, a bare Pingora, and Tollgate in several states.

use crate::ledger::Ledger;
use gate_bench_rig::outcome::WatchedProcess;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The name under which the measured proxy's CPU time is reported.
pub(crate) const EDGE: &str = "edge";
/// The name of Redis.
pub(crate) const STORE: &str = "store";
/// The name of the provider.
pub(crate) const UPSTREAM: &str = "upstream";

/// A row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Name {
    /// No proxy: what the rig itself can do.
    Direct,
    /// (a)
    Nginx,
    /// (b)
    PassThrough,
    /// (c), everything on, as `make run` starts it.
    Tollgate,
    /// (c) with `RUST_LOG=warn`: no log line a call.
    TollgateQuiet,
    /// (c) beside its store, which it reaches over a Unix socket.
    TollgateSocket,
    /// (c) on a store that writes no append-only file.
    TollgateMemory,
    /// (c) with neither.
    TollgateBare,
    /// (c), every call denied by the agent's daily limit: the last of the checks but three.
    DeniedByDay,
    /// (c), every call denied because the agent is frozen: the first of Cap's checks.
    DeniedByFreeze,
    /// (c), every call denied by the key's rate, before Cap.
    DeniedByRate,
    /// (c), every call with a key that was revoked.
    DeniedByRevocation,
    /// (c), every call with an invented key: the store is not asked, and the connection closed.
    DeniedInMemory,
}

impl Name {
    /// Those that a section compares side by side.
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

/// Where it listens and what is watched while it works.
#[derive(Debug, Clone)]
pub(crate) struct Contender<'a> {
    /// Which row it is.
    pub(crate) name: Name,
    /// Where the load goes.
    pub(crate) targets: Vec<SocketAddr>,
    /// The keys to call with.
    pub(crate) keys: PathBuf,
    /// The statuses that an answer may have.
    pub(crate) expect: Vec<u16>,
    /// The processes whose CPU time counts.
    pub(crate) watched: Vec<WatchedProcess>,
    /// Where each of its approved calls must be charged.
    pub(crate) ledger: Option<&'a Ledger>,
}

/// A process under a name.
pub(crate) fn watched(name: &str, pid: u32) -> WatchedProcess {
    WatchedProcess {
        name: name.to_owned(),
        pid,
    }
}
