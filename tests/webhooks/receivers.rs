//! Receivers that hang, answer slowly, redirect, send too much or disconnect: each fails its own deliveries only.

use crate::fixture::{Fixture, SOON, accepting, attempts, receiver, url};
use harness::{Answer, Upstream, eventually, until};
use serde_json::{Value, json};
use std::time::Duration;

const FROZEN: &[&str] = &["agent.frozen"];

#[tokio::test]
async fn each_kind_of_bad_receiver_is_a_failed_attempt_and_the_good_one_gets_its_delivery() {
    // Longer than a slow machine takes to send ten megabytes.
    let patient = |options: harness::AdminOptions| {
        crate::fixture::quick(options).env("TOLLGATE_WEBHOOKS__TIMEOUT_MS", "3000")
    };
    let fixture = Fixture::start_with(harness::Redis::start(), patient).await;
    let owner = fixture.owner().await;
    let target = accepting();
    let elsewhere = url(&target);
    let redirect = move |_: &harness::Recorded| Answer::bytes(302, "").header("Location", &elsewhere);
    let bad: Vec<(&str, Upstream, Option<u16>)> = vec![
        ("hangs", receiver(|_| Answer::hang()), None),
        (
            "drips",
            receiver(|_| Answer::bytes(200, vec![b'x'; 2000]).trickle(1, Duration::from_secs(1))),
            None,
        ),
        ("redirects", receiver(redirect), Some(302)),
        ("is gone", receiver(|_| Answer::bytes(410, "gone")), Some(410)),
        (
            "is broken",
            receiver(|_| Answer::bytes(500, vec![b'x'; 10 << 20])),
            Some(500),
        ),
        ("resets", receiver(|_| Answer::reset()), None),
        ("speaks no HTTP", receiver(|_| Answer::raw("hello\r\n\r\n")), None),
        ("refuses", receiver(|_| Answer::hang()), None),
    ];
    let mut ids = Vec::new();
    for (_, receiver, _) in &bad {
        ids.push(owner.register(&url(receiver), FROZEN).await);
    }
    let good = accepting();
    let fine = owner.register(&url(&good), FROZEN).await;
    let large = receiver(|_| Answer::bytes(200, vec![b'y'; 10 << 20]));
    let much = owner.register(&url(&large), FROZEN).await;
    bad[7].1.stop();
    owner.freeze("bot").await;
    for ((what, _, code), id) in bad.iter().zip(&ids) {
        let delivery = owner.wait_for(id, what, |delivery| attempts(delivery) == 3).await;
        assert_eq!(delivery["status"], json!("pending"), "{what}");
        for attempt in delivery["attempts"].as_array().unwrap() {
            assert_eq!(attempt["responseCode"], json!(code), "{what}: {attempt}");
            assert!(attempt["error"].is_string(), "{what}: {attempt}");
            let excerpt = attempt["responseExcerpt"].as_str().unwrap_or_default();
            assert!(excerpt.len() <= 256, "{what}");
        }
    }
    owner
        .wait_for(&fine, "the good one", |delivery| {
            delivery["status"] == "delivered"
        })
        .await;
    let much = owner
        .wait_for(&much, "the large answer", |delivery| {
            delivery["status"] == "delivered"
        })
        .await;
    assert_eq!(
        much["attempts"][0]["responseExcerpt"].as_str().unwrap().len(),
        256
    );
    assert_eq!(good.requests().len(), 1);
    assert_eq!(target.arrived(), 0, "redirects are not followed");
    eventually("the metrics", SOON, async || {
        let accepted: u64 = fixture
            .admin
            .metric(r#"tollgate_admin_webhook_attempts_total{result="accepted"}"#)?;
        (accepted == 2 && fixture.admin.metric("tollgate_admin_webhook_parked_total") == Some(8))
            .then_some(())
    })
    .await;
    let logs = fixture.admin.logs();
    assert!(!logs.contains("/hook"), "no URL in the log: {logs}");
}

#[tokio::test]
async fn at_most_so_many_requests_go_to_one_receiver_at_once() {
    let patient = |options: harness::AdminOptions| {
        crate::fixture::quick(options)
            .env("TOLLGATE_WEBHOOKS__TIMEOUT_MS", "120000")
            .env("TOLLGATE_WEBHOOKS__REQUESTS_AT_ONCE", "3")
            .env("TOLLGATE_WEBHOOKS__ENDPOINTS_AT_ONCE", "16")
    };
    let fixture = Fixture::start_with(harness::Redis::start(), patient).await;
    let (slow, quick) = (fixture.owner().await, fixture.owner().await);
    let mut hanging = Vec::new();
    for _ in 0..6 {
        let receiver = receiver(|_| Answer::hang());
        slow.register(&url(&receiver), FROZEN).await;
        hanging.push(receiver);
    }
    for _ in 0..5 {
        slow.freeze("bot").await;
    }
    let good = accepting();
    let id = quick.register(&url(&good), FROZEN).await;
    // An account has one in eight of the places: two here, with three requests each.
    let arrived = || -> Vec<usize> { hanging.iter().map(Upstream::arrived).collect() };
    until("six requests", async || arrived().iter().sum::<usize>() == 6).await;
    for _ in 0..20 {
        quick.freeze("bot").await;
    }
    until("everything of the other account", async || {
        quick.deliveries_with(&id, "status=delivered").await.1 == 20
    })
    .await;
    let mut found = arrived();
    found.sort_unstable();
    assert_eq!(
        found,
        [0, 0, 0, 0, 3, 3],
        "the slow account's places are all in use"
    );
    let listed: Vec<Value> = quick.deliveries(&id).await;
    assert!(listed.iter().all(|delivery| attempts(delivery) == 1));
}
