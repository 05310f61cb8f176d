//! The overview, compared with the charges and refusals of callers.

use crate::fixture::{Fixture, problem, success};
use crate::record_fixture::{Client, RecordFixture};
use domain::mode::Mode;
use domain::period::{DAY_MS, Period};
use harness::{Answer, Caller, Edge, EdgeOptions, SeedAccount, Upstream, assert_fields, chat_body};
use serde_json::{Value, json};
use std::time::Duration;
use store::agent::survey::AGENTS_MAX;

pub async fn overview(caller: &Caller, query: &str) -> Value {
    success(&caller.get(&format!("/v1/overview{query}")).await, 200)
}

/// Spends from the ledger alone: the agent has no wallet.
async fn spend(caller: &Caller, agent: &str, amount: &str, status: u16) {
    let body = json!({ "agent": agent, "amount": amount });
    let reply = caller.post("/v1/spend", body).await;
    assert_eq!(reply.status, status, "{}", reply.text());
}

/// An amount in nano-USD. A double holds each of them exactly below 2^53.
pub fn nanos(usd: &Value) -> u64 {
    let nanos = (usd.as_f64().unwrap() * 1e9).round();
    assert!((0.0..9e15).contains(&nanos), "{usd}");
    format!("{nanos}").parse().unwrap()
}

/// They are in no list of agents: the specification has agents with wallets there.
#[tokio::test]
async fn agents_without_a_wallet_are_named() {
    let fixture = RecordFixture::start().await;
    let (_, api) = fixture.management.account("startup").await;
    let view = overview(&api, "").await;
    assert_fields!(view, { "withoutWallet": [], "withoutWalletTotal": 0 });
    let body = json!({ "botId": "owner", "name": "Has a wallet" });
    success(&api.post("/v1/wallets/create", body).await, 200);
    for agent in ["owner", "mistyped", "gone"] {
        let made = success(
            &api.post(&format!("/v1/agents/{agent}/virtual-keys"), json!({}))
                .await,
            201,
        );
        if agent == "gone" {
            let key = made["virtualKey"]["keyId"].as_str().unwrap();
            success(
                &api.delete(&format!("/v1/agents/gone/virtual-keys/{key}")).await,
                200,
            );
        }
    }
    success(
        &api.post("/v1/policies/spender", json!({ "maxSpendPerDay": 1 }))
            .await,
        200,
    );
    spend(&api, "spender", "0.5", 200).await;
    let view = overview(&api, "").await;
    assert_fields!(view, { "withoutWallet": ["mistyped", "spender"], "withoutWalletTotal": 2 });
    let listed = success(&api.get("/v1/agents").await, 200);
    assert_eq!(listed["total"], json!(1));
}

/// Spends are settled at once, so nothing is held while agents make only these.
#[tokio::test]
async fn nothing_is_held_while_agents_only_spend() {
    let fixture = RecordFixture::start().await;
    let (_, api) = fixture.management.account("enterprise").await;
    for agent in ["s0", "s1", "s2"] {
        let policy = json!({ "maxSpendPerDay": 1 });
        success(&api.post(&format!("/v1/policies/{agent}"), policy).await, 200);
    }
    for _ in 0..80 {
        let (view, ..) = tokio::join!(
            overview(&api, "?days=1"),
            spend(&api, "s0", "0.001", 200),
            spend(&api, "s1", "0.001", 200),
            spend(&api, "s2", "0.001", 200),
        );
        assert_fields!(view["spend"], { "heldUsd": 0 });
    }
}

#[tokio::test]
async fn numbers_are_exact_for_each_mode_and_account() {
    let fixture = RecordFixture::start().await;
    let client = fixture
        .client("startup", json!({ "maxSpendPerDay": "100" }))
        .await;
    let Client { api, account, .. } = &client;
    let mut actual = 0;
    for _ in 0..5 {
        let (reply, _) = client.call(None).await;
        assert_eq!(reply.status, 200);
        let usd: Value = serde_json::from_str(reply.header("x-service-actual-usd").unwrap()).unwrap();
        actual += nanos(&usd);
    }
    assert!(actual > 0);
    let body = json!({ "maxSpendPerDay": "1" });
    success(&api.post("/v1/policies/buyer", body).await, 200);
    spend(api, "buyer", "0.600000001", 200).await;
    spend(api, "buyer", "0.5", 402).await;
    success(&api.send("POST", "/v1/agents/bot/freeze", &[], "").await, 200);
    assert_eq!(client.call(None).await.0.status, 403);
    assert_eq!(client.call(None).await.0.status, 403);

    let view = overview(api, "").await;
    let spent = actual + 600_000_001;
    assert_eq!(nanos(&view["spend"]["todayUsd"]), spent);
    assert_eq!(nanos(&view["spend"]["monthUsd"]), spent);
    assert_fields!(view["spend"], { "heldUsd": 0, "trackedLimitUsd": 5000 });
    assert_fields!(view, { "totals": { "agents": 0, "frozenAgents": 1, "activeVirtualKeys": 1 } });
    let days = view["days"].as_array().unwrap();
    assert_eq!(days.len(), 30);
    let (today, before) = days.split_last().unwrap();
    assert_eq!(today["day"], view["today"]);
    assert_eq!(nanos(&today["totalUsd"]), spent);
    assert_fields!(today, { "calls": 5, "denied": 3 });
    assert_eq!(view["topAgents"][0]["agentId"], json!("buyer"));
    assert_eq!(view["topAgents"][0]["name"], Value::Null);
    assert_eq!(nanos(&view["topAgents"][1]["usd"]), actual);
    let by_agent: Vec<u64> = today["byAgent"].as_array().unwrap().iter().map(nanos).collect();
    assert_eq!(by_agent, [600_000_001, actual, 0]);
    for day in before {
        let nothing = (json!(0), json!(0), json!(0), json!([0, 0, 0]));
        let totals = (&day["totalUsd"], &day["calls"], &day["denied"], &day["byAgent"]);
        assert_eq!(totals, (&nothing.0, &nothing.1, &nothing.2, &nothing.3));
    }
    assert!(
        before
            .windows(2)
            .all(|pair| pair[0]["day"].as_str() < pair[1]["day"].as_str())
    );
    assert_fields!(view, {
        "denials": [{ "reason": "frozen", "count": 2 }, { "reason": "daily_limit", "count": 1 }],
    });
    assert_fields!(view, { "mode": "live", "partial": false });

    let tester = fixture.management.caller(account, Mode::Test).await;
    success(&tester.post("/v1/policies/buyer", json!({})).await, 200);
    spend(&tester, "buyer", "3", 200).await;
    let view = overview(&tester, "?days=1").await;
    assert_fields!(view, {
        "spend": { "todayUsd": 3, "monthUsd": 3, "heldUsd": 0, "trackedLimitUsd": null },
    });
    assert_eq!(view["totals"]["activeVirtualKeys"], json!(0), "calls are live");
    assert_eq!(view["days"].as_array().unwrap().len(), 1);
    assert_eq!(view["denials"], json!([]));
    let (_, stranger) = fixture.management.account("builder").await;
    assert_empty(&overview(&stranger, "").await);
    assert_eq!(
        nanos(&overview(api, "").await["spend"]["todayUsd"]),
        spent,
        "test mode is apart"
    );
}

/// Spends of agents without a wallet, on earlier days of this month: the sums need no record of an agent.
#[tokio::test]
async fn the_month_of_test_mode_is_that_of_its_days() {
    let management = Fixture::start().await;
    let (account, _) = management.account("startup").await;
    let tester = management.caller(&account, Mode::Test).await;
    let now_ms = clock::now_ms();
    let first_ms = Period::at(now_ms).month_start() * DAY_MS;
    let spend = |agent: &str| {
        let data = r#"{"amountNanos":"5000000000"}"#;
        let fields = format!(r#""type":"spend.requested","agentId":"{agent}","actor":"key_1","data":{data}"#);
        format!("{{{fields}}} outcome=settled intentId=int_1 transactionId=tx_1")
    };
    let writer = crate::audit_writer::AuditWriter::new(&management.store, &account, Mode::Test);
    writer
        .write(&[
            (first_ms - 1, spend("last-month")),
            (first_ms, spend("gone")),
            (now_ms, spend("here")),
        ])
        .await;
    let view = overview(&tester, "?days=1").await;
    let is_first = Period::at(first_ms) == Period::at(now_ms);
    assert_fields!(view["spend"], { "todayUsd": if is_first { 10 } else { 5 }, "monthUsd": 10, "heldUsd": 0 });
}

/// Asserts that the overview shows no activity.
fn assert_empty(view: &Value) {
    let spend = &view["spend"];
    assert_fields!(spend, { "todayUsd": 0, "monthUsd": 0, "heldUsd": 0 });
    assert_fields!(view, { "totals": { "agents": 0, "frozenAgents": 0, "activeVirtualKeys": 0 } });
    for list in ["topAgents", "denials", "attention"] {
        assert_eq!(view[list], json!([]), "{list}");
    }
    let days = view["days"].as_array().unwrap();
    assert!(
        days.iter()
            .all(|day| day["byAgent"] == json!([0]) && day["totalUsd"] == json!(0))
    );
    assert_fields!(view, { "attentionTotal": 0, "partial": false });
}

#[tokio::test]
async fn an_empty_account_has_an_overview_and_days_are_bounded() {
    let management = Fixture::start().await;
    let (_, caller) = management.account("free").await;
    let view = overview(&caller, "?days=90").await;
    assert_empty(&view);
    assert_eq!(view["days"].as_array().unwrap().len(), 90);
    assert_eq!(view["spend"]["trackedLimitUsd"], json!(50));
    for bad in ["0", "91", "-1", "x", "", "1.0"] {
        let reply = caller.get(&format!("/v1/overview?days={bad}")).await;
        assert!(problem(&reply, 400, "VALIDATION").starts_with("days"), "{bad}");
    }
}

#[tokio::test]
async fn a_call_under_way_is_held_and_counts_today_but_on_no_day_yet() {
    let management = Fixture::start().await;
    let upstream = Upstream::start(|_| Answer::chat(9, 12).delay(Duration::from_secs(600)));
    let edge = Edge::start(EdgeOptions::new(
        env!("CARGO_BIN_EXE_tollgate-proxy"),
        management.redis.url(),
        upstream.base_url(),
    ));
    let (_, caller) = management.account("startup").await;
    let wallet = json!({ "botId": "bot", "name": "Bot" });
    success(&caller.post("/v1/wallets/create", wallet).await, 200);
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    let key = json!({ "provider": "openai", "apiKey": "sk-test-provider-key" });
    success(&caller.post("/v1/agents/bot/provider-keys", key).await, 201);
    let key = success(&caller.post("/v1/agents/bot/virtual-keys", json!({})).await, 201);
    let bot = edge.caller(key["secret"].as_str().unwrap());
    let calling = tokio::spawn(async move { bot.chat(chat_body("gpt-4o-mini", "hello")).await });
    harness::until("the call", async || upstream.arrived() > 0).await;
    let view = overview(&caller, "").await;
    let held = nanos(&view["spend"]["heldUsd"]);
    assert!(held > 0);
    assert_eq!(nanos(&view["spend"]["todayUsd"]), held);
    assert_eq!(nanos(&view["spend"]["monthUsd"]), held);
    assert_eq!(view["days"][29]["totalUsd"], json!(0), "it has not ended");
    success(&caller.delete("/v1/agents/bot").await, 200);
    let view = overview(&caller, "").await;
    for field in ["todayUsd", "monthUsd", "heldUsd"] {
        assert_eq!(nanos(&view["spend"][field]), held, "{field} of a deleted agent");
    }
    calling.abort();
}

/// Agents as `POST /agents` leaves them, without a request for each.
async fn crowd(management: &Fixture, account: &SeedAccount, count: usize) {
    let (today, keys) = (Period::at(clock::now_ms()), &account.keys);
    let numbers: Vec<usize> = (0..count).collect();
    for part in numbers.chunks(500) {
        let mut pipe = redis::pipe();
        for n in part {
            let id = format!("agent-{n}");
            pipe.cmd("HSET")
                .arg(keys.live().agent(&id))
                .arg(&["wallet", &format!("wal_{n}"), "wallet_number", &n.to_string()])
                .arg(&["name", &format!("Agent {n}"), "type", "custom", "balance", "7"])
                .arg(&["created_at", "1", "updated_at", "1"])
                .arg(&[
                    format!("d{}", today.day),
                    "3".to_owned(),
                    format!("m{}", today.month),
                    "5".to_owned(),
                ])
                .ignore();
            pipe.cmd("ZADD")
                .arg(keys.live().agents())
                .arg(*n)
                .arg(&id)
                .ignore();
        }
        let () = management.store.pipeline(&pipe).await.unwrap();
    }
}

/// The overview, and the number of agent records read for it: the least of several times, since the server's worker of
/// thresholds sometimes reads them too.
async fn reads(management: &Fixture, caller: &Caller) -> (u64, Value) {
    let mut least = None;
    for _ in 0..5 {
        let before = management.redis.calls("hmget");
        let view = overview(caller, "").await;
        let reads = management.redis.calls("hmget") - before;
        if least.as_ref().is_none_or(|(fewer, _)| reads < *fewer) {
            least = Some((reads, view));
        }
    }
    least.unwrap()
}

#[tokio::test]
async fn thousands_of_agents_cost_one_bounded_read() {
    let management = Fixture::start().await;
    let (account, caller) = management.account("enterprise").await;
    crowd(&management, &account, 2000).await;
    let (looked, view) = reads(&management, &caller).await;
    assert!(
        (2000..2100).contains(&looked),
        "one read for each agent: {looked}"
    );
    assert_eq!(nanos(&view["spend"]["todayUsd"]), 3 * 2000);
    assert_eq!(
        (&view["totals"]["agents"], &view["partial"]),
        (&json!(2000), &json!(false))
    );

    crowd(&management, &account, AGENTS_MAX + 300).await;
    let (looked, view) = reads(&management, &caller).await;
    assert!(looked < AGENTS_MAX as u64 + 100, "{looked}");
    assert_eq!(view["partial"], json!(true), "and it says so");
    assert_eq!(view["totals"]["agents"], json!(AGENTS_MAX + 300));
    assert_eq!(nanos(&view["spend"]["todayUsd"]), 3 * AGENTS_MAX as u64);
}

#[tokio::test]
async fn a_call_that_ends_after_midnight_is_spent_on_the_day_of_its_approval() {
    let management = Fixture::start().await;
    let (account, caller) = management.account("startup").await;
    let today = Period::at(clock::now_ms());
    let writer = crate::audit_writer::AuditWriter::new(&management.store, &account, Mode::Live);
    // Approved yesterday, ended just now.
    let (yesterday, month) = (today.day - 1, Period::at((today.day - 1) * DAY_MS).month);
    let memo = format!("{} bot - vk_1 p1 gpt-4o", account.id);
    let line = format!(
        "A settled 1500000000 allow_01KAH3V9J80000000000000001 H 9 {yesterday} {month} 0 ,,,,,, {memo}"
    );
    writer.write(&[(clock::now_ms(), line)]).await;
    let view = overview(&caller, "?days=2").await;
    let totals = |at: usize| (&view["days"][at]["totalUsd"], &view["days"][at]["calls"]);
    assert_eq!(totals(0), (&json!(1.5), &json!(1)));
    assert_eq!(totals(1), (&json!(0), &json!(0)));
}
