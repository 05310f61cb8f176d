//! Usage of an agent: its spend, and the rest of its caps.

use crate::fixture::{Fixture, problem, success, text};
use crate::record_fixture::RecordFixture;
use harness::{Caller, assert_fields};
use serde_json::{Value, json};

async fn usage(caller: &Caller, agent: &str) -> Value {
    success(&caller.get(&format!("/v1/agents/{agent}/usage")).await, 200)
}

#[tokio::test]
async fn caps_say_what_is_left_of_them() {
    let fixture = RecordFixture::start().await;
    let policy = json!({ "name": "Mine", "maxSpendPerDay": "2", "maxSpendPerRun": "1.75", "maxSpendPerTransaction": "1.5" });
    let client = fixture.client("startup", policy).await;
    let body = json!({ "agent": "bot", "amount": "1.25" });
    success(&client.api.post("/v1/spend", body).await, 200);
    let (reply, _) = client.call(None).await;
    assert_eq!(reply.status, 200);
    let view = usage(&client.api, "bot").await;
    let spent = client.agent.counters().await.day_nanos;
    let usd = |nanos: u64| -> Value {
        serde_json::from_str(&domain::money::Nanos::from_stored(nanos).to_string()).unwrap()
    };
    assert_eq!(view["spentTodayUsd"], usd(spent));
    assert_eq!(view["spentMonthUsd"], usd(spent));
    assert_fields!(view, { "heldUsd": 0, "walletUsd": null });
    assert_fields!(view["policy"], { "name": "Mine", "agentOwn": true });
    let expected = json!([
        { "check": "per_transaction_limit", "limitUsd": 1.5, "spentUsd": null, "remainingUsd": null },
        { "check": "per_run_limit", "limitUsd": 1.75, "spentUsd": null, "remainingUsd": null },
        { "check": "daily_limit", "limitUsd": 2, "spentUsd": usd(spent), "remainingUsd": usd(2_000_000_000 - spent) },
        { "check": "monthly_limit", "limitUsd": null, "spentUsd": usd(spent), "remainingUsd": null },
        { "check": "spend_limit", "limitUsd": null, "spentUsd": 0, "remainingUsd": null },
    ]);
    assert_eq!(view["checks"], expected);
    crate::fixture::fresh(text(&view, "/asOf"));
}

#[tokio::test]
async fn a_wallet_and_account_wide_policies_are_reported() {
    let management = Fixture::start().await;
    let (account, _) = management.account("startup").await;
    let caller = management.caller(&account, domain::mode::Mode::Test).await;
    let made = success(&caller.post("/v1/agents", json!({ "name": "Bot" })).await, 200);
    let agent = text(&made, "/agent/id");
    assert_eq!(usage(&caller, agent).await["policy"], Value::Null);
    let body = json!({ "name": "All", "maxSpendPerDay": "9" });
    success(&caller.post("/v1/policies", body).await, 200);
    let deposit = json!({ "wallet": agent, "amount": "5", "reference": "r-1" });
    success(&caller.post("/v1/wallet/deposits", deposit).await, 200);
    let patch = json!({ "spendLimit": "3" });
    success(&caller.patch(&format!("/v1/agents/{agent}"), patch).await, 200);
    let body = json!({ "agent": agent, "amount": "1" });
    success(&caller.post("/v1/spend", body).await, 200);
    let view = usage(&caller, agent).await;
    assert_eq!(view["walletUsd"], json!(4));
    assert_fields!(view["policy"], { "name": "All", "agentOwn": false });
    let check = |name: &str| {
        let checks = view["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["check"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        check("spend_limit"),
        json!({ "check": "spend_limit", "limitUsd": 3, "spentUsd": 1, "remainingUsd": 2 })
    );
    let body = json!({ "name": "Too", "maxSpendPerDay": "0.5" });
    success(&caller.post("/v1/policies", body).await, 200);
    let view = usage(&caller, agent).await;
    assert_eq!(view["policy"]["id"], json!("account-policies"));
    let daily = &view["checks"][2];
    assert_fields!(daily, { "limitUsd": 0.5, "remainingUsd": 0 }, "never below zero");
    problem(&caller.get("/v1/agents/nobody/usage").await, 404, "NOT_FOUND");
}
