//! A store whose clock is wrong. The wire moves the time in replies to `TIME` and `INFO`; scripts keep the right time.

use crate::fixture::{Fixture, SOON, quick, receiver, url};
use harness::{Answer, Redis, Wire, eventually};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const FROZEN: &[&str] = &["agent.frozen"];
const DAY: i64 = 86_400;
/// Longer than several scans of the deliverer and checks of the store.
const ROUNDS: Duration = Duration::from_secs(4);

/// Two webhooks and one place: the second one waits until the first one's turn ends.
#[tokio::test]
async fn no_webhook_has_its_turn_while_the_stores_clock_is_wrong() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    let fixture = Fixture::start_with(redis, |options| {
        quick(options)
            .env("TOLLGATE_STORE__URL", wire.redis_url())
            .env("TOLLGATE_WEBHOOKS__TIMEOUT_MS", "60000")
            .env("TOLLGATE_WEBHOOKS__ENDPOINTS_AT_ONCE", "1")
    })
    .await;
    let owner = fixture.owner().await;
    let gate = Arc::new(Notify::new());
    let waiting = Arc::clone(&gate);
    let gated = receiver(move |_| Answer::bytes(200, "").wait_for(&waiting));
    for _ in 0..2 {
        owner.register(&url(&gated), FROZEN).await;
    }
    owner.freeze("bot").await;
    gated.wait_for(1, SOON).await;
    wire.move_clock(3 * DAY);
    eventually("a server that is not ready", SOON, async || {
        (fixture.admin.ops("/readyz")?.0 == 503).then_some(())
    })
    .await;
    gate.notify_one();
    tokio::time::sleep(ROUNDS).await;
    assert_eq!(gated.arrived(), 1, "the second webhook's turn began");
    wire.move_clock(0);
    gated.wait_for(2, SOON).await;
    gate.notify_one();
}
