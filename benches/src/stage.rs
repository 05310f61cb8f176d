//! Everything that runs during the bench, started and pinned before the first request.

use crate::contender::{Contender, EDGE, Name, STORE, UPSTREAM, watched};
use crate::ledger::Ledger;
use crate::machine::{Cores, pin};
use crate::process::{Running, children};
use gate_bench_rig::outcome::Watched;
use harness::{Edge, EdgeOptions, free_port};
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// As `make run` starts the store: what was acknowledged is on disk within a second. No rewrite of the file meanwhile,
/// which would be another process on the store's core.
const DURABLE: [&str; 6] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "everysec",
    "--auto-aof-rewrite-percentage",
    "0",
];

/// A program of the bench that listens.
#[derive(Debug)]
struct Server {
    at: SocketAddr,
    /// It and what it started.
    pids: Vec<u32>,
    _process: Running,
}

/// The running parts. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The store of [`Name::Tollgate`], [`Name::TollgateQuiet`] and [`Name::TollgateDenied`].
    pub(crate) durable: Ledger,
    /// The store of [`Name::TollgateMemory`].
    pub(crate) memory: Ledger,
    /// Where `bench-load` is.
    pub(crate) bin_dir: PathBuf,
    provider: Server,
    nginx: Server,
    pass_through: Server,
    /// As it is started by default, with `RUST_LOG=warn`, and on the other store.
    edges: [Edge; 3],
    dir: TempDir,
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

fn program(bin_dir: &Path, name: &str) -> String {
    bin_dir.join(name).display().to_string()
}

impl Server {
    fn start(program: &str, at: SocketAddr, words: &[String]) -> Result<Self, Box<dyn Error>> {
        let process = Running::start(program, words, at)?;
        let mut pids = children(process.pid())?;
        pids.push(process.pid());
        Ok(Self {
            at,
            pids,
            _process: process,
        })
    }

    fn pin(&self, core: usize) -> Result<(), Box<dyn Error>> {
        self.pids.iter().try_for_each(|pid| pin(*pid, core))
    }

    fn watched(&self, name: &str) -> Vec<Watched> {
        self.pids.iter().map(|pid| watched(name, *pid)).collect()
    }
}

fn start_nginx(dir: &Path, upstream: SocketAddr) -> Result<Server, Box<dyn Error>> {
    let (at, dir_text) = (address(), dir.display().to_string());
    let conf = include_str!("../nginx.conf")
        .replace("@dir@", &dir_text)
        .replace("@listen@", &at.to_string())
        .replace("@upstream@", &upstream.to_string());
    let (file, log) = (dir.join("nginx.conf"), dir.join("error.log"));
    std::fs::write(&file, conf)?;
    let words = [
        "-e",
        &log.display().to_string(),
        "-p",
        &dir_text,
        "-c",
        &file.display().to_string(),
    ];
    Server::start("nginx", at, &words.map(str::to_owned))
}

fn start_edge(bin_dir: &Path, ledger: &Ledger, upstream: SocketAddr, log: Option<&str>) -> Edge {
    let plans = concat!(env!("CARGO_MANIFEST_DIR"), "/plans.toml");
    let binary = program(bin_dir, "tollgate-proxy");
    let options = EdgeOptions::new(&binary, ledger.redis.url(), format!("http://{upstream}/v1"))
        .env("TOLLGATE_PROXY__THREADS", "1")
        .env("TOLLGATE_PLANS__FILE", plans);
    Edge::start(match log {
        Some(level) => options.env("RUST_LOG", level),
        None => options,
    })
}

impl Stage {
    /// Starts and pins everything.
    pub(crate) async fn start(bin_dir: &Path, cores: Cores) -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::Builder::new().prefix("tollgate-bench-").tempdir()?;
        let (upstream, pass) = (address(), address());
        let provider = Server::start(
            &program(bin_dir, "bench-upstream"),
            upstream,
            &[upstream.to_string()],
        )?;
        let nginx = start_nginx(dir.path(), upstream)?;
        let words = [pass.to_string(), upstream.to_string()];
        let pass_through = Server::start(&program(bin_dir, "bench-pass-through"), pass, &words)?;
        let durable = Ledger::start(dir.path(), "durable", &DURABLE).await?;
        let memory = Ledger::start(dir.path(), "memory", &[]).await?;
        let edges = [
            start_edge(bin_dir, &durable, upstream, None),
            start_edge(bin_dir, &durable, upstream, Some("warn")),
            start_edge(bin_dir, &memory, upstream, None),
        ];

        provider.pin(cores.upstream)?;
        nginx.pin(cores.edge)?;
        pass_through.pin(cores.edge)?;
        edges.iter().try_for_each(|edge| pin(edge.pid(), cores.edge))?;
        pin(durable.redis.pid(), cores.store)?;
        pin(memory.redis.pid(), cores.store)?;
        Ok(Self {
            durable,
            memory,
            bin_dir: bin_dir.to_owned(),
            provider,
            nginx,
            pass_through,
            edges,
            dir,
        })
    }

    /// Who can be measured, in the order of [`Name::ALL`].
    pub(crate) fn contenders(&self) -> Vec<Contender> {
        let [edge, quiet, other] = &self.edges;
        let (durable, memory) = (&self.durable, &self.memory);
        Name::ALL
            .map(|name| match name {
                Name::Direct => self.plain(name, self.provider.at, Vec::new()),
                Name::Nginx => self.plain(name, self.nginx.at, self.nginx.watched(EDGE)),
                Name::PassThrough => self.plain(name, self.pass_through.at, self.pass_through.watched(EDGE)),
                Name::Tollgate => self.tollgate(name, edge, durable),
                Name::TollgateQuiet => self.tollgate(name, quiet, durable),
                Name::TollgateMemory => self.tollgate(name, other, memory),
                Name::TollgateDenied => Contender {
                    keys: durable.denied_keys.clone(),
                    expect: 402,
                    ..self.tollgate(name, edge, durable)
                },
            })
            .into()
    }

    fn plain(&self, name: Name, target: SocketAddr, proxy: Vec<Watched>) -> Contender {
        Contender {
            name,
            target,
            keys: self.durable.keys.clone(),
            expect: 200,
            watched: [proxy, self.provider.watched(UPSTREAM)].concat(),
        }
    }

    fn tollgate(&self, name: Name, edge: &Edge, ledger: &Ledger) -> Contender {
        let processes = vec![watched(EDGE, edge.pid()), watched(STORE, ledger.redis.pid())];
        Contender {
            keys: ledger.keys.clone(),
            ..self.plain(name, edge.addr(), processes)
        }
    }

    /// The address of an edge on each of the two stores.
    pub(crate) fn edge_urls(&self) -> (String, String) {
        let [edge, _, other] = &self.edges;
        (edge.url(), other.url())
    }

    /// Where the bench keeps its files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}
