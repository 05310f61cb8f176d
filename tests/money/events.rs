//! Webhook events about money: each follows from the audit line of its change, and from nothing else
//! (specification "Events", decision D45).

mod injection;
mod low_balance;

use crate::fixture::{Fixture, success, text};
use crate::spender::{Spender, decimal, denied};
use domain::event::{self, Event};
use harness::assert_fields;
use serde_json::{Value, json};

/// The events that follow from the entries.
pub async fn events(spender: &Spender) -> Vec<Event> {
    spender
        .account
        .audit(spender.mode)
        .await
        .iter()
        .flat_map(event::from_entry)
        .collect()
}

/// The events since the last call: their names, and their fields.
pub struct Watch<'a> {
    spender: &'a Spender,
    seen: usize,
}

impl<'a> Watch<'a> {
    pub async fn new(spender: &'a Spender) -> Self {
        let seen = events(spender).await.len();
        Self { spender, seen }
    }

    pub async fn next(&mut self) -> Vec<(&'static str, Value)> {
        let all = events(self.spender).await;
        let new = all[self.seen..].iter();
        let new = new.map(|event| (event.name.as_str(), Value::Object(event.data.clone())));
        let new = new.collect();
        self.seen = all.len();
        new
    }

    /// The data of the only event in `new`, which must have this name.
    #[track_caller]
    pub fn only(new: Vec<(&'static str, Value)>, name: &str) -> Value {
        let [(found, data)] = new.as_slice() else {
            panic!("one {name} expected: {new:?}")
        };
        assert_eq!(*found, name, "{data}");
        data.clone()
    }
}

#[tokio::test]
async fn a_frozen_agent_a_waiting_spend_and_violations_are_reported() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let policy = json!({ "maxSpendPerDay": decimal(100), "approvalThreshold": decimal(60) });
    let bot = spender.agent(&fixture, 1000, policy).await;
    let (approver, _) = spender.approver(&fixture).await;
    let mut watch = Watch::new(&spender).await;

    success(&spender.spend_nanos(&bot, 50).await, 200);
    assert_eq!(watch.next().await, [], "a spend that settles is no event");
    let body = json!({ "agent": bot, "amount": decimal(61), "description": "d".repeat(300), "recipient": "R",
        "runId": "r", "metadata": { "order": 1 } });
    let refused = denied(&spender.spend("", body).await, "daily_limit");
    let violation = Watch::only(watch.next().await, "policy.violation");
    assert_fields!(violation, { "intentId": refused, "limitNanos": "100", "spentNanos": "50" });
    assert_fields!(violation, { "reason": "daily_limit", "agentId": bot, "runId": "r" });

    spender
        .policy(&bot, json!({ "maxSpendPerDay": decimal(200) }))
        .await;
    assert_eq!(watch.next().await, [], "neither is a policy");
    let body = json!({ "agent": bot, "amount": decimal(61), "description": "d".repeat(300), "recipient": "R",
        "runId": "r" });
    let id = text(&success(&spender.spend("", body).await, 202), "/intent_id").to_owned();
    let waits = Watch::only(watch.next().await, "agent.approval_required");
    let expected = json!({ "agentId": bot, "auditSeq": waits["auditSeq"], "intentId": id, "amount": 6.1e-8,
        "amountNanos": "61", "currency": "USD", "recipient": "R", "description": "d".repeat(200), "runId": "r" });
    assert_eq!(waits, expected);

    // The checks run again on approval.
    spender
        .policy(&bot, json!({ "maxSpendPerDay": decimal(100) }))
        .await;
    let body = json!({ "reason": "Fine" });
    let reply = approver.post(&format!("/v1/intents/{id}/approve"), body).await;
    denied(&reply, "daily_limit");
    let violation = Watch::only(watch.next().await, "policy.violation");
    assert_fields!(violation, { "intentId": id, "reason": "daily_limit" });
    let last = spender.account.audit(spender.mode).await.pop().unwrap();
    assert_eq!(
        (last.data["why"].as_str(), last.data["reason"].as_str()),
        (Some("Fine"), Some("daily_limit"))
    );

    spender
        .policy(&bot, json!({ "maxSpendPerDay": null, "approvalThreshold": null }))
        .await;
    let reply = spender.spend_nanos(&bot, 1_000_000).await;
    denied(&reply, "insufficient_balance");
    assert_eq!(watch.next().await, [], "a lack of money violates no policy");
    let reply = spender
        .caller
        .post(&format!("/v1/agents/{bot}/freeze"), json!({}))
        .await;
    success(&reply, 200);
    let frozen = Watch::only(watch.next().await, "agent.frozen");
    assert_fields!(frozen, { "agentId": bot, "authority": "user" });
    assert!(frozen["by"].as_str().unwrap().starts_with("key_"), "{frozen}");
    denied(&spender.spend_nanos(&bot, 1).await, "frozen");
    Watch::only(watch.next().await, "policy.violation");
    let reply = spender
        .caller
        .post(&format!("/v1/agents/{bot}/unfreeze"), json!({}))
        .await;
    success(&reply, 200);
    assert_eq!(watch.next().await, []);
}

#[tokio::test]
async fn each_limit_is_reported_with_what_was_used_of_it() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let mut watch = Watch::new(&spender).await;
    for (field, reason, spent) in [
        ("maxSpendPerTransaction", "per_transaction_limit", "0"),
        ("maxSpendPerRun", "per_run_limit", "60"),
        ("maxSpendPerDay", "daily_limit", "60"),
        ("maxSpendPerMonth", "monthly_limit", "60"),
    ] {
        let bot = spender
            .agent(&fixture, 1000, json!({ field: decimal(100) }))
            .await;
        let spend = async |nanos: u64| {
            let body = json!({ "agent": bot, "amount": decimal(nanos), "runId": "r" });
            spender.spend("", body).await
        };
        success(&spend(60).await, 200);
        denied(&spend(101).await, reason);
        let reported = Watch::only(watch.next().await, "policy.violation");
        let expected = [json!(reason), json!("100"), json!(spent), json!(1e-7)];
        let found = ["reason", "limitNanos", "spentNanos", "limit"].map(|name| reported[name].clone());
        assert_eq!(found, expected);
    }
    let bot = spender.agent(&fixture, 1000, json!({})).await;
    let limit = json!({ "spendLimit": decimal(10) });
    let reply = spender.caller.patch(&format!("/v1/agents/{bot}"), limit).await;
    success(&reply, 200);
    denied(&spender.spend_nanos(&bot, 11).await, "spend_limit");
    let reported = Watch::only(watch.next().await, "policy.violation");
    assert_fields!(reported, { "limitNanos": "10", "spentNanos": "0" });
    let month = fixture.redis.period().month;
    // The event's amounts are exact beyond the precision of a double.
    let tracked = 9_007_199_254_740_993_u64;
    spender.set_account(&fixture, &format!("t{month}"), tracked).await;
    spender.set_account(&fixture, &format!("n{month}"), 10).await;
    denied(&spender.spend_nanos(&bot, 1).await, "plan_agent_limit");
    let reported = Watch::only(watch.next().await, "policy.violation");
    assert_fields!(reported, { "limit": 10, "spent": 10, "limitNanos": null });
    spender.set_account(&fixture, &format!("n{month}"), 9).await;
    denied(&spender.spend_nanos(&bot, 1).await, "plan_limit");
    let reported = Watch::only(watch.next().await, "policy.violation");
    let expected = (&json!("500000000000"), &json!(tracked.to_string()));
    assert_eq!((&reported["limitNanos"], &reported["spentNanos"]), expected);
}

#[tokio::test]
async fn a_deposit_is_reported_when_it_is_confirmed() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder")
        .await
        .in_test_mode(&fixture)
        .await;
    let bot = spender.agent(&fixture, 0, json!({})).await;
    let mut watch = Watch::new(&spender).await;
    for (wallet, agent) in [(bot.as_str(), json!(bot)), ("user", Value::Null)] {
        for pending in [false, true] {
            let reference = format!("{wallet} {pending}");
            let body =
                json!({ "wallet": wallet, "amount": "1.5", "reference": reference, "pending": pending });
            let made = success(&spender.caller.post("/v1/wallet/deposits", body).await, 200);
            if pending {
                assert_eq!(watch.next().await, [], "it may never come in");
                let body = json!({ "reference": reference });
                let reply = spender.caller.post("/v1/wallet/deposits/confirm", body).await;
                success(&reply, 200);
            }
            let reported = Watch::only(watch.next().await, "wallet.deposit");
            let balance = if pending { "3000000000" } else { "1500000000" };
            let expected = json!({ "agentId": agent, "auditSeq": reported["auditSeq"], "walletId": made["deposit"]["walletId"],
                "owner": wallet, "transactionId": made["deposit"]["id"], "reference": reference,
                "currency": "USD", "amount": 1.5, "amountNanos": "1500000000",
                "balance": if pending { json!(3) } else { json!(1.5) }, "balanceNanos": balance });
            assert_eq!(reported, expected, "{made}");
            let body =
                json!({ "wallet": wallet, "amount": "1.5", "reference": reference, "pending": pending });
            success(&spender.caller.post("/v1/wallet/deposits", body).await, 200);
            assert_eq!(watch.next().await, [], "one deposit, one event");
        }
    }
}
