//! Budgets of records (decision D71), on every plan: a record beyond its budget is refused with 403 `TIER_LIMIT`, which
//! names kind and limit, and changes nothing. The operator sees the usage. The scripts of money are checked in
//! `tests/money_model`.

use crate::fixture::{BINARY, Fixture, problem, success};
use domain::mode::Mode;
use harness::{Caller, Cli, Reply, SeedAccount, assert_fields};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::account::refused::{self, Cause, RefusedLists};
use store::transaction::LONG_TRANSACTION;

const OPENAI_KEY: &str = "sk-test-0123456789abcdefghij";

async fn with(budgets: &[(&str, u64)]) -> Fixture {
    let budgets: Vec<(String, String)> = budgets
        .iter()
        .map(|(name, most)| {
            (
                format!("TOLLGATE_LIMITS__{}", name.to_uppercase()),
                most.to_string(),
            )
        })
        .collect();
    Fixture::start_with(|options| {
        budgets
            .iter()
            .fold(options, |options, (name, most)| options.env(name, most))
    })
    .await
}

/// Checks the refusal of a record beyond its budget, and that nothing changed since `version`.
async fn over(account: &SeedAccount, version: u64, reply: &Reply, budget: &str, most: u64) {
    let body = reply.json();
    let sentence = body["error"].as_str().unwrap();
    assert!(sentence.contains(&format!("budget of {most} ")), "{sentence}");
    let expected = json!({ "error": sentence, "code": "TIER_LIMIT", "budget": budget, "limit": most });
    assert_eq!((reply.status, &body), (403, &expected));
    assert_eq!(account.version().await, version, "nothing was changed");
}

/// Posts records, of which `there` exist already, until their budget is used up. The last one within it passes, and no
/// more.
async fn fill(
    fixture: &Fixture,
    account: &SeedAccount,
    (budget, most, there): (&str, u64, u64),
    post: impl AsyncFn(u64) -> Reply,
) {
    for at in there..most {
        let reply = post(at).await;
        assert!([200, 201].contains(&reply.status), "{budget} {at}: {reply:?}");
    }
    let before = lookups(fixture);
    let version = account.version().await;
    for at in 0..3 {
        over(account, version, &post(most + at).await, budget, most).await;
    }
    assert_eq!(lookups(fixture), before, "no look-up is left of what was refused");
}

/// The keys outside the buckets.
fn lookups(fixture: &Fixture) -> Vec<String> {
    let mut keys: Vec<String> = fixture.redis.command(&["KEYS", "tollgate/*"]);
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn each_kind_is_refused_beyond_its_budget_on_the_unlimited_plan() {
    let fixture = with(&[("agents", 3), ("policies", 4), ("provider_keys", 2), ("keys", 6)]).await;
    let account = fixture.seed.account("enterprise").await;
    let (live, test) = (
        fixture.caller(&account, Mode::Live).await,
        fixture.caller(&account, Mode::Test).await,
    );
    for caller in [&live, &test] {
        let agent = async |at| {
            caller
                .post("/v1/agents", json!({ "name": format!("a{at}") }))
                .await
        };
        fill(&fixture, &account, ("agents", 3, 0), agent).await;
        let policy = async |at| {
            let (path, body) = match at % 2 {
                0 => (format!("/v1/policies/bot-{at}"), json!({})),
                _ => ("/v1/policies".to_owned(), json!({ "name": format!("p{at}") })),
            };
            caller.post(&path, body).await
        };
        fill(&fixture, &account, ("policies", 4, 0), policy).await;
        // An existing one can be changed.
        let body = json!({ "maxSpendPerDay": 5 });
        success(&caller.post("/v1/policies/bot-0", body).await, 200);
    }
    let key = json!({ "provider": "openai", "apiKey": OPENAI_KEY });
    let path = |at| format!("/v1/agents/bot-{at}/provider-keys");
    let store = async |at| live.post(&path(at), key.clone()).await;
    fill(&fixture, &account, ("provider_keys", 2, 0), store).await;
    // An agent's existing key can be replaced.
    assert_eq!(live.post(&path(0), key.clone()).await.status, 201);
    // Two API keys exist already.
    let issue = async |at| {
        let path = format!("/v1/agents/bot-{at}/virtual-keys");
        live.post(&path, json!({ "name": "k" })).await
    };
    fill(&fixture, &account, ("keys", 6, 2), issue).await;
    let (_, metrics) = fixture.admin.ops("/metrics").unwrap();
    for (budget, count) in [
        ("agents", 6),
        ("policies", 6),
        ("provider_keys", 3),
        ("keys", 3),
        ("runs", 0),
    ] {
        let line = format!("tollgate_admin_limited_total{{limit=\"{budget}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn a_deleted_agent_still_takes_its_place() {
    let fixture = with(&[("agents", 2)]).await;
    let account = fixture.seed.account("enterprise").await;
    let caller = fixture.caller(&account, Mode::Live).await;
    let make = async || caller.post("/v1/agents", json!({ "name": "a" })).await;
    for _ in 0..2 {
        let made = success(&make().await, 200);
        let id = made["agent"]["id"].as_str().unwrap().to_owned();
        success(&caller.delete(&format!("/v1/agents/{id}")).await, 200);
    }
    let version = account.version().await;
    over(&account, version, &make().await, "agents", 2).await;
}

#[tokio::test]
async fn the_operator_sees_what_is_used() {
    let fixture = with(&[("agents", 5)]).await;
    let account = fixture.seed.account("enterprise").await;
    let live = fixture.caller(&account, Mode::Live).await;
    let test = fixture.caller(&account, Mode::Test).await;
    for caller in [&live, &test] {
        let agent = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
        let id = agent["agent"]["id"].clone();
        let body = json!({ "maxSpendPerDay": 5 });
        success(&caller.post("/v1/policies/bot", body).await, 200);
        // 1,000 bytes of metadata and 2,000 of description.
        let spend = json!({
            "agent": "bot", "amount": 1, "description": "\u{1f4b6}".repeat(500),
            "metadata": { "note": "x".repeat(1000) },
        });
        success(&caller.post("/v1/spend", spend).await, 200);
        let wallet = &agent["agent"]["walletId"];
        assert!(id.is_string() && !wallet.is_null(), "{agent}");
    }
    success(&test.post("/v1/agents", json!({ "name": "b" })).await, 200);
    let deposit = json!({ "wallet": "user", "amount": 5, "reference": "r" });
    success(&test.post("/v1/wallet/deposits", deposit).await, 200);
    let cli = Cli::new(BINARY, fixture.redis.url());
    let shown = cli.json(&["account", "show", "--account", &account.id]);
    let budgets = |mode: &str, budget: &str| shown["budgets"][mode][budget].clone();
    assert_eq!(budgets("live", "agents")["used"], json!(1));
    assert_eq!(budgets("test", "agents"), json!({ "used": 2, "limit": 10_000 }));
    for mode in ["live", "test"] {
        assert_eq!(budgets(mode, "policies")["used"], json!(1));
        assert_eq!(budgets(mode, "intents")["used"], json!(1));
        let text = budgets(mode, "text_bytes")["used"].as_u64().unwrap();
        assert!((3000..3500).contains(&text), "{text}");
    }
    assert_eq!(budgets("test", "deposits")["used"], json!(1));
    assert_eq!(budgets("test", "transactions")["used"], json!(1));
    assert_fields!(budgets("live", "transactions"), { "used": 0 }, "the agent has no wallet");
    assert!(budgets("live", "audit_entries")["used"].as_u64().unwrap() >= 3);
    // So are the requests of this minute, of all callers of a kind together, and how many there may be.
    let requests = |limit: &str| shown["requests"][limit].clone();
    assert_eq!(
        requests("test_requests_per_minute"),
        json!({ "used": 5, "limit": 3_000, "limitOfOne": 600 })
    );
    assert_eq!(
        requests("session_requests_per_minute"),
        json!({ "used": 0, "limit": 3_000, "limitOfOne": 600 })
    );
    assert_eq!(shown["refused"], json!(false));
    assert!(shown["storeBytes"]["live"].as_u64().unwrap() > 3000, "{shown}");
    let table = cli.run(&["account", "show", "--account", &account.id]).stdout;
    assert!(table.contains("LIMIT") && table.contains("text_bytes"), "{table}");
    assert!(table.contains("session_requests_per_minute"), "{table}");
    // The operator sees configured budgets.
    let cli = cli.env("TOLLGATE_LIMITS__AGENTS", "7");
    let shown = cli.json(&["account", "show", "--account", &account.id]);
    assert_fields!(shown["budgets"]["test"], { "agents": { "used": 2, "limit": 7 } });
}

async fn assert_records_are_refused(fixture: &Fixture, caller: &Caller, cause: Cause) {
    let refuse = async |path: &str, body: Value| {
        let reply = caller.post(path, body).await;
        let sentence = problem(&reply, 429, "API_KEY_RATE_LIMITED");
        assert_eq!(sentence, cause.message(), "{path}");
        assert_eq!(reply.header("retry-after"), Some("60"));
    };
    let before = count(fixture, "store_share");
    refuse("/v1/agents", json!({ "name": "a" })).await;
    refuse("/v1/policies/bot", json!({})).await;
    refuse("/v1/spend", json!({ "agent": "bot", "amount": 1 })).await;
    refuse("/v1/webhooks", json!({})).await;
    for path in ["/v1/agents", "/v1/audit", "/v1/policies", "/v1/wallet"] {
        success(&caller.get(path).await, 200);
    }
    success(&caller.send("POST", "/v1/agents/bot/freeze", &[], "").await, 200);
    let reply = caller.send("POST", "/v1/agents/bot/unfreeze", &[], "").await;
    success(&reply, 200);
    let dry = json!({ "agent": "bot", "amount": 1 });
    success(&caller.post("/v1/decisions/dry-run", dry).await, 200);
    let policies = success(&caller.get("/v1/policies").await, 200);
    let policy = policies["policies"][0]["id"].as_str().unwrap().to_owned();
    success(&caller.delete(&format!("/v1/policies/{policy}")).await, 200);
    success(&caller.get("/v1/agents").await, 200);
    assert_eq!(count(fixture, "store_share") - before, 4);
}

#[tokio::test]
async fn listed_accounts_cannot_create_records_but_everything_else() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("enterprise").await;
    let (_, other) = fixture.account("enterprise").await;
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    // The worker of this server finds no account, and removes no list that it did not write.
    let list = RefusedLists {
        room: [(account.id.clone(), Cause::Share)].into(),
        ..RefusedLists::default()
    };
    refused::write(&fixture.store, &list).await.unwrap();
    let named = async || {
        let reply = caller.post("/v1/agents", json!({})).await;
        (reply.status == 429).then_some(())
    };
    harness::eventually("the server reads the list", Duration::from_secs(10), named).await;
    assert_records_are_refused(&fixture, &caller, Cause::Share).await;
    success(&other.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let cli = Cli::new(BINARY, fixture.redis.url());
    assert_fields!(cli.json(&["account", "show", "--account", &account.id]), { "refused": true });
    // Without a worker that renews the list it expires, and so does the refusal.
    let left: u64 = fixture.redis.command(&["PTTL", "tollgate/refused"]);
    assert!(left <= 60_000, "{left}");
    let _: u64 = fixture.redis.command(&["DEL", "tollgate/refused"]);
    let free = async || {
        let reply = caller.post("/v1/agents", json!({ "name": "a" })).await;
        (reply.status == 200).then_some(())
    };
    harness::eventually("the refusal ends with the list", Duration::from_secs(10), free).await;
}

fn count(fixture: &Fixture, limit: &str) -> u64 {
    let series = format!("tollgate_admin_limited_total{{limit=\"{limit}\"}}");
    fixture.admin.metric(&series).unwrap()
}

#[tokio::test]
async fn an_account_with_too_many_audit_entries_waits_for_the_archive() {
    let fixture = with(&[("audit_entries", 30)]).await;
    let account = fixture.seed.account("enterprise").await;
    let caller = fixture.caller(&account, Mode::Live).await;
    let limits = AtomicU64::new(1);
    let full = async || {
        let limit = limits.fetch_add(1, Ordering::Relaxed);
        let reply = caller
            .post("/v1/policies/bot", json!({ "maxSpendPerDay": limit }))
            .await;
        (reply.status == 429).then_some(())
    };
    harness::eventually("the budget is used up", Duration::from_secs(20), full).await;
    let before = count(&fixture, "store_share");
    assert_eq!(before, 1);
    let reply = caller.post("/v1/agents", json!({ "name": "a" })).await;
    assert_eq!(
        problem(&reply, 429, "API_KEY_RATE_LIMITED"),
        Cause::AuditEntries.message()
    );
    let entries: u64 = fixture.redis.command(&["LLEN", &account.keys.live().audit()]);
    assert!((30..1000).contains(&entries), "{entries}");
    // Another account is not affected.
    let other = fixture.account("enterprise").await.1;
    success(&other.post("/v1/agents", json!({ "name": "a" })).await, 200);
}

/// The guard's sum of texts that no budget counts: those of agents as long as these exist, those of transactions for
/// ever.
#[tokio::test]
async fn texts_that_stay_are_counted() {
    let world = with(&[]).await;
    let account = world.seed.account("enterprise").await;
    let caller = world.caller(&account, Mode::Test).await;
    let record = account.keys.record();
    let kept = || {
        world
            .redis
            .command::<Option<u64>>(&["HGET", &record, "test_kept_text"])
    };
    let agent = async |name: &str, description: Value| {
        let body = json!({ "name": name, "description": description });
        let made = success(&caller.post("/v1/agents", body).await, 200);
        format!("/v1/agents/{}", made["agent"]["id"].as_str().unwrap())
    };
    agent("plain", Value::Null).await;
    assert_eq!(kept(), None);
    let path = agent("long", json!("\u{1f600}".repeat(2_000))).await;
    assert_eq!(kept(), Some(8_000));
    for (description, bytes) in [
        (json!("short"), 5),
        (json!("x".repeat(700)), 700),
        (Value::Null, 0),
    ] {
        let body = json!({ "description": description });
        success(&caller.patch(&path, body).await, 200);
        assert_eq!(kept(), Some(bytes), "{description}");
    }
    success(
        &caller
            .patch(&path, json!({ "description": "y".repeat(900) }))
            .await,
        200,
    );
    success(&caller.send("DELETE", &path, &[], "").await, 200);
    assert_eq!(kept(), Some(0));
    // A provider key counts with what it takes, each of an agent's.
    let live = world.caller(&account, Mode::Live).await;
    let made = success(&live.post("/v1/agents", json!({ "name": "keys" })).await, 200);
    let id = made["agent"]["id"].as_str().unwrap().to_owned();
    let row = account.keys.live().agent(&id);
    let count_of_keys = || {
        world
            .redis
            .command::<Option<u64>>(&["HGET", &record, "live_kept_text"])
    };
    let mut sum = 0;
    for (provider, length) in [("openai", 100), ("azure", 500), ("openai", 400)] {
        let sealed = format!("pk_sealed:{provider}");
        let size = || world.redis.command::<u64>(&["HSTRLEN", &row, &sealed]);
        let before = size();
        let body = json!({ "provider": provider, "apiKey": format!("sk-{}", "x".repeat(length)) });
        success(
            &live.post(&format!("/v1/agents/{id}/provider-keys"), body).await,
            201,
        );
        sum = sum + size() + if before == 0 { 400 } else { 0 } - before;
        assert_eq!(count_of_keys(), Some(sum), "{provider}");
    }
    assert!(sum > 2 * 400 + 900, "{sum}");
    success(
        &live.send("DELETE", &format!("/v1/agents/{id}"), &[], "").await,
        200,
    );
    assert_eq!(count_of_keys(), Some(0));
    // Two legs of a transfer, each of them with the memo.
    let deposit = json!({ "wallet": "user", "amount": 1, "reference": "r" });
    success(&caller.post("/v1/wallet/deposits", deposit).await, 200);
    success(
        &caller
            .post("/v1/wallets/create", json!({ "botId": "purse" }))
            .await,
        200,
    );
    let memo = "\u{1f600}".repeat(500);
    let transfer = json!({ "from": "user", "to": "purse", "amount": "0.1", "memo": memo });
    success(&caller.post("/v1/wallets/transfer", transfer).await, 200);
    let lines: Vec<String> = world
        .redis
        .command(&["HVALS", &account.keys.in_mode(Mode::Test).transactions()]);
    let beyond: usize = lines
        .iter()
        .map(|line| line.len().saturating_sub(LONG_TRANSACTION))
        .sum();
    assert!((3_600..4_000).contains(&beyond), "{beyond}");
    assert_eq!(kept(), Some(beyond as u64));
    let shown = Cli::new(BINARY, world.redis.url()).json(&["account", "show", "--account", &account.id]);
    let bytes = shown["storeBytes"]["test"].as_u64().unwrap();
    assert!(bytes > 3 * 600 + beyond as u64, "{shown}");
}

#[tokio::test]
async fn an_account_with_too_much_audit_text_waits_for_the_archive() {
    let fixture = with(&[("audit_text", 100_000)]).await;
    let account = fixture.seed.account("enterprise").await;
    let caller = fixture.caller(&account, Mode::Live).await;
    let made = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let path = format!("/v1/agents/{}", made["agent"]["id"].as_str().unwrap());
    let changes = AtomicU64::new(0);
    let change = async || {
        let change = changes.fetch_add(1, Ordering::Relaxed);
        let text = "\u{1f600}".repeat(1_900);
        let body = json!({ "description": format!("{change}{text}") });
        caller.patch(&path, body).await
    };
    let full = async || {
        let replies = futures::future::join_all((0..20).map(|_| change())).await;
        replies.into_iter().find(|reply| reply.status != 200)
    };
    let refused = harness::eventually("the budget is used up", Duration::from_secs(30), full).await;
    assert_eq!(
        problem(&refused, 429, "API_KEY_RATE_LIMITED"),
        Cause::AuditText.message()
    );
    // Few entries have it all.
    let record = account.keys.record();
    let last: u64 = fixture.redis.command(&["HGET", &record, "live_audit_seq"]);
    assert!(last < 10_000, "{last}");
    // What protects goes on, and so does another account.
    let freeze = caller.send("POST", &format!("{path}/freeze"), &[], "").await;
    success(&freeze, 200);
    let other = fixture.account("enterprise").await.1;
    success(&other.post("/v1/agents", json!({ "name": "a" })).await, 200);
    // The archive takes the oldest entries before their time.
    let free = async || (change().await.status == 200).then_some(());
    harness::eventually("the account may go on", Duration::from_secs(30), free).await;
    let rest = async || {
        let left: u64 = fixture.redis.command(&["HGET", &record, "live_audit_text"]);
        (left <= 50_000).then_some(())
    };
    harness::eventually("half of the budget is free", Duration::from_secs(20), rest).await;
    success(&caller.get("/v1/audit?limit=200").await, 200);
    let shown = Cli::new(BINARY, fixture.redis.url()).json(&["account", "show", "--account", &account.id]);
    assert_eq!(shown["budgets"]["live"]["audit_text"]["limit"], json!(67_108_864));
}
