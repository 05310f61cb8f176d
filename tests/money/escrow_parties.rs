//! Escrow between accounts: who may call what, and where the records are. Races are in [`race`], crashes in
//! [`crash`], callers who are no party in [`strangers`].

mod crash;
mod race;
mod strangers;

use crate::escrow::parties::{Side, refused, replayed, usd};
use crate::fixture::{Fixture, problem, success, text};
use domain::intent::Reason;
use domain::mode::Mode;
use harness::assert_fields;
use serde_json::{Value, json};
use store::escrow::script::{DisputeEnded, Winner, end_dispute};
use store::escrow::{Escrow, EscrowStatus};
use store::keys::IntentIndex;
use store::transaction::TransactionType as T;

fn id(number: u64) -> Value {
    json!({ "escrowId": number })
}

async fn two(fixture: &Fixture) -> (Side, Side) {
    (Side::new(fixture).await, Side::new(fixture).await)
}

/// Number of rows in transit in the payer's bucket.
async fn in_transit(fixture: &Fixture, payer: &Side) -> u64 {
    let key = payer.account.keys.bucket().transit();
    fixture.store.command(redis::cmd("HLEN").arg(key)).await.unwrap()
}

#[tokio::test]
async fn the_payer_releases_to_another_account() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee, usd(3)).await;
    assert_eq!((payer.open().await, payee.open().await), (vec![number], vec![]));
    for side in [&payer, &payee] {
        let listed = success(&side.caller.get("/v1/escrow").await, 200);
        assert_eq!(
            (&listed["escrows"][0]["id"], &listed["total"]),
            (&json!(number), &json!(1))
        );
        assert_eq!(side.status(number).await, "funded");
    }
    let released = payer.call("release", "r", id(number)).await;
    let intent = text(&success(&released, 200), "/intent_id").to_owned();
    assert_eq!((payer.balance().await, payee.balance().await), (0, usd(3)));
    assert_eq!((payer.open().await, payee.open().await), (vec![], vec![]));
    assert_eq!(in_transit(&fixture, &payer).await, 0);
    assert_eq!(payer.settled(&intent).await.agent, payer.owner);
    assert_eq!(payee.intent(&intent).await, None, "the payee did not ask");
    let credit = payee.transactions().await.pop().unwrap();
    assert_eq!(
        (credit.kind, credit.intent, credit.owner),
        (T::EscrowRelease, None, payee.owner.clone())
    );
    assert_eq!(credit.tail.counterparty, Some(format!("escrow:{number}")));
    assert_eq!(
        payer.siblings(number).await,
        [format!("{} {intent}", payer.account.id)]
    );
    assert_eq!(payer.call("release", "r", id(number)).await.status, 409);
    let theirs = payee.account.audit(Mode::Live).await.pop().unwrap();
    assert_eq!(
        (theirs.kind, theirs.agent),
        ("escrow.released".to_owned(), Some(payee.owner.clone()))
    );
    assert_eq!(
        payer.account.audit_types(Mode::Live).await.pop().unwrap(),
        "escrow.release"
    );
    assert_eq!(
        (payer.status(number).await, payee.status(number).await),
        ("released".into(), "released".into())
    );
}

#[tokio::test]
async fn the_payee_releases_and_has_the_intent() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee.as_user().await, usd(3)).await;
    let user = payee.as_user().await;
    let released = payee.call("release", "r", id(number)).await;
    let intent = text(&success(&released, 200), "/intent_id").to_owned();
    assert_eq!(
        released.json(),
        json!({ "success": true, "escrowId": number, "status": "released", "intentId": intent, "intent_id": intent })
    );
    assert_eq!((payer.balance().await, user.balance().await), (0, usd(3)));
    let record = payee.settled(&intent).await;
    let credit = payee.transactions().await.pop().unwrap();
    assert_eq!((record.agent.as_str(), record.escrow), ("user", Some(number)));
    assert_eq!(
        (Some(credit.id), credit.intent),
        (record.transaction, Some(intent.clone()))
    );
    assert_eq!(payer.intent(&intent).await, None);
    assert_eq!(
        payer.siblings(number).await,
        [format!("{} {intent}", payee.account.id)]
    );
    assert_eq!(
        (
            payer.open().await,
            user.open().await,
            in_transit(&fixture, &payer).await
        ),
        (vec![], vec![], 0)
    );

    let again = payee.call("release", "r", id(number)).await;
    assert_eq!(again.status, 409);
    assert_eq!(
        again.json(),
        json!({ "success": true, "escrowId": number, "status": "released", "intentId": intent, "intent_id": intent,
            "error": "The escrow is already resolved.", "code": "ESCROW_RESOLVED", "replayed": true })
    );
    // The same key in the payer's account is another key.
    let late = payer.call("dispute", "r", id(number)).await;
    let lost = refused(&late, 409, "ESCROW_RESOLVED", Reason::EscrowReleased);
    payer.blocked(&lost, Reason::EscrowReleased).await;
    let reply = payee.call("dispute", "r", id(number)).await;
    problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(user.balance().await, usd(3), "paid once");
}

#[tokio::test]
async fn either_party_disputes_and_the_other_loses() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    for (first, second) in [(&payer, &payee), (&payee, &payer)] {
        let number = payer.funded_to(&payee, usd(1)).await;
        let key = format!("dispute {number}");
        let body = json!({ "escrowId": number, "reason": "Not as agreed" });
        let disputed = success(&first.call("dispute", &key, body.clone()).await, 200);
        let won = text(&disputed, "/intent_id").to_owned();
        assert_eq!(disputed["dispute_reason"], json!("Not as agreed"));
        let record = first.settled(&won).await;
        assert_eq!(
            (record.note.as_deref(), record.agent),
            (Some("Not as agreed"), first.owner.clone())
        );
        assert_fields!(first.call("dispute", &key, body).await.json(), { "replayed": true });
        let reply = second.call("release", &key, id(number)).await;
        let lost = refused(&reply, 409, "ESCROW_RESOLVED", Reason::EscrowDisputed);
        second.blocked(&lost, Reason::EscrowDisputed).await;
        replayed(&reply, &second.call("release", &key, id(number)).await);
        let of = |side: &Side, intent: &str| format!("{} {intent}", side.account.id);
        assert_eq!(payer.siblings(number).await, [of(first, &won), of(second, &lost)]);
        assert!(payer.open().await.contains(&number));
        for side in [&payer, &payee] {
            let read = success(&side.caller.get(&format!("/v1/escrow/{number}")).await, 200);
            assert_eq!(read["escrow"]["dispute_reason"], json!("Not as agreed"));
        }
    }
    assert_eq!((payer.balance().await, payee.balance().await), (0, 0));
    assert_eq!(in_transit(&fixture, &payer).await, 0);
    // Either way the payee's account learns of it.
    let learned = payee.account.audit_types(Mode::Live).await;
    let learned = learned.iter().filter(|kind| *kind == "escrow.disputed");
    assert_eq!(learned.count(), 2);
}

#[tokio::test]
async fn a_payee_in_another_account_comes_too_early() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.escrow_to(&payee, usd(1)).await;
    let reply = payee.call("release", "r", id(number)).await;
    let intent = refused(&reply, 400, "ESCROW_WRONG_STATE", Reason::EscrowNotFunded);
    payee.blocked(&intent, Reason::EscrowNotFunded).await;
    assert_eq!(payer.index(IntentIndex::Kind("escrow_release")).await, [""; 0]);
    assert_eq!(
        payer.siblings(number).await,
        [format!("{} {intent}", payee.account.id)]
    );
    payer.deposit(usd(1)).await;
    success(&payer.call("fund", "f", id(number)).await, 200);
    success(&payee.call("release", "r", id(number)).await, 200);
}

#[tokio::test]
async fn the_operator_ends_a_dispute() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let neighbour = payer.another(&fixture).await;
    let end = async |number: u64, winner: Winner| {
        let escrow = Escrow::read(&fixture.store, number).await.unwrap().unwrap();
        end_dispute(&fixture.store, &escrow, winner).await.unwrap()
    };
    for to in [&neighbour, &payee] {
        let number = payer.funded_to(to, usd(1)).await;
        success(&to.call_plain("dispute", id(number)).await, 200);
        assert_eq!(
            end(number, Winner::Payee).await,
            DisputeEnded::Done(EscrowStatus::Released)
        );
        assert_eq!((payer.balance().await, to.balance().await), (0, usd(1)));
        let credit = to
            .transactions()
            .await
            .into_iter()
            .rfind(|one| one.wallet == to.wallet)
            .unwrap();
        assert_eq!((credit.kind, credit.intent), (T::EscrowRelease, None));

        let number = payer.funded_to(to, usd(2)).await;
        let reply = payer.call("dispute", &format!("d {number}"), id(number)).await;
        success(&reply, 200);
        assert_eq!(
            end(number, Winner::Payer).await,
            DisputeEnded::Done(EscrowStatus::Refunded)
        );
        assert_eq!((payer.balance().await, to.balance().await), (usd(2), usd(1)));
        let refund = payer.transactions().await.pop().unwrap();
        assert_eq!((refund.kind, refund.wallet), (T::EscrowRefund, payer.wallet));
        // The dispute keeps its answer. A later call gets the escrow's outcome.
        let again = payer.call("dispute", &format!("d {number}"), id(number)).await;
        assert_eq!((again.status, &again.json()["status"]), (409, &json!("disputed")));
        let late = to.call("release", &format!("l {number}"), id(number)).await;
        let lost = refused(&late, 409, "ESCROW_RESOLVED", Reason::EscrowRefunded);
        to.blocked(&lost, Reason::EscrowRefunded).await;
        replayed(
            &late,
            &to.call("release", &format!("l {number}"), id(number)).await,
        );
        payer.force_balance("0").await;
    }
    assert_eq!(in_transit(&fixture, &payer).await, 0);
    let last = payee.account.audit(Mode::Live).await;
    assert!(
        last.iter().any(|entry| entry.kind == "escrow.refunded"),
        "{last:?}"
    );
}

#[tokio::test]
async fn an_export_names_what_it_excludes() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    let won = success(&payee.call("release", "r", id(number)).await, 200);
    let won = text(&won, "/intent_id");
    let lost = payer.call("dispute", "d", id(number)).await;
    let lost = refused(&lost, 409, "ESCROW_RESOLVED", Reason::EscrowReleased);
    let export = async |side: &Side, id: &str| {
        let reply = side.caller.get(&format!("/v1/intents/{id}/export")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let (winner, loser) = (export(&payee, won).await, export(&payer, &lost).await);
    for document in [&winner, &loser] {
        assert_eq!(document["xor_group"], json!(format!("escrow:{number}")));
        assert_fields!(document, {
            "downstream": { "escrow_agreement": { "id": number, "status": "released", "amount": 1 } },
        });
    }
    let sentence = Reason::EscrowReleased.sentence();
    assert_eq!(
        winner["xor_siblings"],
        json!([{ "intent_id": lost, "kind": "escrow_dispute", "state": "blocked", "blocked_reason": sentence, "reason": "escrow_released" }])
    );
    assert_eq!(
        loser["xor_siblings"],
        json!([{ "intent_id": won, "kind": "escrow_release", "state": "settled", "blocked_reason": null, "reason": null }])
    );
    assert_eq!(
        (&winner["state"], &winner["timeline"][0]["event_type"]),
        (&json!("settled"), &json!("escrow_released"))
    );
    assert_eq!(
        (&loser["allowed_by"], &loser["timeline"][0]["event_type"]),
        (&Value::Null, &json!("escrow_blocked"))
    );
    let elsewhere = payee.caller.get(&format!("/v1/intents/{lost}/export")).await;
    problem(&elsewhere, 404, "NOT_FOUND");
}
