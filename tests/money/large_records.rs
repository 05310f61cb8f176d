//! Lists of intents and escrows with the largest texts: a search reads the texts of its matches only, and a page is
//! read in bounded steps.

use crate::fixture::{Fixture, success, text};
use crate::spender::{Spender, USD};
use harness::{Gate, GateSide, Redis, Wire, until};
use serde_json::{Value, json};

/// Records of each kind.
const COUNT: usize = 60;
/// Bytes of the text of each; all of them have 960,000.
const TEXT: usize = 16_000;
/// Maximum bytes that leave the store for an answer without a match, the workers' reads included.
const SEARCH_BYTES_MAX: u64 = 200_000;
/// Attempts at a measurement, of which the cheapest counts.
const TRIES: usize = 3;
/// Records read in one step (`RECORDS_AT_ONCE` in the store), with the servers' own reads of records.
const STEP_MAX: u64 = 32 + 8;

/// A number of `INFO` of the store: of the line that starts with `name`, between `before` and the next comma.
fn info(redis: &Redis, section: &str, name: &str, before: &str) -> u64 {
    let info: String = redis.command(&["INFO", section]);
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split(',').find_map(|part| part.strip_prefix(before)));
    number.map_or(0, |number| number.parse().unwrap())
}

fn sent(redis: &Redis) -> u64 {
    info(redis, "stats", "total_net_output_bytes", ":")
}

/// Whole records read so far.
fn records_read(redis: &Redis) -> u64 {
    info(redis, "commandstats", "cmdstat_hgetall:", "calls=")
}

/// The answer to a list, and the fewest bytes that the store sent for it.
async fn listed(fixture: &Fixture, spender: &Spender, query: &str) -> (Value, u64) {
    let mut found = (Value::Null, u64::MAX);
    for _ in 0..TRIES {
        let before = sent(&fixture.redis);
        let listed = success(&spender.caller.get(&format!("/v1/{query}")).await, 200);
        found = (listed, found.1.min(sent(&fixture.redis) - before));
    }
    found
}

/// Makes spends with large texts, the first of the run `first`. Returns their agent.
async fn large_spends(fixture: &Fixture, spender: &Spender) -> String {
    let bot = spender.agent(fixture, 100 * USD, json!({})).await;
    for at in 0..COUNT {
        let run = if at == 0 { "first" } else { "other" };
        let metadata = json!({ "note": "x".repeat(TEXT) });
        let body = json!({ "agent": bot, "amount": "0.01", "runId": run, "metadata": metadata });
        success(&spender.spend("", body).await, 200);
    }
    bot
}

#[tokio::test]
async fn a_search_reads_the_texts_of_its_matches_only() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "enterprise").await;
    let bot = large_spends(&fixture, &spender).await;
    for query in [
        "intents?runId=none&limit=1",
        "intents?from=2099-01-01T00:00:00Z",
        "intents?state=blocked&kind=spend",
        "intents?state=pending_approval&runId=first",
        &format!("agents/{bot}/runs"),
    ] {
        let (_, bytes) = listed(&fixture, &spender, query).await;
        assert!(bytes < SEARCH_BYTES_MAX, "{query}: {bytes}");
    }
    let (found, bytes) = listed(&fixture, &spender, "intents?runId=first").await;
    assert!(bytes < SEARCH_BYTES_MAX, "{bytes}");
    assert_eq!(found["intents"].as_array().unwrap().len(), 1);
    assert_eq!(text(&found, "/intents/0/metadata/note").len(), TEXT);
    let (none, _) = listed(&fixture, &spender, "intents?runId=none&limit=1").await;
    assert_eq!((&none["total"], &none["partial"]), (&json!(0), &json!(false)));
}

#[tokio::test]
async fn a_search_reads_the_conditions_of_its_matches_only() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "enterprise").await;
    let (from, to) = (
        spender.agent(&fixture, 100 * USD, json!({})).await,
        spender.agent(&fixture, 100 * USD, json!({})).await,
    );
    for _ in 0..COUNT {
        let conditions = json!({ "note": "x".repeat(TEXT) });
        let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": 1, "conditions": conditions });
        success(&spender.caller.post("/v1/escrow/create", body).await, 200);
    }
    let (_, bytes) = listed(&fixture, &spender, "escrow?status=disputed").await;
    assert!(bytes < SEARCH_BYTES_MAX, "{bytes}");
    let (one, _) = listed(&fixture, &spender, "escrow?status=pending&limit=1").await;
    let wallet = &one["escrows"][0]["toWalletId"];
    let query = format!("escrow?status=pending&walletId={wallet}&limit=3");
    let (found, _) = listed(&fixture, &spender, &query).await;
    let found = found["escrows"].as_array().unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(text(&found[0], "/conditions/note").len(), TEXT);
}

#[tokio::test]
async fn a_page_is_read_in_steps() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    let url = wire.redis_url();
    let fixture = Fixture::on(redis, |options| options.env("TOLLGATE_STORE__URL", url)).await;
    let spender = Spender::new(&fixture, "enterprise").await;
    large_spends(&fixture, &spender).await;
    let gate = Gate::new(GateSide::Reply, &["HGETALL", "/int_"], 0, 1);
    wire.put_gate(&gate);
    let before = records_read(&fixture.redis);
    let list = spender.caller.get("/v1/intents?limit=60");
    let held = async {
        until("a step", async || gate.stopped() > 0).await;
        let read = records_read(&fixture.redis) - before;
        gate.open();
        read
    };
    let (answer, read) = futures::join!(list, held);
    assert_eq!(success(&answer, 200)["intents"].as_array().unwrap().len(), 60);
    assert!((1..=STEP_MAX).contains(&read), "{read}");
}
