//! SIGQUIT hands the sockets to a new process: no call fails, and the new process delivers the settlements that the old
//! one could not.

use crate::fixture::{ACTUAL, Fixture, SOON, body};
use crate::load::Load;
use harness::{Edge, Wire, free_port, http_client, until};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use tokio::net::TcpSocket;

/// Number of times that the edge is replaced.
const GENERATIONS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_process_follows_process() {
    let fixture = Fixture::new().await;
    let mut edge = fixture.edge();
    let load = Load::on(&fixture);
    for _ in 0..GENERATIONS {
        load.answers(60).await;
        let before = edge.pid();
        edge = fixture.next(edge).await;
        assert_ne!(edge.pid(), before);
        load.answers(60).await;
    }
    let tally = load.end().await;
    assert_eq!(fixture.upstream.arrived() as u64, tally.answered, "{tally:?}");
    fixture.settled_at(tally.answered * ACTUAL).await;
    let left: Vec<_> = std::fs::read_dir(fixture.data()).expect("a directory").collect();
    assert_eq!(left.len(), 1, "one journal, of the process that runs: {left:?}");
    assert_eq!(
        edge.ops("/readyz").map(|answer| answer.0),
        Some(200),
        "the ops listener was handed over too"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_tls_and_http_2_are_handed_over_too() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let dir = tempfile::tempdir().expect("a directory");
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let fixture = Fixture::new()
        .await
        .env("PROXY__TLS_CERT", cert.display())
        .env("PROXY__TLS_KEY", key.display());
    let edge = fixture.edge();
    drop(http_client()); // installs the cryptography provider
    let trusted = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).expect("a certificate");
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]);
    let client = client.build().expect("a client");
    let base = format!("https://localhost:{}", fixture.addr().port());
    let mut load = Load::empty();
    for is_slow in [false, false, true] {
        load.h2(client.clone(), base.clone(), &fixture.key, is_slow);
    }
    load.answers(20).await;
    let edge = fixture.next(edge).await;
    load.answers(20).await;
    let tally = load.end().await;
    assert_eq!(fixture.upstream.arrived() as u64, tally.answered);
    fixture.settled_at(tally.answered * ACTUAL).await;
    assert!(edge.is_running());
}

/// A new process whose `proxy.listen` is another one gets no socket for it. It has the address before the old process
/// hands over: a process that cannot accept calls must not report that it serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_address_accepts_before_the_old_process_ends() {
    let fixture = Fixture::new().await;
    let old = fixture.edge();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let options = fixture
        .options()
        .env("TOLLGATE_PROXY__LISTEN", listen.to_string());
    let options = options.arg("--upgrade").until_alive();
    let starting = tokio::task::spawn_blocking(move || Edge::start(options));
    until("a process that waits", async || fixture.has_waiting_successor()).await;
    // Whoever binds the address now leaves none to the new process.
    let other = TcpSocket::new_v4().expect("a socket");
    let is_free = other.bind(listen).is_ok();
    old.signal("QUIT");
    fixture.ends_well(old).await;
    assert!(
        TcpStream::connect(listen).is_ok(),
        "a process that serves accepts"
    );
    assert!(!is_free, "the process has its address while it waits");
    let new = starting.await.expect("a new process");
    let reply = new.caller(&fixture.key).chat(body(false)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// The old process ends with settlements that it could not deliver to the store. The new process, which started before,
/// finds and delivers them once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_of_the_old_process_are_settled_by_the_new_one() {
    let fixture = Fixture::new().await;
    let wire = Wire::to_port(fixture.redis.port());
    let old = Edge::start(
        fixture
            .options()
            .env("TOLLGATE_STORE__URL", wire.redis_url())
            .env("TOLLGATE_STORE__TIMEOUT_MS", "1500"),
    );
    let gate = Arc::new(tokio::sync::Notify::new());
    let waiting = Arc::clone(&gate);
    fixture
        .upstream
        .set(move |_| harness::Answer::chat(9, 12).wait_for(&waiting));
    let caller = old.caller(&fixture.key);
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.chat(body(false)).await })
        })
        .collect();
    fixture.upstream.wait_for(5, SOON).await;
    wire.swallow_requests(true);
    wire.refuse(true);
    wire.cut();
    let new = fixture.next_of(&old, fixture.options()).await;
    for _ in 0..5 {
        gate.notify_one();
        tokio::task::yield_now().await;
    }
    for call in calls {
        assert_eq!(call.await.expect("a call").status, 200);
    }
    let ended = tokio::task::spawn_blocking(move || (old.wait_exit(SOON), old.logs()));
    let (code, logs) = ended.await.expect("an end");
    assert_eq!(code, Some(0), "{logs}");
    fixture.settled_at(5 * ACTUAL).await;
    let done = r#"tollgate_proxy_settlements_total{result="done"}"#;
    until("five settlements", async || new.metric(done) == Some(5)).await;
}
