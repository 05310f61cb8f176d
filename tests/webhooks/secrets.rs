//! A new secret, a new master key, and the secrets in logs and store.

use crate::events::{hmac, verified};
use crate::fixture::{Fixture, Owner, SECRET, SOON, accepting, problem, quick, success, text, url};
use futures::future::{join, join_all};
use harness::{
    Admin, AdminOptions, Gate, GateSide, Recorded, Redis, TEST_MASTER_KEY, Upstream, Wire, assert_fields,
    until,
};
use serde_json::json;

const NEW_SECRET: &str = "whsec_bmV3IHNlY3JldCBvZiB0aGUgdGVzdHM=";
/// 32 bytes of 0x17.
const NEW_KEY: &str = "FxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxc=";

/// A webhook that got [`NEW_SECRET`] before its first delivery: its owner, its receiver and its path in the API.
async fn delivered_with_a_new_secret(fixture: &Fixture) -> (Owner, Upstream, String) {
    let owner = fixture.owner().await;
    let receiver = accepting();
    let webhook = owner.register(&url(&receiver), &["agent.frozen"]).await;
    let path = format!("/v1/webhooks/{webhook}");
    let reply = owner.caller.patch(&path, json!({ "secret": NEW_SECRET })).await;
    success(&reply, 200);
    owner.freeze("bot").await;
    receiver.wait_for(1, SOON).await;
    (owner, receiver, path)
}

#[tokio::test]
async fn the_old_secret_signs_beside_the_new_one_for_a_while() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    let webhook = owner.register(&url(&receiver), &["agent.frozen"]).await;
    owner.freeze("bot").await;
    receiver.wait_for(1, SOON).await;
    verified(&receiver.requests()[0], SECRET);
    assert_eq!(receiver.requests()[0].header("x-service-signature-old"), None);
    let path = format!("/v1/webhooks/{webhook}");
    let changed = owner.caller.patch(&path, json!({ "secret": NEW_SECRET })).await;
    assert!(
        !success(&changed, 200).to_string().contains("c2Vj"),
        "it is never returned"
    );
    // A client that repeats its request, since it got no answer, does not end the overlap.
    let repeated = owner.caller.patch(&path, json!({ "secret": NEW_SECRET })).await;
    success(&repeated, 200);
    owner.freeze("bot").await;
    receiver.wait_for(2, SOON).await;
    let request = &receiver.requests()[1];
    verified(request, NEW_SECRET);
    let old = format!("sha256={}", hmac(SECRET.as_bytes(), &request.body));
    assert_eq!(request.header("x-service-signature-old"), Some(old.as_str()));
    let both = request.header("webhook-signature").unwrap().split(' ').count();
    assert_eq!(both, 2);

    let record = owner.account.keys.live().webhook(&webhook);
    fixture.redis.command::<i64>(&["HSET", &record, "old_until", "1"]);
    owner.freeze("bot").await;
    receiver.wait_for(3, SOON).await;
    let request = &receiver.requests()[2];
    verified(request, NEW_SECRET);
    assert_eq!(
        request.header("x-service-signature-old"),
        None,
        "its time is over"
    );
}

/// A client that gave up on its first request may repeat it while the server still executes the first one.
#[tokio::test]
async fn two_equal_changes_of_a_secret_at_once_keep_the_overlap() {
    const WEBHOOKS: usize = 16;
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    for _ in 0..WEBHOOKS {
        let webhook = owner.register(&url(&receiver), &["agent.frozen"]).await;
        let path = format!("/v1/webhooks/{webhook}");
        let change = async || owner.caller.patch(&path, json!({ "secret": NEW_SECRET })).await;
        let (one, other) = join(change(), change()).await;
        success(&one, 200);
        success(&other, 200);
    }
    owner.freeze("bot").await;
    receiver.wait_for(WEBHOOKS, SOON).await;
    let requests = receiver.requests();
    let is_overlap = |request: &&Recorded| {
        let old = format!("sha256={}", hmac(SECRET.as_bytes(), &request.body));
        request.header("x-service-signature-old") == Some(old.as_str())
    };
    for request in &requests {
        verified(request, NEW_SECRET);
    }
    assert_eq!(requests.iter().filter(is_overlap).count(), WEBHOOKS);
}

/// Of different secrets at once each takes effect, one after the other, or is refused with nothing changed.
#[tokio::test]
async fn different_secrets_at_once_follow_one_another() {
    const AT_ONCE: usize = 4;
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let receiver = accepting();
    let webhook = owner.register(&url(&receiver), &["agent.frozen"]).await;
    let path = format!("/v1/webhooks/{webhook}");
    let secrets: Vec<String> = (0..AT_ONCE)
        .map(|n| format!("secret number {n} of the tests"))
        .collect();
    let changes = secrets.iter().map(|secret| {
        let body = json!({ "secret": secret, "description": secret });
        owner.caller.patch(&path, body)
    });
    for reply in join_all(changes).await {
        success(&reply, 200);
    }
    let shown = success(&owner.caller.get(&path).await, 200);
    let last = text(&shown, "/webhook/description").to_owned();
    owner.freeze("bot").await;
    receiver.wait_for(1, SOON).await;
    let request = &receiver.requests()[0];
    verified(request, &last);
    let signed_by = |secret: &&String| {
        let old = format!("sha256={}", hmac(secret.as_bytes(), &request.body));
        request.header("x-service-signature-old") == Some(old.as_str())
    };
    let old = secrets.iter().find(signed_by);
    assert!(old.is_some_and(|old| *old != last), "{old:?} before {last}");
}

/// A change that finds another secret at each of its attempts gives up and has changed nothing.
#[tokio::test]
async fn a_change_that_loses_every_race_is_a_503() {
    const ATTEMPTS: usize = 8;
    // The gates hold the requests to the store back for as long as the test needs.
    const PATIENCE_MS: &str = "90000";
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    let fixture = Fixture::start_with(redis, |options| {
        quick(options)
            .env("TOLLGATE_STORE__URL", wire.redis_url())
            .env("TOLLGATE_STORE__TIMEOUT_MS", PATIENCE_MS)
    })
    .await;
    let owner = fixture.owner().await;
    let webhook = owner.register("http://127.0.0.1:9/a", &["agent.frozen"]).await;
    let path = format!("/v1/webhooks/{webhook}");
    let change = async |secret: &str| {
        let body = json!({ "secret": secret, "description": secret });
        owner.caller.patch(&path, body).await
    };
    // The store has the script from now on.
    success(&change(NEW_SECRET).await, 200);
    let record = owner.account.keys.live().webhook(&webhook);
    let gates: Vec<Gate> = (0..ATTEMPTS)
        .map(|_| Gate::new(GateSide::Request, &["webhook.updated"], 0, 1))
        .collect();
    for gate in &gates {
        wire.put_gate(gate);
    }
    let others = async {
        for (number, gate) in gates.iter().enumerate() {
            until("an attempt", async || gate.stopped() == 1).await;
            let another = format!("the secret of another request, {number}");
            fixture
                .redis
                .command::<i64>(&["HSET", &record, "secret", &another]);
            gate.open();
        }
    };
    let (reply, ()) = join(change(SECRET), others).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    let shown = success(&owner.caller.get(&path).await, 200);
    assert_eq!(text(&shown, "/webhook/description"), NEW_SECRET);
    let stored: String = fixture.redis.command(&["HGET", &record, "secret"]);
    assert!(stored.ends_with(", 7"), "{stored}");
}

#[tokio::test]
async fn without_an_overlap_the_old_secret_ends_at_once() {
    let none = |options: AdminOptions| quick(options).env("TOLLGATE_WEBHOOKS__SECRET_OVERLAP_HOURS", "0");
    let fixture = Fixture::start_with(Redis::start(), none).await;
    let (_, receiver, _) = delivered_with_a_new_secret(&fixture).await;
    verified(&receiver.requests()[0], NEW_SECRET);
    assert_eq!(receiver.requests()[0].header("x-service-signature-old"), None);
}

#[tokio::test]
async fn secrets_are_sealed_and_move_to_a_new_master_key() {
    let fixture = Fixture::start().await;
    let (owner, receiver, path) = delivered_with_a_new_secret(&fixture).await;

    let keys: Vec<String> = fixture.redis.command(&["KEYS", "*"]);
    for key in &keys {
        let dump: Vec<u8> = fixture.redis.try_command(&["DUMP", key]).unwrap();
        let text = String::from_utf8_lossy(&dump).into_owned();
        assert!(
            !text.contains(SECRET) && !text.contains(NEW_SECRET),
            "{key} holds a secret"
        );
    }
    let logs = fixture.admin.logs();
    assert!(!logs.contains(SECRET) && !logs.contains(NEW_SECRET));

    let both = format!("{NEW_KEY},{TEST_MASTER_KEY}");
    let cli = fixture.cli().env("TOLLGATE_SECRETS__MASTER_KEY", both);
    let rotated = cli.json(&["keys", "rotate"]);
    assert_fields!(rotated, { "reencrypted": 2 }, "the secret and the one before: {rotated}");
    assert_eq!(rotated["unopenable"], json!([]));
    assert_eq!(cli.json(&["keys", "rotate"])["reencrypted"], json!(0));
    fixture.admin.kill9();
    let options = quick(AdminOptions::new(crate::fixture::BINARY, fixture.redis.url()));
    let next = Admin::start(options.env("TOLLGATE_SECRETS__MASTER_KEY", NEW_KEY));
    let caller = next.caller(&owner.key);
    success(&caller.send("POST", &format!("{path}/test"), &[], "").await, 200);
    receiver.wait_for(2, SOON).await;
    let request = &receiver.requests()[1];
    verified(request, NEW_SECRET);
    let old = format!("sha256={}", hmac(SECRET.as_bytes(), &request.body));
    assert_eq!(request.header("x-service-signature-old"), Some(old.as_str()));
}
