//! `GET /decisions/{id}`: why a call was approved or denied, and its outcome.

use crate::fixture::{fresh, minted, problem, text};
use crate::record_fixture::{Client, MODEL, RecordFixture, check};
use domain::mode::Mode;
use harness::{Answer, assert_fields, eventually};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const SOON: Duration = Duration::from_secs(20);

#[track_caller]
fn has(decision: &Value, fields: &[(&str, Value)]) {
    for (field, value) in fields {
        assert_eq!(&decision[*field], value, "{field}: {decision}");
    }
}

async fn missing(client: &Client, id: &str) {
    let reply = client.api.get(&format!("/v1/decisions/{id}")).await;
    problem(&reply, 404, "NOT_FOUND");
}

#[tokio::test]
async fn an_approved_call_shows_its_checks_and_its_cost() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let (reply, id) = client.call(Some("r1")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let decision = client.decision(&id).await;
    has(
        &decision,
        &[
            ("id", json!(id)),
            ("approved", json!(true)),
            ("reason", json!(null)),
            ("outcome", json!("settled")),
            ("agentId", json!("bot")),
            ("keyId", json!(client.key_id)),
            ("model", json!(MODEL)),
            ("runId", json!("r1")),
            ("resetsAt", json!(null)),
        ],
    );
    minted(&id, "allow_");
    let header = |name: &str| reply.header(name).unwrap().parse::<f64>().unwrap();
    assert_eq!(
        decision["estimateUsd"].as_f64(),
        Some(header("x-service-estimated-usd"))
    );
    assert_eq!(
        decision["actualUsd"].as_f64(),
        Some(header("x-service-actual-usd"))
    );
    assert_eq!(decision["chargedNanos"], json!("8550"));
    assert!(text(&decision, "/message").contains("and cost 0.00000855 USD"));
    let call = &decision["call"];
    let latency = call["latencyMs"].as_u64();
    assert!(latency.is_some_and(|ms| ms < 60_000), "{call}");
    assert_eq!(
        *call,
        json!({ "endpoint": "chat.completions", "stream": false, "upstream": null, "inputTokens": 9, "cachedTokens": 0,
            "outputTokens": 12, "latencyMs": latency, "firstByteMs": null, "end": "completed", "extensions": 0 })
    );
    let listed = client
        .api
        .get("/v1/audit?type=decision.approved&limit=1")
        .await
        .json();
    assert_eq!(listed["logs"][0]["data"]["call"], *call, "as it was hashed");
    fresh(text(&decision, "/at"));
    fresh(text(&decision, "/endedAt"));
    let daily = check(&decision, "daily_limit");
    assert_fields!(daily, { "limit": 10, "spent": 0, "passes": true });
    let dry = client.dry_run(client.call_body(Some("r1"))).await.json();
    assert_eq!(dry["priceVersion"], decision["priceVersion"], "as predicted");
    assert_eq!(dry["estimateNanos"], decision["estimateNanos"]);
    let seq = decision["auditSeq"].as_u64().unwrap();
    assert_eq!(decision["history"][0]["auditSeq"], json!(seq));
}

#[tokio::test]
async fn a_denied_call_names_the_check_that_decided() {
    let fixture = RecordFixture::start().await;
    let client = fixture
        .client("builder", json!({ "maxSpendPerDay": 0.000001 }))
        .await;
    let (reply, id) = client.call(Some("r1")).await;
    assert_eq!(reply.header("x-service-reason"), Some("daily_limit"), "{reply:?}");
    let predicted = client.dry_run(client.call_body(Some("r1"))).await.json();
    let decision = client.decision(&id).await;
    has(
        &decision,
        &[
            ("id", json!(id)),
            ("approved", json!(false)),
            ("reason", json!("daily_limit")),
            ("outcome", json!("denied")),
            ("runId", json!("r1")),
            ("actualUsd", json!(null)),
            ("call", json!(null)),
            ("chargedUsd", json!(0)),
            ("endedAt", json!(null)),
            ("message", predicted["message"].clone()),
            ("resetsAt", predicted["resetsAt"].clone()),
            ("estimateNanos", predicted["estimateNanos"].clone()),
        ],
    );
    assert_eq!(check(&decision, "daily_limit"), check(&predicted, "daily_limit"));
    assert_eq!(fixture.upstream.requests().len(), 0);

    // A refusal before Cap has an id of its own kind.
    let agent = client.account.keys.live().agent("bot");
    let _: u64 = fixture
        .management
        .redis
        .command(&["HDEL", &agent, "pk_sealed:openai"]);
    let (_, id) = client.call(None).await;
    assert!(id.starts_with("deny_"), "{id}");
    let decision = client.decision(&id).await;
    has(
        &decision,
        &[("reason", json!("no_provider_key")), ("approved", json!(false))],
    );
}

#[tokio::test]
async fn a_call_under_way_is_open_and_then_settled() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let gate = Arc::new(Notify::new());
    let waits = Arc::clone(&gate);
    fixture
        .upstream
        .set(move |_| Answer::chat(9, 12).wait_for(&waits));
    let edge = client.edge.clone();
    let calling = tokio::spawn(async move { edge.chat(harness::chat_body(MODEL, "hello")).await });
    let due = client.account.keys.bucket().due();
    let open = || -> Vec<String> { fixture.management.redis.command(&["ZRANGE", &due, "0", "-1"]) };
    let id = eventually("a call under way", SOON, async || open().pop()).await;
    let decision = client.decision(&id).await;
    has(
        &decision,
        &[
            ("outcome", json!("open")),
            ("approved", json!(true)),
            ("agentId", json!("bot")),
            ("keyId", json!(client.key_id)),
            ("actualUsd", json!(null)),
            ("call", json!(null)),
            ("auditSeq", json!(null)),
            ("chargedNanos", decision["estimateNanos"].clone()),
        ],
    );
    let held = client.dry_run(client.call_body(None)).await.json();
    assert_fields!(check(&held, "daily_limit"), {
        "heldNanos": decision["estimateNanos"],
    }, "it is under way");

    let other = fixture.client("builder", json!({})).await;
    missing(&other, &id).await;
    gate.notify_waiters();
    gate.notify_one();
    assert_eq!(calling.await.unwrap().status, 200);
    let decision = client.decision(&id).await;
    has(
        &decision,
        &[("outcome", json!("settled")), ("chargedNanos", json!("8550"))],
    );
    let after = client.dry_run(client.call_body(None)).await.json();
    assert_eq!(check(&after, "daily_limit")["heldNanos"], json!("0"));
    missing(&other, &id).await;
    let tester = fixture.management.caller(&client.account, Mode::Test).await;
    let reply = tester.get(&format!("/v1/decisions/{id}")).await;
    problem(&reply, 404, "NOT_FOUND");
}

#[tokio::test]
async fn the_end_of_the_exchange_is_reported() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    fixture.upstream.set(|_| Answer::error(400, "bad", "no"));
    let (_, released) = client.call(None).await;
    fixture.upstream.set(|_| Answer::error(500, "oops", "no"));
    let (_, estimated) = client.call(None).await;
    let decision = client.decision(&released).await;
    has(
        &decision,
        &[
            ("outcome", json!("released")),
            ("chargedNanos", json!("0")),
            ("actualUsd", json!(0)),
        ],
    );
    let call = &decision["call"];
    assert_fields!(call, { "end": "refused", "inputTokens": null });
    let decision = client.decision(&estimated).await;
    assert_eq!(decision["call"]["end"], json!("failed"));
    has(
        &decision,
        &[("outcome", json!("estimated")), ("actualUsd", json!(null))],
    );
    assert_eq!(decision["chargedNanos"], decision["estimateNanos"]);
    assert!(
        decision["runId"].as_str().unwrap().starts_with("req_"),
        "{decision}"
    );
}

#[tokio::test]
async fn a_kept_charge_that_was_corrected_shows_both() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    let id = "allow_01KAH3V9J80123456789ABCDEF";
    let hold = format!(
        "H 750000000 20775 202611 1 0:10:,3:120:,0::0,1:100:0,1::0,1:10:,8::0 {} bot r1 {} p1 m",
        client.account.id, client.key_id
    );
    // As the reaper and the operator write them.
    for (outcome, cost) in [("kept", 750_000_000), ("corrected", 1_000)] {
        let record = client.account.keys.record();
        let seq: u64 = fixture
            .management
            .redis
            .command(&["HINCRBY", &record, "live_audit_seq", "1"]);
        let line = format!("{seq} 1795000000123 A {outcome} {cost} {id} {hold}");
        let _: u64 = fixture
            .management
            .redis
            .command(&["RPUSH", &client.account.keys.live().audit(), &line]);
    }
    let decision = client.decision(id).await;
    has(
        &decision,
        &[
            ("outcome", json!("corrected")),
            ("chargedNanos", json!("1000")),
            ("actualNanos", json!("1000")),
            ("estimateNanos", json!("750000000")),
        ],
    );
    let history: Vec<&Value> = decision["history"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&history[0]["outcome"], &history[1]["outcome"]),
        (&json!("kept"), &json!("corrected"))
    );
    for bad in [
        "allow_01KAH3V9J80123456789ABCDEG",
        "deny_01KAH3V9J80123456789ABCDEF",
        "allow_1",
        "int_01KAH3V9J80123456789ABCDEF",
        "nothing",
        "allow_01KAH3V9J8%2F123456789ABCDEF",
    ] {
        missing(&client, bad).await;
    }
}

/// The store approves a call after the edge has given up on it. The caller's id names the approval that was voided.
#[tokio::test]
async fn a_denial_whose_approval_was_lost_leads_to_its_record() {
    let fixture = RecordFixture::start_with(&[("STORE__TIMEOUT_MS", "400")]).await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 10 })).await;
    assert_eq!(client.call(None).await.0.status, 200);
    fixture.management.redis.pause();
    let (reply, _) = client.call(None).await;
    fixture.management.redis.resume();
    assert_eq!(reply.status, 503, "{reply:?}");
    let denied = text(&reply.json(), "/id").to_owned();
    minted(&denied, "deny_");
    let path = format!("/v1/decisions/{denied}");
    let decision = eventually("a record", SOON, async || {
        let reply = client.api.get(&path).await;
        (reply.status == 200).then(|| reply.json()["decision"].clone())
    })
    .await;
    has(
        &decision,
        &[
            ("id", json!(denied.replacen("deny_", "allow_", 1))),
            ("outcome", json!("voided")),
            ("chargedNanos", json!("0")),
        ],
    );
    assert!(text(&decision, "/message").contains("denied with service_unavailable"));
}
