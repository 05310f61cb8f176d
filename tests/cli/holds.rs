//! Kept holds: listed, settled and released by the operator.

use crate::{cli, document};
use harness::{Redis, Seed, SeedAgent, Store, assert_fields, open_cap, text};
use serde_json::{Value, json};
use std::time::Duration;
use store::call::reap;

const ESTIMATE: u64 = 2_000_000_000;

/// Charges a call of 2 USD. Returns the hold's id.
pub(crate) async fn hold(agent: &SeedAgent, life: Duration) -> String {
    let (key_id, _) = agent.virtual_key_with_id().await;
    agent.open_hold(&key_id, ESTIMATE, life).await.allow_id
}

pub(crate) async fn agent(store: &Store) -> SeedAgent {
    let agent = Seed::new(store).await.account("startup").await.agent("bot");
    agent.cap(open_cap()).await;
    agent.policy_record().await;
    agent.provider_key("sk-test").await;
    agent
}

fn run(redis: &Redis, args: &[&str], code: i32) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    document(&cli(redis).run(&args), code)
}

/// The entries of calls in the account's audit trail.
fn entries(redis: &Redis, account: &str) -> Vec<Value> {
    let export = cli(redis).run(&["audit", "export", "--account", account]);
    let lines = export
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|entry: &Value| text(entry, "/type").starts_with("decision"))
        .collect()
}

#[tokio::test]
async fn an_open_hold_is_listed_and_settled_once_when_it_is_overdue() {
    let redis = Redis::start();
    let store = redis.store();
    let bot = agent(&store).await;
    let id = hold(&bot, Duration::from_secs(100)).await;
    for args in [
        &["holds", "list"][..],
        &["holds", "list", "--account", &bot.account.id],
    ] {
        let list = run(&redis, args, 0);
        let found = &list["holds"][0];
        assert_eq!((&list["total"], &found["id"]), (&json!(1), &json!(id)));
        assert_fields!(found, { "state": "open", "estimateUsd": 2 });
        assert_fields!(found, { "agentId": "bot", "model": "gpt-4o-mini" });
    }
    assert_eq!(bot.counters().await.day_nanos, ESTIMATE);
    // Its call is in flight: the answer settles it.
    let due = text(&run(&redis, &["holds", "list"], 0), "/holds/0/at").to_owned();
    for args in [
        &["holds", "settle", "--id", &id, "--actual", "0.5"][..],
        &["holds", "release", "--id", &id, "--account", &bot.account.id],
    ] {
        let refused = run(&redis, args, 1);
        assert_fields!(refused, { "code": "CONFLICT" });
        assert!(
            text(&refused, "/error").contains(&format!("in flight until {due}")),
            "{refused}"
        );
        assert_eq!(bot.counters().await.day_nanos, ESTIMATE);
    }
    bot.pass_deadlines().await;
    let settled = run(&redis, &["holds", "settle", "--id", &id, "--actual", "0.5"], 0);
    assert_fields!(settled, { "actualUsd": 0.5, "was": "open" });
    assert_eq!(bot.counters().await.day_nanos, 500_000_000);
    assert_fields!(run(&redis, &["holds", "settle", "--id", &id, "--actual", "0"], 1), {
        "code": "NOT_FOUND",
    });
    let ends = entries(&redis, &bot.account.id);
    assert_eq!(ends.len(), 1);
    assert_fields!(ends[0], { "type": "decision.approved", "actor": "operator" });
    assert_fields!(ends[0]["data"], { "outcome": "settled", "actualNanos": "500000000" });
    assert_eq!(run(&redis, &["holds", "list"], 0)["total"], 0);
}

#[tokio::test]
async fn a_kept_hold_stays_charged_until_it_is_released() {
    let redis = Redis::start();
    let store = redis.store();
    let bot = agent(&store).await;
    let id = hold(&bot, Duration::from_secs(100)).await;
    bot.pass_deadlines().await;
    let now = clock::now_ms();
    let kept = reap::sweep(&store, bot.account.keys.bucket(), now).await.unwrap();
    assert_eq!(kept.len(), 1);
    let list = run(&redis, &["holds", "list"], 0);
    assert_fields!(list["holds"][0], { "state": "kept", "id": id });
    assert_eq!(
        bot.counters().await.day_nanos,
        ESTIMATE,
        "the estimate stays charged"
    );
    let account = bot.account.id.as_str();
    let released = run(
        &redis,
        &[
            "holds",
            "release",
            "--id",
            &id,
            "--account",
            account,
            "--reason",
            "ticket 9: 100 %",
        ],
        0,
    );
    assert_fields!(released, { "actualUsd": 0, "was": "kept" });
    let ends = entries(&redis, account);
    let said: Vec<_> = ends
        .iter()
        .map(|end| (&end["actor"], &end["data"]["outcome"]))
        .collect();
    assert_eq!(
        said,
        [
            (&json!("worker"), &json!("kept")),
            (&json!("operator"), &json!("corrected"))
        ]
    );
    assert!(ends.iter().all(|end| text(end, "/data/keyId").starts_with("vk_")));
    assert_fields!(ends[0]["data"], { "operatorReason": null });
    assert_fields!(ends[1]["data"], { "operatorReason": "ticket 9: 100 %", "actualUsd": 0 });
    assert_eq!(bot.counters().await.day_nanos, 0);
    assert_fields!(run(&redis, &["holds", "release", "--id", &id], 1), { "code": "NOT_FOUND" });
}

/// A mistake of the operator, such as cents for USD, charges nothing. A cost that is confirmed does.
#[tokio::test]
async fn a_kept_hold_is_settled_at_a_plausible_cost() {
    let redis = Redis::start();
    let store = redis.store();
    let bot = agent(&store).await;
    let ids = [
        hold(&bot, Duration::from_secs(100)).await,
        hold(&bot, Duration::from_secs(100)).await,
    ];
    bot.pass_deadlines().await;
    let now = clock::now_ms();
    let kept = reap::sweep(&store, bot.account.keys.bucket(), now).await.unwrap();
    assert_eq!(kept.len(), ids.len());
    let settle = |id: &str, actual: &str, more: &[&str], code: i32| {
        let args = ["holds", "settle", "--id", id, "--actual", actual];
        run(&redis, &[&args[..], more].concat(), code)
    };
    for (actual, more, code) in [
        ("2.000000001", &[][..], "ABOVE_ESTIMATE"),
        ("9000000", &[], "VALIDATION"),
        ("10000.000000001", &["--above-estimate"], "VALIDATION"),
    ] {
        let refused = settle(&ids[0], actual, more, 1);
        assert_fields!(refused, { "code": code });
        assert!(
            text(&refused, "/error").contains("the estimate of 2 USD"),
            "{refused}"
        );
        assert_eq!(bot.counters().await.day_nanos, 2 * ESTIMATE, "{actual}");
    }
    let exact = settle(&ids[0], "2", &[], 0);
    assert_fields!(exact, { "actualUsd": 2, "estimateUsd": 2, "was": "kept" });
    let above = settle(
        &ids[1],
        "10000",
        &["--above-estimate", "--reason", "invoice 7"],
        0,
    );
    assert_fields!(above, { "actualUsd": 10_000, "was": "kept" });
    let charged = ESTIMATE + 10_000_000_000_000;
    assert_eq!(bot.counters().await.day_nanos, charged);
    let ends = entries(&redis, &bot.account.id);
    let corrected: Vec<_> = ends
        .iter()
        .filter(|end| end["data"]["outcome"] == "corrected")
        .map(|end| {
            (
                &end["actor"],
                &end["data"]["actualUsd"],
                &end["data"]["operatorReason"],
            )
        })
        .collect();
    assert_eq!(
        corrected,
        [
            (&json!("operator"), &json!(2), &Value::Null),
            (&json!("operator"), &json!(10_000), &json!("invoice 7")),
        ]
    );
    assert_eq!(run(&redis, &["holds", "list"], 0)["total"], 0);
    document(&cli(&redis).run(&["ledger", "check", "--json"]), 0);
}

#[tokio::test]
async fn lists_are_of_one_account_and_bounded() {
    let redis = Redis::start();
    let store = redis.store();
    let (one, other) = (agent(&store).await, agent(&store).await);
    for bot in [&one, &one, &other] {
        hold(bot, Duration::from_secs(100)).await;
    }
    assert_eq!(run(&redis, &["holds", "list"], 0)["total"], 3);
    assert_fields!(run(&redis, &["holds", "list", "--account", &one.account.id], 0), { "total": 2 });
    let two = run(&redis, &["holds", "list", "--limit", "2"], 0);
    assert_fields!(two, { "total": 2, "truncated": true });
    assert_fields!(run(&redis, &["holds", "list", "--account", "acct_none"], 1), { "code": "NOT_FOUND" });
}
