//! `store.durability` on one server: acknowledged changes after a crash and after a power cut, and a store that does
//! not support the configured durability.

use crate::changes::{Changes, Customer};
use crate::deposits::{Depositor, Deposits};
use crate::fixture::{ADMIN, PROXY};
use crate::power::Powered;
use clock::now_ms;
use harness::{
    Admin, AdminOptions, Answer, Cli, Edge, EdgeOptions, Redis, Reply, Seed, Upstream, assert_fields,
    open_cap, until,
};
use serde_json::json;
use store::durability::{Disk, Offer};

/// Acknowledged deposits before the store is struck.
const SOME: usize = 40;
/// Pieces of business, of six changes each, before it is struck.
const FEW: usize = 10;
/// Deposits that never reach the disk.
const UNWRITTEN: usize = 3;

fn options(redis: &Redis, durability: &str) -> AdminOptions {
    AdminOptions::new(ADMIN, redis.url())
        .env("TOLLGATE_STORE__DURABILITY", durability)
        .env("TOLLGATE_STORE__DURABILITY_TIMEOUT_MS", "2500")
}

async fn depositor(redis: &Redis, admin: &Admin) -> Depositor {
    let store = redis.store();
    let account = Seed::new(&store).await.account("enterprise").await;
    Depositor::new(&account, admin).await
}

/// Returns true if this server confirms by `WAITAOF`, which Redis has since 8.0.
fn has_waitaof(redis: &Redis) -> bool {
    let info: String = redis.command(&["INFO", "server"]);
    let offer = Offer::from_info(&format!("{info}aof_enabled:1\r\n"), None);
    offer.disk == Ok(Disk::WaitAof)
}

/// Kills the store, cuts its power, and cuts it while the disk hangs: changes that are sent meanwhile are not
/// acknowledged.
async fn strike(store: &Powered, round: usize) {
    match round {
        0 => store.crash(),
        1 => drop(store.lose_power()),
        _ => {
            store.hold_disk();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            store.lose_power();
        }
    }
}

async fn nothing_acknowledged_is_lost(appendfsync: &str) {
    let store = Powered::start(appendfsync);
    Seed::new(&store.redis.store()).await;
    let admin = Admin::start(options(&store.redis, "aof"));
    let depositor = depositor(&store.redis, &admin).await;
    let mut done = Vec::new();
    for round in 0..3 {
        let deposits = Deposits::start(&depositor, &format!("round-{round}-{}", now_ms()));
        deposits.more(SOME).await;
        strike(&store, round).await;
        deposits.more(1).await;
        done.extend(deposits.end().await.done);
    }
    let missing = depositor.missing(&store.redis.store(), &done).await;
    assert_eq!(missing, Vec::<String>::new(), "of {} acknowledged", done.len());
    println!(
        "aof with appendfsync {appendfsync}: none of {} acknowledged deposits lost",
        done.len()
    );
    // No process saw the account's version decrease, so the account works without `store accept`.
    depositor.deposit_until_acknowledged("afterwards").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aof_loses_nothing_that_was_acknowledged() {
    nothing_acknowledged_is_lost("always").await;
    if has_waitaof(&Redis::start()) {
        nothing_acknowledged_is_lost("everysec").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_change_that_was_acknowledged_is_on_the_disk() {
    let store = Powered::start("always");
    let seed = Seed::new(&store.redis.store()).await;
    let admin = Admin::start(options(&store.redis, "aof"));
    let customer = Customer::new(&seed.account("enterprise").await, &admin).await;
    let changes = Changes::start(&customer);
    for round in 0..3 {
        changes.more(FEW).await;
        strike(&store, round).await;
    }
    changes.more(FEW).await;
    println!("none of {} changes of money lost", changes.end().await);
    let check = Cli::new(ADMIN, store.redis.url()).json(&["ledger", "check"]);
    assert_eq!(check["ok"], json!(true), "{check}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn async_loses_in_a_power_cut_what_was_not_written() {
    let store = Powered::start("everysec");
    Seed::new(&store.redis.store()).await;
    let admin = Admin::start(options(&store.redis, "async"));
    let depositor = depositor(&store.redis, &admin).await;
    let handle = store.redis.store();

    depositor.deposit_until_acknowledged("kept").await;
    until("the deposit on the disk", async || {
        let delayed: String = store.redis.command(&["INFO", "persistence"]);
        delayed.contains("aof_pending_bio_fsync:0")
    })
    .await;
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    store.hold_disk();
    let lost: Vec<String> = (0..UNWRITTEN).map(|number| format!("lost-{number}")).collect();
    for reference in &lost {
        depositor.deposit_until_acknowledged(reference).await;
    }
    assert!(store.lose_power() > 0, "something was not on the disk");
    assert_eq!(
        depositor.missing(&handle, &lost).await,
        lost,
        "acknowledged, and lost"
    );
    assert!(depositor.missing(&handle, &["kept".to_owned()]).await.is_empty());

    // A server that had seen a higher version refuses the account until the operator accepts the rest.
    let refused = depositor.deposit("next").await;
    assert_eq!(
        (refused.status, code(&refused)),
        (503, "SERVICE_UNAVAILABLE".to_owned())
    );
    let cli = Cli::new(ADMIN, store.redis.url());
    let accepted = cli.json(&["store", "accept", "--account", &depositor.account.id]);
    assert_eq!(accepted["accepted"], 1, "{accepted}");
    depositor.deposit_until_acknowledged("next").await;
    assert_eq!(
        depositor.balance().await,
        json!(2),
        "what was lost is not counted"
    );
}

/// The disk of the store fails: a server that could not write its append-only file refuses every write until the
/// operator does what docs/guides/runbook.md says (TollgateStorePersistence).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_disk_fails_denies_every_call_until_the_operator_reopens_its_file() {
    let store = Powered::start("everysec");
    let seed = Seed::new(&store.redis.store()).await;
    let upstream = Upstream::start(|_| Answer::chat_with_usage(json!(null)));
    let edge = Edge::start(EdgeOptions::new(PROXY, store.redis.url(), upstream.base_url()));
    let admin = Admin::start(options(&store.redis, "async"));
    let (agent, key) = seed.ready_agent("enterprise", open_cap()).await;
    agent.policy_record().await;
    let caller = edge.caller(&key);
    let body =
        json!({ "model": "gpt-4o-mini", "max_tokens": 9, "messages": [{ "role": "user", "content": "a" }] });
    let call = async || caller.chat(body.clone()).await;
    assert_eq!(call().await.status, 200);

    store.break_disk();
    let refuses = |ops: Option<(u16, String)>| {
        ops.is_some_and(|(status, text)| status == 503 && text.contains("(MISCONF)"))
    };
    until("servers that are not ready", async || {
        // The server notices its disk by the next write that it brings there.
        drop(call().await);
        refuses(edge.ops("/readyz")) && refuses(admin.ops("/readyz"))
    })
    .await;
    let arrived = upstream.arrived();
    for _ in 0..3 {
        let denied = call().await;
        assert_eq!(
            (denied.status, denied.header("x-service-reason")),
            (503, Some("service_unavailable"))
        );
    }
    assert_eq!(upstream.arrived(), arrived, "nothing is forwarded");

    store.mend_disk();
    let _: String = store.redis.command(&["BGREWRITEAOF"]);
    until("a file that is rewritten", async || {
        let status: String = store.redis.command(&["INFO", "persistence"]);
        status.contains("aof_rewrite_in_progress:0")
    })
    .await;
    for value in ["no", "yes"] {
        let _: String = store.redis.command(&["CONFIG", "SET", "appendonly", value]);
    }
    until("servers that are ready", async || {
        let is_ready = |ops: Option<(u16, String)>| ops.is_some_and(|(status, _)| status == 200);
        is_ready(edge.ops("/readyz")) && is_ready(admin.ops("/readyz"))
    })
    .await;
    assert_eq!(call().await.status, 200);
    assert_eq!(upstream.arrived(), arrived + 1);
    until("an exact ledger", async || {
        let check = Cli::new(ADMIN, store.redis.url()).json(&["ledger", "check"]);
        check["ok"] == json!(true)
    })
    .await;
}

#[tokio::test]
async fn aof_without_a_file_is_refused_by_name_and_nothing_happens() {
    let redis = Redis::start();
    Seed::new(&redis.store()).await;
    let admin = Admin::start(options(&redis, "aof"));
    let depositor = depositor(&redis, &admin).await;
    let refused = depositor.deposit("refused").await;
    assert_eq!((refused.status, code(&refused)), (503, "NOT_DURABLE".to_owned()));
    let there = depositor.missing(&redis.store(), &["refused".to_owned()]).await;
    assert_eq!(there.len(), 1, "nothing was done");
    until("a line of the log", async || {
        let logs = admin.logs();
        logs.contains("store.durability = aof") && logs.contains("appendonly no")
    })
    .await;
    let cli = Cli::new(ADMIN, redis.url()).env("TOLLGATE_STORE__DURABILITY", "aof");
    let check = cli.run(&["store", "check", "--json"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stdout.contains("NOT_DURABLE") && check.stdout.contains("store.durability = aof"));

    // Corrected while everything runs.
    let _: String = redis.command(&["CONFIG", "SET", "appendonly", "yes", "appendfsync", "always"]);
    until("a deposit", async || {
        depositor.deposit("refused").await.status == 200
    })
    .await;
    assert_eq!(cli.run(&["store", "check", "--json"]).code, Some(0));
    assert_eq!(is_durable(&admin), Some(1));

    // And spoiled again: the change itself notices, not only the next look.
    let _: String = redis.command(&["CONFIG", "SET", "appendonly", "no"]);
    let reply = depositor.deposit("spoiled").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(["NOT_DURABLE", "NOT_CONFIRMED"].contains(&code(&reply).as_str()));
}

#[tokio::test]
async fn auto_takes_what_the_store_offers_and_says_so() {
    let redis = Redis::start();
    Seed::new(&redis.store()).await;
    let admin = Admin::start(options(&redis, "auto"));
    let depositor = depositor(&redis, &admin).await;
    depositor.deposit_until_acknowledged("without a file").await;
    assert_eq!(is_durable(&admin), Some(0));
    until("a warning", async || {
        let logs = admin.logs();
        logs.contains("WARN") && logs.contains("store.durability = auto")
    })
    .await;
    let cli = Cli::new(ADMIN, redis.url());
    let check = cli.json(&["store", "check"]);
    assert_fields!(check["durability"], { "asked": "auto", "confirmed": "async" });
    assert!(check["durability"]["lacks"].is_string());

    let _: String = redis.command(&["CONFIG", "SET", "appendonly", "yes", "appendfsync", "always"]);
    until("confirmed deposits", async || is_durable(&admin) == Some(1)).await;
    depositor.deposit_until_acknowledged("with a file").await;
    assert_eq!(cli.json(&["store", "check"])["durability"]["confirmed"], "aof");
    // A replay is answered only when it is as safe.
    let again = depositor.deposit("with a file").await;
    assert_eq!(
        (again.status, again.json()["replayed"].clone()),
        (200, json!(true))
    );
}

/// Whether changes are confirmed, by the metric of an admin server.
fn is_durable(admin: &Admin) -> Option<u64> {
    admin.metric("tollgate_admin_store_durable")
}

/// The `code` of an error of the management API.
pub fn code(reply: &Reply) -> String {
    reply.json()["code"].as_str().unwrap_or_default().to_owned()
}
