//! The edge itself ends: in an orderly way with calls in flight, or killed between hold and settlement. Then the
//! estimate stays charged, the reaper makes it visible, and a late settlement still corrects it.

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, PROXY, SOON, STORE_TIMEOUT_MS, Setup, answer, body};
use harness::{Edge, EdgeOptions, eventually, until};
use std::time::{Duration, Instant};
use store::call::hold::Hold;
use store::call::reap::sweep;

/// Holds are due 1.5 s after their approval.
fn short_holds() -> Setup {
    Setup::default()
        .env("UPSTREAM__TIMEOUT_MS", 1400)
        .env("PROXY__HOLD_GRACE_MS", 100)
}

#[tokio::test]
async fn an_orderly_end_finishes_the_calls_in_flight() {
    let fixture = Setup::default().start().await;
    let gate = fixture.gated();
    let mut calls = Vec::new();
    for number in 1..=5 {
        calls.push(fixture.waiting_call(body().to_string().as_bytes(), number).await);
    }
    fixture.edge.term();
    until("no new connections", async || {
        tokio::net::TcpStream::connect(fixture.edge.addr()).await.is_err()
    })
    .await;
    assert!(fixture.edge.is_running(), "it waits for its calls");
    for _ in 0..5 {
        gate.notify_one();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for call in &mut calls {
        let reply = call.reply(SOON).await.expect("an answer");
        assert_eq!(
            (reply.status, reply.header("x-service-decision")),
            (200, Some("approved"))
        );
        assert_eq!(reply.header("connection"), Some("close"));
    }
    let started = Instant::now();
    assert_eq!(fixture.edge.wait_exit(SOON), Some(0), "{}", fixture.edge.logs());
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "it ends as soon as it can"
    );
    assert_eq!((fixture.charged(), fixture.open_holds()), ([5 * ACTUAL; 3], 0));
    assert_eq!(fixture.upstream.arrived(), 5);
}

#[tokio::test]
async fn an_idle_edge_ends_at_once() {
    let fixture = Setup::default().start().await;
    let mut idle = fixture.raw().await;
    assert!(
        idle.send_chat(&fixture.key, "", body().to_string().as_bytes())
            .await
    );
    assert_eq!(idle.reply(SOON).await.expect("an answer").status, 200);
    let _silent = fixture.raw().await;
    let started = Instant::now();
    fixture.edge.term();
    assert_eq!(fixture.edge.wait_exit(SOON), Some(0));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "kept connections hold up nothing"
    );
}

/// Kills the edge with a call at the provider: the estimate stays charged.
async fn killed_in_a_call(fixture: &Fixture) {
    let gate = fixture.gated();
    let mut raw = fixture.waiting_call(body().to_string().as_bytes(), 1).await;
    fixture.edge.kill9();
    assert_eq!(raw.reply(Duration::from_secs(5)).await, None);
    gate.notify_one();
    assert_eq!((fixture.charged(), fixture.open_holds()), ([ESTIMATE; 3], 1));
}

/// Sweeps until a hold is kept.
async fn kept(fixture: &Fixture) -> Hold {
    eventually("a kept hold", SOON, async || {
        let swept = sweep(
            fixture.seed.store(),
            fixture.bot.account.keys.bucket(),
            clock::now_ms(),
        );
        swept.await.expect("a sweep").pop()
    })
    .await
}

#[tokio::test]
async fn a_killed_edge_leaves_the_estimate_charged_and_the_reaper_shows_it() {
    let fixture = short_holds().start().await;
    killed_in_a_call(&fixture).await;
    let bucket = fixture.bot.account.keys.bucket();
    let early = sweep(fixture.seed.store(), bucket, clock::now_ms() + 60_000)
        .await
        .expect("a sweep");
    assert!(
        early.is_empty(),
        "the store's clock decides, not the sweeper's: {early:?}"
    );
    assert_eq!(fixture.open_holds(), 1);
    let hold = kept(&fixture).await;
    assert_eq!(hold.estimate.get(), ESTIMATE);
    assert_eq!(
        (hold.name.agent.as_str(), hold.model.as_str()),
        ("bot", "gpt-4o-mini")
    );
    assert_eq!((fixture.charged(), fixture.open_holds()), ([ESTIMATE; 3], 0));
    let audit = fixture.bot.account.keys.live().audit();
    let entries: Vec<String> = fixture.redis.command(&["LRANGE", &audit, "0", "-1"]);
    let shown = entries
        .iter()
        .filter(|entry| entry.contains(" A kept ") && entry.contains(&hold.name.allow_id));
    assert_eq!(shown.count(), 1, "{entries:?}");
    // The next edge serves the agent; no earlier call is repeated.
    fixture.upstream.set(|_| answer());
    let next = Edge::start(EdgeOptions::new(
        PROXY,
        fixture.redis.url(),
        fixture.upstream.base_url(),
    ));
    assert_eq!(next.caller(&fixture.key).chat(body()).await.status, 200);
    assert_eq!(fixture.charged(), [ESTIMATE + ACTUAL; 3]);
    assert_eq!(fixture.upstream.arrived(), 2);
}

/// The settlement comes after the reaper kept its hold: it still moves the ledger to the real cost.
#[tokio::test]
async fn a_late_settlement_corrects_a_kept_hold() {
    let fixture = short_holds()
        .wired()
        .env("STORE__TIMEOUT_MS", STORE_TIMEOUT_MS)
        .start()
        .await;
    let gate = fixture.gated();
    let call = fixture.call();
    let (reply, ()) = futures::future::join(call, async {
        fixture.upstream.wait_for(1, SOON).await;
        fixture.lose_store();
        gate.notify_one();
    })
    .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    kept(&fixture).await;
    assert_eq!(fixture.charged(), [ESTIMATE; 3]);
    fixture.wire().heal();
    fixture.settled_at(ACTUAL).await;
    assert_eq!(
        fixture.bot.kept_holds().await,
        0,
        "corrected, and no longer listed"
    );
}

/// An edge that is frozen (a stalled machine) for longer than its holds live: when it goes on, its calls are settled.
#[tokio::test]
async fn a_frozen_edge_settles_when_it_goes_on() {
    let fixture = short_holds().start().await;
    let gate = fixture.gated();
    let mut raw = fixture.waiting_call(body().to_string().as_bytes(), 1).await;
    fixture.edge.signal("STOP");
    gate.notify_one();
    kept(&fixture).await;
    fixture.edge.signal("CONT");
    let reply = raw.reply(SOON).await.expect("an answer");
    // The deadline passed while the edge was frozen: its first event decides, and the ledger agrees with the answer.
    fixture.at_rest().await;
    let expected = match reply.status {
        200 => ACTUAL,
        504 => ESTIMATE,
        other => panic!("{other}: {reply:?}"),
    };
    fixture.settled_at(expected).await;
    assert_eq!(fixture.bot.kept_holds().await, 0);
}
