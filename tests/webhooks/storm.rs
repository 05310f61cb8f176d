//! Ten thousand events for a dead receiver: bounded memory and attempts, and no other account waits.

use crate::fixture::{Fixture, SOON, accepting, quick, receiver, url};
use domain::mode::Mode;
use futures::{StreamExt, stream};
use harness::{AdminOptions, Answer, Redis, eventually, until};
use store::script::change::Scope;
use store::webhook;
use store::webhook::script::Tested;

const EVENTS: usize = 10_000;
/// Most deliveries that wait.
const WAITING: u64 = 2_000;
/// Most finished deliveries.
const HISTORY: u64 = 500;
/// Most bytes of the store for a delivery, with its attempts.
const BYTES_EACH: u64 = 1_000;
/// Bound on the growth of the server's memory, in KiB.
const GROWTH_KIB: u64 = 64 * 1024;

/// Memory of a process in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_storm_for_a_dead_receiver_stays_bounded_and_its_own() {
    let options = |options: AdminOptions| {
        quick(options)
            .env("TOLLGATE_WEBHOOKS__TIMEOUT_MS", "60000")
            .env("TOLLGATE_WEBHOOKS__WAITING_MAX", WAITING.to_string())
            .env("TOLLGATE_WEBHOOKS__HISTORY_MAX", HISTORY.to_string())
    };
    let fixture = Fixture::start_with(Redis::start(), options).await;
    let (stormy, calm) = (fixture.owner().await, fixture.owner().await);
    let (dead, good) = (receiver(|_| Answer::hang()), accepting());
    let to_dead = stormy.register(&url(&dead), &["agent.frozen"]).await;
    let to_good = calm.register(&url(&good), &["agent.frozen"]).await;
    let before = resident(fixture.admin.pid());
    let scope = Scope {
        account: &stormy.account.id,
        mode: Mode::Live,
        actor: "test",
    };
    let storm =
        stream::iter(0..EVENTS).map(async |_| webhook::script::test(&fixture.store, &scope, &to_dead).await);
    let reported = storm.buffer_unordered(32).for_each(async |tested| {
        assert!(matches!(tested, Ok(Tested::Done { .. })), "{tested:?}");
    });
    let calmly = async {
        for _ in 0..30 {
            calm.freeze("bot").await;
        }
    };
    tokio::join!(reported, calmly);
    until("all of the calm account", async || {
        calm.deliveries_with(&to_good, "status=delivered").await.1 == 30
    })
    .await;
    assert_eq!(good.requests().len(), 30, "each once");
    let (pending, failed) = eventually("the storm to be dispatched", SOON, async || {
        let all = fixture.admin.metric("tollgate_admin_webhook_events_total") == Some(EVENTS + 30);
        all.then_some(())?;
        let (_, pending) = stormy.deliveries_with(&to_dead, "status=pending&limit=1").await;
        let (_, failed) = stormy.deliveries_with(&to_dead, "status=failed&limit=1").await;
        Some((pending, failed))
    })
    .await;
    assert_eq!((pending, failed), (WAITING, HISTORY));
    until("four requests to the dead one", async || dead.arrived() == 4).await;
    calm.freeze("bot").await;
    until("one more of the calm account", async || {
        calm.deliveries_with(&to_good, "status=delivered").await.1 == 31
    })
    .await;
    assert_eq!(
        dead.arrived(),
        4,
        "the dead one hangs with its four requests all the while"
    );
    let mut bytes = 0;
    let keys: Vec<String> = fixture.redis.command(&["KEYS", &format!("*/webhook/{to_dead}*")]);
    for key in &keys {
        bytes += fixture
            .redis
            .command::<u64>(&["MEMORY", "USAGE", key, "SAMPLES", "0"]);
    }
    assert!(
        keys.len() >= 3 && bytes < (WAITING + HISTORY) * BYTES_EACH,
        "{bytes} bytes in {keys:?}"
    );
    let grown = resident(fixture.admin.pid()).saturating_sub(before);
    assert!(grown < GROWTH_KIB, "the server grew by {grown} KiB");
}
