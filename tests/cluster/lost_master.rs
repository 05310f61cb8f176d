//! A master is cut off from its replica, acknowledges a change of money, and is replaced by that replica: for each kind
//! of change, with the master of each account that takes part. With `auto`, nothing acknowledged is missing, done twice
//! or owned by two, and no number of a wallet or an escrow is given again; the close of an empty wallet, which waits
//! for no replica, is there or missed by the next request. With `async`, where nothing waits for a replica, the next
//! request to any server, the operator's next command and `ledger check` notice the loss.

pub mod acknowledged_change;
pub mod kind;
pub mod party;

use crate::fixture::{ADMIN, Fixture, MASTERS, SOON};
use acknowledged_change::{Row, Sent};
use futures::future::{join, join_all};
use harness::{Admin, Cli, eventually};
use kind::rows;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// All rows, before any request is sent.
async fn prepared(fixture: &Fixture, admin: &Admin, (durability, node): (&str, usize)) -> Vec<Row> {
    let operator = fixture.operator(durability);
    let mut made = Vec::new();
    for row in rows() {
        made.push(Row::prepare((fixture, admin, &operator), row, node).await);
    }
    made
}

/// All rows on a cluster whose replica of `node` is cut off. No request was sent yet.
async fn cut_off(fixture: &Fixture, admin: &Admin, (durability, node): (&str, usize)) -> Vec<Row> {
    let made = prepared(fixture, admin, (durability, node)).await;
    let replica = fixture.cluster.replica_of(node);
    fixture.cluster.wait_in_step(replica);
    fixture.cluster.cut_off(replica);
    made
}

/// Asserts that each row is done once when its request is repeated after the loss. Returns how many were acknowledged
/// before.
async fn each_is_done_once((fixture, admin): (&Fixture, &Admin), rows: &[Row], replies: &[Sent]) -> usize {
    for (row, sent) in rows.iter().zip(replies) {
        let is_safe = row.kind.is_confirmed() || sent.status != 200 || row.stands_or_is_missed(admin).await;
        assert!(is_safe, "{}: lost, and nobody notices", row.name());
    }
    // A server may have read an unconfirmed write that is now gone; it refuses the account until `store accept`.
    accept_all(fixture);
    let mut acknowledged = 0;
    let mut wrong = Vec::new();
    let again = join_all(rows.iter().map(Row::repeat_until_acknowledged)).await;
    let settled = join_all(rows.iter().map(Row::settled)).await;
    for (((row, before), again), balances) in rows.iter().zip(replies).zip(again).zip(settled) {
        let name = row.name();
        assert!([200, 503].contains(&before.status), "{name}: {}", before.text);
        if before.status == 200 {
            acknowledged += 1;
            if row.kind.is_confirmed() && !again.is_repetition {
                wrong.push(format!("{name}: acknowledged, and done again: {}", again.text));
            }
        }
        if balances != row.kind.done_once() {
            let expected = row.kind.done_once();
            wrong.push(format!("{name}: {balances:?}, and done once it is {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let check = conclusion(fixture).await;
    assert_eq!(check["ok"], json!(true), "{check}");
    acknowledged
}

/// Asserts that no two wallets and no two escrows have the same number, including ones made now: the replica that took
/// over may count on from a number given before.
async fn no_number_is_given_twice(rows: &[Row]) {
    let mut given = [BTreeSet::new(), BTreeSet::new()];
    for row in rows {
        for (given, numbers) in given.iter_mut().zip(row.numbers_after_more().await) {
            for number in numbers {
                assert!(given.insert(number), "{}: {number} was given twice", row.name());
            }
        }
    }
}

/// The document of the first conclusive check.
pub async fn conclusion(fixture: &Fixture) -> Value {
    eventually("a conclusion", SOON, async || {
        let output = Cli::new(ADMIN, fixture.cluster.url()).run(&["ledger", "check", "--json"]);
        let document: Value = serde_json::from_str(&output.stdout).expect("a document");
        let open = document["inconclusive"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        let expected = match (document["ok"].as_bool(), open) {
            (Some(true), false) => 0,
            (_, true) if document["violations"] == json!([]) => 3,
            _ => 1,
        };
        assert_eq!(output.code, Some(expected), "{document}");
        (!open).then_some(document)
    })
    .await
}

pub fn accept_all(fixture: &Fixture) {
    let accepted = Cli::new(ADMIN, fixture.cluster.url()).json(&["store", "accept"]);
    assert!(accepted["accepted"].as_u64() > Some(0), "{accepted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn changes_acknowledged_under_auto_exist_once_whichever_master_is_lost() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let admin = fixture.admin("auto");
    let rows = cut_off(&fixture, &admin, ("auto", node)).await;
    let sending = join_all(rows.iter().map(Row::send));
    let (replies, wallets) = join(sending, join_all(rows.iter().map(Row::make_wallet))).await;
    fixture.cluster.lose(node, &rows[0].payer.account.keys.record());
    let acknowledged = each_is_done_once((&fixture, &admin), &rows, &replies).await;
    // Those that change only the account whose master was not lost.
    assert!(acknowledged > 0, "nothing was acknowledged");
    for (row, wallet) in rows.iter().zip(&wallets) {
        if let Some(wallet) = wallet {
            row.finds(wallet).await;
        }
    }
    no_number_is_given_twice(&rows).await;
    println!(
        "{acknowledged} of {} acknowledged without the replica, none of them lost",
        rows.len()
    );
}

/// Both masters that take part acknowledge every other row, are cut off from their replicas, receive the rest, and are
/// killed together. One of three masters is left, too few for an election, so the operator promotes the replicas.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn changes_acknowledged_under_auto_exist_once_when_two_masters_are_lost_together() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let both = [node, (node + 1) % MASTERS];
    let admin = fixture.admin("auto");
    let rows = prepared(&fixture, &admin, ("auto", node)).await;
    // The payer of the first row is on the first of the two masters, the payee on the second.
    let records = [&rows[0].payer, &rows[0].payee].map(|party| party.account.keys.record());

    let send = async |first: bool| {
        let half = rows.iter().enumerate().filter(|(at, _)| (at % 2 == 0) == first);
        join_all(half.map(async |(at, row)| (at, row.send().await))).await
    };
    let mut replies = send(true).await;
    for at in both {
        fixture.cluster.cut_off(fixture.cluster.replica_of(at));
    }
    for (at, reply) in &replies {
        assert_eq!(reply.status, 200, "{}: {}", rows[*at].name(), reply.text);
    }
    let confirmed = replies.len();
    replies.extend(send(false).await);
    fixture
        .cluster
        .lose_together(&[(both[0], &records[0]), (both[1], &records[1])]);
    for record in &records {
        fixture.found_again(record).await;
    }

    replies.sort_by_key(|(at, _)| *at);
    let replies: Vec<Sent> = replies.into_iter().map(|(_, reply)| reply).collect();
    let acknowledged = each_is_done_once((&fixture, &admin), &rows, &replies).await;
    assert!(acknowledged >= confirmed, "{acknowledged}");
    println!(
        "{acknowledged} of {} acknowledged by two masters that were lost together, none of them lost",
        rows.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make verify runs it"]
async fn writes_lost_under_async_are_noticed_by_every_server_and_by_the_check() {
    let fixture = Fixture::start(0).await;
    let node = (fixture.home() + 1) % MASTERS;
    let (admin, other) = (fixture.admin("async"), fixture.admin("async"));
    let mut rows = cut_off(&fixture, &admin, ("async", node)).await;
    for (row, reply) in rows.iter().zip(join_all(rows.iter().map(Row::send)).await) {
        assert_eq!(reply.status, 200, "{}: {}", row.name(), reply.text);
    }
    fixture.cluster.lose(node, &rows[0].payer.account.keys.record());

    // One server acknowledged the changes, one never saw the accounts, and one has just started.
    let young = fixture.admin("async");
    let check = conclusion(&fixture).await;
    assert_eq!(check["ok"], json!(false), "{check}");
    rows.iter_mut().for_each(|row| row.reconnect(&admin));
    for row in rows.iter().filter(|row| row.kind.changes(row.victim)) {
        let (name, party) = (row.name(), row.lost());
        for server in [&admin, &other, &young] {
            let caller = server.caller(&party.key);
            let reply = eventually("an answer of the new master", SOON, async || {
                let reply = caller.get("/v1/wallet").await;
                (reply.status != 503 || server.logs().contains(&party.account.id)).then_some(reply)
            })
            .await;
            assert_eq!(reply.status, 503, "{name}: {}", reply.text());
            assert!(server.logs().contains("lost writes"), "{name}");
        }
        let again = row.send_as_payer_or_payee(party).await;
        assert_eq!(
            again.status, 503,
            "{name}: it must not be paid twice: {}",
            again.text
        );
        let named = check["violations"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|violation| {
                violation["invariant"] == json!("versions")
                    && violation["records"].to_string().contains(&party.account.id)
            });
        assert!(named, "{name}: {check}");
    }
}
