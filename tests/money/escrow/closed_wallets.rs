//! Wallets that are frozen or closed, and those that an open escrow keeps from being closed.

use super::parties::{Side, refused, replayed, usd};
use crate::fixture::{Fixture, problem, success};
use domain::intent::Reason;
use serde_json::json;

#[tokio::test]
async fn frozen_and_closed_wallets() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let agent = |side: &Side, tail: &str| format!("/v1/agents/{}{tail}", side.owner);
    let pending = payer.escrow_to(&payee, usd(1)).await;
    let open = payer.funded_to(&payee, usd(2)).await;
    payer.deposit(usd(1)).await;
    let reply = payer.caller.post(&agent(&payer, "/freeze"), json!({})).await;
    success(&reply, 200);
    let id = json!({ "escrowId": pending });
    let reply = payer.call("fund", "frozen", id.clone()).await;
    let intent = refused(&reply, 403, "FROZEN", Reason::Frozen);
    assert_eq!(reply.json()["status"], json!("pending"));
    payer.blocked(&intent, Reason::Frozen).await;
    // Escrowed money has already left the wallet; a frozen payee is paid.
    let response = payee.caller.post(&agent(&payee, "/freeze"), json!({})).await;
    success(&response, 200);
    let response = payer.call_plain("release", json!({ "escrowId": open })).await;
    success(&response, 200);
    assert_eq!(payee.balance().await, usd(2));
    let response = payer.caller.post(&agent(&payer, "/unfreeze"), json!({})).await;
    success(&response, 200);
    replayed(&reply, &payer.call("fund", "frozen", id.clone()).await);

    let gone = payer.another(&fixture).await;
    let to_gone = json!({ "escrowId": payer.escrow_to(&gone, usd(1)).await });
    let from_gone = json!({ "escrowId": gone.escrow_to(&payee, usd(1)).await });
    success(&payer.caller.delete(&agent(&gone, "")).await, 200);
    for (key, body) in [("to", to_gone), ("from", from_gone)] {
        let reply = payer.call("fund", key, body.clone()).await;
        let intent = refused(&reply, 409, "WALLET_CLOSED", Reason::WalletClosed);
        payer.blocked(&intent, Reason::WalletClosed).await;
        replayed(&reply, &payer.call("fund", key, body).await);
    }
    for (from, to) in [(gone.wallet, payee.wallet), (payer.wallet, gone.wallet)] {
        let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": 1 });
        let key = format!("{from} {to}");
        let reply = payer.call("create", &key, body.clone()).await;
        let intent = refused(&reply, 409, "WALLET_CLOSED", Reason::WalletClosed);
        assert_eq!(reply.json().get("escrowId"), None);
        payer.blocked(&intent, Reason::WalletClosed).await;
        replayed(&reply, &payer.call("create", &key, body).await);
    }
    assert_eq!((payer.balance().await, payee.balance().await), (usd(1), usd(2)));
}

#[tokio::test]
async fn an_agent_with_an_open_escrow_cannot_be_deleted() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    for side in [&payer, &payee] {
        let path = format!("/v1/agents/{}", side.owner);
        problem(&side.caller.delete(&path).await, 409, "CONFLICT");
    }
    let reply = payer.call_plain("dispute", json!({ "escrowId": number })).await;
    success(&reply, 200);
    for side in [&payer, &payee] {
        let path = format!("/v1/agents/{}", side.owner);
        problem(&side.caller.delete(&path).await, 409, "CONFLICT");
    }
}

#[tokio::test]
async fn a_wallet_that_can_hold_no_more() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    payee.force_balance("9000000000000000000").await;
    let before = payer.account.version().await;
    let id = json!({ "escrowId": number });
    let reply = payer.call("release", "r", id.clone()).await;
    problem(&reply, 409, "BALANCE_LIMIT");
    assert_eq!(payer.status(number).await, "funded");
    assert_eq!(payer.account.version().await, before, "nothing changed");
    payee.force_balance("0").await;
    success(&payer.call("release", "r", id).await, 200);
    assert_eq!(payee.balance().await, usd(1));
}
