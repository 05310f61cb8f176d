//! The edge itself ends: in an orderly way with calls in flight, or killed between hold and settlement. Then the
//! estimate stays charged, the reaper makes it visible, and a late settlement still corrects it.

use crate::fixture::{ACTUAL, ESTIMATE, PROXY, SOON, STORE_TIMEOUT_MS, Setup, Stage, answer, body};
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
    let stage = Setup::default().start().await;
    let gate = stage.gated();
    let mut calls = Vec::new();
    for number in 1..=5 {
        calls.push(stage.waiting_call(body().to_string().as_bytes(), number).await);
    }
    stage.edge.term();
    until("no new connections", async || {
        tokio::net::TcpStream::connect(stage.edge.addr()).await.is_err()
    })
    .await;
    assert!(stage.edge.is_running(), "it waits for its calls");
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
    assert_eq!(stage.edge.wait_exit(SOON), Some(0), "{}", stage.edge.logs());
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "it ends as soon as it can"
    );
    assert_eq!((stage.charged(), stage.open_holds()), ([5 * ACTUAL; 3], 0));
    assert_eq!(stage.upstream.arrived(), 5);
}

#[tokio::test]
async fn an_idle_edge_ends_at_once() {
    let stage = Setup::default().start().await;
    let mut idle = stage.raw().await;
    assert!(
        idle.send_chat(&stage.key, "", body().to_string().as_bytes())
            .await
    );
    assert_eq!(idle.reply(SOON).await.expect("an answer").status, 200);
    let _silent = stage.raw().await;
    let started = Instant::now();
    stage.edge.term();
    assert_eq!(stage.edge.wait_exit(SOON), Some(0));
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "kept connections hold up nothing"
    );
}

/// Kills the edge with a call at the provider: the estimate stays charged.
async fn killed_in_a_call(stage: &Stage) {
    let gate = stage.gated();
    let mut raw = stage.waiting_call(body().to_string().as_bytes(), 1).await;
    stage.edge.kill9();
    assert_eq!(raw.reply(Duration::from_secs(5)).await, None);
    gate.notify_one();
    assert_eq!((stage.charged(), stage.open_holds()), ([ESTIMATE; 3], 1));
}

/// Sweeps until a hold is kept.
async fn kept(stage: &Stage) -> Hold {
    eventually("a kept hold", SOON, async || {
        let swept = sweep(
            stage.seed.store(),
            stage.bot.account.keys.bucket(),
            clock::now_ms(),
        );
        swept.await.expect("a sweep").pop()
    })
    .await
}

#[tokio::test]
async fn a_killed_edge_leaves_the_estimate_charged_and_the_reaper_shows_it() {
    let stage = short_holds().start().await;
    killed_in_a_call(&stage).await;
    let bucket = stage.bot.account.keys.bucket();
    let early = sweep(stage.seed.store(), bucket, clock::now_ms() + 60_000)
        .await
        .expect("a sweep");
    assert!(
        early.is_empty(),
        "the store's clock decides, not the sweeper's: {early:?}"
    );
    assert_eq!(stage.open_holds(), 1);
    let hold = kept(&stage).await;
    assert_eq!(hold.estimate.get(), ESTIMATE);
    assert_eq!(
        (hold.name.agent.as_str(), hold.model.as_str()),
        ("bot", "gpt-4o-mini")
    );
    assert_eq!((stage.charged(), stage.open_holds()), ([ESTIMATE; 3], 0));
    let audit = stage.bot.account.keys.live().audit();
    let entries: Vec<String> = stage.redis.command(&["LRANGE", &audit, "0", "-1"]);
    let shown = entries
        .iter()
        .filter(|entry| entry.contains(" A kept ") && entry.contains(&hold.name.allow_id));
    assert_eq!(shown.count(), 1, "{entries:?}");
    // The next edge serves the agent; no earlier call is repeated.
    stage.upstream.set(|_| answer());
    let next = Edge::start(EdgeOptions::new(
        PROXY,
        stage.redis.url(),
        stage.upstream.base_url(),
    ));
    assert_eq!(next.caller(&stage.key).chat(body()).await.status, 200);
    assert_eq!(stage.charged(), [ESTIMATE + ACTUAL; 3]);
    assert_eq!(stage.upstream.arrived(), 2);
}

/// The settlement comes after the reaper kept its hold: it still moves the ledger to the real cost.
#[tokio::test]
async fn a_late_settlement_corrects_a_kept_hold() {
    let stage = short_holds()
        .wired()
        .env("STORE__TIMEOUT_MS", STORE_TIMEOUT_MS)
        .start()
        .await;
    let gate = stage.gated();
    let call = stage.call();
    let (reply, ()) = futures::future::join(call, async {
        stage.upstream.wait_for(1, SOON).await;
        stage.lose_store();
        gate.notify_one();
    })
    .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    kept(&stage).await;
    assert_eq!(stage.charged(), [ESTIMATE; 3]);
    stage.wire().heal();
    stage.settled_at(ACTUAL).await;
    assert_eq!(stage.bot.kept_holds().await, 0, "corrected, and no longer listed");
}

/// An edge that is frozen (a stalled machine) for longer than its holds live: when it goes on, its calls are settled.
#[tokio::test]
async fn a_frozen_edge_settles_when_it_goes_on() {
    let stage = short_holds().start().await;
    let gate = stage.gated();
    let mut raw = stage.waiting_call(body().to_string().as_bytes(), 1).await;
    stage.edge.signal("STOP");
    gate.notify_one();
    kept(&stage).await;
    stage.edge.signal("CONT");
    let reply = raw.reply(SOON).await.expect("an answer");
    // The deadline passed while the edge was frozen: its first event decides, and the ledger agrees with the answer.
    stage.at_rest().await;
    let expected = match reply.status {
        200 => ACTUAL,
        504 => ESTIMATE,
        other => panic!("{other}: {reply:?}"),
    };
    stage.settled_at(expected).await;
    assert_eq!(stage.bot.kept_holds().await, 0);
}
