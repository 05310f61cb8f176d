//! `POST /spend`: answers, bodies, and requests that are made at most once (decisions D4, D23, D26, D59).

use crate::account_fixture::BAD_AMOUNTS;
use crate::fixture::{Fixture, minted, problem, success, text};
use crate::spender::{Spender, USD, denied, replayed};
use domain::intent::IntentState;
use harness::Reply;
use serde_json::{Value, json};

#[tokio::test]
async fn a_spend_moves_the_wallet_and_every_counter() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender
        .agent(&fixture, 100 * USD, json!({ "maxSpendPerDay": 50 }))
        .await;
    let body = json!({ "agent": bot, "amount": 12.5, "recipient": "Böök Shop & Co", "description": "A book\nor two",
        "runId": "run:1", "metadata": { "order": 4711 } });
    let reply = spender.spend("order-1", body).await;
    let done = success(&reply, 200);
    let id = text(&done, "/intent_id");
    minted(id, "int_");
    minted(text(&done, "/transactionId"), "txn_");
    let expected = json!({ "success": true, "intent_id": id, "state": "settled", "transactionId": done["transactionId"],
        "amount": 12.5, "currency": "USD", "balance": 87.5 });
    assert_eq!(done, expected);
    assert_eq!(spender.balance(&fixture, &bot).await, 87_500_000_000);
    assert_eq!(spender.charged(&fixture, &bot).await, [12_500_000_000; 4]);
    let run = fixture
        .fields(&spender.account.keys.in_mode(spender.mode).run(&bot, "run:1"))
        .await;
    assert_eq!(
        (run["spent"].as_str(), run["calls"].as_str()),
        ("12500000000", "1")
    );

    let transactions = spender.transactions(&fixture, &bot).await;
    let [transaction] = transactions.as_slice() else {
        panic!("{transactions:?}")
    };
    assert_eq!(transaction.id, done["transactionId"]);
    assert_eq!(transaction.amount.get(), 12_500_000_000);
    assert_eq!(transaction.balance_after.get(), 87_500_000_000);
    assert_eq!(transaction.intent.as_deref(), Some(id));
    assert_eq!(transaction.tail.counterparty.as_deref(), Some("Böök Shop & Co"));
    assert_eq!(transaction.tail.memo.as_deref(), Some("A book\nor two"));

    let record = spender.intent(&fixture, id).await;
    assert_eq!(
        (record.state, record.first),
        (IntentState::Settled, IntentState::Settled)
    );
    assert_eq!(record.transaction.as_deref(), Some(transaction.id.as_str()));
    assert!(record.policy.unwrap().starts_with("pol_"));
    assert!(record.charged.is_some());
    let lines = spender.audit_lines(&fixture).await;
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("\"amountNanos\":\"12500000000\"") && lines[0].ends_with(" outcome=settled"),
        "{lines:?}"
    );
}

/// Old counters are dropped at the first spend of a day; a run is kept for 35 days after its last spend.
#[tokio::test]
async fn a_spend_keeps_the_books_of_agent_and_run() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, USD, json!({ "maxSpendPerRun": 1 })).await;
    let today = fixture.redis.period().day;
    let old = ["d", "w"].map(|letter| format!("{letter}{}", today - 41));
    let kept = format!("w{}", today - 40);
    // The newest seven of a kind stay, however old they are.
    let newer = (2..=8).flat_map(|ago| {
        [
            format!("d{}", today - ago),
            format!("w{}", today - ago),
            format!("m20200{ago}"),
        ]
    });
    let newer: Vec<String> = newer.collect();
    let fields = [old[0].as_str(), &old[1], &kept, "m202001"];
    let fields = fields.into_iter().chain(newer.iter().map(String::as_str));
    let fields: Vec<(&str, u64)> = fields.map(|field| (field, 1)).collect();
    spender.set(&fixture, &bot, &fields).await;
    let run = spender.account.keys.in_mode(spender.mode).run(&bot, "r");
    let body = json!({ "agent": bot, "amount": "0.4", "runId": "r" });
    success(&spender.spend("", body.clone()).await, 200);
    let after = fixture
        .fields(&spender.account.keys.in_mode(spender.mode).agent(&bot))
        .await;
    for gone in [old[0].as_str(), &old[1], "m202001"] {
        assert!(!after.contains_key(gone), "{gone}");
    }
    assert!(after.contains_key(&kept) && newer.iter().all(|field| after.contains_key(field)));
    let fields = fixture.fields(&run).await;
    assert_eq!(fields["first"], fields["last"]);
    let _: u64 = fixture.redis.command(&["HSET", &run, "first", "1", "last", "1"]);
    success(&spender.spend("", body.clone()).await, 200);
    let fields = fixture.fields(&run).await;
    assert_eq!((fields["first"].as_str(), fields["calls"].as_str()), ("1", "2"));
    assert_ne!(fields["last"], "1");
    let life: u64 = fixture.redis.command(&["PTTL", &run]);
    let whole = 35 * 24 * 3_600_000;
    assert!((whole..=whole + 60_000).contains(&life), "{life}");

    let id = denied(&spender.spend("", body).await, "per_run_limit");
    let lines = spender.audit_lines(&fixture).await;
    let limit = "limit_nanos=1000000000 spent_nanos=800000000";
    let words = format!(" outcome=blocked reason=per_run_limit intentId={id} {limit}");
    assert_eq!(lines.len(), 3);
    assert!(lines[2].ends_with(&words), "{lines:?}");
}

#[tokio::test]
async fn amounts_are_exact_beyond_what_a_double_holds() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "enterprise").await;
    let bot = spender.agent(&fixture, 8_999_999_999_999_999, json!({})).await;
    let reply = spender
        .spend("", json!({ "agent": bot, "amount": "1e-9", "currency": "USDC" }))
        .await;
    assert!(
        reply
            .text()
            .contains("\"amount\":0.000000001,\"currency\":\"USDC\",\"balance\":8999999.999999998"),
        "{}",
        reply.text()
    );
    let body = format!(r#"{{"agent":"{bot}","amount":8999999.999999997}}"#);
    let reply = spender.caller.send("POST", "/api/v1/spend", &[], body).await;
    assert!(
        reply
            .text()
            .contains("\"amount\":8999999.999999997,\"currency\":\"USD\",\"balance\":0.000000001"),
        "{}",
        reply.text()
    );
    assert_eq!(spender.charged(&fixture, &bot).await, [8_999_999_999_999_998; 4]);
}

#[tokio::test]
async fn an_agent_without_a_wallet_is_tracked_only() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    spender.policy("bot", json!({})).await;
    let reply = spender.spend("k", json!({ "agent": "bot", "amount": "3" })).await;
    let done = success(&reply, 200);
    let id = text(&done, "/intent_id").to_owned();
    let expected = json!({ "success": true, "intent_id": id, "state": "settled", "transactionId": null, "amount": 3,
        "currency": "USD", "balance": null });
    assert_eq!(done, expected);
    assert_eq!(
        spender.charged(&fixture, "bot").await,
        [3 * USD, 3 * USD, 0, 3 * USD]
    );
    assert_eq!(spender.transactions(&fixture, "bot").await, []);
    let record = spender.intent(&fixture, &id).await;
    assert_eq!((record.transaction, record.balance), (None, None));
    replayed(
        &reply,
        &spender.spend("k", json!({ "agent": "bot", "amount": "3" })).await,
    );
    let exported = spender.caller.get(&format!("/v1/intents/{id}/export")).await;
    assert_eq!(exported.json()["downstream"], json!({}));
}

#[tokio::test]
async fn amounts_that_are_none_are_refused_and_change_nothing() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, 100 * USD, json!({})).await;
    let version = spender.account.version().await;
    for (amount, named) in BAD_AMOUNTS {
        let body = format!(r#"{{"agent":"{bot}","amount":{amount}}}"#);
        let reply = spender.caller.send("POST", "/v1/spend", &[], body).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{amount}: {sentence}");
    }
    assert_eq!(spender.account.version().await, version);
    assert_eq!(spender.intents(&fixture).await, 0);
    for (amount, shown) in [
        ("1", "1"),
        ("\"1\"", "1"),
        ("1.0", "1"),
        ("1e0", "1"),
        ("10e-1", "1"),
        ("0.3", "0.3"),
    ] {
        let body = format!(r#"{{"agent":"{bot}","amount":{amount}}}"#);
        let reply = spender.caller.send("POST", "/v1/spend", &[], body).await;
        assert!(
            reply.text().contains(&format!("\"amount\":{shown},")),
            "{}",
            reply.text()
        );
    }
    assert_eq!(spender.balance(&fixture, &bot).await, 94_700_000_000);
}

#[tokio::test]
async fn bad_bodies_name_the_field_and_change_nothing() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, 100 * USD, json!({})).await;
    let version = spender.account.version().await;
    let with = |name: &str, value: Value| {
        let mut body = json!({ "agent": bot, "amount": 1 });
        body[name] = value;
        body.to_string()
    };
    let deep = format!("{}{}", "{\"a\":".repeat(200), "1".to_owned() + &"}".repeat(200));
    for (body, named) in [
        (r#"{"agent":"bot"}"#.to_owned(), "amount is required."),
        (r#"{"amount":1}"#.to_owned(), "agent is required."),
        (with("agent", json!(null)), "agent is required."),
        (with("agent", json!(7)), "agent must be a string."),
        (with("agent", json!("user")), "agent must be"),
        (with("agent", json!("a b")), "agent must be"),
        (with("agent", json!("..")), "agent must not be `.` or `..`"),
        (with("currency", json!("EUR")), "currency must be"),
        (with("recipient", json!("a\nb")), "recipient must not contain"),
        (
            with("recipient", json!("é".repeat(201))),
            "recipient must have at most 200",
        ),
        (
            with("description", json!("x".repeat(2001))),
            "description must have at most 2000",
        ),
        (with("runId", json!("")), "runId must be"),
        (with("runId", json!("a/b")), "runId must be"),
        (with("runId", json!(".")), "runId must not be `.` or `..`"),
        (with("runId", json!("x".repeat(201))), "runId must be"),
        (
            with("runId", json!(format!("vk_live_{}", "0a".repeat(32)))),
            "runId must be",
        ),
        (with("metadata", json!([])), "metadata must be a JSON object."),
        (
            with("metadata", json!({ "a": "x".repeat(16_384) })),
            "metadata must have at most",
        ),
        (
            // 16,353 bytes as sent; each number would be kept as 1000000000000000.0.
            format!(
                r#"{{"agent":"{bot}","amount":1,"metadata":{{"a":[1e15{}]}}}}"#,
                ",1e15".repeat(3_268)
            ),
            "metadata must have at most 16384 bytes as it is kept",
        ),
        (
            format!(r#"{{"agent":"{bot}","amount":1,"metadata":{deep}}}"#),
            "metadata is not valid",
        ),
        (
            with("amount_nanos", json!(1)),
            "\"amount_nanos\" is not a field here",
        ),
        (with("idempotency_key", json!("")), "idempotency_key must be"),
        (with("intent_id", json!("é")), "intent_id must be"),
        (with("intent_id", json!(7)), "intent_id must be a string."),
    ] {
        let reply = spender.caller.send("POST", "/v1/spend", &[], body.clone()).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{body}: {sentence}");
    }
    for key in ["", &"x".repeat(256)] {
        let headers = [("idempotency-key", key)];
        let body = with("currency", json!("USD"));
        let reply = spender.caller.send("POST", "/v1/spend", &headers, body).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.starts_with("Idempotency-Key"), "{sentence}");
    }
    assert_eq!(spender.account.version().await, version);
    assert_eq!(spender.intents(&fixture).await, 0);
    // Fields of the greatest length are accepted.
    let body = json!({ "agent": bot, "amount": 1, "recipient": "é".repeat(200), "description": "é".repeat(2000),
        "runId": "x".repeat(200), "metadata": { "a": "x".repeat(16_000) } });
    success(&spender.spend(&"k".repeat(255), body).await, 200);
}

/// The stored request nests the metadata a level deeper, and a replay and a decision must parse it.
#[tokio::test]
async fn metadata_as_deep_as_it_may_be_is_replayed_and_approved() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let policy = json!({ "maxSpendPerTransaction": 5, "approvalThreshold": 2 });
    let bot = spender.agent(&fixture, 100 * USD, policy).await;
    let send = async |key: &str, amount: u64, deep: usize| {
        let metadata = format!("{}1{}", r#"{"a":"#.repeat(deep), "}".repeat(deep));
        let body = format!(r#"{{"agent":"{bot}","amount":{amount},"metadata":{metadata}}}"#);
        let headers = [("idempotency-key", key)];
        spender.caller.send("POST", "/v1/spend", &headers, body).await
    };
    for deep in [101, 126, 127] {
        for amount in [1, 3, 6] {
            let sentence = problem(&send("deep", amount, deep).await, 400, "VALIDATION");
            assert_eq!(sentence, "metadata must be nested at most 100 deep.");
        }
    }
    assert_eq!(spender.intents(&fixture).await, 0);
    for (key, amount) in [("settled", 1), ("pending", 3), ("blocked", 6)] {
        let first = send(key, amount, 100).await;
        replayed(&first, &send(key, amount, 100).await);
    }
    let (approver, _) = spender.approver(&fixture).await;
    let waiting = send("pending", 3, 100).await.json();
    let path = format!("/v1/intents/{}/approve", text(&waiting, "/intent_id"));
    success(&approver.post(&path, json!({})).await, 200);
    assert_eq!(spender.balance(&fixture, &bot).await, 96 * USD);
}

/// The header takes precedence over `intent_id`, and that over `idempotency_key`.
#[tokio::test]
async fn one_key_is_one_spend_wherever_it_stands() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, 100 * USD, json!({})).await;
    let send = async |header: &str, intent_id: Value, idempotency_key: Value| -> Reply {
        let body =
            json!({ "agent": bot, "amount": 1, "intent_id": intent_id, "idempotency_key": idempotency_key });
        spender.spend(header, body).await
    };
    let first = send("a", json!("b"), json!("c")).await;
    success(&first, 200);
    for (header, intent_id, idempotency_key) in [
        ("a", json!("x"), json!("y")),
        ("a", json!(null), json!(null)),
        ("", json!("a"), json!("y")),
        ("", json!(null), json!("a")),
    ] {
        replayed(&first, &send(header, intent_id, idempotency_key).await);
    }
    assert_eq!(spender.balance(&fixture, &bot).await, 99 * USD);
    let second = send("", json!("b"), json!("a")).await;
    assert_ne!(second.json()["intent_id"], first.json()["intent_id"]);
    assert_eq!(second.json().get("replayed"), None);
    // Without a key each call is a spend of its own.
    let bare = json!({ "agent": bot, "amount": 1 });
    let (one, two) = (
        spender.spend("", bare.clone()).await,
        spender.spend("", bare).await,
    );
    assert_ne!(success(&one, 200)["intent_id"], success(&two, 200)["intent_id"]);
    assert_eq!(spender.balance(&fixture, &bot).await, 96 * USD);
}

#[tokio::test]
async fn the_same_key_with_another_request_is_refused() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, 100 * USD, json!({})).await;
    let other = spender.agent(&fixture, 100 * USD, json!({})).await;
    let body = json!({ "agent": bot, "amount": 1, "recipient": "R", "description": "D", "runId": "r",
        "metadata": { "a": 1, "b": [1, 2], "n": 9_007_199_254_740_993_u64 } });
    let first = spender.spend("k", body.clone()).await;
    success(&first, 200);
    for (name, value) in [
        ("agent", json!(other)),
        ("amount", json!("1.000000001")),
        ("currency", json!("USDC")),
        ("recipient", json!("r")),
        ("recipient", json!(null)),
        ("description", json!("d")),
        ("runId", json!("R")),
        (
            "metadata",
            json!({ "a": 1, "b": [2, 1], "n": 9_007_199_254_740_993_u64 }),
        ),
        // The same double.
        (
            "metadata",
            json!({ "a": 1, "b": [1, 2], "n": 9_007_199_254_740_992_u64 }),
        ),
    ] {
        let mut changed = body.clone();
        changed[name] = value;
        problem(&spender.spend("k", changed).await, 422, "IDEMPOTENCY_KEY_REUSED");
    }
    // The same request in another JSON form.
    let spelled = format!(
        r#" {{"metadata":{{"b":[1,2.0],"n":9007199254740993,"a":1}},"runId":"r","description":"D","recipient":"\u0052",
        "currency":"USD","amount":"1.0","agent":"{bot}"}}"#
    );
    let headers = [("idempotency-key", "k")];
    replayed(
        &first,
        &spender
            .caller
            .send("POST", "/api/v1/spend", &headers, spelled)
            .await,
    );
    assert_eq!(spender.balance(&fixture, &bot).await, 99 * USD);
    assert_eq!(spender.balance(&fixture, &other).await, 100 * USD);
    assert_eq!(spender.audit_lines(&fixture).await.len(), 1);

    // The same key in another account or mode is another key.
    for stranger in [
        Spender::new(&fixture, "builder").await,
        spender.in_test_mode(&fixture).await,
    ] {
        stranger.policy("bot", json!({})).await;
        let reply = stranger.spend("k", json!({ "agent": "bot", "amount": 5 })).await;
        let done = success(&reply, 200);
        assert_ne!(done["intent_id"], first.json()["intent_id"]);
        assert_eq!(done.get("replayed"), None);
    }
}

/// A 404 or 400 is not kept under the key: once it is corrected, the same key works.
#[tokio::test]
async fn unknown_and_uncovered_spends_can_be_repeated() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let body = json!({ "agent": "bot", "amount": 2 });
    for _ in 0..2 {
        let sentence = problem(&spender.spend("k", body.clone()).await, 404, "NOT_FOUND");
        assert!(sentence.starts_with("agent"), "{sentence}");
    }
    assert_eq!(spender.intents(&fixture).await, 0);
    spender.policy("bot", json!({})).await;
    let done = success(&spender.spend("k", body).await, 200);
    assert_eq!(done.get("replayed"), None);

    let bot = spender.agent(&fixture, USD, json!({})).await;
    let body = json!({ "agent": bot, "amount": 2 });
    let first = denied(&spender.spend("m", body.clone()).await, "insufficient_balance");
    let second = denied(&spender.spend("m", body.clone()).await, "insufficient_balance");
    assert_ne!(first, second, "each is an intent of its own");
    for id in [&first, &second] {
        assert_eq!(spender.intent(&fixture, id).await.state, IntentState::Blocked);
    }
    spender.set(&fixture, &bot, &[("balance", 2 * USD)]).await;
    let done = spender.spend("m", body.clone()).await;
    let id = text(&success(&done, 200), "/intent_id").to_owned();
    assert!(id != first && id != second);
    replayed(&done, &spender.spend("m", body).await);
    assert_eq!(spender.balance(&fixture, &bot).await, 0);
    assert_eq!(spender.intents(&fixture).await, 4);
}

/// The records that make an agent. Test mode has no provider and virtual keys; a freeze alone makes no agent.
#[tokio::test]
async fn an_agent_exists_by_a_wallet_a_policy_or_a_key() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let test = spender.in_test_mode(&fixture).await;
    let keyed = spender.account.agent("keyed");
    keyed.virtual_key().await;
    let provided = spender.account.agent("provided");
    provided.provider_key("sk-test-provider-key").await;
    for agent in ["keyed", "provided"] {
        let body = json!({ "agent": agent, "amount": 1 });
        denied(&spender.spend("", body.clone()).await, "cap_disabled");
        problem(&test.spend("", body).await, 404, "NOT_FOUND");
    }
    spender.account.agent("frozen").frozen(true).await;
    let reply = spender.spend("", json!({ "agent": "frozen", "amount": 1 })).await;
    problem(&reply, 404, "NOT_FOUND");
}
