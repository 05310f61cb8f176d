//! A crash between the payer's step and the payee's: what it leaves, and which process finishes it.

use super::{id, in_transit, two};
use crate::escrow::stage::{Side, refused, usd};
use crate::world::{BINARY, FULL, World, problem, success, text};
use domain::intent::Reason;
use domain::mode::Mode;
use harness::{Admin, AdminOptions, assert_fields, eventually};
use serde_json::json;
use std::time::Duration;
use store::escrow::script::{Ended, Winner, end_dispute};
use store::escrow::{Escrow, EscrowStatus};
use store::keys::IntentIndex;

/// Longer than the worker waits between two rounds.
const WORKER: Duration = Duration::from_secs(15);
/// The greatest balance of a wallet, in nano-USD.
const BRIMFUL: &str = "9000000000000000000";

/// The payer's step is done, and the payee's account cannot take the money yet, as if everything had stopped between.
#[tokio::test]
async fn the_worker_finishes_what_the_payer_began() {
    let world = World::start().await;
    let (payer, payee) = two(&world).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    payee.force_balance(BRIMFUL).await;
    success(&payer.call("release", "r", id(number)).await, 200);
    assert_eq!(
        (in_transit(&world, &payer).await, payee.open().await),
        (1, vec![number])
    );
    assert_eq!(payer.status(number).await, "released");
    payee.force_balance("0").await;
    eventually("the money", WORKER, async || {
        (payee.balance().await == usd(1)).then_some(())
    })
    .await;
    eventually("the row to go", WORKER, async || {
        (in_transit(&world, &payer).await == 0).then_some(())
    })
    .await;
    assert_eq!((payee.balance().await, payee.open().await), (usd(1), vec![]));
}

#[tokio::test]
async fn a_retry_finishes_what_the_payee_began() {
    let world = World::start().await;
    let (payer, payee) = two(&world).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    payee.force_balance(BRIMFUL).await;
    for _ in 0..2 {
        let reply = payee.call("release", "r", id(number)).await;
        problem(&reply, 503, "SERVICE_UNAVAILABLE");
        assert_eq!(in_transit(&world, &payer).await, 1);
    }
    // Another request is too late already.
    let late = payer.call("dispute", "d", id(number)).await;
    refused(&late, 409, "ESCROW_RESOLVED", Reason::EscrowReleased);
    payee.force_balance("0").await;
    let again = payee.call("release", "r", id(number)).await;
    assert_eq!(
        (again.status, &again.json()["success"], &again.json()["replayed"]),
        (409, &json!(true), &json!(true))
    );
    let record = payee.settled(text(&again.json(), "/intent_id")).await;
    assert_eq!(
        (payee.balance().await, in_transit(&world, &payer).await),
        (usd(1), 0)
    );
    let credits: Vec<_> = payee.transactions().await;
    assert_eq!(credits.len(), 1, "paid once");
    assert_eq!(Some(credits[0].id.clone()), record.transaction);
    assert_eq!(payer.siblings(number).await.len(), 2, "the retries add none");
}

/// The same key for another call, while the first one has won and is not delivered: the first one counts.
#[tokio::test]
async fn a_key_that_won_cannot_be_reused_before_its_intent_arrives() {
    let world = World::start().await;
    let (payer, payee) = two(&world).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    payee.force_balance(BRIMFUL).await;
    let reply = payee.call("release", "r", id(number)).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    payee.force_balance("0").await;
    let reply = payee.call("dispute", "r", id(number)).await;
    problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(payer.status(number).await, "released");
    eventually("the delivery", Duration::from_secs(15), async || {
        (payee.balance().await == usd(1)).then_some(())
    })
    .await;
}

/// The server dies between the payer's step and the payee's; the next one finishes it, and the retry finds it done.
#[tokio::test]
async fn another_server_finishes_what_a_dead_one_left() {
    let world = World::start().await;
    let (payer, payee) = two(&world).await;
    let (paid, fought) = (
        payer.funded_to(&payee, usd(1)).await,
        payer.funded_to(&payee, usd(2)).await,
    );
    payee.force_balance(BRIMFUL).await;
    let reply = payee.call("release", "r", id(paid)).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    success(&payee.call("dispute", "d", id(fought)).await, 200);
    assert_eq!(in_transit(&world, &payer).await, 1);
    world.admin.kill9();
    payee.force_balance("0").await;
    assert_eq!(payee.index(IntentIndex::Kind("escrow_release")).await, [""; 0]);
    let next = Admin::start(AdminOptions::new(BINARY, world.redis.url()));
    eventually("the money", WORKER, async || {
        (payee.balance().await == usd(1)).then_some(())
    })
    .await;
    let intents = payee.index(IntentIndex::Kind("escrow_release")).await;
    assert_eq!(intents.len(), 1);
    payee.settled(&intents[0]).await;

    let key = world.issue(&payee.account, Mode::Live, FULL, &[], None).await;
    let caller = next.caller(&key.secret);
    let headers = [("idempotency-key", "r")];
    let again = caller
        .send("POST", "/v1/escrow/release", &headers, id(paid).to_string())
        .await;
    assert_eq!(again.status, 409);
    let body = again.json();
    assert_fields!(body, { "success": true, "replayed": true, "intent_id": intents[0] });
    assert_eq!(
        (payee.balance().await, payee.transactions().await.len()),
        (usd(1), 1)
    );
}

/// It cannot happen while open escrows keep an agent from being deleted, and if it did, the money would not be lost.
#[tokio::test]
async fn money_for_a_wallet_that_was_closed_goes_to_the_user_wallet() {
    let world = World::start().await;
    let (payer, payee) = two(&world).await;
    let neighbour = payer.another(&world).await;
    let close = async |side: &Side| {
        let open = side.account.keys.open_escrows(side.mode, &side.owner);
        let _: i64 = world.store.command(redis::cmd("DEL").arg(open)).await.unwrap();
        let reply = side.caller.delete(&format!("/v1/agents/{}", side.owner)).await;
        success(&reply, 200);
        side.as_user().await
    };
    let (near, far) = (
        payer.funded_to(&neighbour, usd(1)).await,
        payer.funded_to(&payee, usd(2)).await,
    );
    let back = payer.funded_to(&payee.as_user().await, usd(4)).await;
    success(&payer.call_plain("dispute", id(back)).await, 200);
    let user = close(&neighbour).await;
    success(&payer.call_plain("release", id(near)).await, 200);
    assert_eq!(user.balance().await, usd(1));
    let user_of_payee = close(&payee).await;
    success(&payee.call_plain("release", id(far)).await, 200);
    assert_eq!(user_of_payee.balance().await, usd(2));
    close(&payer).await;
    let escrow = Escrow::read(&world.store, back).await.unwrap().unwrap();
    assert_eq!(
        end_dispute(&world.store, &escrow, Winner::Payer).await.unwrap(),
        Ended::Done(EscrowStatus::Refunded)
    );
    assert_eq!(user.balance().await, usd(5));
}
