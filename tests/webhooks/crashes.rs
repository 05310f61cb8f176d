//! Servers and stores killed midway, and several servers at once: no delivery is lost, and only those under way when a
//! process died arrive twice.

use crate::fixture::{Fixture, Owner, SOON, accepting, quick, receiver, url};
use harness::{AdminOptions, Answer, Redis, Upstream, eventually, words};
use std::collections::BTreeMap;
use std::time::Duration;

const FROZEN: &[&str] = &["agent.frozen"];

/// Number of arrivals of each delivery.
fn arrivals(receiver: &Upstream) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in receiver.requests() {
        let id = request.header("webhook-id").unwrap().to_owned();
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// An owner with `count` freezes, the receiver of their events, which takes this long for each, and its webhook.
async fn slow_deliveries(fixture: &Fixture, delay_ms: u64, count: u32) -> (Owner, Upstream, String) {
    let owner = fixture.owner().await;
    let slow = receiver(move |_| Answer::bytes(200, "").delay(Duration::from_millis(delay_ms)));
    let webhook = owner.register(&url(&slow), FROZEN).await;
    for _ in 0..count {
        owner.freeze("bot").await;
    }
    (owner, slow, webhook)
}

/// Asserts that each of 40 deliveries arrived, and that only those under way at the crash arrived again.
fn arrived_after_a_crash(receiver: &Upstream) -> BTreeMap<String, usize> {
    let arrived = arrivals(receiver);
    assert_eq!(arrived.len(), 40, "none is lost");
    let twice = arrived.values().filter(|times| **times > 1).count();
    assert!(twice <= 4, "only what was on its way came again: {arrived:?}");
    arrived
}

/// Waits until all deliveries of a webhook were accepted.
async fn all_delivered(owner: &Owner, webhook: &str, count: u64) {
    eventually("all delivered", SOON, async || {
        let path = format!("/v1/webhooks/{webhook}/deliveries?status=delivered&limit=1");
        let reply = owner.caller.try_send("GET", &path, &[], "").await.ok()?;
        (reply.status == 200 && reply.json()["total"] == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn two_servers_share_the_work_and_deliver_each_event_once() {
    // Each server handles one webhook at a time, for about a second, so the other one must take the next.
    let fixture = Fixture::start_with(Redis::start(), |options| {
        quick(options).env("TOLLGATE_WEBHOOKS__ENDPOINTS_AT_ONCE", "1")
    })
    .await;
    let second = fixture.another_admin();
    let owner = fixture.owner().await;
    let slow = || receiver(|_| Answer::bytes(200, "").delay(Duration::from_millis(100)));
    let (receivers, mut webhooks) = ([slow(), slow(), slow()], Vec::new());
    for receiver in &receivers {
        webhooks.push(owner.register(&url(receiver), FROZEN).await);
    }
    for _ in 0..40 {
        owner.freeze("bot").await;
    }
    for (webhook, receiver) in webhooks.iter().zip(&receivers) {
        all_delivered(&owner, webhook, 40).await;
        let arrived = arrivals(receiver);
        assert_eq!(arrived.len(), 40);
        assert!(arrived.values().all(|times| *times == 1), "{arrived:?}");
    }
    let delivered = |admin: &harness::Admin| -> u64 {
        let accepted = r#"tollgate_admin_webhook_attempts_total{result="accepted"}"#;
        admin.metric(accepted).unwrap_or(0)
    };
    let (first, second) = (delivered(&fixture.admin), delivered(&second));
    assert_eq!(first + second, 120);
    assert!(first > 0 && second > 0, "both deliver: {first} and {second}");
}

#[tokio::test]
async fn a_server_killed_in_the_middle_loses_nothing() {
    let fixture = Fixture::start().await;
    let (owner, slow, webhook) = slow_deliveries(&fixture, 60, 40).await;
    slow.wait_for(5, SOON).await;
    fixture.admin.kill9();
    let after = slow.arrived();
    assert!(after < 40, "some are left");
    let second = fixture.another_admin();
    let owner = owner.through(&second);
    all_delivered(&owner, &webhook, 40).await;
    let arrived = arrived_after_a_crash(&slow);
    assert!(arrived.values().all(|times| *times <= 2), "{arrived:?}");
}

/// As [`quick`], with a longer time-out for a store that writes through to a slow disk.
fn patient(options: AdminOptions) -> AdminOptions {
    quick(options).env("TOLLGATE_STORE__TIMEOUT_MS", "5000")
}

#[tokio::test]
async fn a_store_killed_in_the_middle_loses_nothing() {
    let fixture = Fixture::start_with(Redis::start_durable(), patient).await;
    let (owner, slow, webhook) = slow_deliveries(&fixture, 60, 40).await;
    slow.wait_for(5, SOON).await;
    fixture.redis.kill9();
    tokio::time::sleep(Duration::from_secs(2)).await;
    fixture.redis.restart();
    all_delivered(&owner, &webhook, 40).await;
    arrived_after_a_crash(&slow);
}

#[tokio::test]
async fn events_without_a_running_server_are_delivered_by_the_next_one() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let good = accepting();
    let webhook = owner.register(&url(&good), FROZEN).await;
    owner.freeze("bot").await;
    all_delivered(&owner, &webhook, 1).await;
    fixture.admin.kill9();
    let freeze = format!("agent freeze --account {} --agent bot", owner.account.id);
    let freeze = words(&freeze);
    assert_eq!(fixture.cli().json(&freeze)["status"], "frozen");
    let next = fixture.another_admin();
    let owner = owner.through(&next);
    all_delivered(&owner, &webhook, 2).await;
    assert_eq!(arrivals(&good).len(), 2);
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_is_on_its_way_and_leaves_no_lease() {
    let fixture = Fixture::start().await;
    let (owner, slow, webhook) = slow_deliveries(&fixture, 300, 12).await;
    slow.wait_for(1, SOON).await;
    fixture.admin.term();
    assert_eq!(fixture.admin.wait_exit(SOON), Some(0));
    let record = owner.account.keys.live().webhook(&webhook);
    let is_leased: bool = fixture.redis.command(&["HEXISTS", &record, "lease"]);
    assert!(!is_leased, "the lease is over");
    let second = fixture.another_admin();
    let owner = owner.through(&second);
    all_delivered(&owner, &webhook, 12).await;
    let arrived = arrivals(&slow);
    assert!(
        arrived.len() == 12 && arrived.values().all(|times| *times == 1),
        "{arrived:?}"
    );
}

#[tokio::test]
async fn a_clock_that_is_set_back_holds_nothing_up() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let dead = receiver(|_| Answer::bytes(500, ""));
    let webhook = owner.register(&url(&dead), FROZEN).await;
    let path = format!("/v1/webhooks/{webhook}");
    owner.freeze("bot").await;
    owner
        .wait_for(&webhook, "an attempt", |delivery| {
            crate::fixture::attempts(delivery) == 3
        })
        .await;
    // The state of a store whose clock was a day ahead: the next attempt and a lease lie a day in the future.
    let reply = owner
        .caller
        .patch(&path, serde_json::json!({ "status": "disabled" }))
        .await;
    crate::fixture::success(&reply, 200);
    let keys = &owner.account.keys;
    let mode = domain::mode::Mode::Live;
    let set = |set| keys.in_mode(mode).deliveries_in(&webhook, set);
    use store::keys::DeliverySet::{Due, Parked};
    let number: Vec<String> = fixture.redis.command(&["ZRANGE", &set(Parked), "0", "0"]);
    let tomorrow = (clock::now_ms() + 86_400_000).to_string();
    fixture.redis.command::<i64>(&["ZREM", &set(Parked), &number[0]]);
    fixture
        .redis
        .command::<i64>(&["ZADD", &set(Due), &tomorrow, &number[0]]);
    let record = keys.in_mode(mode).webhook(&webhook);
    let lease = format!("HSET {record} status active lease x lease_until {tomorrow}");
    fixture.redis.command::<i64>(&words(&lease));
    let member = format!("{} live {webhook}", owner.account.id);
    let ready = keys.bucket().webhooks_ready();
    fixture
        .redis
        .command::<i64>(&["ZADD", &ready, &tomorrow, &member]);
    dead.set(|_| Answer::bytes(200, ""));
    all_delivered(&owner, &webhook, 1).await;
}

#[tokio::test]
async fn a_full_store_holds_events_back_and_loses_none() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let good = accepting();
    let webhook = owner.register(&url(&good), FROZEN).await;
    owner.freeze("bot").await;
    all_delivered(&owner, &webhook, 1).await;
    let limit = |bytes: &str| {
        fixture
            .redis
            .command::<String>(&["CONFIG", "SET", "maxmemory", bytes])
    };
    assert_eq!(limit("1"), "OK");
    let frozen = owner.caller.send("POST", "/v1/agents/bot/freeze", &[], "").await;
    assert_eq!(frozen.status, 200, "{}", frozen.text());
    eventually("the dispatcher to be refused", SOON, async || {
        let failed: u64 = fixture.admin.metric("tollgate_admin_audit_seals_failed_total")?;
        (failed > 0).then_some(())
    })
    .await;
    assert_eq!(good.requests().len(), 1);
    assert_eq!(limit("0"), "OK");
    all_delivered(&owner, &webhook, 2).await;
    assert!(arrivals(&good).values().all(|times| *times == 1));
}
