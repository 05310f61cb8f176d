//! `attention` of the overview: each kind appears when it should and goes when it is done.

use super::overview::overview;
use crate::fixture::{Fixture, success, text};
use crate::record_fixture::RecordFixture;
use domain::mode::Mode;
use domain::permission::Permission;
use harness::{Answer, Caller, Upstream, assert_fields, open_cap, until};
use serde_json::{Value, json};

async fn of_kind(caller: &Caller, kind: &str) -> Vec<Value> {
    let view = overview(caller, "?days=1").await;
    let all = view["attention"].as_array().unwrap();
    assert_eq!(view["attentionTotal"].as_u64().unwrap(), all.len() as u64);
    all.iter().filter(|item| item["kind"] == kind).cloned().collect()
}

#[tokio::test]
async fn frozen_agents_wait_until_they_are_unfrozen_and_not_after_they_are_gone() {
    let management = Fixture::start().await;
    let (_, caller) = management.account("startup").await;
    success(&caller.post("/v1/policies/rule", json!({})).await, 200);
    let reply = caller.post("/v1/agents/keyed/virtual-keys", json!({})).await;
    success(&reply, 201);
    let made = success(&caller.post("/v1/agents", json!({ "name": "x" })).await, 200);
    let row = text(&made, "/agent/id");
    for agent in ["rule", "keyed", row] {
        let reply = caller
            .send("POST", &format!("/v1/agents/{agent}/freeze"), &[], "")
            .await;
        success(&reply, 200);
    }
    let frozen = of_kind(&caller, "frozen_agent").await;
    let ids: Vec<&str> = frozen.iter().map(|item| text(item, "/agentId")).collect();
    assert_eq!(ids.len(), 3);
    assert!(
        ["rule", "keyed", row].iter().all(|agent| ids.contains(agent)),
        "{ids:?}"
    );
    crate::fixture::fresh(text(&frozen[0], "/since"));
    success(&caller.delete(&format!("/v1/agents/{row}")).await, 200);
    let reply = caller.send("POST", "/v1/agents/keyed/unfreeze", &[], "").await;
    success(&reply, 200);
    let frozen = of_kind(&caller, "frozen_agent").await;
    assert_eq!(frozen.len(), 1, "{frozen:?}");
    let view = overview(&caller, "").await;
    assert_fields!(view["totals"], { "frozenAgents": 1 }, "a deleted agent is none");
}

#[tokio::test]
async fn spends_to_approve_and_low_balances_wait() {
    let management = Fixture::start().await;
    let account = management.seed.account("startup").await;
    let all = [Permission::Read, Permission::Write, Permission::Approve];
    let key = account.issue(Mode::Test, &all, &[], None).await;
    let caller = management.admin.caller(&key.secret);
    let made = success(&caller.post("/v1/agents", json!({ "name": "x" })).await, 200);
    let (agent, wallet) = (text(&made, "/agent/id"), text(&made, "/agent/wallet"));
    let policy = json!({ "approvalThreshold": "1", "lowBalanceThreshold": "3" });
    success(&caller.post(&format!("/v1/policies/{agent}"), policy).await, 200);
    let low = of_kind(&caller, "low_balance").await;
    assert_fields!(low[0], { "id": wallet, "agentId": agent });
    let deposit = json!({ "wallet": agent, "amount": "5", "reference": "r-1" });
    success(&caller.post("/v1/wallet/deposits", deposit).await, 200);
    assert_eq!(of_kind(&caller, "low_balance").await, [] as [Value; 0]);

    let body = json!({ "agent": agent, "amount": "2.5" });
    let asked = caller.post("/v1/spend", body).await;
    let intent = text(&success(&asked, 202), "/intent_id").to_owned();
    let waiting = of_kind(&caller, "approval_waiting").await;
    assert_fields!(waiting[0], { "id": intent, "agentId": agent });
    assert!(text(&waiting[0], "/text").contains("2.5"), "{waiting:?}");
    let reply = caller
        .send("POST", &format!("/v1/intents/{intent}/approve"), &[], "")
        .await;
    success(&reply, 200);
    assert_eq!(of_kind(&caller, "approval_waiting").await, [] as [Value; 0]);
    let low = of_kind(&caller, "low_balance").await;
    assert!(text(&low[0], "/text").contains("2.50 USD"), "{low:?}");

    // An account-wide threshold holds for the account's own wallet, too, once there is one.
    let reply = caller
        .post(
            "/v1/policies",
            json!({ "name": "All", "lowBalanceThreshold": "1" }),
        )
        .await;
    success(&reply, 200);
    let deposit = json!({ "wallet": "user", "amount": "0.5", "reference": "r-2" });
    success(&caller.post("/v1/wallet/deposits", deposit).await, 200);
    let low = of_kind(&caller, "low_balance").await;
    assert_eq!(low.len(), 2, "{low:?}");
    assert_eq!(low[0]["agentId"], Value::Null, "the lowest first");
}

#[tokio::test]
async fn webhooks_that_fail_wait_until_they_deliver() {
    let quick = |options: harness::AdminOptions| {
        options
            .env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true")
            .env("TOLLGATE_WEBHOOKS__RETRY_DELAYS_MS", "1")
            .env("TOLLGATE_WEBHOOKS__MAX_ATTEMPTS", "2")
    };
    let management = Fixture::start_with(quick).await;
    let (_, caller) = management.account("builder").await;
    let receiver = Upstream::start(|_| Answer::bytes(500, "no"));
    let hook = json!({ "url": format!("http://{}/", receiver.addr()), "events": ["agent.frozen"],
        "secret": "a secret of the tests" });
    let hook = success(&caller.post("/v1/webhooks", hook).await, 201);
    let id = text(&hook, "/webhook/id").to_owned();
    assert_eq!(of_kind(&caller, "failing_webhook").await, [] as [Value; 0]);
    let test = format!("/v1/webhooks/{id}/test");
    let made = success(&caller.send("POST", &test, &[], "").await, 200);
    let deliveries = format!("/v1/webhooks/{id}/deliveries");
    let given_up = async |status: &str| {
        until("the delivery's end", async || {
            let listed = success(&caller.get(&deliveries).await, 200);
            listed["deliveries"][0]["status"] == status
        })
        .await;
    };
    given_up("failed").await;
    let failing = of_kind(&caller, "failing_webhook").await;
    assert_eq!(failing[0]["id"], json!(id));
    let expected = format!("{}: its last delivery failed for good.", receiver.addr());
    assert_eq!(failing[0]["text"], json!(expected));
    receiver.set(|_| Answer::bytes(200, "ok"));
    let again = format!("{deliveries}/{}/redeliver", text(&made, "/deliveryId"));
    success(&caller.send("POST", &again, &[], "").await, 200);
    given_up("delivered").await;
    assert_eq!(of_kind(&caller, "failing_webhook").await, [] as [Value; 0]);
}

#[tokio::test]
async fn kept_holds_wait_until_they_are_corrected() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({})).await;
    client.agent.cap(open_cap()).await;
    let estimate = 1_234_567;
    let life = std::time::Duration::from_millis(1);
    let name = client.agent.open_hold(&client.key_id, estimate, life).await;
    until("the reaper", async || client.agent.kept_holds().await == 1).await;
    let kept = of_kind(&client.api, "kept_hold").await;
    assert_fields!(kept[0], { "id": name.allow_id, "agentId": "bot" });
    let view = overview(&client.api, "?days=1").await;
    assert_eq!(super::overview::nanos(&view["days"][0]["totalUsd"]), estimate);
    let cli = harness::Cli::new(crate::fixture::BINARY, fixture.management.redis.url());
    let args = ["holds", "settle", "--id", &name.allow_id, "--actual", "0.000001"];
    let output = cli.run(&args);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(of_kind(&client.api, "kept_hold").await, [] as [Value; 0]);
    let view = overview(&client.api, "?days=1").await;
    assert_eq!(super::overview::nanos(&view["days"][0]["totalUsd"]), 1000);
    assert_eq!(view["days"][0]["calls"], json!(1), "still one call");
    assert_eq!(view["spend"]["todayUsd"], view["days"][0]["totalUsd"]);
}
