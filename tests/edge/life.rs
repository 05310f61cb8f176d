//! Starting and reloading. Stopping is in tests/faults/process.rs, handing over in tests/rolling.

use super::fixture::{EDGE, Fixture, PRICES, SOON, amounts, estimated_body, open_cap, options};
use super::shape::denied;
use harness::{Edge, EdgeOptions, free_port, until};
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/plans.toml");

/// An edge whose tables are files of this test, and how to change them.
struct Tables {
    dir: tempfile::TempDir,
}

impl Tables {
    fn new() -> Self {
        let tables = Self {
            dir: tempfile::tempdir().expect("a directory"),
        };
        for (name, from) in [("plans.toml", PLANS), ("prices.toml", PRICES)] {
            std::fs::copy(from, tables.dir.path().join(name)).expect("a copy");
        }
        tables
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn set(&self, options: EdgeOptions) -> EdgeOptions {
        options
            .env("TOLLGATE_PLANS__FILE", self.path("plans.toml"))
            .env("TOLLGATE_PRICES__FILE", self.path("prices.toml"))
    }

    fn replace(&self, name: &str, old: &str, new: &str) {
        let path = self.path(name);
        let text = std::fs::read_to_string(Path::new(&path)).expect("a table");
        assert!(text.contains(old), "{old} in {name}");
        std::fs::write(path, text.replace(old, new)).expect("a table");
    }
}

#[tokio::test]
async fn sighup_takes_up_new_plans_and_prices() {
    let tables = Tables::new();
    let fixture = Fixture::with(|options| tables.set(options)).await;
    let actor = fixture.actor("free", open_cap()).await;
    let probe = fixture.actor("enterprise", open_cap()).await;
    let estimate = async || amounts(&probe.caller.chat(estimated_body(1000)).await).0;
    assert_eq!(estimate().await, 1000);
    assert_eq!(actor.caller.chat(estimated_body(1000)).await.status, 200);

    tables.replace(
        "prices.toml",
        r#"input = "0", output = "0.001""#,
        r#"input = "0", output = "0.002""#,
    );
    tables.replace(
        "plans.toml",
        "proxy_requests_per_minute = 10\n",
        "proxy_requests_per_minute = 1\n",
    );
    assert_eq!(estimate().await, 1000, "nothing is read without a signal");
    fixture.edge.signal("HUP");
    until("the new prices", async || estimate().await == 2000).await;
    denied(&actor.caller.chat(estimated_body(1)).await, "rate_limited");

    // Tables that cannot be read leave those in force.
    tables.replace("prices.toml", r#"output = "0.002""#, r#"output = "oops""#);
    tables.replace("plans.toml", "[free]", "[free");
    fixture.edge.signal("HUP");
    until("the refusal in the log", async || {
        let logs = fixture.edge.logs();
        logs.contains("the plans in force stay") && logs.contains("the prices in force stay")
    })
    .await;
    assert_eq!(estimate().await, 2000);
    denied(&actor.caller.chat(estimated_body(1)).await, "rate_limited");
    tables.replace("plans.toml", "[free", "[free]");
    tables.replace("prices.toml", r#"output = "oops""#, r#"output = "0.003""#);
    fixture.edge.signal("HUP");
    until("the repaired prices", async || estimate().await == 3000).await;
    // A plan that is gone: its accounts are denied, and both the reload and each call say why.
    tables.replace("plans.toml", "[free]", "[gratis]");
    fixture.edge.signal("HUP");
    until("the plan that is gone", async || {
        let logs = fixture.edge.logs();
        logs.contains(r#""removed":"[\"free\"]""#)
    })
    .await;
    denied(&actor.caller.chat(estimated_body(1)).await, "service_unavailable");
    let logs = fixture.edge.logs();
    assert!(logs.contains("the account's plan is not in plans.file"), "{logs}");
    assert_eq!(estimate().await, 3000, "other plans stay");
    assert!(fixture.edge.is_running());
}

/// Imported prices override the file, and running edges apply them (decisions D32, D65).
#[tokio::test]
async fn imported_prices_are_taken_up_without_a_restart() {
    let fixture = Fixture::alone().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let estimate = async |model: &str| {
        let mut body = estimated_body(1000);
        body["model"] = model.into();
        amounts(&actor.caller.chat(body).await).0
    };
    // Two tokens of text and four around them; an unknown model takes the dearest of each kind, and no search.
    assert_eq!(estimate("nano").await, 1000);
    assert_eq!(estimate("brand-new").await, 6 * 4000 + 1000 * 16_000);
    let overlay = r#"{"models":{
        "nano":{"rates":{"standard":{"input":"0","output":"0.005"}}},
        "brand-new":{"rates":{"standard":{"input":"1","output":"1"}}}}}"#;
    let _: String = fixture.redis.command(&["SET", store::keys::PRICES, overlay]);
    until("the imported prices", async || estimate("nano").await == 5000).await;
    assert_eq!(estimate("brand-new").await, 6 * 1000 + 1000 * 1000);
    assert_eq!(
        estimate("plain").await,
        6 * 2000 + 1000 * 8000,
        "the file has the rest"
    );
}

#[test]
fn a_bad_configuration_ends_with_2_and_one_clear_line() {
    for (name, value, named) in [
        ("TOLLGATE_PROXY__NO_SUCH_KEY", "1", "no_such_key"),
        ("TOLLGATE_PROXY_LISTEN", "127.0.0.1:1", "tollgate_proxy__listen"),
        (
            "TOLLGATE_SECRETS__MASTER_KEY_FILE",
            "/etc/hostname",
            "tollgate_secrets__master_key and tollgate_secrets__master_key_file",
        ),
        (
            "TOLLGATE_PRICES__FILE",
            "/no/such/file.toml",
            "/no/such/file.toml",
        ),
        ("TOLLGATE_UPSTREAM__BASE_URL", "nonsense", "upstream.base_url"),
        (
            "TOLLGATE_UPSTREAM__BASE_URL",
            "https://a/v1#x",
            "upstream.base_url",
        ),
        ("TOLLGATE_UPSTREAM__PROVIDER", "a b", "upstream.provider"),
        ("TOLLGATE_UPSTREAM__CA_FILE", "/no/such/file", "upstream.ca_file"),
        (
            "TOLLGATE_UPSTREAM__FORWARD_HEADERS",
            "cookie",
            "upstream.forward_headers",
        ),
        (
            "TOLLGATE_PROXY__STREAM_TOTAL_MS",
            "9223372036854775807",
            "proxy.stream_total_ms",
        ),
        ("TOLLGATE_SECRETS__MASTER_KEY", "", "master_key"),
        ("RUST_LOG", "warning", "rust_log is `warning`"),
        ("RUST_LOG", "foo=bar=baz", "rust_log is `foo=bar=baz`"),
        ("TOLLGATE_STORE__URL", "http://127.0.0.1", "store.url"),
        ("TOLLGATE_PROXY__TLS_CERT", "/no/such/cert.pem", "proxy.tls_key"),
        ("TOLLGATE_PROXY__TLS_KEY", "/no/such/key.pem", "proxy.tls_cert"),
        ("TOLLGATE_STORE__CA_FILE", "/dev/null", "store.ca_file"),
        ("TOLLGATE_UPSTREAM__CA_FILE", "/dev/null", "upstream.ca_file"),
        ("TOLLGATE_PROXY__DATA_DIR", "/dev/null/x", "proxy.data_dir"),
    ] {
        let (code, log) = start(name, value);
        assert_eq!(code, Some(2), "{name}: {log}");
        assert!(
            log.lines().count() == 1 && log.to_lowercase().contains(named),
            "{name}: {log}"
        );
    }
}

#[test]
fn an_address_that_is_in_use_ends_with_3_so_that_it_is_started_again() {
    let somebody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = somebody.local_addr().expect("an address").to_string();
    for name in ["TOLLGATE_PROXY__LISTEN", "TOLLGATE_PROXY__OPS_LISTEN"] {
        let (code, log) = start(name, &address);
        assert_eq!(code, Some(3), "{name}: {log}");
        assert!(
            log.lines().count() == 1 && log.contains(&address),
            "{name}: {log}"
        );
    }
}

#[tokio::test]
async fn settings_that_cost_money_or_secrets_are_warned_of() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = dir.path().join("master.key");
    std::fs::write(&key, harness::TEST_MASTER_KEY).expect("a file");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("its mode");
    let key = key.display().to_string();
    let fixture = Fixture::with(|options| {
        options
            .env("TOLLGATE_SECRETS__MASTER_KEY", "")
            .env("TOLLGATE_SECRETS__MASTER_KEY_FILE", &key)
            .env("TOLLGATE_PROXY__DRAIN_MS", "99999")
    })
    .await;
    for said in [
        format!("secrets.master_key_file {key}: every user of this machine may use it (mode 0644)"),
        "proxy.drain_ms (99999) is less than upstream.timeout_ms (100000)".to_owned(),
    ] {
        let logs = fixture.edge.logs();
        let mut lines = logs.lines().filter(|line| line.contains("WARN"));
        assert!(lines.any(|line| line.contains(&said)), "{said}: {logs}");
    }
}

/// With one port for both, callers and Prometheus would get either listener by chance.
#[test]
fn one_port_for_both_listeners_ends_with_2_and_names_both() {
    let port = harness::free_port();
    for (listen, ops) in [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")] {
        let output = command()
            .env("TOLLGATE_PROXY__LISTEN", format!("{listen}:{port}"))
            .env("TOLLGATE_PROXY__OPS_LISTEN", format!("{ops}:{port}"))
            .output()
            .expect("the edge runs");
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        let keys = ["`proxy.listen`", "`proxy.ops_listen`"];
        assert!(keys.iter().all(|key| log.contains(key)), "{log}");
    }
}

/// Returns whether `/readyz` answers 200.
fn is_ready(ops: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(ops)?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: ops\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// A load balancer sends calls as soon as `/readyz` says so.
#[tokio::test]
async fn an_edge_that_is_ready_accepts_connections() {
    const STARTS: usize = 24;
    let fixture = Fixture::new().await;
    let starts = (0..STARTS).map(|_| {
        let [listen, ops] = [(); 2].map(|()| SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())));
        let options = options(&fixture.redis, &fixture.upstream.base_url())
            .env("TOLLGATE_PROXY__LISTEN", listen.to_string())
            .env("TOLLGATE_PROXY__OPS_LISTEN", ops.to_string());
        tokio::task::spawn_blocking(move || {
            let edge = std::thread::spawn(|| Edge::start(options));
            // Without a pause: the first answer is what counts.
            while !edge.is_finished() && !is_ready(ops) {}
            let connected = TcpStream::connect(listen).map(drop);
            drop(edge.join().expect("the edge is ready"));
            connected
        })
    });
    let connected = futures::future::join_all(starts).await;
    let refused = connected
        .into_iter()
        .filter(|connected| !matches!(connected, Ok(Ok(()))));
    assert_eq!(refused.count(), 0, "of {STARTS} edges");
}

/// A service manager may send the signal as soon as the process runs: `systemctl reload` after `systemctl start`.
#[tokio::test]
async fn sighup_while_the_settings_are_read_does_not_end_the_edge() {
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("tollgate.toml");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    let mut edge = command();
    edge.arg("--config").arg(&fifo).stderr(Stdio::piped());
    let edge = edge.spawn().expect("the edge runs");
    let pid = edge.id().to_string();
    let notified = tokio::task::spawn_blocking(move || {
        // Opening waits until the edge reads. The edge then waits for the text, which has a mistake.
        let mut settings = OpenOptions::new().write(true).open(&fifo)?;
        let sent = Command::new("kill").args(["-HUP", &pid]).status()?;
        assert!(sent.success());
        settings.write_all(b"[proxy]\nno_such_key = 1\n")
    });
    let notified = tokio::time::timeout(SOON, notified)
        .await
        .expect("the edge reads its settings");
    notified.expect("no panic").expect("the settings are written");
    let output = edge.wait_with_output().expect("the edge ends");
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{}: {log}", output.status);
    assert!(log.contains("no_such_key"), "{log}");
}

/// Starts an edge that must fail with this setting. Returns its exit code and its log.
fn start(name: &str, value: &str) -> (Option<i32>, String) {
    let output = command().env(name, value).output().expect("the edge runs");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), log)
}

/// An edge with everything but a store.
fn command() -> Command {
    let mut command = Command::new(EDGE);
    command
        .env("TOLLGATE_SECRETS__MASTER_KEY", harness::TEST_MASTER_KEY)
        .env("TOLLGATE_PRICES__FILE", PRICES)
        .env("TOLLGATE_PLANS__FILE", PLANS)
        .env(
            "TOLLGATE_PROXY__LISTEN",
            format!("127.0.0.1:{}", harness::free_port()),
        )
        .env(
            "TOLLGATE_PROXY__OPS_LISTEN",
            format!("127.0.0.1:{}", harness::free_port()),
        )
        .env(
            "TOLLGATE_PROXY__DATA_DIR",
            std::env::temp_dir().join("tollgate-never-started"),
        );
    command
}
