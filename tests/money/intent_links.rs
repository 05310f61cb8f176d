//! Links of an intent: to its escrow and to the intents that exclude it, in whichever account (specification "Payout
//! intent").

use crate::fixture::{Fixture, problem};
use crate::intents::{export, exported, verified};
use crate::spender::{Spender, USD};
use domain::intent::{IntentKind, Reason};
use domain::money::Nanos;
use domain::number::{self, Number};
use harness::assert_fields;
use serde_json::json;
use store::intent::NewIntent;
use store::keys::{AccountKeys, Bucket};

/// Number of the escrow.
const ESCROW: u64 = number::FIRST;

/// Writes an intent of an escrow call as the scripts do.
async fn plant(
    fixture: &Fixture,
    keys: &AccountKeys,
    spender: &Spender,
    id: &str,
    kind: IntentKind,
    blocked: Option<Reason>,
) {
    let new = NewIntent {
        kind,
        fingerprint: "f00",
        amount: Nanos::new(3 * USD).unwrap(),
        currency: "USD",
        actor: "key_1",
        agent: "bot",
        at_ms: clock::now_ms(),
        note: None,
        request: "{}",
        transaction: None,
        escrow: Some(ESCROW),
    };
    let heads = new.heads(false, &[Reason::EscrowReleased]);
    let (state, word) = match blocked {
        None => ("settled", "settled"),
        Some(reason) => ("blocked", reason.as_str()),
    };
    let head = heads
        .split(' ')
        .find_map(|head| head.strip_prefix(&format!("{word}=")));
    let reason = blocked.map_or("", Reason::as_str);
    let mut set = redis::cmd("HSET");
    set.arg(keys.in_mode(spender.mode).intent(id));
    set.arg(&[
        "id",
        id,
        "state",
        state,
        "first",
        state,
        "reason",
        reason,
        "head",
        head.unwrap(),
    ]);
    let _: u64 = fixture.store.command(set.arg(new.fields())).await.unwrap();
}

fn id_of(number: usize) -> String {
    format!("int_{number:026}")
}

/// Only one release or dispute settles: each names the others, also those of the other party in another account.
#[tokio::test]
async fn the_intents_of_an_escrow_name_each_other() {
    let fixture = Fixture::start().await;
    let payer = Spender::new(&fixture, "builder").await;
    let payee = Spender::new(&fixture, "builder").await;
    let run = async |command: &mut redis::Cmd| {
        let _: redis::Value = fixture.store.command(command).await.unwrap();
    };
    let place = format!("{} live", payer.account.id);
    let key = Bucket::escrow_place(Number::from_u64(ESCROW).unwrap());
    run(redis::cmd("SET").arg(key).arg(place)).await;
    let escrow = payer.account.keys.in_mode(payer.mode).escrow(ESCROW);
    run(redis::cmd("HSET").arg(escrow).arg(&[
        "id",
        &ESCROW.to_string(),
        "status",
        "released",
        "amount",
        "3000000000",
    ]))
    .await;
    plant(
        &fixture,
        &payer.account.keys,
        &payer,
        &id_of(1),
        IntentKind::EscrowRelease,
        None,
    )
    .await;
    let lost = Some(Reason::EscrowReleased);
    plant(
        &fixture,
        &payee.account.keys,
        &payee,
        &id_of(2),
        IntentKind::EscrowDispute,
        lost,
    )
    .await;
    plant(
        &fixture,
        &payer.account.keys,
        &payer,
        &id_of(3),
        IntentKind::EscrowFund,
        None,
    )
    .await;
    // A payee that used one key twice can have something else under the id of its release.
    plant(
        &fixture,
        &payee.account.keys,
        &payee,
        &id_of(4),
        IntentKind::Spend,
        None,
    )
    .await;
    let siblings = payer.account.keys.in_mode(payer.mode).escrow_siblings(ESCROW);
    let (a, b) = (&payer.account.id, &payee.account.id);
    // A sibling that is listed twice, one whose intent has not arrived yet, and one that is no release or dispute.
    for item in [
        format!("{a} {}", id_of(1)),
        format!("{b} {}", id_of(2)),
        format!("{b} {}", id_of(2)),
        format!("{b} {}", id_of(9)),
        format!("{b} {}", id_of(4)),
    ] {
        run(redis::cmd("RPUSH").arg(&siblings).arg(item)).await;
    }
    let sentence = Reason::EscrowReleased.sentence();
    let agreement = json!({ "escrow_agreement": { "id": ESCROW, "status": "released", "amount": 3 } });

    let released = exported(&payer, &id_of(1)).await;
    assert_eq!(verified(&released), ["escrow_released"]);
    assert_eq!(released["xor_group"], json!(format!("escrow:{ESCROW}")));
    let other = json!({ "intent_id": id_of(2), "kind": "escrow_dispute", "state": "blocked", "blocked_reason": sentence,
        "reason": "escrow_released" });
    assert_eq!(released["xor_siblings"], json!([other]));
    assert_eq!(released["downstream"], agreement);
    assert_eq!(released["allowed_by"], json!("key_1"));

    let disputed = exported(&payee, &id_of(2)).await;
    assert_eq!(verified(&disputed), ["escrow_blocked"]);
    let other = json!({ "intent_id": id_of(1), "kind": "escrow_release", "state": "settled", "blocked_reason": null,
        "reason": null });
    assert_eq!(disputed["xor_siblings"], json!([other]));
    assert_fields!(disputed, { "downstream": agreement, "blocked_reason": sentence });

    let funded = exported(&payer, &id_of(3)).await;
    assert_fields!(funded, { "xor_group": null, "xor_siblings": [] });
    assert_eq!(funded["downstream"], agreement);
    // Each party sees its own intents only.
    problem(&export(&payer, &id_of(2), "").await, 404, "NOT_FOUND");
    problem(&export(&payee, &id_of(1), "").await, 404, "NOT_FOUND");

    for number in 100..250 {
        plant(
            &fixture,
            &payer.account.keys,
            &payer,
            &id_of(number),
            IntentKind::EscrowRelease,
            lost,
        )
        .await;
        run(redis::cmd("RPUSH")
            .arg(&siblings)
            .arg(format!("{a} {}", id_of(number))))
        .await;
    }
    let crowded = exported(&payer, &id_of(1)).await;
    let shown = crowded["xor_siblings"].as_array().unwrap().len();
    assert_eq!(
        shown, 97,
        "of the 101 items that are read, four are its own, twice there, not there yet, or none"
    );
    // A sibling that was tampered with is not shown either.
    run(redis::cmd("HSET")
        .arg(payee.account.keys.in_mode(payee.mode).intent(&id_of(2)))
        .arg("amount")
        .arg(1))
    .await;
    problem(&export(&payer, &id_of(1), "").await, 500, "INTERNAL");
}

/// Transfers and deposits share the records of requests made once, and are no intents.
#[tokio::test]
async fn transfers_and_deposits_are_no_intents() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    for (number, kind) in [(1, IntentKind::Transfer), (2, IntentKind::Deposit)] {
        let id = id_of(number);
        plant(&fixture, &spender.account.keys, &spender, &id, kind, None).await;
        let key = spender.account.keys.in_mode(spender.mode).intent(&id);
        let mut set = redis::cmd("HSET");
        let _: u64 = fixture
            .store
            .command(set.arg(key).arg("head").arg(""))
            .await
            .unwrap();
        for path in ["", "/export"] {
            let reply = spender.caller.get(&format!("/v1/intents/{id}{path}")).await;
            problem(&reply, 404, "NOT_FOUND");
        }
    }
}
