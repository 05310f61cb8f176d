//! Hand-overs that fail: the process that has the sockets goes on serving.

use crate::fixture::{ACTUAL, ADMIN, Fixture, SOON, body};
use crate::load::Load;
use harness::{Cli, ClosedPort, Edge, TEST_MASTER_KEY};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

/// Log text of a hand-over that failed.
const STAYS: &str = "this process goes on serving";

/// Far shorter than the old process waits for an answer of the new one.
const AT_ONCE: Duration = Duration::from_secs(8);

/// Waits for a process that could not take over.
async fn gives_up(new: Edge) -> (Option<i32>, String) {
    let ended = tokio::task::spawn_blocking(move || (new.wait_exit(SOON), new.logs()));
    ended.await.expect("an end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_process_serves_on_when_the_new_one_cannot() {
    let fixture = Fixture::new().await;
    let old = fixture.edge();
    let load = Load::on(&fixture);
    load.answers(20).await;

    // No new process waits.
    old.signal("QUIT");
    harness::until("a word about it", async || {
        old.logs().contains("no new process waits")
    })
    .await;
    load.answers(20).await;

    // A new process with a bad configuration never requests the sockets.
    let bad = fixture
        .ends_at_once("TOLLGATE_PRICES__FILE", "/nowhere/prices.toml")
        .await;
    assert_eq!(bad.code, Some(2), "{bad:?}");
    assert!(bad.stderr.contains("/nowhere/prices.toml"), "{bad:?}");
    old.signal("QUIT");
    load.answers(20).await;

    // A new process that gets the sockets, and cannot use the store.
    let closed = ClosedPort::take();
    let lost = format!("redis://{}", closed.address());
    let lost = fixture.options().env("TOLLGATE_STORE__URL", lost);
    let new = fixture.next_of(&old, lost).await;
    load.answers(20).await;
    let (code, logs) = gives_up(new).await;
    assert_eq!(code, Some(1), "{logs}");
    assert!(logs.contains("the running process goes on"), "{logs}");
    load.answers(20).await;
    assert!(old.is_running());
    assert!(old.logs().matches(STAYS).count() >= 3, "{}", old.logs());

    // Then a new process that can use the store.
    let new = fixture.next_of(&old, fixture.options()).await;
    let (code, logs) = gives_up(old).await;
    assert_eq!(code, Some(0), "{logs}");
    load.answers(20).await;
    let tally = load.end().await;
    assert_eq!(fixture.upstream.arrived() as u64, tally.answered);
    fixture.settled_at(tally.answered * ACTUAL).await;
    assert!(new.is_running());
}

/// 32 bytes of 0x17.
const OTHER_MASTER_KEY: &str = "FxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxc=";

/// Such a process could only deny calls, since it cannot open any provider key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_with_another_master_key_does_not_take_over() {
    let fixture = Fixture::new().await;
    let old = fixture.edge();
    // The key of checkpoints is sealed under the master key.
    Cli::new(ADMIN, fixture.redis.url()).json(&["store", "init"]);
    let wrong = || {
        fixture
            .options()
            .env("TOLLGATE_SECRETS__MASTER_KEY", OTHER_MASTER_KEY)
    };
    let new = fixture.next_of(&old, wrong()).await;
    let (code, logs) = gives_up(new).await;
    assert_eq!(code, Some(1), "{logs}");
    assert!(
        logs.contains("sealed under a master key that this process does not have"),
        "{logs}"
    );
    assert_eq!(old.caller(&fixture.key).chat(body(false)).await.status, 200);
    // A new process with both keys, in either order, takes over.
    let both = format!("{OTHER_MASTER_KEY},{TEST_MASTER_KEY}");
    let new = fixture
        .next_of(&old, fixture.options().env("TOLLGATE_SECRETS__MASTER_KEY", both))
        .await;
    let (code, logs) = gives_up(old).await;
    assert_eq!(code, Some(0), "{logs}");
    assert_eq!(new.caller(&fixture.key).chat(body(false)).await.status, 200);
    let check = Cli::new(ADMIN, fixture.redis.url()).env("TOLLGATE_SECRETS__MASTER_KEY", OTHER_MASTER_KEY);
    let output = check.run(&["store", "check"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("master key"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_that_is_killed_while_it_takes_over_changes_nothing() {
    let fixture = Fixture::new().await;
    let old = fixture.edge();
    let load = Load::on(&fixture);
    // It has the sockets, does not serve yet, and dies.
    let closed = ClosedPort::take();
    let lost = format!("redis://{}", closed.address());
    let new = fixture
        .next_of(&old, fixture.options().env("TOLLGATE_STORE__URL", lost))
        .await;
    load.answers(10).await;
    new.kill9();
    load.answers(60).await;
    assert!(old.is_running());
    let tally = load.end().await;
    assert_eq!(fixture.upstream.arrived() as u64, tally.answered);
    fixture.settled_at(tally.answered * ACTUAL).await;
}

/// The old process waits for a new one that is frozen, and receives SIGINT or SIGTERM.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_hands_over_still_ends_on_a_signal() {
    for signal in ["INT", "TERM"] {
        let fixture = Fixture::new().await;
        let old = fixture.edge();
        let closed = ClosedPort::take();
        let lost = format!("redis://{}", closed.address());
        let lost = fixture.options().env("TOLLGATE_STORE__URL", lost);
        let new = fixture.next_of(&old, lost).await;
        new.signal("STOP");
        let reported = Instant::now();
        old.signal(signal);
        fixture.ends_well(old).await;
        assert!(reported.elapsed() < AT_ONCE, "{signal}: {:?}", reported.elapsed());
        new.kill9();
    }
}

#[tokio::test]
async fn without_a_running_process_upgrade_is_a_plain_start() {
    let fixture = Fixture::new().await;
    let edge = Edge::start(fixture.options().arg("--upgrade"));
    let reply = edge.caller(&fixture.key).chat(crate::fixture::body(false)).await;
    assert_eq!(reply.status, 200);
    // On a busy machine a line takes longer to be written than a call to be answered.
    harness::until("a word about it", async || {
        edge.logs().contains("nothing to take over")
    })
    .await;
}

/// The unit always has `--upgrade`, and does not start again what could not take over.
#[tokio::test]
async fn an_address_of_another_program_is_named() {
    for key in ["listen", "ops_listen"] {
        let fixture = Fixture::new().await;
        let other = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = other.local_addr().expect("an address").to_string();
        let name = format!("TOLLGATE_PROXY__{}", key.to_uppercase());
        let ended = fixture.ends_at_once(&name, &address).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let line = ended
            .stderr
            .lines()
            .find(|line| line.contains(&format!("proxy.{key} {address} is in use")));
        assert!(line.is_some_and(|line| line.contains("WARN")), "{ended:?}");
        assert_eq!(
            ended.stderr.matches(" is in use").count(),
            1,
            "the free address is not named: {ended:?}"
        );
    }
}

/// As without `--upgrade`: the service manager starts it again until the machine has the address.
#[tokio::test]
async fn an_address_that_the_machine_does_not_have_is_no_hand_over() {
    for key in ["listen", "ops_listen"] {
        let fixture = Fixture::new().await;
        let name = format!("TOLLGATE_PROXY__{}", key.to_uppercase());
        // 192.0.2.0/24 is for documentation.
        let ended = fixture.ends_at_once(&name, "192.0.2.1:8080").await;
        assert_eq!(ended.code, Some(3), "{ended:?}");
        let named = format!("tollgate-proxy: proxy.{key} 192.0.2.1:8080: ");
        assert!(ended.stderr.contains(&named), "{ended:?}");
    }
}

#[tokio::test]
async fn a_socket_where_others_may_go_is_refused() {
    let fixture = Fixture::new().await;
    let _running = fixture.edge();
    let open = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o750)).expect("a mode");
    for (socket, said) in [
        (open.path().join("upgrade.sock"), "must have mode 700"),
        (open.path().join("x".repeat(120)), "at most 107 bytes"),
    ] {
        let socket = socket.display().to_string();
        let refused = fixture
            .ends_at_once("TOLLGATE_PROXY__UPGRADE_SOCKET", &socket)
            .await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let start = "tollgate-proxy: proxy.upgrade_socket";
        assert!(refused.stderr.contains(start), "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_refused_at_the_start() {
    let fixture = Fixture::new().await;
    let made = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let dir = tempfile::tempdir().expect("a directory");
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let fixture = fixture
        .env("PROXY__TLS_CERT", cert.display())
        .env("PROXY__TLS_KEY", key.display());
    let unrelated = [made("a"), made("b")];
    std::fs::write(&cert, "no certificate").expect("a file");
    std::fs::write(&key, unrelated[1].signing_key.serialize_pem()).expect("a file");
    for _ in 0..2 {
        let refused = fixture.ends_at_once("TOLLGATE_PROXY__THREADS", "1").await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("proxy.tls_cert"), "{refused:?}");
        std::fs::write(&cert, unrelated[0].cert.pem()).expect("a file");
    }
}

/// A certificate for `localhost` that expires at the start of `year`.
fn certificate_until(year: i32) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let cert = params.self_signed(&key).expect("a certificate");
    (cert.pem(), key.serialize_pem())
}

/// It must not replace one that callers can reach. Where none runs it serves callers that do not verify it.
#[tokio::test]
async fn a_certificate_that_has_ended_takes_nothing_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let write = |year: i32| {
        let made = certificate_until(year);
        std::fs::write(&cert, made.0).expect("a file");
        std::fs::write(&key, made.1).expect("a file");
    };
    let fixture = Fixture::new()
        .await
        .env("PROXY__TLS_CERT", cert.display())
        .env("PROXY__TLS_KEY", key.display());
    write(2120);
    let running = fixture.edge();
    write(2020);
    let refused = fixture.ends_at_once("TOLLGATE_PROXY__THREADS", "1").await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = "the certificate ended at 2020-01-01";
    assert!(refused.stderr.contains(said), "{refused:?}");
    assert!(running.is_running());
    let metrics = running.ops("/metrics").expect("metrics").1;
    let metric = "tollgate_proxy_certificate_expires_timestamp_seconds 4733510400";
    assert!(metrics.contains(metric), "{metrics}");
    running.term();
    assert_eq!(running.wait_exit(SOON), Some(0), "{}", running.logs());

    let alone = fixture.edge();
    let logs = alone.logs();
    let line = logs.lines().find(|line| line.contains(said));
    assert!(line.is_some_and(|line| line.contains("ERROR")), "{logs}");
}
