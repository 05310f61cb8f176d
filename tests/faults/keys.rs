//! Floods of invented keys: none reaches the store, and the edge's memory stays bounded.

use crate::fixture::{Fixture, SOON, Setup};
use crate::memory::resident_kib;
use entropy::random_bytes;
use harness::{Answer, RawClient, Redis, Upstream, until};
use std::time::Instant;

const FLOOD: usize = 20_000;
/// Callers who send them.
const CALLERS: usize = 8;
/// Greatest growth of the edge in a flood. Its buffers and pools are below; a cache without bound is far above.
const GROWTH_MAX_KIB: u64 = 64 << 10;
/// Spans of an approved call: its own, and one of each stage.
const SPANS: u64 = 7;

/// Commands that the server ran, of all kinds.
fn commands(redis: &Redis) -> u64 {
    let info: String = redis.command(&["INFO", "stats"]);
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("total_commands_processed:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a count")
}

async fn flood(fixture: &Fixture, key: fn(usize) -> String) {
    let addr = fixture.edge.addr();
    let callers = (0..CALLERS).map(|caller| {
        tokio::spawn(async move {
            let mut raw = RawClient::connect(addr).await;
            for number in (caller..FLOOD).step_by(CALLERS) {
                assert!(raw.send_chat(&key(number), "", b"").await);
                let reply = raw.reply(SOON).await.expect("an answer");
                assert_eq!(reply.status, 401, "{reply:?}");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// Runs a flood and asserts that it cost nothing but the edge's own periodic commands.
async fn costs_nothing(fixture: &Fixture, key: fn(usize) -> String) {
    let forwarded = fixture.upstream.arrived();
    let (before, scripts, resident) = (
        commands(&fixture.redis),
        fixture.redis.calls("evalsha"),
        resident_kib(fixture.edge.pid()),
    );
    let started = Instant::now();
    flood(fixture, key).await;
    let own = 20 + 10 * started.elapsed().as_secs();
    let commands = commands(&fixture.redis) - before;
    assert!(commands <= own, "{commands} commands for {FLOOD} keys");
    assert_eq!(
        fixture.redis.calls("evalsha"),
        scripts,
        "no decision was requested"
    );
    let grown = resident_kib(fixture.edge.pid()).saturating_sub(resident);
    assert!(grown <= GROWTH_MAX_KIB, "the edge grew by {grown} KiB");
    assert_eq!(fixture.upstream.arrived(), forwarded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_keys_costs_the_store_nothing() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    costs_nothing(&fixture, |number| format!("vk_live_{number:063}")).await;
    costs_nothing(&fixture, |_| {
        format!(
            "vk_live_{}",
            hex::encode(random_bytes::<32>().expect("randomness"))
        )
    })
    .await;
}

/// Callers without a key cannot fill the queue of traces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_keys_is_not_traced() {
    let collector = Upstream::start(|_| Answer::json(200, serde_json::json!({})));
    let fixture = Setup::default()
        .env("TELEMETRY__OTLP_ENDPOINT", format!("http://{}", collector.addr()))
        .env("TELEMETRY__SAMPLE_RATIO", "0.0")
        .start()
        .await;
    let traceparent = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let mut raw = fixture.raw().await;
    for number in 0..50 {
        assert!(
            raw.send_chat(&format!("vk_live_{number:063}"), traceparent, b"")
                .await
        );
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 401);
    }
    let body = crate::fixture::body().to_string();
    assert!(raw.send_chat(&fixture.key, traceparent, body.as_bytes()).await);
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    let exported = || fixture.metric("tollgate_proxy_spans_exported_total");
    until("the spans of the call", async || exported() > 0).await;
    assert_eq!(exported(), SPANS, "those of the call alone");
}
