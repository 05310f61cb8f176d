//! The machine is short of descriptors. A failure on our side costs the caller nothing (decision D69).

use crate::fixture::{ACTUAL, Fixture, SOON, Setup, body};
use harness::until;
use std::process::Command;

/// The lowest descriptor that is not open in a process: with this limit it can open no more.
fn lowest_free(pid: u32) -> usize {
    let free = |number: &usize| !std::path::Path::new(&format!("/proc/{pid}/fd/{number}")).exists();
    (0..).find(free).expect("a number")
}

/// Sets how many descriptors the edge may have open.
fn limit_files(fixture: &Fixture, soft: &str) {
    let pid = fixture.edge.pid().to_string();
    let set = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--nofile={soft}:")])
        .status();
    assert!(set.expect("prlimit").success(), "--nofile={soft}:");
}

#[tokio::test]
async fn without_a_descriptor_for_the_provider_nothing_is_charged() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    // A second call needs a connection of its own, while this one waits for its answer.
    let gate = fixture.gated();
    let mut waiting = fixture.waiting_call(body().to_string().as_bytes(), 2).await;
    let mut short = fixture.raw().await;
    let models = format!(
        "GET /v1/models HTTP/1.1\r\nHost: edge\r\nx-api-key: {}\r\n\r\n",
        fixture.key
    );
    assert!(short.send(models).await);
    assert_eq!(short.reply(SOON).await.expect("an answer").status, 200);
    limit_files(&fixture, &lowest_free(fixture.edge.pid()).to_string());
    assert!(
        short
            .send_chat(&fixture.key, "", body().to_string().as_bytes())
            .await
    );
    let reply = short.reply(SOON).await.expect("an answer");
    limit_files(&fixture, "1024");
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(reply.header("x-service-reason"), Some("service_unavailable"));
    assert_eq!(reply.header("x-should-retry"), None, "nothing was charged");
    assert_eq!(fixture.upstream.arrived(), 2, "nothing was sent");
    gate.notify_waiters();
    assert_eq!(waiting.reply(SOON).await.expect("an answer").status, 200);
    fixture.settled_at(2 * ACTUAL).await;
    let local = "tollgate_proxy_upstream_failures_total{stage=\"local\"}";
    assert_eq!(fixture.metric(local), 1);
    fixture.upstream.set(|_| crate::fixture::answer());
    until("an approved call", async || fixture.call().await.status == 200).await;
}
