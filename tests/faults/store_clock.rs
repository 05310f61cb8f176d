//! A store whose clock is wrong. The wire moves the time in replies to `TIME` and `INFO`, so the edge sees the clock as
//! wrong; scripts keep the right one.

use crate::fixture::{ACTUAL, SOON, Setup, Stage};
use harness::{eventually, until};

const DAY: i64 = 86_400;

/// Calls until one is denied, and asserts that all later ones are denied.
async fn denied(stage: &Stage) {
    until("a denial of everything", async || {
        stage.call().await.status == 503
    })
    .await;
    for _ in 0..3 {
        stage.unavailable_call().await;
    }
    assert_eq!(stage.edge.ops("/readyz").map(|(status, _)| status), Some(503));
    let health = stage.edge.caller("").get("/v1/health").await;
    assert_eq!(health.status, 503, "{health:?}");
}

/// Waits until the clock difference, in seconds, satisfies `fits`.
async fn difference(stage: &Stage, fits: impl Fn(i64) -> bool) {
    eventually("the metric", SOON, async || {
        let (_, text) = stage.edge.ops("/metrics")?;
        let name = "tollgate_proxy_store_clock_difference_seconds{server=\"127.0.0.1:";
        let line = text.lines().find(|line| line.starts_with(name))?;
        let (_, value) = line.rsplit_once(' ')?;
        fits(value.parse().expect("whole seconds")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_store_whose_clock_is_days_off_is_not_used_until_it_is_right() {
    let stage = Setup::default().wired().start().await;
    stage.approved_call().await;
    for days in [3, -3] {
        stage.wire().move_clock(days * DAY);
        denied(&stage).await;
        difference(&stage, |seconds| (seconds - days * DAY).abs() < 60).await;
        stage.unavailable_call().await;
        let words = if days > 0 { "days ahead of" } else { "days behind" };
        assert!(stage.edge.logs().contains(words), "{}", stage.edge.logs());
        stage.wire().move_clock(0);
        stage.recovered().await;
        difference(&stage, |seconds| seconds == 0).await;
    }
    stage.every_approved_call_is_settled().await;
}

#[tokio::test]
async fn an_edge_that_starts_on_such_a_store_forwards_nothing() {
    let stage = Setup::default().clock_ahead(3 * DAY).start().await;
    for _ in 0..5 {
        stage.unavailable_call().await;
    }
    assert_eq!(stage.upstream.arrived(), 0);
    stage.wire().move_clock(0);
    stage.recovered().await;
}

/// The call under way was approved before; it is settled, as on any store that is not used any more.
#[tokio::test]
async fn a_call_under_way_is_settled() {
    let stage = Setup::default().wired().start().await;
    let gate = stage.gated();
    let (reply, ()) = futures::future::join(stage.call(), async {
        stage.upstream.wait_for(1, SOON).await;
        stage.wire().move_clock(3 * DAY);
        eventually("an edge that is not ready", SOON, async || {
            (stage.edge.ops("/readyz")?.0 == 503).then_some(())
        })
        .await;
        gate.notify_one();
    })
    .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    stage.wire().move_clock(0);
    stage.settled_at(ACTUAL).await;
}

#[tokio::test]
async fn the_bound_is_a_setting() {
    const BOUND: i64 = 120;
    let setup = Setup::default().env("STORE__MAX_CLOCK_DIFFERENCE_MS", BOUND * 1000);
    let stage = setup.wired().start().await;
    for ahead in [BOUND - 30, 30 - BOUND] {
        stage.wire().move_clock(ahead);
        // The sign too: the metric still has the value of the round before.
        difference(&stage, |seconds| (seconds - ahead).abs() < 30).await;
        stage.approved_call().await;
    }
    stage.wire().move_clock(BOUND + 30);
    denied(&stage).await;
}
