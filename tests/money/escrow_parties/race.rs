//! Simultaneous requests with one key: one is executed. The race for an escrow is in `money_model/race.rs`.

use super::{id, two};
use crate::escrow::parties::usd;
use crate::fixture::{Fixture, success, text};
use domain::intent::Reason;
use futures::future::join_all;
use harness::assert_fields;
use serde_json::{Value, json};
use store::keys::IntentIndex;

/// Rounds of two requests with one key.
const ROUNDS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_sent_many_times_at_once_wins_once() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    for (word, side) in [("release", &payer), ("release", &payee), ("dispute", &payee)] {
        let number = payer.funded_to(&payee, usd(1)).await;
        let before = payee.balance().await;
        let key = format!("{word} {number}");
        let replies = join_all((0..8).map(|_| side.call(word, &key, id(number)))).await;
        let fresh: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
        assert_eq!(fresh.len(), 1);
        let intent = fresh[0].json()["intent_id"].clone();
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            let body = reply.json();
            assert_eq!(
                (reply.status, &body["replayed"], &body["success"]),
                (409, &json!(true), &json!(true))
            );
            assert_eq!(body["intent_id"], intent);
        }
        let gained = if word == "release" { usd(1) } else { 0 };
        assert_eq!(payee.balance().await, before + gained);
        assert_eq!(payer.siblings(number).await.len(), 1);
    }
    // Create and fund: one execution, the others are replays of it.
    let body = json!({ "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 1 });
    let made = join_all((0..8).map(|_| payer.call("create", "c", body.clone()))).await;
    let numbers: Vec<Value> = made
        .iter()
        .map(|reply| success(reply, 200)["escrow"]["id"].clone())
        .collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    let again = made
        .iter()
        .filter(|reply| reply.json()["replayed"] == json!(true));
    assert_eq!(again.count(), 7);
    payer.deposit(usd(5)).await;
    let number = numbers[0].as_u64().unwrap();
    let funded = join_all((0..8).map(|_| payer.call("fund", "f", id(number)))).await;
    assert!(funded.iter().all(|reply| reply.status == 200));
    assert_eq!(payer.balance().await, usd(4));
    for side in [&payer, &payee] {
        let listed = success(&side.caller.get("/v1/escrow").await, 200);
        assert_fields!(listed, { "total": 4 }, "the numbers of those that were not made are not listed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_sent_many_times_at_once_loses_once() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    success(&payer.call("release", "r", id(number)).await, 200);
    for side in [&payer, &payee] {
        let replies = join_all((0..16).map(|_| side.call("dispute", "d", id(number)))).await;
        let kept = side.index(IntentIndex::Kind("escrow_dispute")).await;
        assert_eq!(kept.len(), 1, "one intent, listed once");
        side.blocked(&kept[0], Reason::EscrowReleased).await;
        for reply in &replies {
            let body = reply.json();
            assert_eq!(
                (reply.status, &body["intent_id"]),
                (409, &json!(kept[0])),
                "{body}"
            );
        }
        let again = replies
            .iter()
            .filter(|reply| reply.json()["replayed"] == json!(true));
        assert_eq!(again.count(), 15);
    }
}

/// One key for a release by a payee of another account and for something else of that account, at the same moment: one
/// of them is done, the other answers that the key is taken, and the books stay right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_for_two_requests_does_one_of_them() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let neighbour = payee.another(&fixture).await;
    for round in 0..ROUNDS {
        let number = payer.funded_to(&payee, usd(1)).await;
        let (before, key) = (payee.balance().await, format!("both {round}"));
        let word = if round % 2 == 0 { "release" } else { "dispute" };
        let escrow = json!({ "fromWalletId": payee.wallet, "toWalletId": neighbour.wallet, "amount": 1 });
        // The first one changes from round to round.
        let (one, other) = match round % 4 < 2 {
            true => {
                futures::future::join(
                    payee.call(word, &key, id(number)),
                    payee.call("create", &key, escrow.clone()),
                )
                .await
            }
            false => {
                let (made, decided) = futures::future::join(
                    payee.call("create", &key, escrow.clone()),
                    payee.call(word, &key, id(number)),
                )
                .await;
                (decided, made)
            }
        };
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 422], "{} {}", one.text(), other.text());
        let won = one.status == 200;
        let status = match (won, word) {
            (false, _) => "funded",
            (true, "release") => "released",
            (true, _) => "disputed",
        };
        assert_eq!(payer.status(number).await, status, "round {round}");
        let gained = if won && word == "release" { usd(1) } else { 0 };
        assert_eq!(payee.balance().await, before + gained);
        let winner = if won { &one } else { &other };
        payee.settled(text(&winner.json(), "/intent_id")).await;
        // A repeated request gets its first answer.
        let reply = payee.call("create", &key, escrow).await;
        assert_eq!(reply.status, if won { 422 } else { 200 });
        let reply = payee.call(word, &key, id(number)).await;
        assert_eq!(reply.status, if won { 409 } else { 422 });
    }
}
