//! An account with many runs, ended and under way.

use crate::fixture::{Fixture, Setup};
use clock::now_ms;
use domain::mode::Mode;
use harness::{chat_body, open_cap};
use std::collections::BTreeMap;
use store::call::authorize::RUN_LIFE_MS;

/// Runs that ended. The store takes a third of a second to remove all of them, and executes nothing else meanwhile.
const ENDED: u64 = 500_000;
/// Runs under way.
const LIVE: u64 = 50_000;
/// Members and records that one command of the fixture makes.
const AT_ONCE: u64 = 10_000;
/// Most ended runs that one call removes from an index: `EXPIRED_MAX` of run.lua.
const REMOVED_MAX: u64 = 10;
/// Most runs that a page of one status reads: `SCANNED_MAX` of store/run.rs.
const SCANNED_MAX: u64 = 1_000;
const CALLS: u64 = 6_000;
const PAGES: u64 = 1_000;
/// Upper bound on the records of runs that other requests read, those of the neighbours included.
const OTHERS: u64 = 50_000;

/// Members `<prefix><n>` of a sorted set, by ascending scores from `ARGV[3]` on.
const INDEX: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('ZADD', KEYS[1], tonumber(ARGV[3]) + n, string.format('%s%07d', ARGV[4], n)) end return 1";
/// Records of runs under way: `<key><n>`.
const RECORDS: &str = "for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do \
    redis.call('HSET', string.format('%s%07d', KEYS[1], n), 'first', ARGV[3], 'last', ARGV[3], 'calls', 1, \
      'spent', 5) end return 1";

fn setup(no_archive: bool) -> Setup {
    Setup {
        megabytes: 512,
        no_archive,
        settings: vec![("LIMITS__RUNS", "1000000".to_owned())],
        ..Setup::default()
    }
}

/// Runs one of the scripts for the numbers 1 to `count`.
fn fill(fixture: &Fixture, script: &str, key: &str, count: u64, rest: &[&str]) {
    for first in (1..=count).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let [first, last] = [first, count.min(first + AT_ONCE - 1)].map(|number| number.to_string());
        let words = [&["EVAL", script, "1", key, &first, &last][..], rest].concat();
        assert_eq!(fixture.redis.command::<u64>(&words), 1);
    }
}

/// Runs of the attacker's agent `bot`, the first seen at `oldest_ms`, in the indexes of the agent and of the account.
fn indexed(fixture: &Fixture, count: u64, oldest_ms: u64) -> [String; 2] {
    let keys = &fixture.attacker.keys;
    let indexes = [keys.live().runs("bot"), keys.live().all_runs()];
    let oldest = oldest_ms.to_string();
    for (index, prefix) in indexes.iter().zip(["run-", "bot/run-"]) {
        fill(fixture, INDEX, index, count, &[&oldest, prefix]);
    }
    indexes
}

/// Returns the number of members of an index that were seen before `end_ms`.
fn seen_before(fixture: &Fixture, index: &str, end_ms: u64) -> u64 {
    let end = format!("({end_ms}");
    fixture.redis.command(&["ZCOUNT", index, "-inf", &end])
}

async fn new_runs_beside_ended_ones(no_archive: bool) {
    let fixture = setup(no_archive).start().await;
    let (_agent, calls) = fixture.agent("bot", open_cap()).await;
    let management = fixture.management(Mode::Live).await;
    let end = now_ms() - RUN_LIFE_MS;
    let indexes = indexed(&fixture, ENDED, end - 2 * ENDED);
    let answers = fixture
        .attack(CALLS, async |at| {
            if at % 3 == 0 {
                return management.get("/v1/agents/bot/runs?limit=100").await;
            }
            let run = format!("new-{at}");
            calls
                .chat_with(&[("x-service-run-id", &run)], chat_body("gpt-4o-mini", "hello"))
                .await
        })
        .await;
    Fixture::only(&answers, &[200]);
    for index in &indexes {
        let removed = ENDED - seen_before(&fixture, index, end);
        assert!(removed > 0, "{index}: calls remove runs that ended");
        let most = CALLS * REMOVED_MAX;
        assert!(
            removed <= most,
            "{index}: {removed} were removed by {CALLS} requests"
        );
    }
}

async fn pages_of_one_status(no_archive: bool) {
    let fixture = setup(no_archive).start().await;
    let _agent = fixture.agent("bot", open_cap()).await;
    let caller = fixture.management(Mode::Live).await;
    let now = now_ms();
    indexed(&fixture, LIVE, now - 2 * LIVE);
    let records = fixture.attacker.keys.live().run("bot", "run-");
    fill(&fixture, RECORDS, &records, LIVE, &[&now.to_string()]);
    let reads = |fixture: &Fixture| {
        let commands = ["hmget", "hgetall"].map(|command| (command, fixture.redis.calls(command)));
        BTreeMap::from(commands)
    };
    let before = reads(&fixture);
    // No run has failed, so a page reads as many runs as it may, and matches none.
    let answers = fixture
        .attack(PAGES, async |_| {
            caller.get("/v1/agents/bot/runs?status=failed&limit=100").await
        })
        .await;
    Fixture::only(&answers, &[200]);
    let after = reads(&fixture);
    let read: u64 = after.iter().map(|(command, calls)| calls - before[command]).sum();
    let most = PAGES * SCANNED_MAX + OTHERS;
    assert!(
        read <= most,
        "{PAGES} pages read {read} records: {before:?} {after:?}"
    );
    assert!(read > most / 2, "the pages read the runs: {before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_runs_of_an_account_with_many_ended_ones() {
    new_runs_beside_ended_ones(false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn new_runs_of_an_account_with_many_ended_ones_without_an_archive() {
    new_runs_beside_ended_ones(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_runs_of_one_status() {
    pages_of_one_status(false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn pages_of_runs_of_one_status_without_an_archive() {
    pages_of_one_status(true).await;
}
