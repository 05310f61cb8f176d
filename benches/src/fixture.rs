//! Processes of a section of the bench. Each section starts its own, on cores of their own, and ends them.

pub(crate) mod certificates;
mod edge;
mod nginx;
mod server;

pub(crate) use edge::Edge;
pub(crate) use server::Server;

use crate::contender::{Contender, EDGE, Name, STORE, UPSTREAM, watched};
use crate::ledger::Ledger;
use crate::machine::{Cores, pin};
use certificates::Certificates;
use harness::{EdgeOptions, free_port};
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The plans of the bench's accounts.
pub(crate) const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/plans.toml");

/// Directory of the programs, their cores, and the directory of their files.
#[derive(Debug)]
pub(crate) struct Fixture {
    /// Cores of each process.
    pub(crate) cores: Cores,
    /// The private authority of the run.
    pub(crate) certificates: Certificates,
    bin_dir: PathBuf,
    dir: TempDir,
}

/// Protocols on both sides of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sides {
    /// The callers speak TLS, with either version of HTTP.
    pub(crate) front_tls: bool,
    /// The provider speaks TLS.
    pub(crate) back_tls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeSetup {
    /// Core of the edge.
    pub(crate) core: usize,
    /// Whether it writes no log line a call.
    pub(crate) is_quiet: bool,
    /// Whether it reaches its store over a Unix socket.
    pub(crate) has_socket: bool,
}

impl EdgeSetup {
    /// Returns the same setup with a Unix socket to the store.
    pub(crate) const fn over_socket(self) -> Self {
        Self {
            has_socket: true,
            ..self
        }
    }
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

impl Fixture {
    /// An empty fixture.
    pub(crate) fn new(bin_dir: &Path, cores: Cores) -> Result<Self, Box<dyn Error>> {
        let shown = bin_dir.display();
        let bin_dir = bin_dir
            .canonicalize()
            .map_err(|error| format!("--bin-dir {shown}: {error}"))?;
        let dir = tempfile::Builder::new().prefix("tollgate-bench-").tempdir()?;
        let certificates = Certificates::make(dir.path())?;
        Ok(Self {
            cores,
            certificates,
            bin_dir,
            dir,
        })
    }

    /// Returns the default setup of an edge.
    pub(crate) const fn edge_setup(&self) -> EdgeSetup {
        EdgeSetup {
            core: self.cores.edge,
            is_quiet: false,
            has_socket: false,
        }
    }

    /// Directory of the bench's files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Path of one of our own programs.
    pub(crate) fn program(&self, name: &str) -> String {
        self.bin_dir.join(name).display().to_string()
    }

    /// Starts a ledger on a store with an append-only file, or without one.
    pub(crate) async fn ledger(&self, is_durable: bool) -> Result<Ledger, Box<dyn Error>> {
        let ledger = Ledger::start(self.dir(), is_durable).await?;
        pin(ledger.redis.pid(), self.cores.store)?;
        Ok(ledger)
    }

    pub(crate) fn provider(&self, sides: Sides) -> Result<Server, Box<dyn Error>> {
        let at = address();
        let mut words = vec![at.to_string()];
        if sides.back_tls {
            words.extend(self.certificates.words());
        }
        let server = Server::start(&self.program("bench-upstream"), at, &words, 0)?;
        server.pin(self.cores.upstream)?;
        Ok(server)
    }

    /// Starts (a).
    pub(crate) fn nginx(&self, provider: &Server, sides: Sides) -> Result<Server, Box<dyn Error>> {
        let server = nginx::start(self, address(), provider.at, sides)?;
        server.pin(self.cores.edge)?;
        Ok(server)
    }

    /// Starts (b).
    pub(crate) fn pass_through(&self, provider: &Server, sides: Sides) -> Result<Server, Box<dyn Error>> {
        let at = address();
        let mut words = vec![at.to_string(), provider.at.to_string()];
        if sides.front_tls {
            words.extend(self.certificates.words());
        }
        if sides.back_tls {
            words.extend([
                "--upstream-ca".to_owned(),
                self.certificates.authority.display().to_string(),
            ]);
        }
        let server = Server::start(&self.program("bench-pass-through"), at, &words, 0)?;
        server.pin(self.cores.edge)?;
        Ok(server)
    }

    /// Starts (c).
    pub(crate) fn edge(
        &self,
        setup: EdgeSetup,
        ledger: &Ledger,
        provider: &Server,
        sides: Sides,
    ) -> Result<Edge, Box<dyn Error>> {
        let scheme = if sides.back_tls { "https" } else { "http" };
        let base = format!("{scheme}://{}/v1", provider.at);
        let binary = self.program("tollgate-proxy");
        let store = if setup.has_socket {
            ledger.redis.unix_url()
        } else {
            ledger.redis.url()
        };
        let mut options = EdgeOptions::new(&binary, store, base)
            .env("TOLLGATE_PROXY__THREADS", "1")
            .env("TOLLGATE_PROXY__STREAMING", "true")
            .env("TOLLGATE_PROXY__STREAM_EXTEND", "true")
            .env("TOLLGATE_PROXY__STOP_FROZEN_STREAMS", "true")
            .env("TOLLGATE_PROXY__MAX_CONNECTIONS_PER_ADDRESS", "4096")
            .env("TOLLGATE_PLANS__FILE", PLANS);
        let shown = |path: &Path| path.display().to_string();
        let certificates = &self.certificates;
        if sides.front_tls {
            options = options
                .env("TOLLGATE_PROXY__TLS_CERT", shown(&certificates.chain))
                .env("TOLLGATE_PROXY__TLS_KEY", shown(&certificates.key));
        }
        if sides.back_tls {
            options = options.env("TOLLGATE_UPSTREAM__CA_FILE", shown(&certificates.authority));
        }
        if setup.is_quiet {
            options = options.env("RUST_LOG", "warn");
        }
        let edge = Edge(harness::Edge::start(options));
        pin(edge.pid(), setup.core)?;
        Ok(edge)
    }
}

/// Returns a contender without decisions: `proxy`, or the provider itself.
pub(crate) fn plain<'a>(
    name: Name,
    proxy: Option<&Server>,
    provider: &Server,
    keys: &Ledger,
) -> Contender<'a> {
    let edge = proxy.map(|proxy| proxy.watched(EDGE)).unwrap_or_default();
    Contender {
        name,
        targets: vec![proxy.unwrap_or(provider).at],
        keys: keys.keys(),
        expect: vec![200],
        watched: [edge, provider.watched(UPSTREAM)].concat(),
        ledger: None,
    }
}

/// Returns (c), on one edge or several.
pub(crate) fn tollgate<'a>(
    name: Name,
    edges: &[&Edge],
    ledger: &'a Ledger,
    provider: &Server,
) -> Contender<'a> {
    let mut processes: Vec<_> = edges.iter().map(|edge| watched(EDGE, edge.pid())).collect();
    processes.push(watched(STORE, ledger.redis.pid()));
    Contender {
        targets: edges.iter().map(|edge| edge.addr()).collect(),
        watched: [processes, provider.watched(UPSTREAM)].concat(),
        ledger: Some(ledger),
        ..plain(name, None, provider, ledger)
    }
}
