//! Transfers: between two wallets of an account and to another account's, made at most once (decisions D18, D26, D67).

use crate::account_fixture::{AccountFixture, BAD_AMOUNTS, refused, replayed};
use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use domain::mode::Mode;
use futures::future::join_all;
use serde_json::{Value, json};
use store::transaction::TransactionType;

const PATH: &str = "/v1/wallet/transfer";
const USD: u64 = 1_000_000_000;

#[tokio::test]
async fn money_moves_between_wallets_of_one_account() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    let user = tenant.user().await;
    tenant.fund("user", "0.3").await;
    let body =
        json!({ "from": "user", "to": bot.id, "amount": "0.1", "currency": "USDC", "memo": "für dich 🤖" });
    let reply = tenant.caller.post("/api/v1/wallet/transfer", body).await;
    let done = success(&reply, 200);
    let id = text(&done, "/transactionId");
    minted(id, "txn_");
    fresh(text(&done, "/transfer/createdAt"));
    let expected = json!({ "success": true, "transfer": { "id": id, "from": user, "to": bot.number, "amount": 0.1,
        "currency": "USDC", "memo": "für dich 🤖", "createdAt": done["transfer"]["createdAt"] },
        "transactionId": id, "balance": 0.2 });
    assert_eq!(done, expected);
    assert!(
        reply.text().ends_with(",\"balance\":0.2}"),
        "0.3 - 0.1 is exact: {}",
        reply.text()
    );

    let back = json!({ "from": bot.number, "to": "user", "amount": "0.000000001" });
    success(&tenant.caller.post("/v1/wallets/transfer", back).await, 200);
    assert_eq!(tenant.balance(&fixture, "bot").await, 99_999_999);
    assert_eq!(tenant.balance(&fixture, "user").await, 200_000_001);
    let all = tenant.transactions(&fixture).await;
    let kinds: Vec<_> = all
        .iter()
        .map(|one| (one.kind, one.wallet, one.balance_after.get()))
        .collect();
    let (out, into) = (TransactionType::TransferOut, TransactionType::TransferIn);
    let expected = [
        (TransactionType::Deposit, user, 300_000_000),
        (out, user, 200_000_000),
        (into, bot.number, 100_000_000),
        (out, bot.number, 99_999_999),
        (into, user, 200_000_001),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((all[1].id.as_str(), all[1].at_ms), (id, all[2].at_ms));
    assert_ne!(all[1].id, all[2].id, "each side has its own transaction");
    assert_eq!(
        all[1].tail.counterparty.as_deref(),
        Some(bot.number.to_string().as_str())
    );
    assert_eq!(
        all[2].tail.counterparty.as_deref(),
        Some(user.to_string().as_str())
    );
    assert_eq!(all[2].tail.memo.as_deref(), Some("für dich 🤖"));
    let audit = tenant.account.audit_types(tenant.mode).await;
    assert_eq!(audit[audit.len() - 2..], ["transfer.requested"; 2]);
}

#[tokio::test]
async fn bad_requests_name_the_field_and_move_nothing() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    tenant.fund("user", 5).await;
    let version = tenant.account.version().await;
    let long = "x".repeat(501);
    let body = |rest: &str| format!(r#"{{"from":"user","to":"bot",{rest}}}"#);
    let mut bad: Vec<(String, String)> = BAD_AMOUNTS
        .iter()
        .map(|(amount, named)| (body(&format!(r#""amount":{amount}"#)), (*named).to_owned()))
        .collect();
    let more = [
        (body(r#""amount":1,"fee":1"#), "\"fee\" is not a field"),
        (
            body(r#""amount":1,"currency":"EUR""#),
            "currency must be USD or USDC.",
        ),
        (
            body(r#""amount":1,"currency":"usd""#),
            "currency must be USD or USDC.",
        ),
        (
            body(&format!(r#""amount":1,"memo":"{long}""#)),
            "memo must have at most 500",
        ),
        (r#"{"to":"bot","amount":1}"#.to_owned(), "from is required."),
        (r#"{"from":"bot","amount":1}"#.to_owned(), "to is required."),
        (
            r#"{"from":0,"to":"bot","amount":1}"#.to_owned(),
            "from must name a wallet",
        ),
        (
            r#"{"from":1.5,"to":"bot","amount":1}"#.to_owned(),
            "from must name a wallet",
        ),
        (
            r#"{"from":"user","to":"a b","amount":1}"#.to_owned(),
            "to must name a wallet",
        ),
        (
            r#"{"from":"user","to":["bot"],"amount":1}"#.to_owned(),
            "to must name a wallet",
        ),
        (
            r#"{"from":"user","to":"user","amount":1}"#.to_owned(),
            "to must be another wallet",
        ),
        (
            format!(r#"{{"from":"bot","to":{},"amount":1}}"#, bot.number),
            "to must be another wallet",
        ),
        (
            format!(r#"{{"from":{},"to":"{}","amount":1}}"#, bot.number, bot.id),
            "to must be another wallet",
        ),
        (
            body(r#""amount":1,"idempotency_key":"é""#),
            "idempotency_key must be 1 to 255",
        ),
        (body(r#""amount":1,"intent_id":7"#), "intent_id must be a string."),
    ];
    bad.extend(more.map(|(body, named)| (body, named.to_owned())));
    for (body, named) in bad {
        for path in [PATH, "/api/v1/wallets/transfer"] {
            let reply = tenant.caller.send("POST", path, &[], body.clone()).await;
            let sentence = problem(&reply, 400, "VALIDATION");
            assert!(sentence.contains(&named), "{body}: {sentence}");
        }
    }
    assert_eq!(tenant.account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn wallets_of_others_and_of_the_other_mode() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let stranger = AccountFixture::new(&fixture).await;
    tenant.fund("user", 5).await;
    let theirs = stranger.bot("bot").await;
    stranger.fund("bot", 5).await;
    let live = AccountFixture::with_account(&fixture, tenant.account.clone(), Mode::Live).await;
    let live_bot = live.bot("bot").await;
    let version = tenant.account.version().await;
    let transfer = async |body: Value| tenant.caller.post(PATH, body).await;
    for from in [json!(theirs.number), json!(theirs.id)] {
        let reply = transfer(json!({ "from": from, "to": "user", "amount": 1 })).await;
        let sentence = problem(&reply, 403, "NOT_A_PARTY");
        assert!(sentence.starts_with("from"), "{sentence}");
    }
    for (from, to, field) in [
        (json!(live_bot.number), json!("user"), "from"),
        (json!("user"), json!(live_bot.id), "to"),
        (json!("bot"), json!("user"), "from"),
        (json!("user"), json!("bot"), "to"),
        (json!(99_999), json!("user"), "from"),
        (json!("user"), json!("wal_00000000000000000000000000"), "to"),
        (json!("user"), json!(theirs.number.to_string()), "to"),
    ] {
        let reply = transfer(json!({ "from": from, "to": to, "amount": 1 })).await;
        let sentence = problem(&reply, 404, "NOT_FOUND");
        assert!(sentence.starts_with(&format!("{field}: ")), "{sentence}");
    }
    let reply = transfer(json!({ "from": "user", "to": theirs.number, "amount": "5.000000001" })).await;
    problem(&reply, 400, "INSUFFICIENT_BALANCE");
    assert_eq!(tenant.account.version().await, version, "nothing was changed");
    assert_eq!(stranger.balance(&fixture, "bot").await, 5 * USD);
}

#[tokio::test]
async fn nothing_leaves_a_frozen_wallet_and_money_may_come_in() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    tenant.fund("bot", 5).await;
    tenant.fund("user", 5).await;
    let reply = tenant.caller.post("/v1/agents/bot/freeze", json!({})).await;
    success(&reply, 200);
    let out = json!({ "from": "bot", "to": "user", "amount": 1 });
    let first = tenant.keyed(PATH, "k", &out).await;
    problem(&first, 403, "FROZEN");
    let into = json!({ "from": "user", "to": "bot", "amount": 1 });
    success(&tenant.caller.post(PATH, into).await, 200);
    let reply = tenant.caller.post("/v1/agents/bot/unfreeze", json!({})).await;
    success(&reply, 200);
    replayed(&first, &tenant.keyed(PATH, "k", &out).await);
    assert_eq!(tenant.balance(&fixture, "bot").await, 6 * USD);
    success(&tenant.keyed(PATH, "other", &out).await, 200);
    assert_eq!(tenant.balance(&fixture, "bot").await, 5 * USD);
}

#[tokio::test]
async fn a_closed_wallet_neither_pays_nor_receives() {
    let fixture = Fixture::start().await;
    let (tenant, payer) = (
        AccountFixture::new(&fixture).await,
        AccountFixture::new(&fixture).await,
    );
    let gone = tenant.bot("bot").await;
    success(&tenant.caller.delete("/v1/agents/bot").await, 200);
    tenant.bot("bot").await;
    tenant.fund("user", 5).await;
    payer.fund("user", 5).await;
    for (who, from, to, field) in [
        (&tenant, json!("user"), json!(gone.number), "to"),
        (&tenant, json!(gone.id), json!("user"), "from"),
        (&payer, json!("user"), json!(gone.id), "to"),
    ] {
        let body = json!({ "from": from, "to": to, "amount": 1 });
        let first = who.keyed(PATH, &format!("k {from}{to}"), &body).await;
        let sentence = problem(&first, 409, "WALLET_CLOSED");
        assert!(sentence.starts_with(field), "{sentence}");
        replayed(&first, &who.keyed(PATH, &format!("k {from}{to}"), &body).await);
    }
    assert_eq!(tenant.balance(&fixture, "user").await, 5 * USD);
    assert_eq!(payer.balance(&fixture, "user").await, 5 * USD);
    assert_eq!(tenant.balance(&fixture, "bot").await, 0, "the new one is another");
}

#[tokio::test]
async fn the_same_key_and_request_is_one_transfer() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let other = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let far = other.bot("far").await;
    tenant.fund("user", 10).await;
    for (key, to) in [("near \"k\"", json!("bot")), ("far", json!(far.number))] {
        let body = json!({ "from": "user", "to": to, "amount": "1.50", "memo": "m" });
        let first = tenant.keyed(PATH, key, &body).await;
        success(&first, 200);
        let balance = tenant.balance(&fixture, "user").await;
        for (path, again) in [
            (
                "/api/v1/wallets/transfer",
                json!({ "memo": "m", "amount": 1.5, "to": to, "from": "user" }),
            ),
            (
                PATH,
                json!({ "from": "user", "to": to, "amount": "15e-1", "memo": "m", "currency": "USD" }),
            ),
        ] {
            replayed(&first, &tenant.keyed(path, key, &again).await);
        }
        let in_body = json!({ "from": "user", "to": to, "amount": 1.5, "memo": "m", "idempotency_key": key });
        replayed(&first, &tenant.keyed(PATH, "", &in_body).await);
        let both = json!({ "from": "user", "to": to, "amount": 1.5, "memo": "m", "intent_id": key,
            "idempotency_key": "x" });
        replayed(&first, &tenant.keyed(PATH, "", &both).await);
        for changed in [
            json!({ "from": "user", "to": to, "amount": "1.500000001", "memo": "m" }),
            json!({ "from": "user", "to": to, "amount": 1.5 }),
            json!({ "from": "user", "to": to, "amount": 1.5, "memo": "m", "currency": "USDC" }),
            json!({ "from": to, "to": "user", "amount": 1.5, "memo": "m" }),
        ] {
            let reply = tenant.keyed(PATH, key, &changed).await;
            problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
        }
        let deposit = json!({ "wallet": "user", "amount": 1, "reference": "r" });
        let reply = tenant.keyed("/v1/wallet/deposits", key, &deposit).await;
        problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
        assert_eq!(tenant.balance(&fixture, "user").await, balance, "moved once");
    }
    assert_eq!(tenant.balance(&fixture, "bot").await, 1_500_000_000);
    assert_eq!(other.balance(&fixture, "far").await, 1_500_000_000);
    // Another account's key of the same name is another key.
    other.fund("user", 2).await;
    let body = json!({ "from": "user", "to": "far", "amount": 2 });
    success(&other.keyed(PATH, "far", &body).await, 200);
}

#[tokio::test]
async fn a_wallets_number_and_an_agent_of_that_name_are_two_requests() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let one = tenant.bot("one").await;
    tenant.fund("user", 10).await;
    let body = json!({ "from": "user", "to": one.number, "amount": 1 });
    success(&tenant.keyed(PATH, "k", &body).await, 200);
    let body = json!({ "from": "user", "to": one.number.to_string(), "amount": 1 });
    let reply = tenant.keyed(PATH, "k", &body).await;
    problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test]
async fn refusals_with_400_are_not_stored_and_records_end_after_their_time() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let user = tenant.user().await;
    let records = async || {
        let pattern = format!("{}*", tenant.account.keys.in_mode(tenant.mode).intent(""));
        let mut keys = redis::cmd("KEYS");
        let keys: Vec<String> = fixture.store.command(keys.arg(pattern)).await.unwrap();
        keys
    };
    let body = json!({ "from": user, "to": "bot", "amount": 1 });
    let reply = tenant.keyed(PATH, "k", &body).await;
    problem(&reply, 400, "INSUFFICIENT_BALANCE");
    assert_eq!(records().await.len(), 0);
    tenant.fund("user", 10).await;
    success(&tenant.keyed(PATH, "", &body).await, 200);
    assert_eq!(records().await.len(), 0, "nobody could repeat it");
    success(&tenant.keyed(PATH, "k", &body).await, 200);
    let kept = records().await;
    assert_eq!(kept.len(), 1);
    let life_ms: i64 = fixture
        .store
        .command(redis::cmd("PTTL").arg(&kept[0]))
        .await
        .unwrap();
    let days = 30 * 86_400_000;
    assert!((days - 60_000..=days).contains(&life_ms), "{life_ms}");
}

/// Other accounts can fill a wallet to a tenth: the rest is reserved for its own account.
#[tokio::test]
async fn no_wallet_holds_more_than_an_int64() {
    let fixture = Fixture::start().await;
    let (tenant, payer) = (
        AccountFixture::new(&fixture).await,
        AccountFixture::new(&fixture).await,
    );
    let rich = tenant.bot("rich").await;
    tenant.fund("user", 5).await;
    payer.fund("user", 5).await;
    let record = tenant.account.keys.in_mode(tenant.mode).agent("rich");
    let set = async |balance: u64| {
        let mut set = redis::cmd("HSET");
        let _: i64 = fixture
            .store
            .command(set.arg(&record).arg("balance").arg(balance))
            .await
            .unwrap();
    };
    for (who, most) in [
        (&tenant, 9_000_000_000_000_000_000),
        (&payer, 900_000_000_000_000_000),
    ] {
        let body = json!({ "from": "user", "to": rich.number, "amount": 1 });
        set(most - USD + 1).await;
        problem(&who.caller.post(PATH, body.clone()).await, 409, "BALANCE_LIMIT");
        assert_eq!(who.balance(&fixture, "user").await, 5 * USD);
        set(most - USD).await;
        success(&who.caller.post(PATH, body).await, 200);
        assert_eq!(tenant.balance(&fixture, "rich").await, most);
        // A sender without the money learns nothing about the wallet of the other side.
        let more = json!({ "from": "user", "to": rich.number, "amount": 5 });
        for balance in [0, most - 5 * USD, most] {
            set(balance).await;
            problem(
                &who.caller.post(PATH, more.clone()).await,
                400,
                "INSUFFICIENT_BALANCE",
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_with_one_key_move_once() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let other = AccountFixture::new(&fixture).await;
    let far = other.bot("far").await;
    tenant.bot("bot").await;
    tenant.fund("user", 100).await;
    for (round, to) in [json!("bot"), json!(far.id), json!("bot"), json!(far.id)]
        .into_iter()
        .enumerate()
    {
        let key = format!("key-{round}");
        let body = json!({ "from": "user", "to": to, "amount": 1 });
        let replies = join_all((0..16).map(|_| tenant.keyed(PATH, &key, &body))).await;
        let fresh: Vec<_> = replies
            .iter()
            .filter(|reply| reply.json().get("replayed").is_none())
            .collect();
        assert_eq!(fresh.len(), 1);
        let first = fresh[0];
        for reply in replies.iter().filter(|reply| reply.body != first.body) {
            replayed(first, reply);
        }
    }
    assert_eq!(tenant.total(&fixture, &["bot"]).await, 98 * USD);
    assert_eq!(other.balance(&fixture, "far").await, 2 * USD);
}

#[tokio::test(flavor = "multi_thread")]
async fn crossing_transfers_conserve_money_and_never_go_below_zero() {
    let fixture = Fixture::start().await;
    let (a, b) = (
        AccountFixture::new(&fixture).await,
        AccountFixture::new(&fixture).await,
    );
    let (one, two) = (a.bot("one").await, b.bot("two").await);
    a.fund("one", 3).await;
    b.fund("two", 3).await;
    let tasks = (0..60_u64).map(|n| {
        let (who, from, to) = match n % 4 {
            0 => (&a, json!("one"), json!(two.number)),
            1 => (&b, json!("two"), json!(one.number)),
            2 => (&a, json!("one"), json!("user")),
            _ => (&b, json!("two"), json!("user")),
        };
        let body = json!({ "from": from, "to": to, "amount": format!("0.{}", n % 9 + 1) });
        async move { who.caller.post(PATH, body).await }
    });
    let replies = join_all(tasks).await;
    for reply in &replies {
        if reply.status != 200 {
            refused(reply, 400, "INSUFFICIENT_BALANCE");
        }
    }
    let sum = a.total(&fixture, &["one"]).await + b.total(&fixture, &["two"]).await;
    assert_eq!(sum, 6 * USD);
    for tenant in [&a, &b] {
        let mut balances = std::collections::BTreeMap::new();
        for one in tenant.transactions(&fixture).await {
            let before = balances.entry(one.wallet).or_insert(0_i128);
            let signed = i128::from(one.amount.get());
            *before += if one.kind.sign() == "-" { -signed } else { signed };
            assert_eq!(*before, i128::from(one.balance_after.get()), "{one:?}");
            assert!(*before >= 0, "{one:?}");
        }
    }
}
