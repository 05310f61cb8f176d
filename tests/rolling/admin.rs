//! The admin server ends in an orderly way under load, beside another one.

use crate::fixture::{ADMIN, SOON};
use harness::{Admin, AdminOptions, Cli, Redis, eventually, http_client, until};
use parking_lot::RwLock;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Time between two health checks of the balancer.
const LOOK: Duration = Duration::from_millis(50);
/// `admin.drain_delay_ms`
const DELAY_MS: &str = "3000";
const CALLERS: u64 = 4;

/// State that the callers share.
#[derive(Default)]
struct Shared {
    ready: RwLock<Vec<SocketAddr>>,
    stop: AtomicBool,
    done: AtomicU64,
}

/// Makes agents, one after the other. Returns how many; each request must be answered with success.
async fn make_agents(shared: Arc<Shared>, number: u64, key: String) -> u64 {
    let client = http_client();
    let mut done = 0;
    while !shared.stop.load(Ordering::Acquire) {
        let addr = {
            let ready = shared.ready.read();
            ready[usize::try_from(done + number).expect("a number") % ready.len()]
        };
        let sent = client
            .post(format!("http://{addr}/api/v1/agents"))
            .bearer_auth(&key)
            // A connection a call: this tests the end of the server, not how clients treat idle connections.
            .header("connection", "close")
            .json(&json!({ "name": format!("agent {number}-{done}") }));
        let reply = sent.send().await.expect("an answer");
        let status = reply.status().as_u16();
        let text = reply.text().await.expect("a whole answer");
        assert_eq!(status, 200, "{text}");
        done += 1;
        shared.done.fetch_add(1, Ordering::AcqRel);
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_ends_under_load_and_no_request_fails() {
    let redis = Redis::start();
    let cli = Cli::new(ADMIN, redis.url());
    drop(cli.json(&["store", "init"]));
    let account = cli.json(&["account", "create", "--name", "T", "--plan", "enterprise"]);
    let account = account["accountId"].as_str().expect("an id");
    let key = cli.json(&["api-key", "create", "--account", account, "--mode", "test"]);
    let key = key["key"].as_str().expect("a key").to_owned();
    let archive = tempfile::tempdir().expect("a directory");
    let start = || {
        let options = AdminOptions::new(ADMIN, redis.url()).env("TOLLGATE_ADMIN__DRAIN_DELAY_MS", DELAY_MS);
        Admin::start(options.env("TOLLGATE_AUDIT__ARCHIVE", archive.path().display().to_string()))
    };
    let (first, second) = (start(), start());
    let shared = Arc::new(Shared::default());
    let servers = [&first, &second].map(|server| (server.addr(), server.ops_addr()));
    *shared.ready.write() = servers.iter().map(|(addr, _)| *addr).collect();
    let (looker, looked) = (http_client(), Arc::clone(&shared));
    let poller = tokio::spawn(async move {
        loop {
            let mut ready = Vec::new();
            for (addr, ops) in servers {
                let answer = looker.get(format!("http://{ops}/readyz")).send().await;
                if answer.is_ok_and(|answer| answer.status() == 200) {
                    ready.push(addr);
                }
            }
            *looked.ready.write() = ready;
            tokio::time::sleep(LOOK).await;
        }
    });
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| tokio::spawn(make_agents(Arc::clone(&shared), number, key.clone())))
        .collect();
    let more = async |count: u64| {
        let wanted = shared.done.load(Ordering::Acquire) + count;
        until("requests", async || shared.done.load(Ordering::Acquire) >= wanted).await;
    };
    more(20).await;
    first.term();
    eventually("readiness that fails", SOON, async || {
        (first.ops("/readyz")?.0 == 503).then_some(())
    })
    .await;
    let ended = tokio::task::spawn_blocking(move || (first.wait_exit(SOON), first.logs()));
    let (code, logs) = ended.await.expect("an end");
    assert_eq!(code, Some(0), "{logs}");
    assert!(
        logs.contains("\"message\":\"stopped\""),
        "every turn came to its end: {logs}"
    );
    more(20).await;
    shared.stop.store(true, Ordering::Release);
    let mut done = 0;
    for caller in callers {
        done += caller.await.expect("a caller whose requests all succeed");
    }
    poller.abort();
    let listed = second.caller(&key).get("/api/v1/agents?limit=1").await;
    assert_eq!(
        listed.json()["total"],
        done,
        "each request had its effect once: {listed:?}"
    );
    let verified = cli.env("TOLLGATE_AUDIT__ARCHIVE", archive.path().display().to_string());
    let verified = verified.json(&["audit", "verify", "--account", account, "--mode", "test"]);
    assert_eq!(verified["ok"], true, "{verified}");
}
