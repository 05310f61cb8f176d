//! A debit of any kind that takes a wallet below its threshold fires one event.

use super::Watch;
use crate::fixture::{Fixture, success, text};
use crate::spender::{Spender, decimal};
use serde_json::{Value, json};

/// The compared fields of the event.
fn facts(reported: &Value) -> [Value; 4] {
    ["owner", "balanceNanos", "thresholdNanos", "cause"].map(|name| reported[name].clone())
}

async fn transfer(spender: &Spender, from: &str, to: &str, nanos: u64) {
    let body = json!({ "from": from, "to": to, "amount": decimal(nanos) });
    success(&spender.caller.post("/v1/wallet/transfer", body).await, 200);
}

async fn deposit(spender: &Spender, wallet: &str, nanos: u64, reference: &str) {
    let body = json!({ "wallet": wallet, "amount": decimal(nanos), "reference": reference });
    success(&spender.caller.post("/v1/wallet/deposits", body).await, 200);
}

async fn fund(spender: &Spender, from: u64, to: u64, nanos: u64) {
    let body = json!({ "fromWalletId": from, "toWalletId": to, "amount": decimal(nanos) });
    let made = success(&spender.caller.post("/v1/escrow/create", body).await, 200);
    let body = json!({ "escrowId": made["escrow"]["id"] });
    success(&spender.caller.post("/v1/escrow/fund", body).await, 200);
}

#[tokio::test]
async fn each_way_out_crosses_the_threshold_at_the_nano() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder")
        .await
        .in_test_mode(&fixture)
        .await;
    let bot = spender
        .agent(&fixture, 0, json!({ "lowBalanceThreshold": decimal(50) }))
        .await;
    let other = spender.agent(&fixture, 0, json!({})).await;
    let (from, to) = (
        spender.number(&fixture, &bot, "wallet_number").await,
        spender.number(&fixture, &other, "wallet_number").await,
    );
    let mut watch = Watch::new(&spender).await;
    for (round, cause) in ["spend.requested", "transfer.requested", "escrow.fund"]
        .into_iter()
        .enumerate()
    {
        let balance = spender.balance(&fixture, &bot).await;
        deposit(&spender, &bot, 100 - balance, &format!("r{round}")).await;
        Watch::only(watch.next().await, "wallet.deposit");
        for (nanos, reported) in [(50, None), (1, Some("49")), (1, None)] {
            match cause {
                "spend.requested" => drop(success(&spender.spend_nanos(&bot, nanos).await, 200)),
                "transfer.requested" => transfer(&spender, &bot, &other, nanos).await,
                _ => fund(&spender, from, to, nanos).await,
            }
            let new = watch.next().await;
            match reported {
                None => assert_eq!(new, [], "{cause} {nanos}"),
                Some(balance) => {
                    let event = Watch::only(new, "wallet.low_balance");
                    assert_eq!(event["agentId"], json!(bot));
                    assert_eq!(
                        facts(&event),
                        [json!(bot), json!(balance), json!("50"), json!(cause)]
                    );
                }
            }
        }
    }
}

/// An agent without a policy of its own and the account's wallet have the highest of the account's thresholds.
#[tokio::test]
async fn the_account_s_threshold_holds_where_there_is_no_other() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder")
        .await
        .in_test_mode(&fixture)
        .await;
    let own = spender.agent(&fixture, 0, json!({})).await;
    for (name, low) in [("a", 30), ("b", 70)] {
        let policy = json!({ "name": name, "lowBalanceThreshold": decimal(low) });
        success(&spender.caller.post("/v1/policies", policy).await, 200);
    }
    let made = spender.caller.post("/v1/agents", json!({ "name": "Bot" })).await;
    let without = text(&success(&made, 200), "/agent/id").to_owned();
    for (at, wallet) in ["user", &without, &own].into_iter().enumerate() {
        deposit(&spender, wallet, 100, &format!("d{at}")).await;
    }
    let mut watch = Watch::new(&spender).await;
    transfer(&spender, "user", &own, 31).await;
    let event = Watch::only(watch.next().await, "wallet.low_balance");
    assert_eq!(event["agentId"], Value::Null);
    let cause = json!("transfer.requested");
    assert_eq!(
        facts(&event),
        [json!("user"), json!("69"), json!("70"), cause.clone()]
    );
    transfer(&spender, &own, &without, 131).await;
    assert_eq!(watch.next().await, [], "its own policy has no threshold");
    success(&spender.spend_nanos(&without, 161).await, 200);
    assert_eq!(watch.next().await, [], "70 is not below 70");
    transfer(&spender, &without, "user", 1).await;
    let event = Watch::only(watch.next().await, "wallet.low_balance");
    assert_eq!(facts(&event), [json!(without), json!("69"), json!("70"), cause]);
}
