//! Deposits: confirmed and pending, once for each rail reference, and who may make them (decisions D17, D56, D59).

use crate::account_fixture::{AccountFixture, BAD_AMOUNTS, replayed};
use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use domain::mode::Mode;
use futures::future::join_all;
use harness::assert_fields;
use serde_json::{Value, json};

const PATH: &str = "/v1/wallet/deposits";
const CONFIRM: &str = "/v1/wallet/deposits/confirm";
const USD: u64 = 1_000_000_000;

#[tokio::test]
async fn a_confirmed_deposit_is_money_at_once() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    let body = json!({ "wallet": bot.id, "amount": "8999999.999999999", "reference": "Überweisung 7/é" });
    let reply = tenant.caller.post("/api/v1/wallet/deposits", body).await;
    let done = success(&reply, 200);
    let id = text(&done, "/transactionId");
    minted(id, "txn_");
    fresh(text(&done, "/deposit/createdAt"));
    assert_eq!(done["deposit"]["createdAt"], done["deposit"]["confirmedAt"]);
    assert_fields!(done["deposit"], { "id": id, "reference": "Überweisung 7/é", "walletId": bot.number });
    assert_fields!(done["deposit"], { "state": "confirmed", "currency": "USD" });
    assert!(
        reply.text().ends_with(",\"balance\":8999999.999999999}"),
        "{}",
        reply.text()
    );
    let all = tenant.transactions(&fixture).await;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].id.as_str(), all[0].balance_after.get()),
        (id, 8_999_999_999_999_999)
    );
    assert_eq!(all[0].tail.counterparty.as_deref(), Some("Überweisung 7/é"));
}

#[tokio::test]
async fn a_pending_deposit_counts_when_it_is_confirmed() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    tenant.fund("bot", 1).await;
    let body =
        json!({ "wallet": "bot", "amount": "0.3", "reference": "r", "pending": true, "currency": "USDC" });
    let first = tenant.caller.post(PATH, body.clone()).await;
    let made = success(&first, 200);
    assert_eq!(
        (
            &made["deposit"]["state"],
            &made["deposit"]["confirmedAt"],
            &made["balance"]
        ),
        (&json!("pending"), &Value::Null, &json!(1))
    );
    let wallet = tenant.wallet(&fixture, "bot").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (USD, 300_000_000));
    let out = json!({ "from": "bot", "to": "user", "amount": "1.000000001" });
    let reply = tenant.caller.post("/v1/wallet/transfer", out).await;
    problem(&reply, 400, "INSUFFICIENT_BALANCE");
    assert_eq!(
        tenant.transactions(&fixture).await.len(),
        1,
        "no transaction before it is confirmed"
    );

    let confirm = json!({ "reference": "r" });
    let done = tenant.caller.post(CONFIRM, confirm.clone()).await;
    let confirmed = success(&done, 200);
    assert_eq!(
        (
            &confirmed["deposit"]["state"],
            &confirmed["balance"],
            &confirmed["transactionId"]
        ),
        (&json!("confirmed"), &json!(1.3), &made["transactionId"])
    );
    fresh(text(&confirmed, "/deposit/confirmedAt"));
    assert_eq!(confirmed["deposit"]["currency"], json!("USDC"));
    let wallet = tenant.wallet(&fixture, "bot").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (1_300_000_000, 0));
    tenant.fund("bot", 5).await;
    replayed(&done, &tenant.caller.post(CONFIRM, confirm).await);
    replayed(&first, &tenant.caller.post(PATH, body).await);
    assert_eq!(tenant.balance(&fixture, "bot").await, 6_300_000_000);
    let ids: Vec<String> = tenant
        .transactions(&fixture)
        .await
        .into_iter()
        .map(|one| one.id)
        .collect();
    assert_eq!(ids[1], text(&made, "/transactionId"));
    let audit = tenant.account.audit_types(tenant.mode).await;
    assert_eq!(
        audit.iter().filter(|kind| *kind == "deposit.confirmed").count(),
        1
    );
}

#[tokio::test]
async fn a_reference_is_one_deposit_in_its_account_and_mode() {
    let fixture = Fixture::start().await;
    let (tenant, other) = (
        AccountFixture::new(&fixture).await,
        AccountFixture::new(&fixture).await,
    );
    let bot = tenant.bot("bot").await;
    tenant.bot("two").await;
    let body = json!({ "wallet": "bot", "amount": 1, "reference": "r" });
    let first = tenant.keyed(PATH, "k", &body).await;
    success(&first, 200);
    for (key, again) in [
        ("k", body.clone()),
        ("other", body.clone()),
        ("", body.clone()),
        (
            "",
            json!({ "wallet": bot.number, "amount": "1.0", "reference": "r" }),
        ),
        (
            "",
            json!({ "wallet": bot.id, "amount": 1, "reference": "r", "pending": false }),
        ),
    ] {
        replayed(&first, &tenant.keyed(PATH, key, &again).await);
    }
    for (key, changed) in [
        ("", json!({ "wallet": "bot", "amount": "1.1", "reference": "r" })),
        ("", json!({ "wallet": "two", "amount": 1, "reference": "r" })),
        ("", json!({ "wallet": "user", "amount": 1, "reference": "r" })),
        (
            "",
            json!({ "wallet": "bot", "amount": 1, "reference": "r", "currency": "USDC" }),
        ),
        ("k", json!({ "wallet": "bot", "amount": 1, "reference": "new" })),
    ] {
        let reply = tenant.keyed(PATH, key, &changed).await;
        problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
    }
    assert_eq!(tenant.balance(&fixture, "bot").await, USD);
    let theirs = json!({ "wallet": "user", "amount": 7, "reference": "r" });
    success(&other.caller.post(PATH, theirs).await, 200);
    assert_eq!(other.balance(&fixture, "user").await, 7 * USD);
}

/// A rail that posts a deposit first as announced, then as arrived, must not read the second answer as an arrival.
#[tokio::test]
async fn a_deposit_that_was_announced_does_not_arrive_by_being_sent_again() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let of = |pending: bool| json!({ "wallet": "user", "amount": 1, "reference": "r", "pending": pending });
    success(&tenant.keyed(PATH, "announced", &of(true)).await, 200);
    let sentence = problem(
        &tenant.keyed(PATH, "arrived", &of(false)).await,
        422,
        "IDEMPOTENCY_KEY_REUSED",
    );
    assert_eq!(sentence, "reference: this deposit is pending: confirm it.");
    assert_eq!(tenant.balance(&fixture, "user").await, 0);
    // The key of the refused request is free.
    let confirm = json!({ "reference": "r" });
    success(&tenant.keyed(CONFIRM, "arrived", &confirm).await, 200);
    let sentence = problem(
        &tenant.caller.post(PATH, of(false)).await,
        422,
        "IDEMPOTENCY_KEY_REUSED",
    );
    assert_eq!(sentence, "reference: this deposit has arrived already.");
    let second = json!({ "wallet": "user", "amount": 1, "reference": "s" });
    success(&tenant.caller.post(PATH, second).await, 200);
    let announced = json!({ "wallet": "user", "amount": 1, "reference": "s", "pending": true });
    let sentence = problem(
        &tenant.caller.post(PATH, announced).await,
        422,
        "IDEMPOTENCY_KEY_REUSED",
    );
    assert_eq!(sentence, "reference: this deposit has arrived already.");
    assert_eq!(tenant.balance(&fixture, "user").await, 2 * USD);
}

/// A replayed answer uses up the key that was sent: no other request can use it (decision D26).
#[tokio::test]
async fn a_repetition_binds_its_own_key_too() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let deposit = json!({ "wallet": "user", "amount": 5, "reference": "r" });
    let first = tenant.keyed(PATH, "first", &deposit).await;
    success(&first, 200);
    replayed(&first, &tenant.keyed(PATH, "second", &deposit).await);
    let pending = json!({ "wallet": "user", "amount": 1, "reference": "p", "pending": true });
    success(&tenant.keyed(PATH, "made", &pending).await, 200);
    let confirm = json!({ "reference": "p" });
    let confirmed = tenant.keyed(CONFIRM, "confirmed", &confirm).await;
    success(&confirmed, 200);
    replayed(
        &confirmed,
        &tenant.keyed(CONFIRM, "confirmed again", &confirm).await,
    );
    for key in ["second", "confirmed again"] {
        for (path, body) in [
            (
                "/v1/wallet/transfer",
                json!({ "from": "user", "to": "bot", "amount": 2 }),
            ),
            (PATH, json!({ "wallet": "user", "amount": 5, "reference": "new" })),
            (CONFIRM, json!({ "reference": "new" })),
        ] {
            let reply = tenant.keyed(path, key, &body).await;
            problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
        }
    }
    replayed(&first, &tenant.keyed(PATH, "second", &deposit).await);
    replayed(
        &confirmed,
        &tenant.keyed(CONFIRM, "confirmed again", &confirm).await,
    );
    assert_eq!(tenant.balance(&fixture, "user").await, 6 * USD);
    assert_eq!(tenant.balance(&fixture, "bot").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_is_made_once_under_its_key() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    for reference in ["a", "b"] {
        let body = json!({ "wallet": "user", "amount": 1, "reference": reference, "pending": true });
        success(&tenant.keyed(PATH, reference, &body).await, 200);
    }
    let confirm = json!({ "reference": "a" });
    let replies = join_all((0..16).map(|_| tenant.keyed(CONFIRM, "k", &confirm))).await;
    let fresh: Vec<_> = replies
        .iter()
        .filter(|reply| success(reply, 200).get("replayed").is_none())
        .collect();
    assert_eq!(fresh.len(), 1);
    replayed(fresh[0], &tenant.keyed(CONFIRM, "k", &confirm).await);
    replayed(fresh[0], &tenant.keyed(CONFIRM, "other", &confirm).await);
    for (path, body) in [
        (CONFIRM, json!({ "reference": "b" })),
        (PATH, json!({ "wallet": "user", "amount": 1, "reference": "c" })),
        (
            "/v1/wallet/transfer",
            json!({ "from": "user", "to": "bot", "amount": 1 }),
        ),
    ] {
        let reply = tenant.keyed(path, "k", &body).await;
        problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
    }
    // The key of the deposit itself is taken as well.
    let reply = tenant.keyed(CONFIRM, "b", &json!({ "reference": "b" })).await;
    problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
    let wallet = tenant.wallet(&fixture, "user").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (USD, USD));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_deposit_from_many_at_once_is_one() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    for pending in [false, true] {
        let body =
            json!({ "wallet": "bot", "amount": 1, "reference": format!("r{pending}"), "pending": pending });
        let keys = (0..16)
            .map(|n| format!("{pending} {}", n % 3))
            .collect::<Vec<_>>();
        let replies = join_all(keys.iter().map(|key| tenant.keyed(PATH, key, &body))).await;
        let fresh = replies
            .iter()
            .filter(|reply| success(reply, 200).get("replayed").is_none());
        assert_eq!(fresh.count(), 1);
    }
    let confirm = json!({ "reference": "rtrue" });
    let replies = join_all((0..16).map(|_| tenant.caller.post(CONFIRM, confirm.clone()))).await;
    let fresh = replies
        .iter()
        .filter(|reply| success(reply, 200).get("replayed").is_none());
    assert_eq!(fresh.count(), 1);
    let wallet = tenant.wallet(&fixture, "bot").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (2 * USD, 0));
}

#[tokio::test]
async fn live_money_is_not_brought_in_by_an_api_key() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let version = account.version().await;
    let body = json!({ "wallet": "user", "amount": 1, "reference": "r" });
    problem(&caller.post(PATH, body).await, 403, "OWNER_REQUIRED");
    let reply = caller.post(CONFIRM, json!({ "reference": "r" })).await;
    problem(&reply, 403, "OWNER_REQUIRED");
    problem(&caller.post(PATH, json!({})).await, 403, "OWNER_REQUIRED");
    assert_eq!(account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn bad_requests_name_the_field_and_bring_nothing_in() {
    let fixture = Fixture::start().await;
    let (tenant, stranger) = (
        AccountFixture::new(&fixture).await,
        AccountFixture::new(&fixture).await,
    );
    tenant.user().await;
    let theirs = stranger.bot("bot").await;
    let live = AccountFixture::with_account(&fixture, tenant.account.clone(), Mode::Live).await;
    let live_bot = live.bot("bot").await;
    let version = tenant.account.version().await;
    let long = "é".repeat(201);
    let mut bad: Vec<(String, String)> = BAD_AMOUNTS
        .iter()
        .map(|(amount, named)| {
            let body = format!(r#"{{"wallet":"user","reference":"r","amount":{amount}}}"#);
            (body, (*named).to_owned())
        })
        .collect();
    for (rest, named) in [
        (r#""amount":1"#.to_owned(), "reference is required."),
        (
            r#""amount":1,"reference":"""#.to_owned(),
            "reference must be 1 to 200",
        ),
        (
            r#""amount":1,"reference":"a\n""#.to_owned(),
            "reference must be 1 to 200",
        ),
        (
            format!(r#""amount":1,"reference":"{long}""#),
            "reference must be 1 to 200",
        ),
        (
            r#""amount":1,"reference":"r ""#.to_owned(),
            "reference must be 1 to 200 characters in one visible line",
        ),
        (
            r#""amount":1,"reference":"r\u200b""#.to_owned(),
            "reference must be 1 to 200 characters in one visible line",
        ),
        (
            r#""amount":1,"reference":7"#.to_owned(),
            "reference must be a string.",
        ),
        (
            r#""amount":1,"reference":"r","pending":"yes""#.to_owned(),
            "pending must be true or false.",
        ),
        (
            r#""amount":1,"reference":"r","currency":"BTC""#.to_owned(),
            "currency must be",
        ),
        (
            r#""amount":1,"reference":"r","to":"x""#.to_owned(),
            "\"to\" is not a field",
        ),
    ] {
        bad.push((format!(r#"{{"wallet":"user",{rest}}}"#), named.to_owned()));
    }
    bad.push((
        r#"{"amount":1,"reference":"r"}"#.to_owned(),
        "wallet is required.".to_owned(),
    ));
    for (body, named) in bad {
        let reply = tenant.caller.send("POST", PATH, &[], body.clone()).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(&named), "{body}: {sentence}");
    }
    let into = |wallet: Value| json!({ "wallet": wallet, "amount": 1, "reference": "r" });
    let reply = tenant.caller.post(PATH, into(json!(theirs.id))).await;
    problem(&reply, 403, "NOT_A_PARTY");
    for unknown in [json!(live_bot.number), json!("nobody"), json!(99_999)] {
        problem(&tenant.caller.post(PATH, into(unknown)).await, 404, "NOT_FOUND");
    }
    for body in [
        json!({}),
        json!({ "reference": "" }),
        json!({ "reference": "r", "x": 1 }),
    ] {
        problem(&tenant.caller.post(CONFIRM, body).await, 400, "VALIDATION");
    }
    let reply = tenant.caller.post(CONFIRM, json!({ "reference": "r" })).await;
    problem(&reply, 404, "NOT_FOUND");
    assert_eq!(tenant.account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn frozen_wallets_take_deposits_and_closed_ones_do_not() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    let reply = tenant.caller.post("/v1/agents/bot/freeze", json!({})).await;
    success(&reply, 200);
    tenant.fund("bot", 1).await;
    let reply = tenant.caller.post("/v1/agents/bot/unfreeze", json!({})).await;
    success(&reply, 200);
    let out = json!({ "from": "bot", "to": "user", "amount": 1 });
    success(&tenant.caller.post("/v1/wallet/transfer", out).await, 200);
    success(&tenant.caller.delete("/v1/agents/bot").await, 200);
    for pending in [false, true] {
        let body = json!({ "wallet": bot.number, "amount": 1, "reference": "r", "pending": pending });
        let key = format!("k{pending}");
        let first = tenant.keyed(PATH, &key, &body).await;
        problem(&first, 409, "WALLET_CLOSED");
        replayed(&first, &tenant.keyed(PATH, &key, &body).await);
    }
    let reply = tenant.caller.post(CONFIRM, json!({ "reference": "r" })).await;
    problem(&reply, 404, "NOT_FOUND");
    let body = json!({ "wallet": "user", "amount": 1, "reference": "r" });
    success(&tenant.caller.post(PATH, body).await, 200);
}

#[tokio::test]
async fn pending_money_counts_against_the_maximum_balance() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let pending = json!({ "wallet": "bot", "amount": 1, "reference": "p", "pending": true });
    success(&tenant.caller.post(PATH, pending).await, 200);
    let set = async |balance: u64| {
        let mut set = redis::cmd("HSET");
        set.arg(tenant.account.keys.in_mode(tenant.mode).agent("bot"))
            .arg("balance")
            .arg(balance);
        let _: i64 = fixture.store.command(&set).await.unwrap();
    };
    let most = 9_000_000_000_000_000_000;
    set(most - 2 * USD + 1_000_000).await;
    for pending in [false, true] {
        let body = json!({ "wallet": "bot", "amount": 1, "reference": "x", "pending": pending });
        problem(&tenant.caller.post(PATH, body).await, 409, "BALANCE_LIMIT");
    }
    set(most - USD + 1_000_000).await;
    let confirm = json!({ "reference": "p" });
    let reply = tenant.caller.post(CONFIRM, confirm.clone()).await;
    problem(&reply, 409, "BALANCE_LIMIT");
    set(most - USD).await;
    success(&tenant.caller.post(CONFIRM, confirm).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_raced_by_different_requests_serves_one_of_them() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.user().await;
    let served = |replies: &[harness::Reply]| {
        let refused = replies.iter().filter(|reply| reply.status != 200);
        for reply in refused.clone() {
            problem(reply, 422, "IDEMPOTENCY_KEY_REUSED");
        }
        replies.len() - refused.count()
    };
    for round in 0..5 {
        let key = format!("make {round}");
        let make = |n| json!({ "wallet": "user", "amount": 1, "reference": format!("{round} {n}"), "pending": true });
        let bodies: Vec<Value> = (0..16).map(make).collect();
        let replies = join_all(bodies.iter().map(|body| tenant.keyed(PATH, &key, body))).await;
        assert_eq!(served(&replies), 1, "deposits of round {round}");

        for body in &bodies {
            success(&tenant.keyed(PATH, "", body).await, 200);
        }
        let key = format!("confirm {round}");
        let which: Vec<Value> = (0..16)
            .map(|n| json!({ "reference": format!("{round} {n}") }))
            .collect();
        let replies = join_all(which.iter().map(|body| tenant.keyed(CONFIRM, &key, body))).await;
        assert_eq!(served(&replies), 1, "confirmations of round {round}");
    }
    let wallet = tenant.wallet(&fixture, "user").await;
    assert_eq!((wallet.balance.get(), wallet.pending.get()), (5 * USD, 75 * USD));
}
