//! Denials of a virtual key beyond its requests a minute (decision D70): the first ten have a record each, the rest one
//! at the end of the minute, and the id of every answer still leads to its record.

use crate::fixture::{BINARY, minted, problem, success, text};
use crate::record_fixture::{Client, RecordFixture};
use harness::{Cli, assert_fields, until};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Requests a minute of the free plan.
const LIMIT: u64 = 10;
/// Denials that have a record each.
const OWN: usize = 10;
/// Length of a minute in these tests, in ms: longer than all calls of one take.
const WINDOW_MS: &str = "20000";

async fn lines(fixture: &RecordFixture, client: &Client) -> Vec<String> {
    let key = client.account.keys.live().audit();
    fixture.management.redis.command(&["LRANGE", &key, "0", "-1"])
}

/// Opens a minute in which the key has used up its requests.
fn use_up(fixture: &RecordFixture, client: &Client) {
    let rate = client.account.keys.rate(&client.key_id);
    let _: String = fixture
        .management
        .redis
        .command(&["SET", &rate, &LIMIT.to_string(), "PX", WINDOW_MS]);
}

/// Makes `calls` calls, which are denied. Returns the ids of the denials.
async fn flood(client: &Client, calls: usize, reason: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..calls {
        let (reply, id) = client.call(None).await;
        assert_eq!(reply.header("x-service-reason"), Some(reason), "{reply:?}");
        minted(&id, "deny_");
        ids.push(id);
    }
    assert_eq!(
        ids.iter().collect::<HashSet<_>>().len(),
        calls,
        "each has its own id"
    );
    ids
}

/// The list of models is no call, and its refusal is a denial of the key.
#[tokio::test]
async fn a_refused_list_of_models_has_a_record_and_charges_nothing() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("free", json!({ "maxSpendPerDay": 10 })).await;
    use_up(&fixture, &client);
    let reply = client.edge.get("/v1/models").await;
    assert_eq!(
        reply.header("x-service-reason"),
        Some("rate_limited"),
        "{reply:?}"
    );
    let id = reply.header("x-service-decision-id").expect("an id").to_owned();
    minted(&id, "deny_");
    let decision = client.decision(&id).await;
    assert_fields!(decision, { "id": id, "outcome": "denied", "model": null, "estimateUsd": null, "chargedUsd": 0 });
    let usage = success(&client.api.get("/v1/usage").await, 200);
    assert_fields!(usage["totals"], { "calls": 0, "denied": 1, "costUsd": 0 });
}

#[tokio::test]
async fn a_flood_has_ten_records_and_one_for_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().to_str().expect("UTF-8");
    let fixture = RecordFixture::start_with(&[("AUDIT__ARCHIVE", archive)]).await;
    let client = fixture.client("free", json!({ "maxSpendPerDay": 10 })).await;
    let before = lines(&fixture, &client).await.len();
    use_up(&fixture, &client);
    let ids = flood(&client, OWN + 15, "rate_limited").await;
    assert_eq!(
        lines(&fixture, &client).await.len(),
        before + OWN,
        "the rest is counted"
    );

    for id in &ids[..OWN] {
        let decision = client.decision(id).await;
        assert_fields!(decision, { "id": id, "count": 1 });
    }
    // While the minute is open, the record shows the count so far.
    let open = client.decision(&ids[OWN]).await;
    assert_fields!(open, { "count": 15, "auditSeq": null }, "{open}");
    assert_fields!(open, { "outcome": "denied", "history": [] });

    until("the record of the minute", async || {
        lines(&fixture, &client).await.len() == before + OWN + 1
    })
    .await;
    let recorded = client.decision(&ids[OWN]).await;
    assert!(recorded["auditSeq"].is_u64(), "{recorded}");
    for (field, value) in [
        ("approved", json!(false)),
        ("reason", json!("rate_limited")),
        ("outcome", json!("denied")),
        ("count", json!(15)),
        ("agentId", json!("bot")),
        ("keyId", json!(client.key_id)),
        ("id", open["id"].clone()),
        ("windowEndsAt", open["windowEndsAt"].clone()),
        ("resetsAt", open["windowEndsAt"].clone()),
        ("chargedNanos", json!("0")),
    ] {
        assert_eq!(recorded[field], value, "{field}: {recorded}");
    }
    let message = text(&recorded, "/message");
    assert!(message.starts_with("15 more calls were denied"), "{message}");
    for id in &ids[OWN..] {
        assert_eq!(client.decision(id).await, recorded, "{id}");
    }
    assert_eq!(
        client.decision(text(&recorded, "/id")).await,
        recorded,
        "by its own id"
    );
    reported_elsewhere(&fixture, &client, &ids).await;
    let cli = Cli::new(BINARY, fixture.management.redis.url()).env("TOLLGATE_AUDIT__ARCHIVE", archive);
    let verified = cli.run(&["audit", "verify", "--account", &client.account.id, "--json"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// Lists and statistics count the record; other accounts cannot read it.
async fn reported_elsewhere(fixture: &RecordFixture, client: &Client, ids: &[String]) {
    let listed = client.api.get("/v1/audit?type=decisions.denied").await;
    let listed: Value = success(&listed, 200);
    assert_eq!(listed["total"], json!(1));
    assert_eq!(listed["logs"][0]["data"]["count"], json!(15));
    let day = fixture.management.redis.period().day;
    let key = client.account.keys.live().audit_day(day);
    let count: String = fixture
        .management
        .redis
        .command(&["HGET", &key, "n:rate_limited"]);
    assert_eq!(count, (OWN + 15).to_string(), "each denial is counted");
    let counted = client.account.keys.bucket().counted_denials();
    let left: u64 = fixture.management.redis.command(&["EXISTS", &counted]);
    assert_eq!(left, 0, "nothing is left of the count");

    let other = fixture.client("free", json!({})).await;
    for id in ids {
        let reply = other.api.get(&format!("/v1/decisions/{id}")).await;
        problem(&reply, 404, "NOT_FOUND");
    }
}

/// The rate does not limit a key beyond the plan's number of keys; a flood with it leaves no more records.
#[tokio::test]
async fn a_key_beyond_the_plans_leaves_no_more_than_one_beyond_its_rate() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("free", json!({ "maxSpendPerDay": 10 })).await;
    let newer = client.account.agent("newer");
    newer.provider_key("sk-test-provider-key").await;
    let (key_id, secret) = newer.virtual_key_with_id().await;
    let newer = Client {
        edge: fixture.edge.caller(&secret),
        account: client.account.clone(),
        api: client.api.clone(),
        agent: newer,
        key_id,
    };
    use_up(&fixture, &newer);
    let before = lines(&fixture, &newer).await.len();
    let ids = flood(&newer, OWN + 3, "plan_key_limit").await;
    assert_eq!(lines(&fixture, &newer).await.len(), before + OWN);
    let open = newer.decision(&ids[OWN + 2]).await;
    assert_fields!(open, { "count": 3, "reason": "plan_key_limit" });
}
