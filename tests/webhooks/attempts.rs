//! Retries of a failing receiver, and their list (decision D43).

use crate::fixture::{Fixture, attempts, quick, receiver, text, url};
use domain::timestamp::ms_from_iso;
use harness::{Answer, Redis, Upstream, assert_fields, eventually, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FROZEN: &[&str] = &["agent.frozen"];

/// Number of arrivals of each delivery, by id, in the order of their first arrival.
fn arrivals(receiver: &Upstream) -> Vec<(String, usize)> {
    let mut order = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in receiver.requests() {
        let id = request.header("webhook-id").unwrap().to_owned();
        let count = counts.entry(id.clone()).or_default();
        *count += 1;
        if *count == 1 {
            order.push(id);
        }
    }
    order.into_iter().map(|id| (id.clone(), counts[&id])).collect()
}

#[tokio::test]
async fn a_dead_receiver_is_tried_three_times_then_once_at_each_later_event_eight_times_in_all() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let dead = receiver(|_| Answer::bytes(500, "broken \u{1b}[31m"));
    let id = owner.register(&url(&dead), FROZEN).await;
    owner.freeze("bot").await;
    let first = owner
        .wait_for(&id, "three attempts", |delivery| attempts(delivery) == 3)
        .await;
    assert_eq!(first["status"], json!("pending"));
    assert_fields!(first, { "nextAttemptAt": null }, "it waits for an event, not for a time");
    assert_eq!(first["responseCode"], json!(500));
    let at: Vec<u64> = first["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| ms_from_iso(text(attempt, "/at")).unwrap())
        .collect();
    assert!(at[1] - at[0] >= 200 && at[2] - at[1] >= 400, "{at:?}");
    let excerpts: Vec<&Value> = (0..3)
        .map(|at| &first["attempts"][at]["responseExcerpt"])
        .collect();
    assert_eq!(
        excerpts,
        [&Value::Null, &Value::Null, &json!("broken ?[31m")],
        "of the last one only"
    );
    // No further attempt follows by itself.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(arrivals(&dead), [(text(&first, "/id").to_owned(), 3)]);

    for arrived in 4..=8 {
        owner.freeze("bot").await;
        let again = owner
            .wait_for(&id, "one more attempt", |delivery| attempts(delivery) == arrived)
            .await;
        let state = if arrived == 8 { "failed" } else { "pending" };
        assert_eq!(again["status"], json!(state), "{again}");
    }
    owner.freeze("bot").await;
    owner.freeze("bot").await;
    until("the later deliveries to be parked", async || {
        let listed = owner.deliveries(&id).await;
        listed.len() == 8 && listed.iter().all(|delivery| attempts(delivery) >= 3)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let of_first = arrivals(&dead)[0].clone();
    assert_eq!(of_first, (text(&first, "/id").to_owned(), 8), "never again");
    let (failed, total) = owner.deliveries_with(&id, "status=failed").await;
    assert_eq!((failed[0]["id"].clone(), total), (first["id"].clone(), 1));
    let bodies: Vec<_> = dead
        .requests()
        .into_iter()
        .filter(|request| request.header("webhook-id") == first["id"].as_str())
        .map(|request| request.body)
        .collect();
    assert!(
        bodies.iter().all(|body| *body == bodies[0]),
        "the same bytes each time"
    );
}

#[tokio::test]
async fn a_receiver_that_comes_back_gets_everything_and_nothing_twice() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let flaky = receiver(move |_| Answer::bytes(if is_up.load(Ordering::SeqCst) { 204 } else { 503 }, ""));
    let id = owner.register(&url(&flaky), FROZEN).await;
    for _ in 0..5 {
        owner.freeze("bot").await;
    }
    until("all parked", async || {
        let listed = owner.deliveries(&id).await;
        listed.len() == 5 && listed.iter().all(|delivery| attempts(delivery) >= 3)
    })
    .await;
    let before = flaky.requests().len();
    up.store(true, Ordering::SeqCst);
    owner.freeze("bot").await;
    until("all delivered", async || {
        let (_, total) = owner.deliveries_with(&id, "status=delivered").await;
        total == 6
    })
    .await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(flaky.requests().len(), before + 6, "each once more");
    let (page, total) = owner.deliveries_with(&id, "limit=2&offset=1").await;
    assert_eq!((page.len(), total), (2, 6));
    let all = owner.deliveries(&id).await;
    assert_eq!(page, all[1..3], "newest first, page by page");
    let seqs: Vec<u64> = all
        .iter()
        .map(|delivery| delivery["auditSeq"].as_u64().unwrap())
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a > b), "{seqs:?}");
}

#[tokio::test]
async fn a_disabled_webhook_waits_and_a_deleted_one_is_gone() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let dead = receiver(|_| Answer::bytes(500, ""));
    let id = owner.register(&url(&dead), FROZEN).await;
    owner.freeze("bot").await;
    owner
        .wait_for(&id, "an attempt", |delivery| attempts(delivery) >= 1)
        .await;
    let path = format!("/v1/webhooks/{id}");
    let reply = owner.caller.patch(&path, json!({ "status": "disabled" })).await;
    crate::fixture::success(&reply, 200);
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let arrived = dead.arrived();
    owner.freeze("bot").await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(dead.arrived(), arrived, "nothing is sent");
    assert_eq!(owner.deliveries(&id).await.len(), 1, "and no delivery is made");
    dead.set(|_| Answer::bytes(200, ""));
    let reply = owner.caller.patch(&path, json!({ "status": "active" })).await;
    crate::fixture::success(&reply, 200);
    owner.freeze("bot").await;
    until("both delivered", async || {
        owner.deliveries_with(&id, "status=delivered").await.1 == 2
    })
    .await;

    dead.set(|_| Answer::bytes(500, ""));
    for _ in 0..3 {
        owner.freeze("bot").await;
    }
    until("deliveries that wait", async || {
        owner.deliveries_with(&id, "status=pending").await.1 == 3
    })
    .await;
    crate::fixture::success(&owner.caller.delete(&path).await, 200);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let arrived = dead.arrived();
    owner.freeze("bot").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(dead.arrived(), arrived, "a deleted webhook gets nothing");
    assert_eq!(fixture.webhook_keys(), Vec::<String>::new());
}

#[tokio::test]
async fn too_many_that_wait_and_too_much_history_are_bounded() {
    let bounded = |options: harness::AdminOptions| {
        quick(options)
            .env("TOLLGATE_WEBHOOKS__WAITING_MAX", "5")
            .env("TOLLGATE_WEBHOOKS__HISTORY_MAX", "7")
    };
    let fixture = Fixture::start_with(Redis::start(), bounded).await;
    let owner = fixture.owner().await;
    let dead = receiver(|_| Answer::bytes(500, ""));
    let id = owner.register(&url(&dead), FROZEN).await;
    for _ in 0..15 {
        owner.freeze("bot").await;
    }
    let refused = eventually("refused ones", crate::fixture::SOON, async || {
        let (failed, total) = owner.deliveries_with(&id, "status=failed").await;
        (total == 7).then_some(failed)
    })
    .await;
    for delivery in &refused {
        if attempts(delivery) == 0 {
            assert_eq!(delivery["error"], json!("too many deliveries are waiting"));
        }
    }
    assert!(
        refused.iter().any(|delivery| attempts(delivery) == 0),
        "{refused:?}"
    );
    assert_eq!(
        owner.deliveries(&id).await.len(),
        12,
        "five wait and seven are history"
    );
}

#[tokio::test]
async fn only_what_comes_after_the_registration_is_reported() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    owner.freeze("early").await;
    let (receiver, second) = (crate::fixture::accepting(), crate::fixture::accepting());
    let id = owner.register(&url(&receiver), FROZEN).await;
    owner.freeze("bot").await;
    owner
        .wait_for(&id, "the event", |delivery| delivery["status"] == "delivered")
        .await;
    let late = owner.register(&url(&second), FROZEN).await;
    owner.freeze("both").await;
    owner
        .wait_for(&late, "the event", |delivery| delivery["status"] == "delivered")
        .await;
    until("both events", async || receiver.requests().len() == 2).await;
    let agents = |receiver: &Upstream| -> Vec<Value> {
        receiver
            .requests()
            .iter()
            .map(|request| request.json()["agentId"].clone())
            .collect()
    };
    assert_eq!(agents(&receiver), [json!("bot"), json!("both")]);
    assert_eq!(agents(&second), [json!("both")]);
}
