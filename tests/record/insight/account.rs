//! The account, its plan and the used part of it.

use crate::fixture::success;
use crate::record_fixture::RecordFixture;
use domain::mode::Mode;
use harness::assert_fields;
use serde_json::{Value, json};

#[tokio::test]
async fn the_account_shows_its_limits_and_their_use() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({})).await;
    let api = &client.api;
    success(&api.post("/v1/agents", json!({ "name": "a" })).await, 200);
    assert_eq!(client.call(None).await.0.status, 200);
    let tester = fixture.management.caller(&client.account, Mode::Test).await;
    success(&tester.post("/v1/agents", json!({ "name": "b" })).await, 200);
    let gone = client
        .account
        .issue(Mode::Live, crate::fixture::FULL, &[], Some(1))
        .await;
    assert!(gone.secret.starts_with("svc_live_"), "it has expired long ago");
    for caller in [api, &tester] {
        let view = success(&caller.get("/v1/account").await, 200);
        assert_fields!(view["account"], { "id": client.account.id, "plan": "builder" });
        let usage = &view["usage"];
        let counts = [
            "activeVirtualKeys",
            "capAgentsThisMonth",
            "customAgents",
            "webhooks",
            "users",
            "apiKeys",
        ]
        .map(|name| usage[name].as_u64().unwrap());
        assert_eq!(counts, [1, 1, 1, 0, 0, 2], "test mode counts against no plan");
        let tracked = client.agent.counters().await.day_nanos;
        assert_eq!(super::overview::nanos(&usage["trackedUsdThisMonth"]), tracked);
        assert_eq!(
            view["limits"],
            json!({ "activeVirtualKeys": 10, "proxyRequestsPerMinute": 120, "capAgentsPerMonth": 10,
                "trackedUsdPerMonth": 500, "customAgents": 50, "walletRequestsPerMinute": 1000,
                "agentRequestsPerDay": 1000, "managementRequestsPerMinute": 1000 })
        );
        assert_fields!(view, { "features": { "webhooksInDashboard": false }, "upgradeTo": "startup" });
        assert!(view["upgradeUrl"].as_str().unwrap().ends_with("/plan?to=startup"));
        let plans = view["plans"].as_array().unwrap();
        let names: Vec<(&str, bool)> = plans
            .iter()
            .map(|plan| (plan["name"].as_str().unwrap(), plan["current"].as_bool().unwrap()))
            .collect();
        assert_eq!(
            names,
            [
                ("free", false),
                ("builder", true),
                ("startup", false),
                ("enterprise", false)
            ]
        );
        assert_eq!(plans[3]["limits"]["trackedUsdPerMonth"], Value::Null, "unlimited");
        assert_eq!(plans[3]["features"], json!({ "webhooksInDashboard": true }));
    }
}
