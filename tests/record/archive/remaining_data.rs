//! The store's remaining data about archived entries counts for the account, so the guard of a full store detects an
//! account that keeps naming new agents.

use super::fixture::{Fixture, append};
use domain::budget::Budget;
use store::StoreError;
use store::account::usage::RealmUsage;
use store::agent::script::{AgentCreated, NewAgent, update};
use store::audit::{LONG_LINE, long_text};
use store::script::change::Scope;

/// Agents that are named once each.
const AGENTS: u64 = 600;

#[tokio::test]
async fn names_that_the_archive_keeps_are_bytes_of_the_account() {
    let fixture = Fixture::new().await;
    let realm = fixture.account.keys.live();
    let before = RealmUsage::read(&fixture.store, &realm).await.unwrap().bytes();
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

    let usage = RealmUsage::read(&fixture.store, &realm).await.unwrap();
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
    let read = RealmUsage::read(&fixture.store, &realm).await;
    assert!(matches!(read, Err(StoreError::UnexpectedReply(_))), "{read:?}");
}

/// What is counted of long lines is what they have beyond the length that the budget of entries stands for: exactly, as
/// long as they are in the store.
#[tokio::test]
async fn the_text_of_long_lines_counts_until_they_are_archived() {
    const LENGTHS: [usize; 6] = [10, 400, 1_500, 8_000, 20, 3_000];
    let fixture = Fixture::new().await;
    let realm = fixture.account.keys.live();
    let scope = Scope::live(&fixture.account.id, "key_1");
    let agent = NewAgent {
        id: "bot",
        name: "bot",
        kind: "custom",
        description: None,
        limit: None,
    };
    let made = agent.create(&fixture.store, &scope).await.unwrap();
    assert_eq!(made, AgentCreated::Done);
    for length in LENGTHS {
        let changes = [("description", Some("x".repeat(length)))];
        assert!(update(&fixture.store, &scope, "bot", &changes).await.unwrap());
    }
    // Of a call, and of what arrived: neither is counted, nor subtracted.
    for line in [
        format!("1795000000000 A {}", "x".repeat(1_500)),
        format!(
            r#"1795000000000 {{"type":"transfer.received","agentId":null,"actor":"a","data":{{"memo":"{}"}}}}"#,
            "x".repeat(1_500)
        ),
    ] {
        append(&fixture.store, &fixture.account, &line).await.unwrap();
    }
    fixture.chain().seal().await.unwrap();
    let counted = async || {
        RealmUsage::read(&fixture.store, &realm)
            .await
            .unwrap()
            .count(Budget::AuditText)
    };
    let kept = |first: u64| -> u64 {
        let lines: Vec<String> = fixture.redis.command(&["LRANGE", &realm.audit(), "0", "-1"]);
        (first..)
            .zip(&lines)
            .map(|(seq, line)| long_text(seq, line.as_bytes()))
            .sum()
    };
    let all = counted().await;
    // A line has the description and the one that it replaced.
    let replaced = [0].into_iter().chain(LENGTHS);
    let texts = LENGTHS.iter().zip(replaced).map(|(new, old)| new + old);
    let least: usize = texts.map(|length| length.saturating_sub(LONG_LINE)).sum();
    assert!((least as u64..least as u64 + 1_000).contains(&all), "{all}");
    assert_eq!(all, kept(1));
    // The first one of them.
    assert_eq!(fixture.move_segment(5).await, 5);
    let rest = counted().await;
    assert_eq!(rest, kept(6));
    assert!((1..all).contains(&rest), "{rest}");
    // A counter that somebody changed never falls below zero.
    let field = format!("{}_audit_text", realm.mode());
    let _: u64 = fixture.redis.command(&["HSET", &realm.record(), &field, "7"]);
    while fixture.move_segment(5).await > 0 {}
    assert_eq!((counted().await, kept(1)), (0, 0));
    let field: String = fixture.redis.command(&["HGET", &realm.record(), &field]);
    assert_eq!(field, "0");
}
