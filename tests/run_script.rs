//! `make run`: the printed commands work when pasted, also after a restart, and no process is left behind.
#![cfg(test)]

use harness::free_port;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// The last line that the script prints before it waits: it sets a policy.
const UP: &str = "/policies/";

/// A directory with the files that the script reads, and ports of its own.
struct Fixture {
    dir: TempDir,
    env: Vec<(&'static str, String)>,
}

/// The running script; it receives SIGTERM if the test fails before its end.
struct Running {
    child: Child,
    printed: String,
    more: BufReader<ChildStdout>,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for part in ["deploy/local", "config"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(part);
            let to = dir.path().join(part);
            fs::create_dir_all(&to).unwrap();
            for file in fs::read_dir(from).unwrap() {
                let file = file.unwrap();
                // No copy: a script that is open for writing while another test forks cannot be executed.
                symlink(file.path(), to.join(file.file_name())).unwrap();
            }
        }
        let binaries = Path::new(env!("CARGO_BIN_EXE_tollgate-admin")).parent().unwrap();
        let mut env = vec![("TOLLGATE_BIN_DIR", binaries.display().to_string())];
        for name in [
            "TOLLGATE_PROXY__LISTEN",
            "TOLLGATE_PROXY__OPS_LISTEN",
            "TOLLGATE_ADMIN__LISTEN",
            "TOLLGATE_ADMIN__OPS_LISTEN",
            "TOLLGATE_SANDBOX_LISTEN",
        ] {
            env.push((name, format!("127.0.0.1:{}", free_port())));
        }
        Self { dir, env }
    }

    fn state(&self, file: &str) -> PathBuf {
        self.dir.path().join(".tollgate").join(file)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("deploy/local/up.sh");
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
            .env_remove("OPENAI_BASE_URL")
            .envs(self.env.iter().cloned());
        command
    }

    /// Starts the script and waits until it has printed everything.
    fn up(&self) -> Running {
        let mut child = self.command().stdout(Stdio::piped()).spawn().unwrap();
        let more = BufReader::new(child.stdout.take().unwrap());
        let mut running = Running {
            child,
            printed: String::new(),
            more,
        };
        while !running.printed.contains(UP) {
            let read = running.more.read_line(&mut running.printed).unwrap();
            assert!(read > 0, "the script ended:\n{}{}", running.printed, self.logs());
        }
        running
    }

    /// The process id of the store that the script started.
    fn store(&self) -> u32 {
        let socket = self.state("redis/redis.sock").display().to_string();
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let command = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
            (command.contains("redis-server") && command.contains(&socket)).then_some(id)
        });
        let found: Vec<u32> = processes.collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }

    fn logs(&self) -> String {
        let files = fs::read_dir(self.state("log")).into_iter().flatten();
        files
            .map(|file| fs::read_to_string(file.unwrap().path()).unwrap_or_default())
            .collect()
    }
}

impl Running {
    /// The line that starts with `start`, as it was printed.
    fn line(&self, start: &str) -> &str {
        let found = self.printed.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start:?} in:\n{}", self.printed))
    }

    /// The line that contains `part`, as it was printed.
    fn line_with(&self, part: &str) -> &str {
        let found = self.printed.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("no {part:?} in:\n{}", self.printed))
    }

    fn call(&self) -> String {
        paste(self.line("curl -i"))
    }

    fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// Sends SIGTERM. Returns the exit status once every process of the script has closed its output.
    fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        while self.more.read_line(&mut self.printed).unwrap() > 0 {}
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("TERM");
            let _ = self.child.wait();
        }
    }
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status();
    assert!(sent.unwrap().success());
}

/// Runs a line as if it was pasted into a shell.
fn paste(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn printed_commands_work_when_pasted_and_after_a_restart() {
    let fixture = Fixture::new();
    let first = fixture.up();
    let answer = first.call();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}\n{}", fixture.logs());
    for header in [
        "x-service-decision: approved",
        "x-service-allow-id: allow_",
        "x-service-actual-usd: 0.00",
    ] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    assert!(
        answer.contains("\"chat.completion\"") && answer.contains("You said: Hello"),
        "{answer}"
    );

    let spent = paste(first.line_with("/spend"));
    assert!(
        spent.contains("\"settled\"") && spent.contains("\"balance\":99.75"),
        "{spent}"
    );

    assert!(paste(first.line_with(UP)).contains("\"success\":true"));
    let denied = paste(first.line_with("/spend"));
    assert!(denied.contains("\"code\":\"DAILY_LIMIT\""), "{denied}");
    let denied = first.call();
    assert!(
        denied.starts_with("HTTP/1.1 402") && denied.contains("\"reason\":\"daily_limit\""),
        "{denied}"
    );
    let key = first.line("export TOLLGATE_KEY=").to_owned();
    assert!(key.contains("=vk_live_"), "{key}");
    assert!(
        !fixture.logs().contains(key.split_once('=').unwrap().1),
        "no log has a key"
    );
    for file in ["master.key", "demo.env"] {
        let mode = fs::metadata(fixture.state(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(first.stop().success());

    let second = fixture.up();
    assert_eq!(
        second.line("export TOLLGATE_KEY="),
        key,
        "the account is the same"
    );
    let answer = second.call();
    assert!(
        answer.starts_with("HTTP/1.1 200"),
        "the printed call works again: {answer}"
    );
    assert!(second.stop().success());
}

/// The last lines list the features beyond the specification that are on, and these work.
#[test]
fn the_output_names_enabled_features() {
    let mut fixture = Fixture::new();
    let switched_on = |fixture: &Fixture, streamed: &str| {
        let running = fixture.up();
        let line = running.line("  switched on").to_owned();
        let call = running.line("curl -i");
        assert!(call.contains("-d '{"), "{call}");
        let answer = paste(&call.replace("-d '{", "-d '{\"stream\":true,"));
        assert!(answer.contains(streamed), "{answer}\n{}", fixture.logs());
        assert!(running.stop().success());
        line
    };
    let nothing = switched_on(&fixture, "\"stream_not_supported\"");
    assert!(nothing.starts_with("  switched on  nothing ("), "{nothing}");
    for name in ["TOLLGATE_PROXY__STREAMING", "__RESPONSES", "__EMBEDDINGS"] {
        assert!(nothing.contains(name), "{name}: {nothing}");
    }
    fixture.env.push(("TOLLGATE_PROXY__STREAMING", "true".to_owned()));
    assert_eq!(switched_on(&fixture, "data: [DONE]"), "  switched on  streaming");
    for name in ["TOLLGATE_PROXY__RESPONSES", "TOLLGATE_PROXY__EMBEDDINGS"] {
        fixture.env.push((name, "true".to_owned()));
    }
    let all = switched_on(&fixture, "data: [DONE]");
    assert_eq!(all, "  switched on  streaming responses embeddings");
}

/// An operator of another installation, with the environment that README has, runs the script on the same machine.
#[test]
fn another_installation_in_the_environment_is_left_alone() {
    let mut fixture = Fixture::new();
    let elsewhere = fixture.dir.path().join("elsewhere");
    for (name, value) in [
        ("TOLLGATE_STORE__URL_FILE", "operator.url"),
        ("TOLLGATE_STORE__CA_FILE", "ca.pem"),
        ("TOLLGATE_SECRETS__MASTER_KEY_FILE", "master.key"),
        ("TOLLGATE_AUDIT__ARCHIVE", "archive"),
        ("TOLLGATE_PLANS__FILE", "plans.toml"),
        ("TOLLGATE_PRICES__FILE", "prices.toml"),
        ("TOLLGATE_PROXY__TLS_CERT", "edge.pem"),
        ("TOLLGATE_PROXY__TLS_KEY", "edge.key"),
    ] {
        fixture
            .env
            .push((name, elsewhere.join(value).display().to_string()));
    }
    for (name, value) in [
        ("TOLLGATE_STORE__DURABILITY", "replicas(2)"),
        ("TOLLGATE_SECRETS__MASTER_KEY", "not-a-key"),
    ] {
        fixture.env.push((name, value.to_owned()));
    }
    let running = fixture.up();
    let answer = running.call();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}\n{}", fixture.logs());
    fixture.store();
    assert!(running.stop().success());
    assert!(!elsewhere.exists(), "nothing is written there");
}

/// A user who has pointed a client at the edge, as README has it, starts everything again in that shell.
#[test]
fn an_edge_is_not_taken_for_its_own_provider() {
    let mut fixture = Fixture::new();
    let edge = format!("http://{}/v1", fixture.env[1].1);
    fixture.env.push(("OPENAI_BASE_URL", edge));
    fixture
        .env
        .push(("OPENAI_API_KEY", "vk_live_of_an_agent".to_owned()));
    let running = fixture.up();
    let answer = running.call();
    assert!(answer.contains("You said: Hello"), "{answer}\n{}", fixture.logs());
    assert!(running.stop().success());
}

#[test]
fn nothing_is_left_when_the_script_is_killed() {
    let fixture = Fixture::new();
    let mut running = fixture.up();
    running.signal("KILL");
    running.child.wait().unwrap();
    for (name, address) in &fixture.env[1..] {
        let mut tries = 0;
        while std::net::TcpStream::connect(address).is_ok() {
            tries += 1;
            assert!(tries < 100, "{name}: {address} is still served");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    assert!(fixture.up().stop().success(), "and it starts again");
}

#[test]
fn a_restart_waits_for_the_store_of_a_killed_run() {
    let fixture = Fixture::new();
    let mut running = fixture.up();
    let store = fixture.store();
    signal("STOP", store);
    running.signal("KILL");
    running.child.wait().unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| fixture.up());
        std::thread::sleep(std::time::Duration::from_secs(3));
        signal("CONT", store);
        let second = second.join().unwrap();
        assert!(second.call().starts_with("HTTP/1.1 200"));
        assert!(second.stop().success());
    });
}

#[test]
fn an_obstacle_is_reported_in_one_line() {
    let fixture = Fixture::new();
    let taken = std::net::TcpListener::bind(&fixture.env[3].1).unwrap();
    let output = fixture.command().output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), stderr.lines().count()),
        (Some(1), 1),
        "{stderr}"
    );
    assert!(
        stderr.contains(&taken.local_addr().unwrap().port().to_string()),
        "{stderr}"
    );
    assert!(stderr.contains("TOLLGATE_ADMIN__LISTEN"), "{stderr}");
    drop(taken);

    let output = fixture
        .command()
        .env("OPENAI_BASE_URL", "https://127.0.0.1/v1")
        .env_remove("OPENAI_API_KEY")
        .output();
    let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(
        stderr.lines().count() == 1 && stderr.contains("OPENAI_API_KEY"),
        "{stderr}"
    );

    let running = fixture.up();
    let output = fixture.command().output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.lines().count() == 1 && stderr.contains("already running"),
        "{stderr}"
    );
    assert!(running.stop().success());

    fs::remove_file(fixture.state("master.key")).unwrap();
    let stderr = String::from_utf8(fixture.command().output().unwrap().stderr).unwrap();
    assert!(
        stderr.lines().count() == 1 && stderr.contains("master.key"),
        "{stderr}"
    );
    assert!(
        !fixture.state("master.key").exists(),
        "no other key takes its place"
    );
}
