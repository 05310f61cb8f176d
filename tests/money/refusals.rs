//! Refusals of spend and escrow name an intent, and the id of an intent in a body is that intent's own key (decision
//! D75).

use crate::account_fixture::AccountFixture;
use crate::escrow::parties::{Side, usd};
use crate::fixture::{FULL, Fixture, minted, problem, success, text};
use crate::spender::{Spender, USD};
use domain::mode::Mode;
use domain::rate::Rate;
use harness::{Caller, Reply, assert_fields};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Checks a refusal that names an id without an intent. Returns the id.
async fn unkept(caller: &Caller, reply: &Reply, status: u16, code: &str) -> String {
    problem(reply, status, code);
    let body = reply.json();
    let id = text(&body, "/intent_id");
    minted(id, "int_");
    let shown = caller.get(&format!("/v1/intents/{id}")).await;
    assert_eq!(shown.status, 404, "{body}: {shown:?}");
    id.to_owned()
}

#[tokio::test]
async fn refused_spends_name_the_intent_that_they_would_have_had() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, USD, json!({})).await;
    let nobody = json!({ "agent": "nobody", "amount": 1 });
    let mut ids = HashSet::new();
    for (body, status, code) in [
        (nobody.clone(), 404, "NOT_FOUND"),
        (json!({ "agent": bot }), 400, "VALIDATION"),
        (json!({ "agent": bot, "amount": -1 }), 400, "VALIDATION"),
        (json!({ "amount": 1 }), 400, "VALIDATION"),
        (
            json!({ "agent": bot, "amount": 1, "runId": "a b" }),
            400,
            "VALIDATION",
        ),
        (
            json!({ "agent": bot, "amount": 1, "intent_id": "é" }),
            400,
            "VALIDATION",
        ),
    ] {
        let reply = spender.spend("", body).await;
        assert!(
            ids.insert(unkept(&spender.caller, &reply, status, code).await),
            "a new one each"
        );
    }
    // With a key, it is the id that the call has once it succeeds.
    let refused = unkept(
        &spender.caller,
        &spender.spend("k", nobody).await,
        404,
        "NOT_FOUND",
    )
    .await;
    let body = json!({ "agent": bot, "amount": "0.25" });
    let done = success(&spender.spend("k", body.clone()).await, 200);
    assert_eq!(done["intent_id"], json!(refused));
    // The key now belongs to the request that succeeded: another request with it names a new id.
    let other = json!({ "agent": bot, "amount": "0.5" });
    let reused = spender.spend("k", other).await;
    let id = unkept(&spender.caller, &reused, 422, "IDEMPOTENCY_KEY_REUSED").await;
    assert_ne!(id, refused);
    // So does a request that is not valid.
    for (body, status, code) in [
        (json!({ "agent": bot, "amount": 0 }), 400, "VALIDATION"),
        (json!({ "agent": "a b", "amount": 2 }), 400, "VALIDATION"),
        (
            json!({ "agent": "nobody", "amount": 2 }),
            422,
            "IDEMPOTENCY_KEY_REUSED",
        ),
    ] {
        let reply = spender.spend("k", body).await;
        assert_ne!(unkept(&spender.caller, &reply, status, code).await, refused);
    }
    assert_eq!(spender.intents(&fixture).await, 1);
    // A body that is no JSON object is refused at once.
    let headers = [("content-type", "application/json")];
    let broken = spender.caller.send("POST", "/v1/spend", &headers, "[]").await;
    assert_eq!((broken.status, &broken.json()["intent_id"]), (400, &Value::Null));
}

/// A full budget is detected when the call runs, an exceeded rate of a key before the body is read, which may contain
/// the idempotency key.
#[tokio::test]
async fn a_full_budget_names_the_intent_and_a_refusal_before_the_body_is_read_does_not() {
    let fixture = Fixture::start_with(|options| options.env("TOLLGATE_LIMITS__INTENTS", "1")).await;
    let spender = Spender::new(&fixture, "startup").await;
    let bot = spender.agent(&fixture, USD, json!({})).await;
    let body = json!({ "agent": bot, "amount": "0.25" });
    success(&spender.spend("first", body.clone()).await, 200);
    for key in ["", "second"] {
        let reply = spender.spend(key, body.clone()).await;
        let body = reply.json();
        assert_eq!((reply.status, text(&body, "/code")), (403, "TIER_LIMIT"));
        minted(text(&body, "/intent_id"), "int_");
    }
    let key = spender.account.issue(Mode::Live, FULL, &[], None).await;
    let name = spender.account.keys.management_rate(Rate::PerDay, &key.id);
    let _: String = fixture.redis.command(&["SET", &name, "1000000", "PX", "60000"]);
    let limited = fixture
        .admin
        .caller(&key.secret)
        .post("/v1/spend", body.clone())
        .await;
    problem(&limited, 429, "API_KEY_RATE_LIMITED");
    let unknown = fixture
        .admin
        .caller("sk_live_unknown")
        .post("/v1/spend", body)
        .await;
    for reply in [limited, unknown] {
        assert_eq!(reply.json()["intent_id"], Value::Null, "{}", reply.text());
    }
}

#[tokio::test]
async fn refused_escrow_calls_name_the_intent_that_they_would_have_had() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let stranger = Side::new(&fixture).await;
    let number = payer.funded_to(&payee, usd(1)).await;
    let create = |from: u64, to: u64| json!({ "fromWalletId": from, "toWalletId": to, "amount": 1 });
    let (known, unknown) = (json!({ "escrowId": number }), json!({ "escrowId": 999_999 }));
    for (side, word, body, status, code) in [
        (&payer, "create", create(999_999, payee.wallet), 404, "NOT_FOUND"),
        (
            &payer,
            "create",
            create(payer.wallet, payer.wallet),
            400,
            "VALIDATION",
        ),
        (&payer, "create", json!({ "amount": 1 }), 400, "VALIDATION"),
        (&payer, "create", json!({ "escrow": 1 }), 400, "VALIDATION"),
        (
            &stranger,
            "create",
            create(payer.wallet, stranger.wallet),
            403,
            "NOT_A_PARTY",
        ),
        (&payer, "fund", unknown.clone(), 404, "NOT_FOUND"),
        (&payer, "fund", json!({}), 400, "VALIDATION"),
        (&stranger, "fund", known.clone(), 403, "NOT_A_PARTY"),
        (&payer, "release", unknown.clone(), 404, "NOT_FOUND"),
        (&stranger, "release", known.clone(), 403, "NOT_A_PARTY"),
        (&stranger, "dispute", known.clone(), 403, "NOT_A_PARTY"),
        (
            &payer,
            "dispute",
            json!({ "escrowId": number, "reason": 7 }),
            400,
            "VALIDATION",
        ),
    ] {
        let reply = side.call_plain(word, body.clone()).await;
        unkept(&side.caller, &reply, status, code).await;
        let keyed = side.call(word, "key", body.clone()).await;
        let first = unkept(&side.caller, &keyed, status, code).await;
        let again = side.call(word, "key", body).await;
        assert_eq!(unkept(&side.caller, &again, status, code).await, first, "{word}");
    }
    payee.force_balance("9000000000000000000").await;
    let full = payer.call("release", "r", known.clone()).await;
    let id = unkept(&payer.caller, &full, 409, "BALANCE_LIMIT").await;
    payee.force_balance("0").await;
    let done = success(&payer.call("release", "r", known.clone()).await, 200);
    assert_eq!(done["intent_id"], json!(id));
    let reused = payer.call("dispute", "r", known).await;
    assert_ne!(
        unkept(&payer.caller, &reused, 422, "IDEMPOTENCY_KEY_REUSED").await,
        id
    );
}

/// Regression: an id copied from an answer into the body was once a new key, and the money left a second time.
#[tokio::test]
async fn the_id_of_an_intent_in_the_body_is_its_own_key() {
    let fixture = Fixture::start().await;
    let spender = Spender::new(&fixture, "builder").await;
    let bot = spender.agent(&fixture, 10 * USD, json!({})).await;
    let body = |amount: &str, field: &str, id: &str| json!({ "agent": bot, "amount": amount, field: id });
    for key in ["", "a key"] {
        let first = json!({ "agent": bot, "amount": "0.25" });
        let done = success(&spender.spend(key, first).await, 200);
        let id = text(&done, "/intent_id");
        let before = spender.balance(&fixture, &bot).await;
        for field in ["intent_id", "idempotency_key"] {
            let again = success(&spender.spend("", body("0.250", field, id)).await, 200);
            assert_fields!(again, { "intent_id": done["intent_id"], "replayed": true }, "{field}");
            assert_eq!(again["transactionId"], done["transactionId"]);
            let other = spender.spend("", body("0.3", field, id)).await;
            unkept(&spender.caller, &other, 422, "IDEMPOTENCY_KEY_REUSED").await;
        }
        assert_eq!(
            spender.balance(&fixture, &bot).await,
            before,
            "nothing was spent again"
        );
        // Another route's request is another request.
        let transfer = json!({ "from": bot, "to": "user", "amount": "0.25", "intent_id": id });
        let reply = spender.caller.post("/v1/wallet/transfer", transfer).await;
        problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
        // In the header it is a key like any other, and so is an id without an intent.
        let reply = spender.spend(id, json!({ "agent": bot, "amount": "0.25" })).await;
        let fresh = success(&reply, 200);
        assert_ne!(fresh["intent_id"], done["intent_id"]);
    }
    let unknown = "int_01KAH3V9J80123456789ABCDEF";
    let first = success(&spender.spend("", body("0.1", "intent_id", unknown)).await, 200);
    assert_ne!(first["intent_id"], json!(unknown));
    let again = success(&spender.spend("", body("0.1", "intent_id", unknown)).await, 200);
    assert_fields!(again, { "intent_id": first["intent_id"], "replayed": true });
    // An intent of another account, or of the other mode, is not one of the caller's.
    let stranger = Spender::new(&fixture, "builder").await;
    let theirs = stranger.agent(&fixture, USD, json!({})).await;
    let id = text(&first, "/intent_id");
    let spent = json!({ "agent": theirs, "amount": "0.1", "intent_id": id });
    let spent = success(&stranger.spend("", spent).await, 200);
    assert_ne!(spent["intent_id"], first["intent_id"]);
    let tester = spender.in_test_mode(&fixture).await;
    let bot = tester.agent(&fixture, USD, json!({})).await;
    let spent = json!({ "agent": bot, "amount": "0.1", "intent_id": id });
    assert_ne!(
        success(&tester.spend("", spent).await, 200)["intent_id"],
        first["intent_id"]
    );
}

#[tokio::test]
async fn the_id_of_an_escrow_intent_in_the_body_is_its_own_key() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    payer.deposit(usd(5)).await;
    let create = json!({ "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 1 });
    let made = success(&payer.call_plain("create", create.clone()).await, 200);
    let number = made["escrow"]["id"].as_u64().unwrap();
    let mut again = create.clone();
    again["intent_id"] = made["intent_id"].clone();
    let again = success(&payer.call_plain("create", again).await, 200);
    assert_eq!(
        (&again["escrow"]["id"], &again["replayed"]),
        (&json!(number), &json!(true))
    );
    let shown = success(&payer.caller.get(&format!("/v1/escrow/{number}")).await, 200);
    assert_fields!(shown["escrow"], { "intent_id": made["intent_id"] }, "the intent that made it");
    let list = success(&payer.caller.get("/v1/escrow").await, 200);
    assert_eq!(list["escrows"][0]["intent_id"], made["intent_id"]);
    let fund = json!({ "escrowId": number });
    let funded = success(&payer.call_plain("fund", fund.clone()).await, 200);
    let again = json!({ "escrowId": number, "idempotency_key": funded["intent_id"] });
    let again = success(&payer.call_plain("fund", again).await, 200);
    assert_fields!(again, { "intentId": funded["intentId"], "replayed": true });
    assert_eq!(payer.balance().await, usd(4), "funded once");
    let mixed = json!({ "escrowId": number, "intent_id": made["intent_id"] });
    unkept(
        &payer.caller,
        &payer.call_plain("fund", mixed).await,
        422,
        "IDEMPOTENCY_KEY_REUSED",
    )
    .await;
}

/// `updatedAt` of a wallet and its agent is the last change of the record. Regression: it once stayed at the creation.
#[tokio::test]
async fn updated_at_follows_money_and_freezing() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let (one, two) = (tenant.bot("one").await, tenant.bot("two").await);
    let policy = json!({ "name": "p", "agentId": "one" });
    success(&tenant.caller.post("/v1/policies", policy).await, 200);
    let at = async |bot: &str| {
        let reply = tenant.caller.get(&format!("/v1/agents/{bot}/wallet")).await;
        let snapshot = success(&reply, 200);
        let agent = success(&tenant.caller.get(&format!("/v1/agents/{bot}")).await, 200);
        assert_eq!(snapshot["updatedAt"], agent["agent"]["updatedAt"], "{bot}");
        text(&snapshot, "/updatedAt").to_owned()
    };
    let deposit = |pending: bool| {
        let reference = format!("ref-{pending}");
        json!({ "wallet": "one", "amount": 5, "reference": reference, "pending": pending })
    };
    let escrow = json!({ "fromWalletId": one.number, "toWalletId": two.number, "amount": 1 });
    let transfer = |from: &str, to: &str| json!({ "from": from, "to": to, "amount": 1 });
    let mut number = Value::Null;
    for (what, path, body, moves) in [
        (
            "a pending deposit",
            "/v1/wallet/deposits",
            deposit(true),
            ["one"].as_slice(),
        ),
        (
            "its confirmation",
            "/v1/wallet/deposits/confirm",
            json!({ "reference": "ref-true" }),
            &["one"],
        ),
        ("a deposit", "/v1/wallet/deposits", deposit(false), &["one"]),
        (
            "a spend",
            "/v1/spend",
            json!({ "agent": "one", "amount": 1 }),
            &["one"],
        ),
        (
            "a transfer",
            "/v1/wallet/transfer",
            transfer("one", "two"),
            &["one", "two"],
        ),
        (
            "one that comes in",
            "/v1/wallet/transfer",
            transfer("two", "one"),
            &["one", "two"],
        ),
        ("an escrow", "/v1/escrow/create", escrow, &[]),
        ("its funding", "/v1/escrow/fund", json!({}), &["one"]),
        ("its release", "/v1/escrow/release", json!({}), &["two"]),
        ("a freeze", "/v1/agents/one/freeze", json!({}), &["one"]),
        ("a second one", "/v1/agents/one/freeze", json!({}), &[]),
        ("its end", "/v1/agents/one/unfreeze", json!({}), &["one"]),
    ] {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        let before = [at("one").await, at("two").await];
        let mut body = body;
        if matches!(what, "its funding" | "its release") {
            body["escrowId"] = number.clone();
        }
        let reply = success(&tenant.caller.post(path, body).await, 200);
        if what == "an escrow" {
            number = reply["escrow"]["id"].clone();
        }
        for (bot, before) in ["one", "two"].iter().zip(before) {
            assert_eq!(at(bot).await > before, moves.contains(bot), "{what}: {bot}");
        }
    }
}
