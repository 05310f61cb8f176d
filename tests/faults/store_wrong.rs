//! A store that answers, but may not be trusted or does not take writes (decisions D47, D52).

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, SOON, Setup, answer};
use harness::{Redis, eventually, open_cap, until};

/// Calls until one is denied for want of a decision, as it must be soon.
async fn denied_soon(fixture: &Fixture) {
    until("a denial of everything", async || {
        fixture.call().await.status == 503
    })
    .await;
    for _ in 0..3 {
        fixture.unavailable_call().await;
    }
}

/// A call that waits at the provider while the test changes the store.
async fn during_a_call(fixture: &Fixture, change: impl AsyncFnOnce()) {
    let gate = fixture.gated();
    let arrived = fixture.upstream.requests().len();
    let (reply, ()) = futures::future::join(fixture.call(), async {
        fixture.upstream.wait_for(arrived + 1, SOON).await;
        change().await;
        gate.notify_one();
    })
    .await;
    assert_eq!(reply.status, 200, "the provider has answered: {reply:?}");
    fixture.upstream.set(|_| answer());
}

/// Waits until `/readyz` says that the store takes no writes, and the log says it once.
async fn not_ready(fixture: &Fixture, why: &str) {
    eventually(why, SOON, async || {
        let (status, text) = fixture.edge.ops("/readyz")?;
        (status == 503 && text.contains("takes no writes") && text.contains(why)).then_some(())
    })
    .await;
    until("a line", async || {
        fixture
            .edge
            .logs()
            .matches("calls and changes are refused")
            .count()
            == 1
    })
    .await;
}

async fn ready(fixture: &Fixture) {
    eventually("readiness", SOON, async || {
        (fixture.edge.ops("/readyz")?.0 == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_full_store_denies_but_settles() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    during_a_call(&fixture, async || {
        let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    })
    .await;
    fixture.settled_at(2 * ACTUAL).await;
    fixture.unavailable_call().await;
    assert_eq!(
        fixture.metric("tollgate_proxy_pending"),
        0,
        "a refused authorize needs no void"
    );
    not_ready(&fixture, "(OOM)").await;
    let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    fixture.approved_call().await;
    ready(&fixture).await;
    fixture.settled_at(3 * ACTUAL).await;
}

/// Callers that go on while the store refuses do not fill the log: a line a second says how many it stands for.
#[tokio::test]
async fn a_store_that_refuses_is_logged_once_a_second() {
    const CALLS: usize = 40;
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    let _: String = fixture.redis.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let began = std::time::Instant::now();
    for _ in 0..CALLS {
        fixture.unavailable_call().await;
    }
    let seconds = began.elapsed().as_secs() as usize;
    let logs = fixture.edge.logs();
    let reported: Vec<serde_json::Value> = logs
        .lines()
        .filter(|line| line.contains("the store gave no decision"))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        (1..=seconds + 1).contains(&reported.len()),
        "{} lines in {seconds} s",
        reported.len()
    );
    assert!(reported.len() < CALLS / 2, "{}", reported.len());
    assert_eq!(reported[0]["left_out"], 0, "{}", reported[0]);
    assert!(reported[0].to_string().contains("OOM"), "{}", reported[0]);
}

/// No admin server saw the change that the store lost, so only the edge's own count can raise an alert.
#[tokio::test]
async fn an_edge_counts_the_calls_that_it_denies_since_the_store_lost_writes() {
    const REFUSALS: &str = "tollgate_proxy_lost_writes_refusals_total";
    let fixture = Setup::default().start().await;
    let record = fixture.bot.account.keys.record();
    let version = || fixture.redis.command::<u64>(&["HGET", &record, "version"]);
    let set = |version: u64| {
        fixture
            .redis
            .command::<i64>(&["HSET", &record, "version", &version.to_string()])
    };
    let before = version();
    fixture.approved_call().await;
    assert_eq!(fixture.metric(REFUSALS), 0);
    let after = version();
    assert!(after > before, "{before} {after}");
    set(before);
    for denied in 1..=3 {
        fixture.unavailable_call().await;
        assert_eq!(fixture.metric(REFUSALS), denied);
    }
    set(after);
    fixture.approved_call().await;
    assert_eq!(fixture.metric(REFUSALS), 3);
}

#[tokio::test]
async fn a_read_only_replica_denies_and_the_settlement_waits() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    let closed = harness::ClosedPort::take();
    let nowhere = closed.address().port().to_string();
    during_a_call(&fixture, async || {
        let _: String = fixture.redis.command(&["REPLICAOF", "127.0.0.1", &nowhere]);
    })
    .await;
    assert_eq!(
        fixture.charged(),
        [ACTUAL + ESTIMATE; 3],
        "the estimate stays for now"
    );
    fixture.unavailable_call().await;
    assert_eq!(fixture.metric("tollgate_proxy_pending"), 1);
    not_ready(&fixture, "(READONLY)").await;
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    fixture.unavailable_call().await;
    let _: String = fixture.redis.command(&["REPLICAOF", "NO", "ONE"]);
    fixture.settled_at(2 * ACTUAL).await;
    fixture.recovered().await;
    fixture.settled_at(3 * ACTUAL).await;
}

#[tokio::test]
async fn a_store_without_its_replicas_denies_and_the_settlement_waits() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    during_a_call(&fixture, async || {
        let _: String = fixture
            .redis
            .command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    })
    .await;
    assert_eq!(fixture.charged(), [ACTUAL + ESTIMATE; 3]);
    fixture.unavailable_call().await;
    not_ready(&fixture, "(NOREPLICAS)").await;
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    fixture.settled_at(2 * ACTUAL).await;
    fixture.recovered().await;
}

/// An endless script keeps the store busy: it refuses everything until the script is killed.
#[tokio::test]
async fn a_busy_store_denies_until_it_is_free() {
    let fixture = Setup::default().env("STORE__TIMEOUT_MS", 1000).start().await;
    fixture.approved_call().await;
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "busy-reply-threshold", "50"]);
    let client = redis::Client::open(fixture.redis.url()).expect("an address");
    let endless = std::thread::spawn(move || {
        let mut connection = client.get_connection().expect("a connection");
        let mut command = redis::cmd("EVAL");
        command
            .arg("while true do end")
            .arg(0)
            .query::<String>(&mut connection)
            .is_err()
    });
    let busy = || fixture.redis.try_command::<String>(&["PING"]);
    let is_busy = async || {
        busy()
            .is_err_and(|error| error.code() == Some("BUSY"))
            .then_some(())
    };
    eventually("a busy store", SOON, is_busy).await;
    for _ in 0..3 {
        fixture.unavailable_call().await;
    }
    let _: String = fixture.redis.command(&["SCRIPT", "KILL"]);
    assert!(endless.join().expect("the script's thread"), "it was killed");
    fixture.recovered().await;
    fixture.settled_at(2 * ACTUAL).await;
}

/// A wiped store is no fresh budget: not for keys that the edge knows, not after the operator made a new ledger of it.
#[tokio::test]
async fn a_wiped_store_denies_every_key() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    let _: String = fixture.redis.command(&["FLUSHALL"]);
    for _ in 0..5 {
        fixture.unavailable_call().await;
    }
    let shapeless = fixture
        .edge
        .caller("vk_live_x")
        .chat(crate::fixture::body())
        .await;
    assert_eq!(shapeless.status, 401, "refused without the store: {shapeless:?}");
    let health = fixture.edge.caller("").get("/v1/health").await;
    assert_eq!(health.status, 503, "{health:?}");
    eventually("not ready", SOON, async || {
        (fixture.edge.ops("/readyz")?.0 == 503).then_some(())
    })
    .await;
    fixture.unavailable_call().await;
    assert_eq!(
        fixture.redis.command::<u64>(&["DBSIZE"]),
        0,
        "nothing was written to the store"
    );

    let seed = harness::Seed::new(&fixture.redis.store()).await;
    let policy = open_cap();
    let (bot, key) = seed.ready_agent("builder", policy).await;
    let caller = fixture.edge.caller(&key);
    let body = crate::fixture::body;
    until("an approved call", async || {
        caller.chat(body()).await.status == 200
    })
    .await;
    let old = fixture.call().await;
    assert!(
        matches!(old.status, 401 | 503),
        "keys of the old ledger stay dead: {old:?}"
    );
    until("the old key is forgotten", async || {
        fixture.call().await.status == 401
    })
    .await;
    assert_eq!(fixture.upstream.arrived(), 2);
    bot.settled_within(SOON).await;
    assert_eq!(bot.charged(&fixture.redis), [ACTUAL; 3]);
}

/// A wiped store does not make the edge call a new key unknown.
#[tokio::test]
async fn a_wiped_store_says_nothing_about_a_new_key() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    let key = fixture.bot.virtual_key().await;
    fixture.at_rest().await;
    let caller = fixture.edge.caller(&key);
    let _: String = fixture.redis.command(&["FLUSHALL"]);
    crate::fixture::unavailable(&caller.chat(crate::fixture::body()).await);
    crate::fixture::unavailable(&caller.get("/v1/models").await);
}

#[tokio::test]
async fn a_store_that_evicts_is_not_used() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let _: String = fixture
            .redis
            .command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        denied_soon(&fixture).await;
        assert_eq!(fixture.edge.ops("/readyz").map(|(status, _)| status), Some(503));
        let _: String = fixture
            .redis
            .command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        fixture.recovered().await;
    }
    fixture.every_approved_call_is_settled().await;
}

/// The store becomes unusable while a caller sends its body: an earlier check of the store does not count.
#[tokio::test]
async fn a_store_that_is_not_used_any_more_decides_no_call_that_came_before() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    let body = crate::sizes::body_of(4000);
    let (half, rest) = body.split_at(2000);
    let framing = format!("Content-Length: {}", body.len());
    let mut slow = fixture.raw().await;
    assert!(slow.send(crate::sizes::head(&fixture, &framing)).await && slow.send(half).await);
    until("the slow caller", async || {
        fixture.metric("tollgate_proxy_in_flight") == 1
    })
    .await;
    let _: String = fixture
        .redis
        .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    denied_soon(&fixture).await;
    let arrived = fixture.upstream.arrived();
    assert!(slow.send(rest).await);
    let reply = slow.reply(SOON).await.expect("an answer");
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(fixture.upstream.arrived(), arrived, "nothing is forwarded");
    fixture.settled_at(arrived as u64 * ACTUAL).await;
}

/// A store that refused a write of its own append-only file when it started has less than it acknowledged.
#[tokio::test]
async fn a_store_that_left_writes_out_is_not_used() {
    let fixture = Setup::default().redis(Redis::start_durable()).start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    fixture.redis.restart_without_a_write();
    // At once: the store is back before the edge has noticed its absence.
    for _ in 0..20 {
        fixture.unavailable_call().await;
    }
    assert_eq!(fixture.edge.ops("/readyz").map(|(status, _)| status), Some(503));
    assert!(fixture.edge.logs().contains("refused 1 writes of its own"));
    until("the metric", async || {
        fixture.metric("tollgate_proxy_store_lost_writes") == 1
    })
    .await;
    // The runbook's step for writes that cannot be brought back.
    let _: String = fixture.redis.command(&["CONFIG", "RESETSTAT"]);
    fixture.recovered().await;
    fixture.at_rest().await;
    let approved = fixture.metric("tollgate_proxy_approved_total");
    fixture.settled_at(approved * ACTUAL).await;
}

#[tokio::test]
async fn an_edge_that_starts_on_such_a_store_forwards_nothing() {
    let setup = Setup::default().redis(Redis::start_durable());
    let fixture = setup
        .before_the_edge(Redis::restart_without_a_write)
        .start()
        .await;
    for _ in 0..20 {
        fixture.unavailable_call().await;
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}

#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    during_a_call(&fixture, async || {
        let _: String = fixture.redis.command(&["SCRIPT", "FLUSH"]);
    })
    .await;
    fixture.approved_call().await;
    fixture.settled_at(3 * ACTUAL).await;
}

/// A store that lost writes (a failover, an old backup) has an older account than the edge has seen.
#[tokio::test]
async fn an_older_account_is_denied_until_the_operator_accepts_it() {
    let fixture = Setup::default().start().await;
    for _ in 0..3 {
        fixture.approved_call().await;
    }
    let (_other, key) = fixture.seed.ready_agent("enterprise", open_cap()).await;
    let other = fixture.edge.caller(&key);
    assert_eq!(other.chat(crate::fixture::body()).await.status, 200);
    fixture.at_rest().await;
    let record = fixture.bot.account.keys.record();
    let version: u64 = fixture.redis.command(&["HGET", &record, "version"]);
    let _: u64 = fixture
        .redis
        .command(&["HSET", &record, "version", &(version - 4).to_string()]);
    for _ in 0..3 {
        fixture.unavailable_call().await;
    }
    let reply = other.chat(crate::fixture::body()).await;
    assert_eq!(reply.status, 200, "another account continues: {reply:?}");
    // Neither time nor another version below the one that was seen ends the denial.
    let _: u64 = fixture
        .redis
        .command(&["HSET", &record, "version", &(version - 3).to_string()]);
    fixture.unavailable_call().await;
    let generation: u64 = fixture.redis.command(&["HGET", &record, "generation"]);
    let _: u64 = fixture
        .redis
        .command(&["HSET", &record, "generation", &(generation + 1).to_string()]);
    fixture.approved_call().await;
    let _: u64 = fixture
        .redis
        .command(&["HSET", &record, "generation", &generation.to_string()]);
    fixture.unavailable_call().await;
    let charged = fixture.charged();
    assert_eq!(charged, [4 * ACTUAL; 3]);
}

/// Another ledger under the same address: the edge forgets the ledger before, no matter which request meets the new one
/// first. Here it is a request for the edge's health.
#[tokio::test]
async fn another_ledger_is_noticed_by_either_server() {
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    fixture.at_rest().await;
    let owners = r#"tollgate_proxy_cache_entries{cache="owners"}"#;
    assert_eq!(fixture.metric(owners), 1);
    let epoch = "0123456789abcdef0123456789abcdef";
    let caller = fixture.edge.caller("");
    let _: u64 = fixture
        .redis
        .command(&["HSET", store::keys::STORE, "epoch", epoch]);
    assert_eq!(caller.get("/v1/health").await.status, 200);
    until("forgotten owners", async || fixture.metric(owners) == 0).await;
}

/// Imported prices that cannot be read are unknown: no call is decided at the prices of the file.
#[tokio::test]
async fn nothing_is_decided_before_the_imported_prices_were_read() {
    no_decision_without_imported_prices(|redis| {
        let _: u64 = redis.command(&["RPUSH", store::keys::PRICES, "not a text"]);
    })
    .await;
}

/// Imported prices that make no sense, such as those that a newer version has written.
#[tokio::test]
async fn nothing_is_decided_while_the_imported_prices_make_no_sense() {
    let make_no_sense = |redis: &Redis| {
        let _: String = redis.command(&["SET", store::keys::PRICES, r#"{"format":2}"#]);
    };
    let fixture = no_decision_without_imported_prices(make_no_sense).await;
    assert!(
        fixture
            .edge
            .logs()
            .contains("without the imported prices every call is denied")
    );
    // The prices in force stay if a later import makes no sense.
    let failed = r#"tollgate_proxy_table_reads_total{result="failed",table="prices"}"#;
    let before = fixture.metric(failed);
    make_no_sense(&fixture.redis);
    until("a failed read of the import", async || {
        fixture.metric(failed) > before
    })
    .await;
    let reply = fixture.call().await;
    let estimate = crate::fixture::usd(10 * ESTIMATE);
    assert_eq!(
        reply.header("x-service-estimated-usd"),
        Some(estimate.as_str()),
        "{reply:?}"
    );
    assert_eq!(fixture.edge.ops("/readyz").map(|(status, _)| status), Some(200));
}

async fn no_decision_without_imported_prices(unreadable: fn(&Redis)) -> Fixture {
    let prices = store::keys::PRICES;
    let fixture = Setup::default().before_the_edge(unreadable).start().await;
    until("a watched store", async || {
        fixture.edge.caller("").get("/v1/health").await.status == 200
    })
    .await;
    for _ in 0..3 {
        fixture.unavailable_call().await;
        assert_eq!(fixture.edge.ops("/readyz").map(|(status, _)| status), Some(503));
    }
    let dear = r#"{"models":{"gpt-4o-mini":{"rates":{"standard":{"input":"1.5","output":"6"}}}}}"#;
    let _: u64 = fixture.redis.command(&["DEL", prices]);
    let _: String = fixture.redis.command(&["SET", prices, dear]);
    let first = eventually("a decision", SOON, async || {
        let reply = fixture.call().await;
        (reply.status == 200).then_some(reply)
    })
    .await;
    let estimate = crate::fixture::usd(10 * ESTIMATE);
    assert_eq!(first.header("x-service-estimated-usd"), Some(estimate.as_str()));
    assert_eq!(fixture.edge.ops("/readyz").map(|(status, _)| status), Some(200));
    fixture
}
