//! The product's servers as processes: the edge and the admin server.

use crate::client::Caller;
use crate::net::{blocking_until, free_port, loopback, until};
use crate::options::{AdminOptions, EdgeOptions};
use crate::process::{Process, command};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use tempfile::TempDir;

/// Longest wait for a process to become ready, on a slow and busy machine.
pub const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Deadline of one request to the ops listener.
const OPS_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the programs buffer a log line (50 ms).
const LINES_WAIT: Duration = Duration::from_millis(150);

/// The section of the settings of an admin server.
const ADMIN: &str = "ADMIN";

/// Common part of both kinds of server. `Edge` and `Admin` dereference to it.
#[derive(Debug)]
pub struct Daemon {
    process: Mutex<Process>,
    listen: SocketAddr,
    ops: SocketAddr,
    dir: TempDir,
    is_admin: bool,
}

impl Daemon {
    fn start(
        binary: &Path,
        args: &[String],
        mut env: BTreeMap<String, String>,
        section: &str,
        ready_path: &str,
    ) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("tollgate-daemon-")
            .tempdir()
            .expect("a directory");
        let address = |env: &mut BTreeMap<String, String>, key: &str| -> SocketAddr {
            let name = format!("TOLLGATE_{section}__{key}");
            let value = env
                .entry(name)
                .or_insert_with(|| loopback(free_port()).to_string());
            value.parse().expect("an address")
        };
        let (listen, ops) = (address(&mut env, "LISTEN"), address(&mut env, "OPS_LISTEN"));
        for (name, value) in [("DATA_DIR", "data"), ("UPGRADE_SOCKET", "data/upgrade.sock")] {
            let value = dir.path().join(value).display().to_string();
            env.entry(format!("TOLLGATE_PROXY__{name}")).or_insert(value);
        }
        let mut run = command(binary);
        run.args(args).env_clear().envs(env).current_dir(dir.path());
        let mut process = Process::start(run, &dir.path().join("log"));
        blocking_until("readiness", READY_TIMEOUT, || {
            if let Some(status) = process.exited() {
                panic!("{} ended with {status}:\n{}", binary.display(), process.logs());
            }
            (get(ops, ready_path)?.0 == 200).then_some(())
        });
        Self {
            process: Mutex::new(process),
            listen,
            ops,
            dir,
            is_admin: section == ADMIN,
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Process) -> T) -> T {
        act(&mut self.process.lock())
    }

    /// `http://127.0.0.1:port`
    pub fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// The address of the main listener.
    pub const fn addr(&self) -> SocketAddr {
        self.listen
    }

    /// The address of the ops listener.
    pub const fn ops_addr(&self) -> SocketAddr {
        self.ops
    }

    /// Status and body of a path of the ops listener, such as `/metrics`; `None` without an answer.
    pub fn ops(&self, path: &str) -> Option<(u16, String)> {
        get(self.ops, path)
    }

    /// The value of a series of `/metrics`, by its name with its labels; `None` without an answer or the series.
    pub fn metric<T: FromStr>(&self, series: &str) -> Option<T> {
        let (_, text) = self.ops("/metrics")?;
        let value = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok();
        text.lines().find_map(value)
    }

    /// A metric, summed over its labels; a name with labels means that line. `None` without an answer.
    pub fn metric_sum(&self, name: &str) -> Option<u64> {
        let (_, text) = self.ops("/metrics").filter(|(status, _)| *status == 200)?;
        let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let is_it = |key: &str| {
            key.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
        };
        let named = lines.filter(|(key, _)| is_it(key));
        Some(
            named
                .map(|(_, value)| value.parse::<u64>().expect("a whole number"))
                .sum(),
        )
    }

    /// A caller with this key, or none if empty. Answers of an admin server are checked against its document.
    pub fn caller(&self, key: &str) -> Caller {
        let caller = Caller::new(&self.url(), key);
        match self.is_admin {
            true => caller.documented(),
            false => caller,
        }
    }

    /// The working directory; the data directory is `data` in it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.with(|process| process.pid())
    }

    /// Sends a signal, such as `HUP`, `QUIT`, `STOP`, `CONT`. After `STOP`, returns once the process has stopped.
    pub fn signal(&self, name: &str) {
        self.with(|process| process.signal(name));
        if name == "STOP" {
            let stat = format!("/proc/{}/stat", self.pid());
            blocking_until("a stopped process", READY_TIMEOUT, || {
                let text = std::fs::read_to_string(&stat).ok()?;
                let (_, rest) = text.rsplit_once(')')?;
                rest.trim_start().starts_with('T').then_some(())
            });
        }
    }

    /// Sends SIGTERM without waiting for the end.
    pub fn term(&self) {
        self.signal("TERM");
    }

    /// Kills the process and waits for its end.
    pub fn kill9(&self) {
        self.with(Process::kill);
    }

    /// Waits for the end of the process. Returns the exit code, or `None` if a signal ended it.
    #[track_caller]
    pub fn wait_exit(&self, within: Duration) -> Option<i32> {
        self.with(|process| process.wait(within)).code()
    }

    /// Returns true while the process is running.
    pub fn is_running(&self) -> bool {
        self.with(|process| process.exited().is_none())
    }

    /// All output so far, buffered log lines included.
    pub fn logs(&self) -> String {
        std::thread::sleep(LINES_WAIT);
        self.with(|process| process.logs())
    }
}

/// One blocking GET.
fn get(addr: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&addr, OPS_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(OPS_TIMEOUT)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: ops\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

macro_rules! daemon {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[derive(Debug)]
        pub struct $name(Daemon);

        impl std::ops::Deref for $name {
            type Target = Daemon;

            fn deref(&self) -> &Daemon {
                &self.0
            }
        }
    };
}

daemon! {
    /// A running `tollgate-proxy`; killed on drop.
    Edge
}

daemon! {
    /// A running `tollgate-admin serve`; killed on drop.
    Admin
}

impl Edge {
    /// Starts an edge and waits until it is ready.
    pub fn start(options: EdgeOptions) -> Self {
        let EdgeOptions {
            binary,
            env,
            args,
            ready_path,
        } = options;
        Self(Daemon::start(&binary, &args, env, "PROXY", ready_path))
    }

    /// Waits until no call is in flight and nothing waits for the store.
    pub async fn at_rest(&self) {
        let is_zero = |name| self.metric_sum(name) == Some(0);
        until("an edge at rest", async || {
            is_zero("tollgate_proxy_in_flight") && is_zero("tollgate_proxy_pending")
        })
        .await;
    }
}

impl Admin {
    /// Starts an admin server and waits until it is ready.
    pub fn start(options: AdminOptions) -> Self {
        let AdminOptions {
            binary,
            env,
            ready_path,
        } = options;
        Self(Daemon::start(
            &binary,
            &["serve".to_owned()],
            env,
            ADMIN,
            ready_path,
        ))
    }
}
