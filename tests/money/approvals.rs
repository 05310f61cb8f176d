//! Spends pending approval: who decides, that the checks run again, and that a decision is final (decisions D23, D49).

use crate::fixture::{Fixture, problem, success, text};
use crate::spender::{Spender, denied, replayed};
use domain::intent::{IntentState, Reason};
use futures::future::join;
use harness::{Caller, Reply, assert_fields};
use serde_json::{Value, json};

/// Sends a spend that must become pending. Returns the intent's id and the answer.
async fn waiting(spender: &Spender, key: &str, agent: &str, amount: &str) -> (String, Reply) {
    let body =
        json!({ "agent": agent, "amount": amount, "recipient": "R", "description": "D", "runId": "r" });
    let reply = spender.spend(key, body).await;
    let reported = success(&reply, 202);
    let id = text(&reported, "/intent_id").to_owned();
    (id, reply)
}

async fn approve(caller: &Caller, id: &str) -> Reply {
    caller.post(&format!("/v1/intents/{id}/approve"), json!({})).await
}

async fn deny_it(caller: &Caller, id: &str) -> Reply {
    caller
        .send("POST", &format!("/v1/intents/{id}/deny"), &[], "")
        .await
}

async fn timeline(spender: &Spender, id: &str) -> Vec<String> {
    let document = success(&spender.caller.get(&format!("/v1/intents/{id}")).await, 200);
    let entries = document["intent"]["timeline"].as_array().unwrap().clone();
    entries
        .iter()
        .map(|entry| text(entry, "/event_type").to_owned())
        .collect()
}

#[tokio::test]
async fn above_the_threshold_a_spend_waits_and_is_carried_out_once_approved() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (approver, approver_id) = spender.approver(&fixture).await;
    let bot = spender
        .agent(&fixture, 1000, json!({ "approvalThreshold": "0.0000001" }))
        .await;
    success(&spender.spend_nanos(&bot, 100).await, 200);
    let (id, first) = waiting(&spender, "k", &bot, "1.01e-7").await;
    let expected = json!({ "success": true, "intent_id": id, "state": "pending_approval", "amount": 0.000000101,
        "currency": "USD" });
    assert_eq!(first.json(), expected);
    assert_eq!(
        spender.charged(&fixture, &bot).await,
        [100; 4],
        "nothing is charged yet"
    );
    assert_eq!(spender.balance(&fixture, &bot).await, 900);
    let reply = spender.caller.get("/v1/intents?state=pending_approval").await;
    let listed = success(&reply, 200);
    assert_eq!(
        (&listed["total"], &listed["intents"][0]["intent_id"]),
        (&json!(1), &json!(id))
    );

    let reply = approve(&spender.caller, &id).await;
    problem(&reply, 403, "INSUFFICIENT_API_KEY_PERMISSIONS");
    let done = approve(&approver, &id).await;
    let reported = success(&done, 200);
    let expected = json!({ "success": true, "intent_id": id, "state": "settled", "transactionId": reported["transactionId"],
        "amount": 0.000000101, "currency": "USD", "balance": 0.000000799 });
    assert_eq!(reported, expected);
    assert_eq!(spender.charged(&fixture, &bot).await, [201; 4]);
    let transaction = spender.transactions(&fixture, &bot).await.pop().unwrap();
    assert_eq!(transaction.id, reported["transactionId"]);
    assert_eq!(
        (transaction.intent.as_deref(), transaction.tail.memo.as_deref()),
        (Some(id.as_str()), Some("D"))
    );
    let run = fixture
        .fields(&spender.account.keys.in_mode(spender.mode).run(&bot, "r"))
        .await;
    assert_eq!(run["spent"], "101");

    let record = spender.intent(&fixture, &id).await;
    assert_eq!(
        (record.state, record.first),
        (IntentState::Settled, IntentState::PendingApproval)
    );
    assert_eq!(record.allowed_by(), Some(approver_id.as_str()));
    assert_eq!(
        timeline(&spender, &id).await,
        [
            "spend_requested",
            "approval_requested",
            "approval_granted",
            "spend_approved"
        ]
    );
    let reply = spender.caller.get("/v1/intents?state=pending_approval").await;
    let listed = success(&reply, 200);
    assert_eq!(listed["total"], json!(0));
    for again in [approve(&approver, &id).await, deny_it(&approver, &id).await] {
        problem(&again, 409, "INTENT_NOT_PENDING");
    }
    // A repetition of the request still gets its first answer, 202.
    let body =
        json!({ "agent": bot, "amount": "1.01e-7", "recipient": "R", "description": "D", "runId": "r" });
    replayed(&first, &spender.spend("k", body).await);
    assert_eq!(spender.balance(&fixture, &bot).await, 799);
    let words: Vec<String> = spender
        .audit_lines(&fixture)
        .await
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        words,
        ["outcome=settled", "outcome=pending_approval", "outcome=settled"]
    );
}

#[tokio::test]
async fn a_denied_spend_moves_no_money() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (approver, _) = spender.approver(&fixture).await;
    let bot = spender
        .agent(&fixture, 1000, json!({ "approvalThreshold": 0 }))
        .await;
    let (id, first) = waiting(&spender, "k", &bot, "1e-9").await;
    let path = format!("/v1/intents/{id}/deny");
    for (body, named) in [
        (json!({ "reason": "x".repeat(501) }), "reason must have"),
        (json!({ "reason": 1 }), "reason must be a string."),
        (json!({ "why": "x" }), "\"why\" is not a field"),
        (json!([]), "The body must be"),
    ] {
        let sentence = problem(&approver.post(&path, body).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
    let reported = success(&approver.post(&path, json!({ "reason": "Too dear" })).await, 200);
    let expected = json!({ "success": true, "intent_id": id, "state": "blocked",
        "reason": "approval_denied", "blocked_reason": "The approval was denied." });
    assert_eq!(reported, expected);
    for again in [approve(&approver, &id).await, deny_it(&approver, &id).await] {
        problem(&again, 409, "INTENT_NOT_PENDING");
    }
    let record = spender.intent(&fixture, &id).await;
    assert_eq!(
        (record.state, record.reason),
        (IntentState::Blocked, Some(Reason::ApprovalDenied))
    );
    assert_eq!(
        timeline(&spender, &id).await,
        ["spend_requested", "approval_requested", "approval_denied"]
    );
    for (state, total) in [("pending_approval", 0), ("blocked", 1), ("settled", 0)] {
        let reply = spender.caller.get(&format!("/v1/intents?state={state}")).await;
        let listed = success(&reply, 200);
        assert_eq!(listed["total"], json!(total), "{state}");
    }
    assert_eq!(spender.charged(&fixture, &bot).await, [0; 4]);
    assert_eq!(spender.balance(&fixture, &bot).await, 1000);
    let lines = spender.audit_lines(&fixture).await;
    assert!(lines.last().unwrap().contains("Too dear"), "{lines:?}");
    let body = json!({ "agent": bot, "amount": "1e-9", "recipient": "R", "description": "D", "runId": "r" });
    replayed(&first, &spender.spend("k", body).await);
}

/// The checks run again on approval, and a denial by them is final.
#[tokio::test]
async fn the_checks_run_again_on_approval() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (approver, _) = spender.approver(&fixture).await;
    let day = fixture.redis.period().day;
    for reason in [
        "frozen",
        "cap_disabled",
        "daily_limit",
        "spend_limit",
        "insufficient_balance",
    ] {
        let policy = json!({ "approvalThreshold": 0, "maxSpendPerDay": 1 });
        let bot = spender.agent(&fixture, 1000, policy).await;
        let (id, _) = waiting(&spender, "", &bot, "0.0000005").await;
        match reason {
            "frozen" => spender.account.agent(&bot).frozen(true).await,
            "cap_disabled" => spender.policy(&bot, json!({ "capEnabled": false })).await,
            "daily_limit" => {
                spender
                    .set(&fixture, &bot, &[(&format!("d{day}"), 999_999_501)])
                    .await
            }
            "spend_limit" => spender.set(&fixture, &bot, &[("spend_limit", 499)]).await,
            _ => spender.set(&fixture, &bot, &[("balance", 499)]).await,
        }
        let balance = spender.balance(&fixture, &bot).await;
        let refused = approve(&approver, &id).await;
        assert_eq!(denied(&refused, reason), id);
        let record = spender.intent(&fixture, &id).await;
        assert_eq!(record.state, IntentState::Blocked);
        assert_eq!(record.allowed_by(), None);
        assert_eq!(
            timeline(&spender, &id).await,
            [
                "spend_requested",
                "approval_requested",
                "approval_granted",
                "spend_blocked"
            ]
        );
        problem(&approve(&approver, &id).await, 409, "INTENT_NOT_PENDING");
        assert_eq!(spender.balance(&fixture, &bot).await, balance);
    }
    // A denial precedes the approval: a spend that cannot pass never becomes pending.
    let policy = json!({ "approvalThreshold": 0, "maxSpendPerTransaction": 0 });
    let bot = spender.agent(&fixture, 1000, policy).await;
    denied(&spender.spend_nanos(&bot, 1).await, "per_transaction_limit");
}

/// An approval is for the agent and wallet of the request, not for a later agent of the same id.
#[tokio::test]
async fn an_approval_is_for_the_wallet_that_was_there_when_it_was_asked_for() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (approver, _) = spender.approver(&fixture).await;
    let refused = async |id: &str| {
        let reply = approve(&approver, id).await;
        assert_eq!(reply.status, 409, "{}", reply.text());
        let document = reply.json();
        assert_fields!(document, { "success": false, "code": "WALLET_CLOSED", "reason": "wallet_closed", "intent_id": id, "state": "blocked" });
        assert_eq!(spender.intent(&fixture, id).await.state, IntentState::Blocked);
        problem(&approve(&approver, id).await, 409, "INTENT_NOT_PENDING");
    };
    let waits = json!({ "approvalThreshold": 0 });
    let create = async || {
        success(
            &spender
                .caller
                .post("/v1/wallets/create", json!({ "botId": "bot" }))
                .await,
            200,
        )
    };
    create().await;
    spender.policy("bot", waits.clone()).await;
    spender.set(&fixture, "bot", &[("balance", 10)]).await;
    let (while_gone, _) = waiting(&spender, "", "bot", "1e-9").await;
    let (for_another, _) = waiting(&spender, "", "bot", "1e-9").await;
    let (denied, _) = waiting(&spender, "", "bot", "1e-9").await;
    spender.set(&fixture, "bot", &[("balance", 0)]).await;
    success(&spender.caller.delete("/v1/agents/bot").await, 200);
    refused(&while_gone).await;
    success(&deny_it(&approver, &denied).await, 200);
    create().await;
    spender.policy("bot", waits.clone()).await;
    spender.set(&fixture, "bot", &[("balance", 1000)]).await;
    refused(&for_another).await;
    let (own, _) = waiting(&spender, "", "bot", "1e-9").await;
    success(&approve(&approver, &own).await, 200);
    assert_eq!(spender.balance(&fixture, "bot").await, 999);

    // An agent that is only tracked has no wallet, until it gets one.
    spender.policy("tracked", waits).await;
    let (before, _) = waiting(&spender, "", "tracked", "1e-9").await;
    let (after, _) = waiting(&spender, "", "tracked", "1e-9").await;
    let done = success(&approve(&approver, &before).await, 200);
    assert_eq!(done["balance"], Value::Null);
    success(
        &spender
            .caller
            .post("/v1/wallets/create", json!({ "botId": "tracked" }))
            .await,
        200,
    );
    spender.set(&fixture, "tracked", &[("balance", 1000)]).await;
    refused(&after).await;
    assert_eq!(spender.balance(&fixture, "tracked").await, 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_decisions_at_once_one_wins() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let (one, _) = spender.approver(&fixture).await;
    let (two, _) = spender.approver(&fixture).await;
    let bot = spender
        .agent(&fixture, 1000, json!({ "approvalThreshold": 0 }))
        .await;
    let mut left = 1000;
    for round in 0..20 {
        let (id, _) = waiting(&spender, "", &bot, "1e-9").await;
        let (a, b) = match round % 2 {
            0 => join(approve(&one, &id), approve(&two, &id)).await,
            _ => join(approve(&one, &id), deny_it(&two, &id)).await,
        };
        let statuses = [a.status, b.status];
        assert!(statuses == [200, 409] || statuses == [409, 200], "{statuses:?}");
        let winner = if a.status == 200 { &a } else { &b };
        let state = text(&winner.json(), "/state").to_owned();
        assert_eq!(spender.intent(&fixture, &id).await.state.as_str(), state);
        left -= u64::from(state == "settled");
        assert_eq!(spender.balance(&fixture, &bot).await, left);
    }
    assert_eq!(
        spender.transactions(&fixture, &bot).await.len() as u64,
        1000 - left
    );
}

#[tokio::test]
async fn only_the_account_and_mode_of_an_intent_decide_on_it() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender
        .agent(&fixture, 1000, json!({ "approvalThreshold": 0 }))
        .await;
    let (id, _) = waiting(&spender, "", &bot, "1e-9").await;
    let stranger = Spender::new(&fixture, "builder").await;
    let test = spender.in_test_mode(&fixture).await;
    for outsider in [
        stranger.approver(&fixture).await.0,
        test.approver(&fixture).await.0,
    ] {
        problem(&approve(&outsider, &id).await, 404, "NOT_FOUND");
        problem(&deny_it(&outsider, &id).await, 404, "NOT_FOUND");
    }
    let (approver, _) = spender.approver(&fixture).await;
    for unknown in ["int_00000000000000000000000000", "int_1", "..", "bot"] {
        problem(&approve(&approver, unknown).await, 404, "NOT_FOUND");
    }
    assert_eq!(
        spender.intent(&fixture, &id).await.state,
        IntentState::PendingApproval
    );
    // Approvals work the same in test mode.
    let bot = test
        .agent(&fixture, 1000, json!({ "approvalThreshold": 0 }))
        .await;
    let (id, _) = waiting(&test, "", &bot, "1e-9").await;
    let (approver, _) = test.approver(&fixture).await;
    let reported: Value = success(&approve(&approver, &id).await, 200);
    assert_eq!(reported["balance"].to_string(), "9.99e-7");
}
