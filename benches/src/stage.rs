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

/// The running parts. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Who can be measured.
    pub(crate) contenders: Vec<Contender>,
    /// The store of [`Name::Tollgate`], [`Name::TollgateQuiet`] and [`Name::TollgateDenied`].
    pub(crate) durable: Ledger,
    /// The store of [`Name::TollgateMemory`].
    pub(crate) memory: Ledger,
    /// Where `bench-load` is.
    pub(crate) bin_dir: PathBuf,
    edges: Vec<Edge>,
    _processes: Vec<Running>,
    dir: TempDir,
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

fn program(bin_dir: &Path, name: &str) -> String {
    bin_dir.join(name).display().to_string()
}

fn start_nginx(dir: &Path, listen: SocketAddr, upstream: SocketAddr) -> Result<Running, Box<dyn Error>> {
    let dir_text = dir.display().to_string();
    let conf = include_str!("../nginx.conf")
        .replace("@dir@", &dir_text)
        .replace("@listen@", &listen.to_string())
        .replace("@upstream@", &upstream.to_string());
    let file = dir.join("nginx.conf");
    std::fs::write(&file, conf)?;
    let words = [
        "-e",
        &format!("{dir_text}/error.log"),
        "-p",
        &dir_text,
        "-c",
        &file.display().to_string(),
    ];
    Running::start("nginx", &words.map(str::to_owned), listen)
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
        let (upstream, nginx, pass) = (address(), address(), address());
        let provider = Running::start(
            &program(bin_dir, "bench-upstream"),
            &[upstream.to_string()],
            upstream,
        )?;
        let nginx_process = start_nginx(dir.path(), nginx, upstream)?;
        let words = [pass.to_string(), upstream.to_string()];
        let pass_process = Running::start(&program(bin_dir, "bench-pass-through"), &words, pass)?;
        let durable = Ledger::start(dir.path(), "durable", &DURABLE).await?;
        let memory = Ledger::start(dir.path(), "memory", &[]).await?;
        let edges = vec![
            start_edge(bin_dir, &durable, upstream, None),
            start_edge(bin_dir, &durable, upstream, Some("warn")),
            start_edge(bin_dir, &memory, upstream, None),
        ];

        pin(provider.pid(), cores.upstream)?;
        let mut nginx_pids = children(nginx_process.pid())?;
        nginx_pids.push(nginx_process.pid());
        let proxies = nginx_pids.iter().copied().chain([pass_process.pid()]);
        for pid in proxies.chain(edges.iter().map(|edge| edge.pid())) {
            pin(pid, cores.edge)?;
        }
        pin(durable.redis.pid(), cores.store)?;
        pin(memory.redis.pid(), cores.store)?;

        let stage = Self {
            contenders: Vec::new(),
            durable,
            memory,
            bin_dir: bin_dir.to_owned(),
            edges,
            _processes: [provider, nginx_process, pass_process],
            dir,
        };
        let [provider, _, pass_process] = &stage._processes;
    /// The address of an edge on each of the two stores.
    pub(crate) fn edge_urls(&self) -> Option<(String, String)> {
        Some((self.edges.first()?.url(), self.edges.last()?.url()))
    }

    /// Where the bench keeps its files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}
