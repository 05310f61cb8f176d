//! Parallel lists of the largest records: replies that a server has not taken yet count against the store's memory. And
//! parallel reads of what sums up thousands of records, each of which takes the store's time.

use crate::fixture::{Fixture, Setup};
use domain::mode::Mode;
use futures::{StreamExt, stream};
use serde_json::json;

/// Spends with 16 kB of metadata each: 4.8 MB, of which a page of 200 has 3.2.
const SPENDS: usize = 300;
/// Requests in flight: the pages of half of them have 77 MB, the store 32.
const AT_ONCE: usize = 48;
const LISTS: u64 = 200;
/// Maximum growth of the store's memory by the lists at its peak, in bytes; includes the neighbours' records.
const PEAK_MAX: u64 = 8 << 20;

/// Agents of an account whose overview is read.
const AGENTS: u64 = 2_000;
/// Reads of it at once: more than may wait.
const SURVEYS_AT_ONCE: usize = 96;
const SURVEYS: u64 = 600;

fn memory(fixture: &Fixture, name: &str) -> u64 {
    let info: String = fixture.redis.command(&["INFO", "memory"]);
    let number = info.lines().find_map(|line| line.strip_prefix(name));
    number.expect("a line").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_large_records_in_parallel() {
    let setup = Setup {
        megabytes: 32,
        ..Setup::default()
    };
    let fixture = setup.start().await;
    let caller = fixture.management(Mode::Live).await;
    assert_eq!(caller.post("/v1/policies/bot", json!({})).await.status, 200);
    let metadata = json!({ "note": "x".repeat(16_000) });
    for _ in 0..SPENDS {
        let spend = json!({ "agent": "bot", "amount": "0.01", "metadata": metadata });
        assert_eq!(caller.post("/v1/spend", spend).await.status, 200);
    }
    let before = memory(&fixture, "used_memory:");
    let answers = fixture
        .attack_with(AT_ONCE, LISTS, async |at| {
            let query = ["limit=200", "runId=none&limit=1"][at as usize % 2];
            caller.get(&format!("/v1/intents?{query}")).await
        })
        .await;
    Fixture::only(&answers, &[200, 429]);
    assert!(answers[&200] > 0, "{answers:?}");
    let peak = memory(&fixture, "used_memory_peak:") - before;
    assert!(peak < PEAK_MAX, "{peak}");
}

#[tokio::test(flavor = "multi_thread")]
async fn overviews_of_many_agents_in_parallel() {
    let setup = Setup {
        megabytes: 64,
        ..Setup::default()
    };
    let fixture = setup.start().await;
    let caller = fixture.management(Mode::Live).await;
    let agents = (0..AGENTS).map(|at| {
        let body = json!({ "name": format!("a{at}") });
        caller.post("/v1/agents", body)
    });
    let made: Vec<_> = stream::iter(agents).buffer_unordered(16).collect().await;
    assert!(made.iter().all(|reply| reply.status == 200));
    for path in ["/v1/overview", "/v1/wallet?limit=1", "/v1/thresholds?limit=1"] {
        let answers = fixture
            .attack_with(SURVEYS_AT_ONCE, SURVEYS, async |_| caller.get(path).await)
            .await;
        Fixture::only(&answers, &[200, 429]);
        assert!(answers[&200] > 0, "{path}: {answers:?}");
        assert!(answers.contains_key(&429), "{path}: {answers:?}");
    }
}
