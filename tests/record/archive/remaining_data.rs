//! The store's remaining data about archived entries counts for the account, so the guard of a full store detects an
//! account that keeps naming new agents.

use super::fixture::{Fixture, append};
use store::StoreError;
use store::account::usage::Usage;

/// Agents that are named once each.
const AGENTS: u64 = 600;

#[tokio::test]
async fn names_that_the_archive_keeps_are_bytes_of_the_account() {
    let fixture = Fixture::new().await;
    let realm = fixture.account.keys.live();
    let before = Usage::read(&fixture.store, &realm).await.unwrap().bytes();
    for n in 0..AGENTS {
        let (at_ms, agent) = (fixture.at_ms(n), format!("{n:0>126}"));
        for kind in ["policy.set", "policy.deleted"] {
            let line =
                format!(r#"{at_ms} {{"type":"{kind}","agentId":"{agent}","actor":"key_1","data":{{}}}}"#);
            append(&fixture.store, &fixture.account, &line).await.unwrap();
        }
    }
    fixture.chain().seal().await.unwrap();
    let mut moved = 0;
    while moved < 2 * AGENTS {
        moved += fixture.move_segment(10_000).await;
    }
    fixture.forget().await;

    let usage = Usage::read(&fixture.store, &realm).await.unwrap();
    let counted = usage.bytes() - before;
    let prefix = fixture.account.keys.prefix();
    let keys: Vec<String> = fixture.redis.command(&["KEYS", &format!("{prefix}/live/audit*")]);
    let taken: u64 = keys
        .iter()
        .filter(|key| !key.contains("/audit/day/"))
        .map(|key| {
            fixture
                .redis
                .command::<u64>(&["MEMORY", "USAGE", key, "SAMPLES", "0"])
        })
        .sum();
    assert!(taken > AGENTS * 500, "{taken}");
    assert!(
        (taken * 3 / 4..taken * 5 / 4).contains(&counted),
        "{counted} of {taken}"
    );
}

/// An account whose record cannot be read is no account without records: the guard would take it for a small one.
#[tokio::test]
async fn a_record_that_cannot_be_read_is_an_error_of_the_usage() {
    let fixture = Fixture::new().await;
    let realm = fixture.account.keys.live();
    let mut unreadable = redis::cmd("HSET");
    unreadable.arg(realm.record()).arg("key_seq").arg(&b"\xff"[..]);
    let _: u64 = fixture.store.command(&unreadable).await.unwrap();
    let read = Usage::read(&fixture.store, &realm).await;
    assert!(matches!(read, Err(StoreError::UnexpectedReply(_))), "{read:?}");
}
