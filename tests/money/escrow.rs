//! Escrow within one account: every row of the specification's tables. Bad input is in [`bad_input`], idempotency in
//! [`idempotency`], wallets out of use in [`closed_wallets`].

mod bad_input;
mod closed_wallets;
mod idempotency;
pub mod parties;

use crate::fixture::{Fixture, fresh, minted, success, text};
use domain::intent::{IntentKind, Reason};
use domain::mode::Mode;
use parties::{Side, refused, replayed, usd};
use serde_json::{Value, json};
use std::time::Duration;
use store::transaction::TransactionType as T;
use tokio::time::sleep;

/// Long enough for the clock to show another millisecond.
const A_MOMENT: Duration = Duration::from_millis(5);

#[tokio::test]
async fn create_fund_release() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    payer.deposit(usd(10)).await;
    let body = json!({ "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 2.5,
        "conditions": { "deliver": "a book", "by": [1, 2.50] }, "currency": "USDC" });
    let made = success(&payer.call("create", "c", body).await, 200);
    let escrow = &made["escrow"];
    let number = escrow["id"].as_u64().unwrap();
    fresh(text(&made, "/escrow/createdAt"));
    let created_at = escrow["createdAt"].clone();
    let expected = json!({ "id": number, "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 2.5,
        "currency": "USDC", "status": "pending", "conditions": { "deliver": "a book", "by": [1, 2.5] },
        "createdAt": created_at });
    assert_eq!(*escrow, expected);
    let intent = text(&made, "/intent_id").to_owned();
    minted(&intent, "int_");
    let record = payer.settled(&intent).await;
    assert_eq!(
        (record.kind, record.escrow),
        (IntentKind::EscrowCreate, Some(number))
    );
    assert_eq!(
        (payer.balance().await, payer.open().await),
        (usd(10), vec![]),
        "no funds move"
    );

    let id = json!({ "escrowId": number });
    sleep(A_MOMENT).await;
    let funded = success(&payer.call("fund", "f", id.clone()).await, 200);
    let intent = text(&funded, "/intentId").to_owned();
    sleep(A_MOMENT).await;
    assert_eq!(
        funded,
        json!({ "success": true, "escrowId": number, "status": "funded", "intentId": intent, "intent_id": intent,
            "balance": 7.5 })
    );
    let record = payer.settled(&intent).await;
    let debit = payer.transactions().await.pop().unwrap();
    assert_eq!(
        (debit.kind, debit.amount.get(), debit.wallet),
        (T::EscrowFund, 2_500_000_000, payer.wallet)
    );
    assert_eq!(
        (debit.intent.as_deref(), record.transaction),
        (Some(intent.as_str()), Some(debit.id))
    );
    assert_eq!(debit.tail.counterparty, Some(format!("escrow:{number}")));
    assert_eq!(
        (payer.open().await, payee.open().await),
        (vec![number], vec![number])
    );

    let released = success(&payee.call("release", "r", id).await, 200);
    let intent = text(&released, "/intentId").to_owned();
    assert_eq!(
        released,
        json!({ "success": true, "escrowId": number, "status": "released", "intentId": intent, "intent_id": intent })
    );
    let record = payer.settled(&intent).await;
    let credit = payer.transactions().await.pop().unwrap();
    assert_eq!((credit.kind, credit.wallet), (T::EscrowRelease, payee.wallet));
    assert_eq!(
        (credit.intent.as_deref(), record.transaction),
        (Some(intent.as_str()), Some(credit.id))
    );
    assert_eq!(
        (payer.balance().await, payee.balance().await),
        (7_500_000_000, 2_500_000_000)
    );
    assert_eq!((payer.open().await, payee.open().await), (vec![], vec![]));
    assert_eq!(
        payer.siblings(number).await,
        [format!("{} {intent}", payer.account.id)]
    );

    let read = success(&payer.caller.get(&format!("/api/v1/escrow/{number}")).await, 200);
    fresh(text(&read, "/escrow/updatedAt"));
    let updated_at = read["escrow"]["updatedAt"].clone();
    let record = fixture.fields(&payer.account.keys.live().escrow(number)).await;
    assert!(record["created_at"] < record["funded_at"] && record["funded_at"] < record["resolved_at"]);
    assert_eq!(record["updated_at"], record["resolved_at"]);
    let winner = ["winner", "winner_account", "winner_kind"].map(|name| record[name].as_str());
    assert_eq!(winner, [&intent, &payer.account.id, "escrow_release"]);
    assert_eq!(
        read["escrow"],
        json!({ "id": number, "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 2.5,
            "currency": "USDC", "status": "released", "conditions": { "deliver": "a book", "by": [1, 2.5] },
            "dispute_reason": null, "intent_id": made["intent_id"], "createdAt": created_at, "updatedAt": updated_at })
    );
    let types = payer.account.audit_types(Mode::Live).await;
    assert_eq!(
        types[types.len() - 3..],
        ["escrow.create", "escrow.fund", "escrow.release"]
    );
}

#[tokio::test]
async fn a_dispute_moves_nothing_and_keeps_the_reason() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    for (said, kept) in [
        (
            json!({ "reason": "Nothing came.\nNothing at all. 無" }),
            json!("Nothing came.\nNothing at all. 無"),
        ),
        (json!({}), Value::Null),
        (json!({ "reason": null }), Value::Null),
        (json!({ "reason": "" }), Value::Null),
    ] {
        let number = payer.funded_to(&payee, usd(1)).await;
        let mut body = said.clone();
        body["escrowId"] = json!(number);
        let disputed = success(&payer.call_plain("dispute", body).await, 200);
        let intent = text(&disputed, "/intent_id").to_owned();
        assert_eq!(
            disputed,
            json!({ "success": true, "escrowId": number, "status": "disputed", "dispute_reason": kept,
                "intentId": intent, "intent_id": intent })
        );
        assert_eq!(json!(payer.settled(&intent).await.note), kept);
        let read = success(&payer.caller.get(&format!("/v1/escrow/{number}")).await, 200);
        assert_eq!(read["escrow"]["dispute_reason"], kept);
        assert!(payer.open().await.contains(&number) && payee.open().await.contains(&number));
    }
    assert_eq!(
        (payer.balance().await, payee.balance().await),
        (0, 0),
        "the escrows hold it"
    );
}

#[tokio::test]
async fn calls_in_the_wrong_state() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    payer.deposit(usd(100)).await;
    let pending = json!({ "escrowId": payer.escrow_to(&payee, usd(1)).await });
    for word in ["release", "dispute"] {
        let reply = payer.call(word, word, pending.clone()).await;
        let intent = refused(&reply, 400, "ESCROW_WRONG_STATE", Reason::EscrowNotFunded);
        assert_eq!(reply.json()["status"], json!("pending"));
        payer.blocked(&intent, Reason::EscrowNotFunded).await;
        let again = payer.call(word, word, pending.clone()).await;
        let other = refused(&again, 400, "ESCROW_WRONG_STATE", Reason::EscrowNotFunded);
        assert_ne!(other, intent, "a 400 is not stored under the key");
    }
    // The same keys work once the state is right.
    success(&payer.call("fund", "fund", pending.clone()).await, 200);
    success(&payer.call("release", "release", pending.clone()).await, 200);

    let disputed = json!({ "escrowId": payer.funded_to(&payee, usd(2)).await });
    success(&payer.call_plain("dispute", disputed.clone()).await, 200);
    let funded = json!({ "escrowId": payer.funded_to(&payee, usd(3)).await });
    let before = (
        payer.balance().await,
        payee.balance().await,
        payer.transactions().await,
    );
    for (body, status) in [
        (&pending, "released"),
        (&disputed, "disputed"),
        (&funded, "funded"),
    ] {
        let key = format!("fund {status}");
        let reply = payer.call("fund", &key, body.clone()).await;
        let intent = refused(&reply, 400, "ESCROW_WRONG_STATE", Reason::EscrowNotPending);
        let again = payer.call("fund", &key, body.clone()).await;
        let other = refused(&again, 400, "ESCROW_WRONG_STATE", Reason::EscrowNotPending);
        assert_ne!(other, intent, "a 400 is not stored under the key");
        assert_eq!(reply.json()["status"], json!(status));
        payer.blocked(&intent, Reason::EscrowNotPending).await;
    }
    for (body, status, reason) in [
        (&pending, "released", Reason::EscrowReleased),
        (&disputed, "disputed", Reason::EscrowDisputed),
    ] {
        for word in ["release", "dispute"] {
            let key = format!("{status} {word}");
            let reply = payer.call(word, &key, body.clone()).await;
            let intent = refused(&reply, 409, "ESCROW_RESOLVED", reason);
            let number = &body["escrowId"];
            assert_eq!(
                reply.json(),
                json!({ "error": reason.sentence(), "code": "ESCROW_RESOLVED", "escrowId": number, "status": status,
                    "intentId": intent, "intent_id": intent, "success": false, "state": "blocked",
                    "reason": reason.as_str(), "blocked_reason": reason.sentence() })
            );
            payer.blocked(&intent, reason).await;
            replayed(&reply, &payer.call(word, &key, body.clone()).await);
        }
    }
    let after = (
        payer.balance().await,
        payee.balance().await,
        payer.transactions().await,
    );
    assert_eq!(before, after, "nothing moved");
}

#[tokio::test]
async fn funding_takes_exactly_what_is_there() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await.as_user().await;
    let number = payer.escrow_to(&payee, 1_000_000_001).await;
    payer.deposit(1_000_000_000).await;
    let id = json!({ "escrowId": number });
    let reply = payer.call("fund", "f", id.clone()).await;
    let intent = refused(&reply, 400, "INSUFFICIENT_BALANCE", Reason::InsufficientBalance);
    payer.blocked(&intent, Reason::InsufficientBalance).await;
    assert_eq!(
        (payer.balance().await, payer.status(number).await.as_str()),
        (usd(1), "pending")
    );
    assert_eq!((payer.open().await, payee.open().await), (vec![], vec![]));
    payer.deposit(1).await;
    let funded = success(&payer.call("fund", "f", id.clone()).await, 200);
    assert_eq!(funded["balance"], json!(0));
    success(&payer.call("release", "r", id).await, 200);
    assert_eq!((payer.balance().await, payee.balance().await), (0, 1_000_000_001));
}
