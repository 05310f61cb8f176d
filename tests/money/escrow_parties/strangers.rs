//! Callers that are no party, and wallets that the caller cannot see.

use super::{id, two};
use crate::escrow::parties::{Side, refused, replayed, usd};
use crate::fixture::{Fixture, problem, success};
use domain::intent::Reason;
use harness::assert_fields;
use serde_json::json;

#[tokio::test]
async fn strangers_and_modes() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let stranger = Side::new(&fixture).await;
    let tester = payer.in_test_mode(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    let pending = payer.escrow_to(&payee, usd(1)).await;
    let before = payer.account.version().await;

    for word in ["fund", "release", "dispute"] {
        for number in [number, pending] {
            problem(&stranger.call_plain(word, id(number)).await, 403, "NOT_A_PARTY");
            let sentence = problem(&tester.call_plain(word, id(number)).await, 404, "NOT_FOUND");
            assert!(sentence.starts_with("escrowId"), "{sentence}");
        }
        problem(&stranger.call_plain(word, id(999_999)).await, 404, "NOT_FOUND");
    }
    problem(&payee.call_plain("fund", id(pending)).await, 403, "NOT_A_PARTY");
    for side in [&stranger, &tester] {
        let reply = side.caller.get(&format!("/v1/escrow/{number}")).await;
        problem(&reply, 404, "NOT_FOUND");
        assert_fields!(success(&side.caller.get("/v1/escrow").await, 200), { "total": 0 });
    }
    let create = async |side: &Side, from: u64, to: u64| {
        let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": 1 });
        side.call_plain("create", body).await
    };
    let reply = create(&stranger, payer.wallet, stranger.wallet).await;
    let sentence = problem(&reply, 403, "NOT_A_PARTY");
    assert!(sentence.starts_with("fromWalletId"), "{sentence}");
    for (side, from, to, named) in [
        (&payer, 999_999, payee.wallet, "fromWalletId"),
        (&payer, payer.wallet, 999_999, "toWalletId"),
        (&payer, payer.wallet, tester.wallet, "toWalletId"),
        (&payer, tester.wallet, payee.wallet, "fromWalletId"),
        (&tester, payer.wallet, tester.wallet, "fromWalletId"),
        (&tester, tester.wallet, payee.wallet, "toWalletId"),
    ] {
        let sentence = problem(&create(side, from, to).await, 404, "NOT_FOUND");
        assert!(sentence.starts_with(named), "{sentence}");
    }
    // An agent's id names a wallet of the caller only (decision D61).
    let body = json!({ "fromWalletId": payer.wallet, "toWalletId": payee.owner, "amount": 1 });
    problem(&payer.call_plain("create", body).await, 404, "NOT_FOUND");
    // A refusal of these kinds is not stored: the key is still free.
    let reply = stranger.call("release", "k", id(number)).await;
    problem(&reply, 403, "NOT_A_PARTY");
    let own = stranger.another(&fixture).await;
    let mine = stranger.funded_to(&own, usd(1)).await;
    success(&stranger.call("release", "k", id(mine)).await, 200);
    assert_eq!(payer.account.version().await, before, "nothing changed");

    // In test mode everything works the same, apart from the live records.
    let other = tester.another(&fixture).await;
    let number = tester.funded_to(&other, usd(2)).await;
    success(&tester.call_plain("release", id(number)).await, 200);
    assert_eq!(other.balance().await, usd(2));
    let reply = payer.caller.get(&format!("/v1/escrow/{number}")).await;
    problem(&reply, 404, "NOT_FOUND");
}

#[tokio::test]
async fn a_wallet_of_another_account_that_is_closed() {
    let fixture = Fixture::start().await;
    let (payer, payee) = two(&fixture).await;
    let number = payer.escrow_to(&payee, usd(1)).await;
    payer.deposit(usd(1)).await;
    let reply = payee.caller.delete(&format!("/v1/agents/{}", payee.owner)).await;
    success(&reply, 200);
    let reply = payer.call("fund", "f", id(number)).await;
    let intent = refused(&reply, 409, "WALLET_CLOSED", Reason::WalletClosed);
    payer.blocked(&intent, Reason::WalletClosed).await;
    replayed(&reply, &payer.call("fund", "f", id(number)).await);
    let body = json!({ "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 1 });
    let reply = payer.call("create", "c", body).await;
    refused(&reply, 409, "WALLET_CLOSED", Reason::WalletClosed);
    assert_eq!(
        (payer.balance().await, payer.open().await, payee.open().await),
        (usd(1), vec![], vec![])
    );
}
