//! Schemathesis against running servers: no request gets a 5xx or an undocumented answer.
//!
//! It is bounded by a number of examples for each operation, and deterministic: the same requests each time.

use crate::fixture::Fixture;
use domain::mode::Mode;
use harness::{CapPolicy, Edge, EdgeOptions, Nanos, REPOSITORY, python_package};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::TcpListener;

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// Requests for each operation, beside those that cover each field's edges.
const EXAMPLES: &str = "6";

/// Runs Schemathesis with these headers and options; panics with its findings.
fn run(document: &str, url: &str, headers: &[String], config: &str, options: &[&str]) {
    let installed = python_package(env!("CARGO_TARGET_TMPDIR"), "schemathesis", SCHEMATHESIS);
    let dir = tempfile::tempdir().expect("a directory");
    let settings = dir.path().join("schemathesis.toml");
    std::fs::write(&settings, config).expect("its settings");
    let document = Path::new(REPOSITORY)
        .join("docs/reference/openapi")
        .join(document);
    let mut command = Command::new(installed.join("bin/st"));
    command
        .arg("--config-file")
        .arg(&settings)
        .arg("run")
        .arg(document);
    command.args([
        "--url",
        url,
        "--checks",
        "all",
        "--phases",
        "examples,coverage,fuzzing",
    ]);
    command.args([
        "--max-examples",
        EXAMPLES,
        "--seed",
        "1",
        "--generation-deterministic",
        "--no-color",
    ]);
    command.args(["--request-timeout", "30", "--continue-on-failure", "--no-shrink"]);
    command
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        .args(options);
    for header in headers {
        command.args(["--header", header]);
    }
    let output = command
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output()
        .expect("schemathesis runs");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{report}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Routes for sessions only.
const OF_PEOPLE: &str = "^/api/(user|v1/(api-keys|account|wallet/deposits))";
/// Operations that end the session of all other requests. Ids from answers are tried too, that of the session among
/// them.
const ENDINGS: &str = "^/api/user/(logout|sessions/[{]id[}])$";

/// Refusals of requests that are well-formed: the record does not exist, the money does not suffice, or it was done
/// before.
const REFUSALS: &str = r#"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "402", "403", "404", "409", "412", "422", "429"]
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn the_management_api_with_an_api_key() {
    let fixture = Fixture::start().await;
    let key = fixture.account.api_key(Mode::Live).await;
    let headers = [format!("Authorization: Bearer {key}")];
    run(
        "management.json",
        &fixture.installation.admin.url(),
        &headers,
        REFUSALS,
        &["--exclude-path-regex", "^/api/user/"],
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn the_management_api_with_a_session() {
    let fixture = Fixture::start().await;
    let headers = [
        format!("Cookie: {}", fixture.owner.cookie()),
        format!("X-CSRF-Token: {}", fixture.owner.csrf()),
    ];
    let url = fixture.installation.admin.url();
    let options = [
        "--include-path-regex",
        OF_PEOPLE,
        "--exclude-path-regex",
        ENDINGS,
        // The cookie and the token of the headers above are sent each time; the check `ignored_auth` leaves them out.
        "--generation-with-security-parameters",
        "false",
    ];
    run("management.json", &url, &headers, REFUSALS, &options);
    let still = fixture.owner.get("/api/user/me").await;
    assert_eq!(
        still.status,
        200,
        "the session lasted until the end: {}",
        still.text()
    );
    run(
        "management.json",
        &url,
        &headers,
        REFUSALS,
        &["--include-path-regex", ENDINGS],
    );
}

/// Calls every operation of an edge with these settings, except those that the options exclude.
async fn run_edge(settings: &[(&str, &str)], options: &[&str]) {
    let fixture = Fixture::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let sandbox = listener.local_addr().expect("an address");
    tokio::spawn(sandbox::serve(listener, Duration::ZERO, std::future::pending()));
    let bot = fixture.account.agent("bot");
    bot.cap(CapPolicy {
        enabled: true,
        daily: Nanos::new(1_000_000_000),
        ..CapPolicy::default()
    })
    .await;
    bot.provider_key("sk-test-provider-key").await;
    let key = bot.virtual_key().await;
    let mut edge = EdgeOptions::new(
        env!("CARGO_BIN_EXE_tollgate-proxy"),
        fixture.installation.redis.url(),
        format!("http://{sandbox}/v1"),
    );
    for (name, value) in settings {
        edge = edge.env(name, *value);
    }
    let edge = Edge::start(edge);
    let headers = [format!("Authorization: Bearer {key}")];
    run("edge.json", &edge.url(), &headers, REFUSALS, options);
}

/// With defaults: the path of a disabled feature is a 404 for every request, with any method and without a key.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn the_edge() {
    run_edge(&[], &["--exclude-path-regex", "^/v1/(responses|embeddings)$"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn the_edge_with_everything_on() {
    let on = [
        ("TOLLGATE_PROXY__STREAMING", "true"),
        ("TOLLGATE_PROXY__RESPONSES", "true"),
        ("TOLLGATE_PROXY__EMBEDDINGS", "true"),
    ];
    run_edge(&on, &[]).await;
}
