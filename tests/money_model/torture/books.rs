//! Compares the callers' replies with the store.

use super::caller::{Made, SharedState};
use crate::fixture::Fixture;
use harness::Reply;
use serde_json::{Value, json};
use std::collections::HashMap;
use store::transaction::{Transaction, TransactionType};

/// Requests that are repeated in the end although they were answered.
const REPEATED: usize = 400;
/// Attempts of a repeated request until it is answered.
const ATTEMPTS_MAX: usize = 5;

/// All transactions of both accounts.
fn transactions(fixture: &Fixture) -> Vec<Transaction> {
    let lines = fixture.tenants.iter().flat_map(|tenant| {
        let key = tenant.account.keys.live().transactions();
        fixture.redis.command::<Vec<String>>(&["HVALS", &key])
    });
    lines
        .map(|line| Transaction::parse(&line).expect("a transaction"))
        .collect()
}

/// Transactions that debit a wallet, by the memo of their request.
fn executions(fixture: &Fixture) -> HashMap<String, Vec<Transaction>> {
    let mut by_memo: HashMap<String, Vec<Transaction>> = HashMap::new();
    for transaction in transactions(fixture) {
        let left = matches!(
            transaction.kind,
            TransactionType::TransferOut | TransactionType::Spend
        );
        if let (true, Some(memo)) = (left, transaction.tail.memo.clone()) {
            by_memo.entry(memo).or_default().push(transaction);
        }
    }
    by_memo
}

/// Checks every request; those without an answer are sent once more.
pub async fn check(fixture: &Fixture, shared: &SharedState, made: Vec<Made>, seed: u64) {
    let before = executions(fixture);
    let (mut acknowledged, mut unknown, mut done_silently) = (0, 0, 0);
    for request in &made {
        let times = before.get(&request.key).map_or(0, Vec::len);
        assert!(times <= 1, "seed {seed}: {request:?} was done {times} times");
        let moves = ["/v1/wallet/transfer", "/v1/spend"].contains(&request.path);
        match &request.answer {
            Some((200, answer)) if moves => {
                acknowledged += 1;
                assert_eq!(
                    times, 1,
                    "seed {seed}: {request:?} was acknowledged and is not there"
                );
                let id = &before[&request.key][0].id;
                assert_eq!(answer["transactionId"], json!(id), "seed {seed}: {request:?}");
            }
            Some((status, answer)) if moves => {
                assert_eq!(
                    times, 0,
                    "seed {seed}: {request:?} was refused with {status} {answer}"
                );
            }
            None => {
                unknown += 1;
                done_silently += times;
            }
            _ => {}
        }
    }
    check_escrows(fixture, &made, seed).await;
    repeat(fixture, shared, &made, seed).await;
    println!(
        "seed {seed}: {} requests, {acknowledged} transfers and spends acknowledged, {unknown} unanswered, of which \
         {done_silently} had moved money",
        made.len()
    );
    assert!(
        acknowledged > 500 && unknown > 20,
        "seed {seed}: only {acknowledged} acknowledged, {unknown} unanswered"
    );
}

/// Each acknowledged fund, release and dispute is in effect, and no escrow has both or two of the last two.
async fn check_escrows(fixture: &Fixture, made: &[Made], seed: u64) {
    let mut resolved: HashMap<u64, &Made> = HashMap::new();
    for request in made {
        let Some((200, answer)) = &request.answer else {
            continue;
        };
        if !["/v1/escrow/release", "/v1/escrow/dispute"].contains(&request.path) {
            continue;
        }
        let escrow = answer["escrowId"].as_u64().expect("an escrow");
        if let Some(other) = resolved.insert(escrow, request) {
            panic!("seed {seed}: two won: {other:?} and {request:?}");
        }
    }
    for (escrow, request) in resolved {
        let status = request
            .answer
            .as_ref()
            .map(|(_, answer)| answer["status"].clone());
        let stored = status_of(fixture, escrow);
        assert_eq!(status, Some(json!(stored)), "seed {seed}: {request:?}");
    }
}

fn status_of(fixture: &Fixture, escrow: u64) -> String {
    let found = fixture.tenants.iter().find_map(|tenant| {
        let key = tenant.account.keys.live().escrow(escrow);
        fixture.redis.command::<Option<String>>(&["HGET", &key, "status"])
    });
    found.unwrap_or_else(|| panic!("escrow {escrow} is gone"))
}

/// Sends a request until it is answered: on a busy machine an answer may be late.
async fn answer(shared: &SharedState, request: &Made, server: usize) -> Option<Reply> {
    for _ in 0..ATTEMPTS_MAX {
        let reply = shared.send(request, server).await;
        if reply.is_some() {
            return reply;
        }
    }
    None
}

/// Repeats requests: an answered one gets the same answer and changes nothing; any other is done now, unless it was.
async fn repeat(fixture: &Fixture, shared: &SharedState, made: &[Made], seed: u64) {
    let before = executions(fixture);
    let step = (made.len() / REPEATED).max(1);
    let again = made
        .iter()
        .enumerate()
        .filter(|(at, made)| made.answer.is_none() || at % step == 0);
    for (at, request) in again {
        let reply = answer(shared, request, at % 2).await;
        let reply =
            reply.unwrap_or_else(|| panic!("seed {seed}: {request:?} has no answer on a healthy system"));
        let now = reply.json();
        if let Some((status, then)) = &request.answer {
            same_answer(*status, then, reply.status, &now, seed);
        }
    }
    let after = executions(fixture);
    for (key, done) in &after {
        assert_eq!(done.len(), 1, "seed {seed}: {key} was done twice: {done:?}");
    }
    for request in made.iter().filter(|request| request.answer.is_some()) {
        let (then, now) = (before.get(&request.key), after.get(&request.key));
        let refused = matches!(&request.answer, Some((400, _)));
        assert!(refused || then == now, "seed {seed}: {request:?} was done again");
    }
}

/// A repeated answer equals the first and is marked; but what is not stored may be answered anew (decision D59).
fn same_answer(status: u16, then: &Value, status_now: u16, now: &Value, seed: u64) {
    if [400, 404].contains(&status) || then["code"] == json!("NOT_A_PARTY") {
        return;
    }
    assert_eq!(now["replayed"], json!(true), "seed {seed}: {then} then {now}");
    let won = status == 200 && status_now == 409;
    assert!(status == status_now || won, "seed {seed}: {then} then {now}");
    for (field, value) in then.as_object().expect("an object") {
        if field != "replayed" {
            assert_eq!(&now[field], value, "seed {seed}: {field} of {then} then {now}");
        }
    }
}
