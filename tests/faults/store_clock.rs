//! A store whose clock is wrong. The wire moves the time in replies to `TIME` and `INFO`, so the edge sees the clock as
//! wrong; scripts keep the right one.

use crate::fixture::{ACTUAL, Fixture, SOON, Setup};
use harness::{eventually, until};

const DAY: i64 = 86_400;

/// Calls until one is denied, and asserts that all later ones are denied.
async fn denied(fixture: &Fixture) {
    until("a denial of everything", async || {
        fixture.call().await.status == 503
    })
    .await;
    for _ in 0..3 {
        fixture.unavailable_call().await;
    }
    assert_eq!(fixture.edge.ops("/readyz").map(|(status, _)| status), Some(503));
    let health = fixture.edge.caller("").get("/v1/health").await;
    assert_eq!(health.status, 503, "{health:?}");
}

/// Waits until the clock difference, in seconds, satisfies `fits`.
async fn difference(fixture: &Fixture, fits: impl Fn(i64) -> bool) {
    eventually("the metric", SOON, async || {
        let (_, text) = fixture.edge.ops("/metrics")?;
        let name = "tollgate_proxy_store_clock_difference_seconds{server=\"127.0.0.1:";
        let line = text.lines().find(|line| line.starts_with(name))?;
        let (_, value) = line.rsplit_once(' ')?;
        fits(value.parse().expect("whole seconds")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_store_whose_clock_is_days_off_is_not_used_until_it_is_right() {
    let fixture = Setup::default().wired().start().await;
    fixture.approved_call().await;
    for days in [3, -3] {
        fixture.wire().move_clock(days * DAY);
        denied(&fixture).await;
        difference(&fixture, |seconds| (seconds - days * DAY).abs() < 60).await;
        fixture.unavailable_call().await;
        let words = if days > 0 { "days ahead of" } else { "days behind" };
        assert!(fixture.edge.logs().contains(words), "{}", fixture.edge.logs());
        fixture.wire().move_clock(0);
        fixture.recovered().await;
        difference(&fixture, |seconds| seconds == 0).await;
    }
    fixture.every_approved_call_is_settled().await;
}

#[tokio::test]
async fn an_edge_that_starts_on_such_a_store_forwards_nothing() {
    let fixture = Setup::default().clock_ahead(3 * DAY).start().await;
    for _ in 0..5 {
        fixture.unavailable_call().await;
    }
    assert_eq!(fixture.upstream.arrived(), 0);
    fixture.wire().move_clock(0);
    fixture.recovered().await;
}

/// The call under way was approved before; it is settled, as on any store that is not used any more.
#[tokio::test]
async fn a_call_under_way_is_settled() {
    let fixture = Setup::default().wired().start().await;
    let gate = fixture.gated();
    let (reply, ()) = futures::future::join(fixture.call(), async {
        fixture.upstream.wait_for(1, SOON).await;
        fixture.wire().move_clock(3 * DAY);
        eventually("an edge that is not ready", SOON, async || {
            (fixture.edge.ops("/readyz")?.0 == 503).then_some(())
        })
        .await;
        gate.notify_one();
    })
    .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    fixture.wire().move_clock(0);
    fixture.settled_at(ACTUAL).await;
}

#[tokio::test]
async fn the_bound_is_a_setting() {
    const BOUND: i64 = 120;
    let setup = Setup::default().env("STORE__MAX_CLOCK_DIFFERENCE_MS", BOUND * 1000);
    let fixture = setup.wired().start().await;
    for ahead in [BOUND - 30, 30 - BOUND] {
        fixture.wire().move_clock(ahead);
        // The sign too: the metric still has the value of the round before.
        difference(&fixture, |seconds| (seconds - ahead).abs() < 30).await;
        fixture.approved_call().await;
    }
    fixture.wire().move_clock(BOUND + 30);
    denied(&fixture).await;
}
