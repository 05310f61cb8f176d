//! Who is measured: the provider itself, nginx, a bare Pingora, and Tollgate in several states.

use gate_bench_rig::outcome::Watched;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The name under which the measured proxy's CPU time is reported.
pub(crate) const EDGE: &str = "edge";
/// The name of Redis.
pub(crate) const STORE: &str = "store";
/// The name of the provider.
pub(crate) const UPSTREAM: &str = "upstream";

/// A row of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
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
    /// (c) on a store that writes no append-only file.
    TollgateMemory,
    /// (c), every call denied.
    TollgateDenied,
}

impl Name {
    /// All of them, in the order in which a round measures them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Direct,
        Self::Nginx,
        Self::PassThrough,
        Self::Tollgate,
        Self::TollgateQuiet,
        Self::TollgateMemory,
        Self::TollgateDenied,
    ];

    /// Those whose latency is measured at a fixed rate.
    pub(crate) const AT_FIXED_RATE: [Self; 4] =
        [Self::Direct, Self::Nginx, Self::PassThrough, Self::Tollgate];

    /// What the report calls it.
    pub(crate) const fn shown(self) -> &'static str {
        match self {
            Self::Direct => "direct, no proxy",
            Self::Nginx => "(a) nginx proxy_pass",
            Self::PassThrough => "(b) bare Pingora pass-through",
            Self::Tollgate => "(c) Tollgate, everything on",
            Self::TollgateQuiet => "(c) with RUST_LOG=warn",
            Self::TollgateMemory => "(c) store without append-only file",
            Self::TollgateDenied => "(c) every call denied (402)",
        }
    }
}

/// Where it listens and what is watched while it works.
#[derive(Debug)]
pub(crate) struct Contender {
    /// Which row it is.
    pub(crate) name: Name,
    /// Where the load goes.
    pub(crate) target: SocketAddr,
    /// The keys to call with.
    pub(crate) keys: PathBuf,
    /// The status that every answer must have.
    pub(crate) expect: u16,
    /// The processes whose CPU time counts.
    pub(crate) watched: Vec<Watched>,
}

/// A process under a name.
pub(crate) fn watched(name: &str, pid: u32) -> Watched {
    Watched {
        name: name.to_owned(),
        pid,
    }
}
