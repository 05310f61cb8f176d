//! A fixture of successive edges: their common addresses, data directory and upgrade socket, a store, a provider and
//! one agent.

use harness::{
    Answer, Cli, CliOutput, Edge, EdgeOptions, Redis, Seed, SeedAgent, Upstream, free_port, open_cap, until,
};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// The built edge.
pub const PROXY: &str = env!("CARGO_BIN_EXE_tollgate-proxy");
/// The built operator's program.
pub const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");
/// Longest wait for something that should happen soon, on a slow and busy machine.
pub const SOON: Duration = Duration::from_secs(40);
/// Estimate of [`body`] in nano-USD: 2 tokens of text and 4 around them at 150, and 100 at 600.
pub const ESTIMATE: u64 = 6 * 150 + 100 * 600;
/// Cost of each call in nano-USD: 9 tokens at 150 and 12 at 600.
pub const ACTUAL: u64 = 9 * 150 + 12 * 600;
/// Duration of a slow call at the provider: longer than the drain waits for idle connections.
const SLOW: Duration = Duration::from_millis(1500);

/// A call whose estimate is [`ESTIMATE`]; the text of a slow one makes the provider slow.
pub fn body(is_slow: bool) -> Value {
    let text = if is_slow { "slowly" } else { "quick" };
    json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": text }], "max_tokens": 100 })
}

pub struct Fixture {
    pub redis: Redis,
    pub upstream: Upstream,
    pub bot: SeedAgent,
    pub key: String,
    pub key_id: String,
    listen: SocketAddr,
    ops: SocketAddr,
    dir: TempDir,
    env: Vec<(String, String)>,
}

impl Fixture {
    /// Returns a fixture without an edge.
    pub async fn new() -> Self {
        let redis = Redis::start();
        let upstream = Upstream::start(|request| {
            let answer = Answer::chat(9, 12);
            match request.body.windows(6).any(|window| window == b"slowly") {
                true => answer.delay(SLOW),
                false => answer,
            }
        });
        let seed = Seed::new(&redis.store()).await;
        let bot = seed.account("enterprise").await.agent("bot");
        let (key_id, key) = bot.ready(open_cap()).await;
        bot.policy_record().await;
        let dir = tempfile::tempdir().expect("a directory");
        // A plan without a rate limit, which the load would exceed.
        std::fs::write(dir.path().join("plans.toml"), "[enterprise]\n").expect("a file");
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            redis,
            upstream,
            bot,
            key,
            key_id,
            listen: local(free_port()),
            ops: local(free_port()),
            dir,
            env: Vec::new(),
        }
    }

    /// A setting of all edges.
    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.env.push((format!("TOLLGATE_{name}"), value.to_string()));
        self
    }

    /// The address that agents use.
    pub const fn addr(&self) -> SocketAddr {
        self.listen
    }

    /// The edges' common data directory.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The settings that all edges of this fixture share.
    fn settings(&self) -> Vec<(String, String)> {
        let shared = [
            ("TOLLGATE_PROXY__LISTEN", self.listen.to_string()),
            ("TOLLGATE_PROXY__OPS_LISTEN", self.ops.to_string()),
            ("TOLLGATE_PROXY__DATA_DIR", self.data().display().to_string()),
            (
                "TOLLGATE_PROXY__UPGRADE_SOCKET",
                self.socket().display().to_string(),
            ),
            ("TOLLGATE_PLANS__FILE", self.plans().display().to_string()),
        ];
        let shared = shared.map(|(name, value)| (name.to_owned(), value));
        shared.into_iter().chain(self.env.iter().cloned()).collect()
    }

    /// Settings of an edge of this fixture.
    pub fn options(&self) -> EdgeOptions {
        let options = EdgeOptions::new(PROXY, self.redis.url(), self.upstream.base_url());
        let settings = self.settings().into_iter();
        settings.fold(options, |options, (name, value)| options.env(&name, value))
    }

    /// Starts a successor that one more setting makes fail at once. Returns its output.
    pub async fn ends_at_once(&self, name: &str, value: &str) -> CliOutput {
        let program = Cli::new(PROXY, self.redis.url());
        let settings = self.settings().into_iter();
        let program = settings.fold(program, |program, (name, value)| program.env(&name, value));
        let program = program.env(name, value);
        let ended = tokio::task::spawn_blocking(move || program.run(&["--upgrade"]));
        ended.await.expect("an end")
    }

    pub fn plans(&self) -> PathBuf {
        self.dir.path().join("plans.toml")
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("run/upgrade.sock")
    }

    /// Starts an edge without a predecessor.
    pub fn edge(&self) -> Edge {
        Edge::start(self.options())
    }

    /// Whether a new process waits for the sockets.
    pub fn has_waiting_successor(&self) -> bool {
        self.socket().exists()
    }

    /// Starts the next edge beside `old`, sends `old` SIGQUIT, and waits until it has ended.
    pub async fn next(&self, old: Edge) -> Edge {
        let new = self.next_of(&old, self.options()).await;
        self.ends_well(old).await;
        new
    }

    /// Starts a process that takes over from `old`, and signals `old` when the new process waits.
    pub async fn next_of(&self, old: &Edge, options: EdgeOptions) -> Edge {
        let options = options.arg("--upgrade");
        // Readiness is still answered by the old process.
        let new = tokio::task::spawn_blocking(move || Edge::start(options.until_alive()));
        let new = new.await.expect("a new process");
        until("a process that waits", async || {
            self.has_waiting_successor() || !new.is_running()
        })
        .await;
        old.signal("QUIT");
        new
    }

    /// Waits for the end of an edge after SIGQUIT or SIGTERM.
    pub async fn ends_well(&self, old: Edge) {
        let ended = tokio::task::spawn_blocking(move || {
            let code = old.wait_exit(SOON);
            (code, old.logs())
        });
        let (code, logs) = ended.await.expect("an end");
        assert_eq!(code, Some(0), "{logs}");
        let own = |line: &&str| line.contains("\"level\":\"ERROR\"") && line.contains("\"target\":\"proxy");
        assert_eq!(logs.lines().find(own), None);
    }

    /// Nano-USD charged to the agent today, to the agent this month, and to the account, over all periods.
    pub fn charged(&self) -> [u64; 3] {
        self.bot.charged(&self.redis)
    }

    pub fn open_holds(&self) -> u64 {
        self.redis
            .command(&["ZCARD", &self.bot.account.keys.bucket().due()])
    }

    /// Waits until no hold is open; then exactly `nanos` must be charged, and everything in the ledger must add up.
    pub async fn settled_at(&self, nanos: u64) {
        until("the end of all holds", async || self.open_holds() == 0).await;
        assert_eq!(self.charged(), [nanos; 3], "in nano-USD; a call is {ACTUAL}");
        let checked = Cli::new(ADMIN, self.redis.url()).json(&["ledger", "check"]);
        assert_eq!(checked["ok"], true, "{checked}");
    }
}
