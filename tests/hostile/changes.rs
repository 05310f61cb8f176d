//! Changes that wait until a replica has them, on the dedicated connections that all accounts share. `WAITAOF` and
//! `WAIT` hold such a connection alike; a delayed replica makes each wait long.

use crate::fixture::{Fixture, Setup};
use domain::mode::Mode;
use harness::open_cap;
use serde_json::json;
use std::time::Duration;

/// Longer than any store needs, so that the connections and not the machine are scarce.
const DELAY: Duration = Duration::from_millis(600);
/// More changes than all 32 connections finish within the deadline of a change. Unless the connections are shared
/// fairly, every later change of a neighbour is refused.
const AT_ONCE: usize = 400;
const CHANGES: u64 = 1_200;

async fn hammer(no_archive: bool) {
    let setup = Setup {
        megabytes: 64,
        no_archive,
        replica_delay: Some(DELAY),
        settings: vec![
            ("STORE__TIMEOUT_MS", "1500".to_owned()),
            ("STORE__DURABILITY_TIMEOUT_MS", "2000".to_owned()),
        ],
    };
    let fixture = setup.start().await;
    let caller = fixture.management(Mode::Live).await;
    let policy = open_cap();
    let _agent = fixture.agent("bot", policy).await;
    let answers = fixture
        .attack_with(AT_ONCE, CHANGES, async |_| {
            let spend = json!({ "agent": "bot", "amount": "0.01", "description": "coffee" });
            caller.post("/v1/spend", spend).await
        })
        .await;
    Fixture::only(&answers, &[200, 503]);
    assert!(
        answers.contains_key(&503),
        "the attacker's own share is full: {answers:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_wait_for_a_confirmation() {
    hammer(false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: make verify runs it"]
async fn changes_that_wait_for_a_confirmation_without_an_archive() {
    hammer(true).await;
}
