//! A crash between the payer's step and the payee's: what it leaves, and which process completes the call.

use super::{id, in_transit, two};
use crate::escrow::parties::{Side, refused, usd};
use crate::fixture::{BINARY, FULL, Fixture, problem, success, text};
use clock::now_ms;
use domain::intent::Reason;
use domain::mode::Mode;
use harness::scripts::crashing_at;
use harness::{Admin, AdminOptions, Caller, Cli, Reply, eventually, until};
use serde_json::json;
use std::time::Duration;
use store::escrow::script::{DisputeEnded, PartyDecision, Requester, Winner, decide, end_dispute};
use store::escrow::{Escrow, EscrowStatus};
use store::idempotency::RequestIdentity;
use store::keys::IntentIndex;
use store::sanity;
use store::wallet::BALANCE_BY_OTHERS_MAX;

/// Longer than the worker's pause between two rounds.
const WORKER: Duration = Duration::from_secs(15);

/// A release with the key `r` of which only the payer's step runs, as after a crash of every process. No server runs
/// meanwhile. Returns whether the call was answered.
async fn begin(fixture: &Fixture, side: &Side, number: u64) -> bool {
    let secret = sanity::record(&fixture.store).await.unwrap().check_secret;
    let realm = side.account.keys.in_mode(side.mode);
    let request = json!({ "escrowId": number.to_string() });
    let identity =
        RequestIdentity::new(&secret, &realm, Some("r"), ("escrow/release", &request), now_ms()).unwrap();
    let asked = Requester {
        scope: side.scope(),
        identity: &identity,
        at_ms: now_ms(),
    };
    let escrow = Escrow::read(&fixture.store, number).await.unwrap().unwrap();
    let begun = decide(
        &crashing_at(&fixture.store, "transit_arrive"),
        &asked,
        &escrow,
        PartyDecision::Release,
    )
    .await;
    begun.is_ok()
}

/// Starts a server in place of the killed one; also returns a caller of `side` there.
async fn next(fixture: &Fixture, side: &Side) -> (Admin, Caller) {
    let admin = Admin::start(AdminOptions::new(BINARY, fixture.redis.url()));
    let key = side.account.issue(Mode::Live, FULL, &[], None).await;
    let caller = admin.caller(&key.secret);
    (admin, caller)
}

/// A call on the escrow `number` with the key `r`.
async fn with_key(caller: &Caller, word: &str, number: u64) -> Reply {
    caller
        .post_once(&format!("/v1/escrow/{word}"), "r", id(number))
        .await
}

#[tokio::test]
async fn a_retry_finishes_what_the_payee_began() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    fixture.admin.kill9();
    for _ in 0..2 {
        assert!(!begin(&fixture, &payee, number).await, "its intent is not there");
        assert_eq!(in_transit(&fixture, &payer).await, 1);
    }
    let (_admin, of_payer) = next(&fixture, &payer).await;
    // Another request is too late already.
    let late = of_payer.post_once("/v1/escrow/dispute", "d", id(number)).await;
    refused(&late, 409, "ESCROW_RESOLVED", Reason::EscrowReleased);
    let (_admin, of_payee) = next(&fixture, &payee).await;
    let again = with_key(&of_payee, "release", number).await;
    assert_eq!(
        (again.status, &again.json()["success"], &again.json()["replayed"]),
        (409, &json!(true), &json!(true))
    );
    let record = payee.settled(text(&again.json(), "/intent_id")).await;
    assert_eq!(
        (payee.balance().await, in_transit(&fixture, &payer).await),
        (usd(1), 0)
    );
    let credits: Vec<_> = payee.transactions().await;
    assert_eq!(credits.len(), 1, "paid once");
    assert_eq!(Some(credits[0].id.clone()), record.transaction);
    assert_eq!(payer.siblings(number).await.len(), 2, "the retries add none");
}

/// A call has won but is not delivered yet: its key cannot be used for another call.
#[tokio::test]
async fn a_key_that_won_cannot_be_reused_before_its_intent_arrives() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    fixture.admin.kill9();
    assert!(!begin(&fixture, &payee, number).await);
    let (_admin, of_payee) = next(&fixture, &payee).await;
    let other = with_key(&of_payee, "dispute", number).await;
    problem(&other, 422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(payer_status(&fixture, number).await, EscrowStatus::Released);
    until("the delivery", async || payee.balance().await == usd(1)).await;
}

async fn payer_status(fixture: &Fixture, number: u64) -> EscrowStatus {
    Escrow::read(&fixture.store, number)
        .await
        .unwrap()
        .unwrap()
        .status
}

/// The greatest balance of a wallet, in nano-USD.
const FULL_WALLET: &str = "9000000000000000000";

/// A release to a full wallet is refused for that reason, to either party, and nothing moves.
#[tokio::test]
async fn a_wallet_in_another_account_that_can_hold_no_more() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let (paid, fought) = (
        payer.funded_to(&payee, usd(1)).await,
        payer.funded_to(&payee, usd(1)).await,
    );
    success(&payer.call("dispute", "d", id(fought)).await, 200);
    payee.force_balance(FULL_WALLET).await;
    let before = payer.account.version().await;
    for side in [&payer, &payee] {
        for _ in 0..2 {
            problem(&side.call("release", "r", id(paid)).await, 409, "BALANCE_LIMIT");
        }
        let kind = IntentIndex::Kind("escrow_release");
        assert_eq!(side.index(kind).await, [""; 0], "no intent");
    }
    let disputed = Escrow::read(&fixture.store, fought).await.unwrap().unwrap();
    assert_eq!(
        end_dispute(&fixture.store, &disputed, Winner::Payee)
            .await
            .unwrap(),
        DisputeEnded::TooMuch
    );
    assert_eq!(payer.account.version().await, before, "nothing changed");
    assert_eq!(in_transit(&fixture, &payer).await, 0);
    // No record: the key is free for another request.
    success(&payee.call("dispute", "r", id(paid)).await, 200);
    assert_eq!(
        end_dispute(&fixture.store, &disputed, Winner::Payer)
            .await
            .unwrap(),
        DisputeEnded::Done(EscrowStatus::Refunded)
    );
}

/// Other accounts can fill a wallet to a tenth: beyond it a payer of another account is refused, and the payee can
/// release the money itself.
#[tokio::test]
async fn a_payee_takes_what_a_payer_cannot_release() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let (first, second) = (
        payer.funded_to(&payee, usd(1)).await,
        payer.funded_to(&payee, usd(1)).await,
    );
    let most = BALANCE_BY_OTHERS_MAX.get();
    payee.force_balance(&(most - usd(1) + 1).to_string()).await;
    problem(&payer.call("release", "r", id(first)).await, 409, "BALANCE_LIMIT");
    payee.force_balance(&(most - usd(1)).to_string()).await;
    success(&payer.call("release", "r", id(first)).await, 200);
    assert_eq!(payee.balance().await, most);
    problem(
        &payer.call("release", "s", id(second)).await,
        409,
        "BALANCE_LIMIT",
    );
    success(&payee.call("release", "s", id(second)).await, 200);
    assert_eq!(payee.balance().await, most + usd(1));
}

/// The wallet filled up after the check: the escrow is over and the intent exists, and only the money waits.
#[tokio::test]
async fn only_the_money_waits_for_a_wallet_that_filled_up() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    fixture.admin.kill9();
    assert!(!begin(&fixture, &payee, number).await);
    payee.fill(usd(1) / 2).await;
    let (admin, caller) = next(&fixture, &payee).await;
    let again = with_key(&caller, "release", number).await;
    assert_eq!((again.status, &again.json()["success"]), (409, &json!(true)));
    let record = payee.settled(text(&again.json(), "/intent_id")).await;
    assert_eq!(payee.open().await, [0; 0], "the escrow is over");
    let full = usd(9_000_000_000) - usd(1) / 2;
    assert_eq!(payee.balance().await, full);
    let metrics = async |lines: &[&str]| {
        eventually("the metrics", WORKER, async || {
            let text = admin.ops("/metrics")?.1;
            let has = |line: &&str| text.lines().any(|found| found == *line);
            lines.iter().all(has).then_some(())
        })
        .await;
    };
    metrics(&[
        r#"tollgate_admin_transits_without_room{mode="live"} 1"#,
        r#"tollgate_admin_transits_without_room{mode="test"} 0"#,
        "tollgate_admin_transits_waiting 0",
        "tollgate_admin_transits_failed_total 0",
    ])
    .await;
    let log = admin.logs();
    assert_eq!(log.matches("has no room").count(), 1, "{log}");
    assert!(!log.contains("ERROR"), "{log}");
    let cli = Cli::new(BINARY, fixture.redis.url());
    let check = cli.json(&["ledger", "check"]);
    assert_eq!(check["ok"], json!(true), "{check}");

    // There is room again: the money arrives, and nothing is written twice.
    let back = json!({ "from": payee.owner, "to": "user", "amount": 1 });
    success(&caller.post("/v1/wallet/transfer", back).await, 200);
    until("the money", async || in_transit(&fixture, &payer).await == 0).await;
    assert_eq!(payee.balance().await, full);
    let credit = payee.transactions().await.pop().unwrap();
    assert_eq!(
        (Some(credit.id), credit.intent),
        (record.transaction, Some(record.id))
    );
    assert_eq!(payee.index(IntentIndex::Kind("escrow_release")).await.len(), 1);
    let entries = payee.account.audit_types(Mode::Live).await;
    let released = entries.iter().filter(|kind| *kind == "escrow.released").count();
    assert_eq!(released, 2, "once without its money, once with it");
    metrics(&[r#"tollgate_admin_transits_without_room{mode="live"} 0"#]).await;
    assert_eq!(cli.json(&["ledger", "check"])["ok"], json!(true));
}

/// An escrow that another account pays does not prevent the deletion of an agent. One that the account itself pays
/// does, and even if it did not, the money would not be lost.
#[tokio::test]
async fn money_for_a_wallet_that_was_closed_goes_to_the_user_wallet() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let neighbour = payer.another(&fixture).await;
    let forget = async |side: &Side| {
        let open = side.account.keys.in_mode(side.mode).open_escrows(&side.owner);
        let _: i64 = fixture.store.command(redis::cmd("DEL").arg(open)).await.unwrap();
    };
    let close = async |side: &Side| {
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
    forget(&neighbour).await;
    let user = close(&neighbour).await;
    success(&payer.call_plain("release", id(near)).await, 200);
    assert_eq!(user.balance().await, usd(1));
    let user_of_payee = close(&payee).await;
    success(&payee.call_plain("release", id(far)).await, 200);
    assert_eq!(user_of_payee.balance().await, usd(2));
    forget(&payer).await;
    close(&payer).await;
    let escrow = Escrow::read(&fixture.store, back).await.unwrap().unwrap();
    assert_eq!(
        end_dispute(&fixture.store, &escrow, Winner::Payer).await.unwrap(),
        DisputeEnded::Done(EscrowStatus::Refunded)
    );
    assert_eq!(user.balance().await, usd(5));
}
