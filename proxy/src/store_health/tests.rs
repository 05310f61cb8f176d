//! Tests of the checks: when the store may be used, and when it is checked.

use crate::fixture::{EPOCH, Fixture, StoreReaction, full, info, record, sealed_record, text};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

#[tokio::test]
async fn a_reachable_safe_known_store_is_ready() {
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    let says = |part: &str| health.reason().is_some_and(|reason| reason.contains(part));
    assert!(!health.is_ready() && says("not checked yet"), "nothing is known");
    health.check().await;
    assert!(health.is_ready());
    assert_eq!(health.reason(), None);
    fixture.on_command(|_| Some(StoreReaction::Close));
    health.check().await;
    assert!(!health.is_ready() && says("the store did not answer: "), "away");
    fixture.on_command(|command| (command[0] == "INFO").then(|| info(1)));
    health.check().await;
    assert!(!health.is_ready() && says("refused 1 writes"), "it lost writes");
    fixture.on_command(|_| None);
    assert!(!health.is_trusted().await && says("refused 1 writes"));
    fixture.on_command(|_| None);
    health.check().await;
    assert!(health.is_ready());
}

/// Only readiness is affected: the store refuses the script of a call, and settlements are still tried.
#[tokio::test]
async fn a_store_that_takes_no_writes_is_not_ready_and_may_be_used() {
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    fixture.on_command(|command| (command[0] == "INFO").then(full));
    health.check().await;
    assert!(!health.is_ready() && !health.can_approve());
    let reason = health.reason().unwrap();
    assert!(
        reason.contains("takes no writes") && reason.contains("OOM"),
        "{reason}"
    );
    assert!(health.is_trusted().await && health.is_still_trusted().await);
    assert!(health.read_ledger().await.is_some());
    fixture.on_command(|_| None);
    while !health.is_ready() {
        health.check().await;
    }
    assert_eq!(health.reason(), None);
}

/// The store would end a script of this user midway, and keep what it wrote before.
#[tokio::test]
async fn a_store_that_refuses_a_command_of_the_scripts_may_not_be_used() {
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    fixture.on_command(|command| (command[0] == "EVAL").then(|| text(" rpush zadd")));
    health.check().await;
    assert!(!health.is_ready() && !health.is_trusted().await);
    let reason = health.reason().unwrap();
    assert!(reason.contains("midway: rpush, zadd. The address"), "{reason}");
    fixture.on_command(|_| None);
    health.check().await;
    assert!(health.is_ready() && health.is_trusted().await);
}

/// The fixture has another master key than the store.
#[tokio::test]
async fn a_process_without_the_stores_master_key_is_not_ready() {
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    fixture.on_command(|command| (command[0] == "HGETALL").then(|| sealed_record("v1.01234567.AAAA")));
    health.check().await;
    assert!(!health.is_ready() && !health.can_approve());
    let reason = health.reason().unwrap();
    assert!(reason.contains("master key"), "{reason}");
    assert!(health.is_trusted().await, "settlements need no master key");
    for sealed in ["", "v9.01234567.AAAA"] {
        fixture.on_command(move |command| (command[0] == "HGETALL").then(|| sealed_record(sealed)));
        health.check().await;
        assert!(health.is_ready(), "{sealed} names no other key");
    }
}

#[tokio::test]
async fn a_store_that_was_away_while_the_body_came_is_checked_before_the_decision() {
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    assert!(health.is_trusted().await);
    // The server restarts without its last writes.
    fixture.on_command(|command| (command[0] == "INFO").then(|| info(1)));
    assert!(health.is_still_trusted().await, "no connection broke yet");
    assert_eq!(fixture.count("INFO"), 1);
    fixture.lose_a_connection().await;
    assert!(!health.is_still_trusted().await);
    assert!(!health.is_trusted().await, "only the background check ends that");
}

/// The connection may have broken after the server replied to the check, so another server may reply next.
#[tokio::test]
async fn a_connection_that_breaks_during_a_check_requires_another() {
    for is_background in [false, true] {
        let fixture = Fixture::new().await;
        let (resume, mut is_held) = (Arc::new(Notify::new()), false);
        let until = Arc::clone(&resume);
        fixture.on_command(move |command| {
            let is_first = command[0] == "INFO" && !std::mem::replace(&mut is_held, true);
            is_first.then(|| StoreReaction::After(Arc::clone(&until)))
        });
        let health = Arc::clone(&fixture.health);
        let checking = tokio::spawn(async move {
            match is_background {
                true => health.check().await,
                false => assert!(health.is_trusted().await),
            }
        });
        fixture.wait_for("INFO").await;
        fixture.lose_a_connection().await;
        resume.notify_one();
        checking.await.unwrap();
        let health = &fixture.health;
        assert!(health.is_trusted().await);
        assert_eq!(
            fixture.count("INFO"),
            2,
            "checked again, background: {is_background}"
        );
        assert!(health.is_trusted().await);
        assert_eq!(fixture.count("INFO"), 2, "once");
    }
}

#[tokio::test]
async fn the_ledger_is_the_one_that_the_store_is_now() {
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    assert!(health.ledger().is_none());
    let ledger = health.read_ledger().await.unwrap();
    assert_eq!(ledger.epoch, EPOCH);
    let checks = fixture.count("INFO");
    assert!(health.is_same_ledger(&ledger).await);
    assert_eq!(fixture.count("INFO"), checks, "no connection broke");
    fixture.lose_a_connection().await;
    assert!(health.is_same_ledger(&ledger).await, "checked, and the same");
    fixture.on_command(|command| (command[0] == "HGETALL").then(|| record("another")));
    assert!(health.is_same_ledger(&ledger).await, "not known yet");
    fixture.lose_a_connection().await;
    assert!(!health.is_same_ledger(&ledger).await);
    assert_eq!(health.read_ledger().await.unwrap().epoch, "another");
    assert!(!health.is_same_ledger(&ledger).await);
    // The store has no record.
    fixture.on_command(|command| (command[0] == "HGETALL").then(|| StoreReaction::Raw("*0\r\n".to_owned())));
    assert!(health.read_ledger().await.is_none());
}

#[tokio::test]
async fn a_store_without_a_record_is_not_examined_further() {
    let fixture = Fixture::new().await;
    fixture.on_command(|command| (command[0] == "HGETALL").then(|| StoreReaction::Raw("*0\r\n".to_owned())));
    fixture.health.check().await;
    assert!(!fixture.health.is_ready());
    assert_eq!(fixture.count("INFO"), 0);
}

/// Calls at the same time after a lost connection.
const CALLS: usize = 50;

/// Returns the outcome of [`CALLS`] concurrent calls after a lost connection, and the number of full checks that
/// they made. The store replies to the first check once all calls wait for it, with `reply` if there is one.
async fn after_a_lost_connection(reply: Option<StoreReaction>) -> (Vec<bool>, usize) {
    let fixture = Fixture::new().await;
    assert!(fixture.health.is_trusted().await);
    let resume = Arc::new(Notify::new());
    let until = Arc::clone(&resume);
    let mut is_held = false;
    fixture.on_command(move |command| match command[0].as_str() {
        "HGETALL" if !std::mem::replace(&mut is_held, true) => Some(StoreReaction::After(Arc::clone(&until))),
        "INFO" => reply.clone(),
        _ => None,
    });
    fixture.lose_a_connection().await;
    let before = (fixture.count("HGETALL"), fixture.count("INFO"));
    let calls = (0..CALLS).map(|_| {
        let health = Arc::clone(&fixture.health);
        async move { health.is_trusted().await }
    });
    let resumed = async {
        while fixture.count("HGETALL") == before.0 {
            tokio::task::yield_now().await;
        }
        resume.notify_one();
    };
    let (are_usable, ()) = futures::future::join(futures::future::join_all(calls), resumed).await;
    (are_usable, fixture.count("INFO") - before.1)
}

#[tokio::test]
async fn calls_after_a_lost_connection_share_one_check() {
    assert_eq!(after_a_lost_connection(None).await, (vec![true; CALLS], 1));
}

/// The calls that waited neither try one after the other nor are allowed.
#[tokio::test]
async fn calls_that_waited_for_a_check_that_failed_are_refused() {
    assert_eq!(
        after_a_lost_connection(Some(info(1))).await,
        (vec![false; CALLS], 1)
    );
    let gone = after_a_lost_connection(Some(StoreReaction::Raw("-ERR broken\r\n".to_owned()))).await;
    assert_eq!(gone, (vec![false; CALLS], 1));
}

#[tokio::test]
async fn a_call_waits_for_the_check_of_another_no_longer_than_its_bound() {
    const WITHIN: Duration = Duration::from_millis(20);
    let fixture = Fixture::new().await;
    let health = &fixture.health;
    let hanging = health.full_check.lock().await;
    assert!(!health.check_once(WITHIN).await);
    assert_eq!(fixture.count("INFO"), 0, "it did not check by itself");
    drop(hanging);
    assert!(health.check_once(WITHIN).await);
    assert!(health.check_once(WITHIN).await);
    assert_eq!(fixture.count("INFO"), 1, "the second call shares the result");
}

/// A caller may leave while its call checks the store.
#[tokio::test]
async fn a_check_that_is_given_up_blocks_no_other() {
    let fixture = Fixture::new().await;
    fixture.on_command(|command| (command[0] == "INFO").then(|| StoreReaction::After(Arc::default())));
    let health = Arc::clone(&fixture.health);
    let checking = tokio::spawn(async move { health.is_trusted().await });
    fixture.wait_for("INFO").await;
    checking.abort();
    drop(checking.await);
    assert!(fixture.health.full_check.try_lock().is_ok());
}
