//! Agents near a limit are listed, need attention from 80 % on, and are noticed once, on any number of servers.

use super::overview::overview;
use crate::fixture::{BINARY, Fixture, fresh, success, text};
use domain::mode::Mode;
use harness::{Admin, AdminOptions, Caller, Wire, assert_fields, eventually, until};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

async fn spend(api: &Caller, agent: &str, amount: &str) {
    let body = json!({ "agent": agent, "amount": amount });
    assert_eq!(api.post("/v1/spend", body).await.status, 200);
}

/// Cap, agent, threshold and share of a listed row.
async fn listed(api: &Caller, query: &str) -> Vec<(String, Value, u64, f64)> {
    let page = success(&api.get(&format!("/v1/thresholds{query}")).await, 200);
    assert_eq!(page["partial"], json!(false));
    let rows = page["thresholds"].as_array().unwrap().iter();
    rows.map(|row| {
        let (threshold, percent) = (
            row["threshold"].as_u64().unwrap(),
            row["percent"].as_f64().unwrap(),
        );
        (
            text(row, "/cap").to_owned(),
            row["agentId"].clone(),
            threshold,
            percent,
        )
    })
    .collect()
}

fn metric(admin: &Admin, series: &str) -> u64 {
    admin.metric(series).unwrap_or_else(|| panic!("no {series}"))
}

fn noticed(admin: &Admin, limit: &str, percent: &str) -> u64 {
    metric(
        admin,
        &format!("tollgate_admin_thresholds_noticed_total{{limit=\"{limit}\",percent=\"{percent}\"}}"),
    )
}

/// The `spendLimit` of a wallet counts what the wallet spends in a day.
#[tokio::test]
async fn a_spend_limit_is_watched() {
    let fixture = Fixture::start().await;
    let (account, _) = fixture.account("builder").await;
    let api = fixture.caller(&account, Mode::Test).await;
    let made = success(&api.post("/v1/agents", json!({ "name": "Buyer" })).await, 200);
    let agent = text(&made, "/agent/id").to_owned();
    success(&api.post("/v1/policies", json!({ "name": "All" })).await, 200);
    let limit = json!({ "spendLimit": "1" });
    success(&api.patch(&format!("/v1/agents/{agent}"), limit).await, 200);
    let deposit = json!({ "wallet": agent, "amount": "5", "reference": "r" });
    success(&api.post("/v1/wallet/deposits", deposit).await, 200);
    let reply = api
        .post("/v1/spend", json!({ "agent": agent, "amount": "0.8" }))
        .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let row = ("spend".to_owned(), json!(agent), 80, 80.0);
    assert_eq!(listed(&api, "?cap=spend").await, [row]);
    let view = overview(&api, "").await;
    let sentence = "Spent 80.0 % of its spend limit of the day: 0.80 USD of 1.00 USD.";
    assert_fields!(&view["attention"][0], { "kind": "near_limit", "id": agent, "text": sentence });
}

#[tokio::test]
async fn shares_of_limits_are_listed_the_highest_first() {
    let fixture = Fixture::start().await;
    let (account, api) = fixture.account("builder").await;
    let policy = json!({ "maxSpendPerDay": "1", "maxSpendPerMonth": "100", "maxSpendPerRun": "0.9" });
    success(&api.post("/v1/policies/buyer", policy).await, 200);
    assert_eq!(listed(&api, "").await, []);
    spend(&api, "buyer", "0.499999999").await;
    assert_eq!(listed(&api, "").await, []);
    spend(&api, "buyer", "0.000000001").await;
    let buyer = |threshold: u64, percent: f64| ("day".to_owned(), json!("buyer"), threshold, percent);
    assert_eq!(listed(&api, "").await, [buyer(50, 50.0)]);
    let view = overview(&api, "").await;
    assert_eq!(view["attention"], json!([]), "half of it needs no attention yet");

    spend(&api, "buyer", "0.464").await;
    assert_eq!(listed(&api, "").await, [buyer(95, 96.4)]);
    let view = overview(&api, "").await;
    let item = &view["attention"][0];
    assert_fields!(item, { "kind": "near_limit", "id": "buyer" });
    assert_fields!(item, { "text": "Spent 96.4 % of its daily limit: 0.964 USD of 1.00 USD." });

    // The plan tracks 500 USD a month, of both agents together. This policy has no daily limit.
    let body = json!({ "maxSpendPerMonth": "490" });
    success(&api.post("/v1/policies/other", body).await, 200);
    spend(&api, "other", "400").await;
    let expected = [
        buyer(95, 96.4),
        ("month".to_owned(), json!("other"), 80, 81.6),
        ("plan".to_owned(), json!(null), 80, 80.1),
    ];
    assert_eq!(listed(&api, "").await, expected);
    assert_eq!(listed(&api, "?cap=plan").await, expected[2..]);
    assert_eq!(listed(&api, "?threshold=95").await, expected[..1]);
    let first = success(&api.get("/v1/thresholds?limit=1").await, 200);
    let cursor = text(&first, "/nextCursor");
    assert_eq!(
        listed(&api, &format!("?limit=2&cursor={cursor}")).await,
        expected[1..]
    );
    let view = overview(&api, "").await;
    let texts: Vec<&str> = view["attention"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(item, "/text"))
        .collect();
    assert_eq!(
        texts[2],
        "The account has spent 80.1 % of what its plan tracks in a month: 400.964 USD of 500.00 USD."
    );
    let tester = fixture.caller(&account, Mode::Test).await;
    assert_eq!(listed(&tester, "").await, []);
}

#[tokio::test]
async fn a_policy_for_all_agents_counts_and_one_that_is_off_does_not() {
    let fixture = Fixture::start().await;
    let (_, api) = fixture.account("enterprise").await;
    let rule = json!({ "name": "all", "maxSpendPerDay": "4.1" });
    success(&api.post("/v1/policies", rule).await, 200);
    let body = json!({ "maxSpendPerDay": "5" });
    success(&api.post("/v1/policies/buyer", body).await, 200);
    spend(&api, "buyer", "4").await;
    assert_eq!(
        listed(&api, "").await,
        [("day".to_owned(), json!("buyer"), 80, 80.0)]
    );
    let body = json!({ "capEnabled": false });
    success(&api.post("/v1/policies/buyer", body).await, 200);
    assert_eq!(listed(&api, "").await, [], "it denies everything");
    let policies = success(&api.get("/v1/policies?agentId=buyer").await, 200);
    let own = text(&policies, "/policies/0/id");
    success(&api.delete(&format!("/v1/policies/{own}")).await, 200);
    assert_eq!(
        listed(&api, "").await,
        [("day".to_owned(), json!("buyer"), 95, 97.5)]
    );
}

#[tokio::test]
async fn a_threshold_is_noticed_once_by_two_servers_and_after_a_kill() {
    let fixture = Fixture::start().await;
    let start = || Admin::start(AdminOptions::new(BINARY, fixture.redis.url()));
    let second = start();
    let (_, api) = fixture.account("builder").await;
    let body = json!({ "maxSpendPerDay": "1" });
    success(&api.post("/v1/policies/buyer", body).await, 200);
    spend(&api, "buyer", "0.85").await;
    let both = |percent: &str| noticed(&fixture.admin, "day", percent) + noticed(&second, "day", percent);
    eventually("80 % is noticed", SOON, async || {
        let page = success(&api.get("/v1/thresholds").await, 200);
        let noticed_at = page["thresholds"][0]["noticedAt"].as_str()?.to_owned();
        fresh(&noticed_at);
        (both("80") == 1 && both("50") == 1).then_some(())
    })
    .await;
    let view = overview(&api, "").await;
    fresh(text(&view["attention"][0], "/since"));

    // A server's gauge shows that it has seen the threshold. A third server starts without any memory of it.
    let reached = "tollgate_admin_thresholds_reached{limit=\"day\",percent=\"80\"}";
    second.kill9();
    let third = start();
    for server in [&fixture.admin, &third] {
        until("the gauge follows", async || metric(server, reached) == 1).await;
    }
    assert_eq!(noticed(&third, "day", "80"), 0, "it was noticed before");
    spend(&api, "buyer", "0.1").await;
    until("95 % is noticed", async || {
        let both = noticed(&fixture.admin, "day", "95") + noticed(&third, "day", "95");
        both == 1
    })
    .await;
    for server in [&fixture.admin, &third] {
        until("the gauge follows", async || metric(server, reached) == 0).await;
    }
    let all = noticed(&fixture.admin, "day", "95") + noticed(&third, "day", "95");
    assert_eq!(all, 1);
}

/// The store records a notice and its reply is lost. A server that lives counts it at the account's next turn; one that
/// is killed does not, and then the gauge of the next server rises, which the alert observes, too.
#[tokio::test]
async fn a_notice_is_not_lost_with_the_reply_of_the_store() {
    let fixture = Fixture::start().await;
    let (account, _) = fixture.account("builder").await;
    let wire = Wire::to_port(fixture.redis.port());
    fixture.admin.kill9();
    let start = || Admin::start(AdminOptions::new(BINARY, wire.redis_url()));
    let server = start();
    let api = server.caller(&account.api_key(Mode::Live).await);
    let body = json!({ "maxSpendPerDay": "1" });
    success(&api.post("/v1/policies/buyer", body).await, 200);
    // A read of the notice has no argument of ten digits behind its name, which is the expiry.
    let recording = |percent: &str| format!("day {percent} buyer\r\n$10\r\n");
    wire.lose_reply_to(recording("80"), 1);
    spend(&api, "buyer", "0.85").await;
    until("80 % is counted", async || noticed(&server, "day", "80") == 1).await;
    assert_eq!((wire.replies_lost(), noticed(&server, "day", "50")), (1, 1));

    wire.lose_reply_to(recording("95"), 1);
    spend(&api, "buyer", "0.1").await;
    until("95 % is recorded", async || wire.replies_lost() == 2).await;
    server.kill9();
    let next = start();
    let reached =
        |percent: &str| format!("tollgate_admin_thresholds_reached{{limit=\"day\",percent=\"{percent}\"}}");
    until("the gauge follows", async || metric(&next, &reached("95")) == 1).await;
    assert_eq!(metric(&next, &reached("80")), 0);
    assert_eq!(noticed(&next, "day", "95"), 0, "it was recorded before");
}
