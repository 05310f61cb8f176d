//! A private Redis server.

use crate::net::{blocking_until, free_port};
use crate::process::{Process, command};
use domain::period::Period;
use parking_lot::Mutex;
use redis::FromRedisValue;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::Store;
use tempfile::TempDir;

/// Longest wait for a server to answer, or to end.
const WAIT: Duration = Duration::from_secs(20);
/// Attempts to start when another process took the port meanwhile.
const START_ATTEMPTS: usize = 5;
/// The deadline of [`Redis::store`]: long, since a slow test machine must not count as a failure of the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// A private Redis server on a free port, with a unix socket beside it; killed on drop.
#[derive(Debug)]
pub struct Redis {
    process: Mutex<Option<Process>>,
    port: u16,
    options: Vec<String>,
    env: Vec<(String, String)>,
    /// `user:password@`, or empty for a server without authentication.
    login: String,
    dir: TempDir,
}

impl Redis {
    /// Options for benches. As with `make run`, acknowledged writes are on disk within a second; but the file is never
    /// rewritten, since that would be another process on the store's core.
    pub const EVERY_SECOND: [&str; 6] = [
        "--appendonly",
        "yes",
        "--appendfsync",
        "everysec",
        "--auto-aof-rewrite-percentage",
        "0",
    ];

    /// Starts a server that keeps nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with an append-only file that is fsynced at every write: the data survives [`Redis::restart`]
    /// and [`Redis::kill9`].
    pub fn start_durable() -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Starts a server with more options, such as `["--maxmemory", "8mb"]`.
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_under(options, &[])
    }

    /// Like [`Redis::start_with`], with environment variables such as `LD_PRELOAD`.
    pub fn start_under(options: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_as("", options, env)
    }

    /// Like [`Redis::start_under`], for a server that requires a login: the harness uses `login`, `user:password@`.
    pub fn start_as(login: &str, options: &[&str], env: &[(&str, &str)]) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("tollgate-redis-")
            .tempdir()
            .expect("a directory");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let mut server = Self {
            process: Mutex::new(None),
            port: free_port(),
            options,
            env: env
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            login: login.to_owned(),
            dir,
        };
        for _ in 0..START_ATTEMPTS {
            if server.try_launch() {
                return server;
            }
            server.port = free_port();
        }
        panic!("redis-server did not start:\n{}", server.logs());
    }

    /// A server that all tests of a test binary share, dropped with its last user. Each test has an account of its own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Redis>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Starts the process; false when it ended at once (the port was taken, or its data cannot be loaded).
    pub fn try_launch(&self) -> bool {
        let mut run = command(Path::new("redis-server"));
        run.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
        run.arg("--dir")
            .arg(self.dir.path())
            .arg("--unixsocket")
            .arg(self.socket());
        run.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "noeviction",
        ]);
        run.args(["--loglevel", "warning"])
            .args(&self.options)
            .envs(self.env.iter().cloned())
            .current_dir(self.dir.path());
        let mut process = Process::start(run, &self.dir.path().join("log"));
        let up = blocking_until("the start of redis-server", WAIT, || {
            if process.exited().is_some() {
                return Some(false);
            }
            (self.info_port() == Some(self.port) && self.try_command::<String>(&["PING"]).is_ok())
                .then_some(true)
        });
        *self.process.lock() = Some(process);
        up
    }

    /// The port that the server at our address reports. Distinguishes our server from one that was there before.
    fn info_port(&self) -> Option<u16> {
        let info: String = self.try_command(&["INFO", "server"]).ok()?;
        number(&info, "tcp_port:")
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// `redis://127.0.0.1:port`, with the harness's login if the server requires one.
    pub fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}", self.login, self.port)
    }

    /// `redis+unix:///path`
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// The TCP port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its directory, with the append-only file and the log.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Opens a TLS port with a self-signed certificate of `127.0.0.1` and `localhost`. Returns the port and the
    /// certificate's file.
    pub fn open_tls_port(&self) -> (u16, PathBuf) {
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let [cert, key] = [
            ("cert.pem", made.cert.pem()),
            ("key.pem", made.signing_key.serialize_pem()),
        ]
        .map(|(name, text)| {
            let file = self.dir().join(name);
            std::fs::write(&file, text).expect("a file");
            file
        });
        let port = free_port();
        let [cert_name, key_name] = [&cert, &key].map(|file| file.display().to_string());
        let words = [
            &[
                "CONFIG",
                "SET",
                "tls-cert-file",
                &cert_name,
                "tls-key-file",
                &key_name,
            ][..],
            &["tls-ca-cert-file", &cert_name, "tls-auth-clients", "no"],
            &["tls-port", &port.to_string()],
        ];
        let _: () = self.command(&words.concat());
        (port, cert)
    }

    /// The product's own handle on this server. Call it inside the runtime that will use it.
    pub fn store(&self) -> Store {
        Store::open(&self.url(), STORE_TIMEOUT).expect("the store's address")
    }

    /// A plain asynchronous connection that does not go through the product.
    pub async fn conn(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).expect("the server's address");
        client
            .get_multiplexed_async_connection()
            .await
            .expect("a connection")
    }

    /// Runs one command on a connection of its own, blocking: `redis.command::<String>(&["INFO", "stats"])`.
    pub fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_command(words)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The server's day and month.
    pub fn period(&self) -> Period {
        let (seconds, micros): (u64, u64) = self.command(&["TIME"]);
        Period::at(seconds * 1000 + micros / 1000)
    }

    /// Like [`Redis::command`] for a command that may fail.
    ///
    /// # Errors
    /// The error of the server or the connection.
    pub fn try_command<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_connection_with_timeout(WAIT)?;
        connection.set_read_timeout(Some(WAIT))?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).query(&mut connection)
    }

    /// Number of executions of a command, those by scripts included.
    pub fn calls(&self, command: &str) -> u64 {
        self.stat(command, "calls=")
            .map_or(0, |text| text.parse().expect("a count"))
    }

    /// One figure of a line of `INFO commandstats`, such as `usec_per_call=`.
    pub fn stat(&self, command: &str, name: &str) -> Option<String> {
        let info: String = self.command(&["INFO", "commandstats"]);
        let start = format!("cmdstat_{command}:");
        let line = info.lines().find_map(|line| line.strip_prefix(&start))?;
        line.split(',')
            .find_map(|part| part.strip_prefix(name))
            .map(|text| text.trim().to_owned())
    }

    /// Bytes of memory that the server uses.
    pub fn memory_used(&self) -> u64 {
        let info: String = self.command(&["INFO", "memory"]);
        number(&info, "used_memory:").expect("used_memory")
    }

    /// Waits until this replica is linked to `primary` and has everything that `primary` has written.
    pub fn wait_in_step_with(&self, primary: &Self) {
        let info = |server: &Self| server.command::<String>(&["INFO", "replication"]);
        blocking_until("a replica in step", WAIT, || {
            let confirmed: u64 = primary.command(&["WAIT", "1", "100"]);
            let written: u64 = number(&info(primary), "master_repl_offset:")?;
            let replica = info(self);
            let is_linked = confirmed == 1 && replica.contains("master_link_status:up");
            (is_linked && number(&replica, "slave_repl_offset:") == Some(written)).then_some(())
        });
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.with(|process| process.pid())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Process) -> T) -> T {
        let mut process = self.process.lock();
        act(process.as_mut().expect("the server was started"))
    }

    /// Ends the server in an orderly way and waits.
    pub fn stop(&self) {
        self.with(|process| {
            process.signal("TERM");
            process.wait(WAIT)
        });
    }

    /// Waits until the kernel has every acknowledged write of the append-only file. With `appendfsync everysec` the
    /// server delays writes while an earlier fsync runs, and a kill would lose them.
    pub fn wait_until_written(&self) {
        blocking_until("a written append-only file", WAIT, || {
            let info: String = self.command(&["INFO", "persistence"]);
            info.lines()
                .any(|line| line == "aof_buffer_length:0")
                .then_some(())
        });
    }

    /// Kills the server and waits.
    pub fn kill9(&self) {
        self.with(Process::kill);
    }

    /// Freezes the server: it accepts connections and answers nothing.
    pub fn pause(&self) {
        self.with(|process| process.signal("STOP"));
    }

    /// Bytes that have arrived in the sockets of a frozen server.
    pub fn unread_bytes(&self) -> usize {
        let local = format!(":{:04X}", self.port());
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's connections");
        let unread = table.lines().skip(1).filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let address = fields.next()?;
            // A listening socket counts connections, not bytes.
            let is_connection = fields.nth(1)? == "01";
            let (_, received) = fields.next()?.split_once(':')?;
            let bytes = usize::from_str_radix(received, 16).ok()?;
            (is_connection && address.ends_with(&local)).then_some(bytes)
        });
        unread.sum()
    }

    /// Resumes a frozen server.
    pub fn resume(&self) {
        self.with(|process| process.signal("CONT"));
    }

    /// Stops the server if it runs and starts it again: same port, same directory.
    pub fn restart(&self) {
        self.stop();
        let end = "the port of a restarted redis-server";
        blocking_until(end, WAIT, || self.try_launch().then_some(()));
    }

    /// Rewrites the append-only file if the last start found its end cut off, as the runbook says
    /// (TollgateStoreDown): otherwise a transaction stays open in it, and the next start leaves out a write behind it.
    pub fn rewrite_if_torn(&self) {
        if !self.logs().contains("short read while loading the AOF") {
            return;
        }
        let _: String = self.command(&["BGREWRITEAOF"]);
        blocking_until("a rewritten append-only file", WAIT, || {
            let info: String = self.command(&["INFO", "persistence"]);
            let is_done = ["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"];
            is_done
                .iter()
                .all(|line| info.lines().any(|found| found == *line))
                .then_some(())
        });
    }

    /// The part of a durable server's append-only file that it writes to.
    pub fn append_only_file(&self) -> PathBuf {
        let folder = self.dir.path().join("appendonlydir");
        let files = std::fs::read_dir(folder).expect("an append-only file");
        let mut files = files.map(|file| file.expect("a file").path());
        let last = files.find(|file| file.to_string_lossy().ends_with(".incr.aof"));
        last.expect("its last part")
    }

    /// Stops a durable server, appends a write that fails on replay to its append-only file, and starts it again.
    pub fn restart_without_a_write(&self) {
        self.stop();
        let last = std::fs::OpenOptions::new()
            .append(true)
            .open(self.append_only_file());
        // This fails, since the ledger's record is not a list.
        let write = b"*3\r\n$5\r\nLPUSH\r\n$14\r\ntollgate/store\r\n$1\r\nx\r\n";
        last.and_then(|mut file| file.write_all(write))
            .expect("a longer file");
        self.restart();
    }

    /// Text of the server's log.
    pub fn logs(&self) -> String {
        self.with(|process| process.logs())
    }
}

/// The figure behind `name` in an answer to `INFO`.
fn number<T: std::str::FromStr>(info: &str, name: &str) -> Option<T> {
    let text = info.lines().find_map(|line| line.strip_prefix(name))?;
    text.trim().parse().ok()
}
