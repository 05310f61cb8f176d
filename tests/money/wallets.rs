//! Wallets: made for a bot, read, added up, closed (specification §4.1, decisions D14 to D16, D67).

use crate::account_fixture::AccountFixture;
use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use domain::amount::parse_limit;
use domain::mode::Mode;
use harness::assert_fields;
use serde_json::{Value, json};

#[tokio::test]
async fn a_wallet_from_its_making_to_its_snapshot() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let body = json!({ "botId": "shop:bot-1", "name": "Lädchen 日本 🤖" });
    let made = success(&tenant.caller.post("/v1/wallets/create", body).await, 200);
    minted(text(&made, "/wallet/id"), "wal_");
    fresh(text(&made, "/wallet/createdAt"));
    let wallet = &made["wallet"];
    let number = wallet["walletId"].as_u64().unwrap();
    assert!((1 << 40..1 << 53).contains(&number), "{number}");
    let expected = json!({ "success": true, "wallet": { "id": wallet["id"], "walletId": number, "botId": "shop:bot-1",
        "name": "Lädchen 日本 🤖", "balance": "0.00", "currency": "USD", "status": "active",
        "createdAt": wallet["createdAt"] } });
    assert_eq!(made, expected);
    let by_number = format!("/v1/wallets/{number}");
    for path in [&by_number, &format!("/api{by_number}")] {
        assert_eq!(success(&tenant.caller.get(path).await, 200), expected);
    }
    let by_id = format!("/v1/wallets/{}", text(&made, "/wallet/id"));
    assert_eq!(success(&tenant.caller.get(&by_id).await, 200), expected);

    tenant.fund(number, "12.349999999").await;
    let agent = "/v1/agents/shop:bot-1";
    let body = json!({ "spendLimit": "0.000000001" });
    success(&tenant.caller.patch(agent, body).await, 200);
    let shown = success(&tenant.caller.get(&by_number).await, 200);
    assert_fields!(shown["wallet"], { "balance": "12.34" }, "two digits, rounded down");
    let reply = tenant.caller.get(&format!("{agent}/wallet")).await;
    let snapshot = success(&reply, 200);
    let exact = "\"usdc\":12.349999999,\"usdcPending\":0,\"spendLimit\":0.000000001,\"status\":\"active\",";
    assert!(reply.text().contains(exact), "{}", reply.text());
    let mut names: Vec<&str> = snapshot.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = [
        "agentId",
        "createdAt",
        "spendLimit",
        "status",
        "success",
        "updatedAt",
        "usdc",
        "usdcPending",
        "wallet",
        "walletId",
    ];
    assert_eq!(names, expected);
    assert_fields!(snapshot, { "agentId": "shop:bot-1", "walletId": number, "wallet": wallet["id"] });

    let reply = tenant.caller.post(&format!("{agent}/freeze"), json!({})).await;
    success(&reply, 200);
    for path in [&by_number, &by_id] {
        let shown = success(&tenant.caller.get(path).await, 200);
        assert_eq!(shown["wallet"]["status"], json!("frozen"));
    }
}

#[tokio::test]
async fn a_bot_has_one_wallet_and_counts_as_an_agent() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("free").await;
    let create = async |body: Value| caller.post("/api/v1/wallets/create", body).await;
    let made = success(&create(json!({ "botId": "b1" })).await, 200);
    assert_eq!(made["wallet"]["name"], json!("b1"), "the id is the default name");
    let reply = create(json!({ "botId": "b1", "name": "again" })).await;
    problem(&reply, 409, "CONFLICT");
    let agent = success(&caller.get("/v1/agents/b1").await, 200);
    assert_fields!(agent["agent"], { "type": "custom", "walletId": made["wallet"]["walletId"] });
    // A policy makes the agent exist, and it has no wallet yet.
    let body = json!({ "maxSpendPerDay": 1 });
    success(&caller.post("/v1/policies/b2", body).await, 200);
    problem(&caller.get("/v1/agents/b2/wallet").await, 404, "NOT_FOUND");
    for n in 2..=5 {
        success(&create(json!({ "botId": format!("b{n}") })).await, 200);
    }
    problem(&create(json!({ "botId": "b6" })).await, 403, "TIER_LIMIT");
    problem(&create(json!({ "botId": "b5" })).await, 409, "CONFLICT");
    problem(&caller.get("/v1/agents/b6/wallet").await, 404, "NOT_FOUND");
}

#[tokio::test]
async fn bad_bodies_name_the_field_and_make_nothing() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let version = account.version().await;
    for (body, named) in [
        ("{}", "botId is required."),
        (r#"{"botId":null}"#, "botId is required."),
        (r#"{"botId":17}"#, "botId must be a string."),
        (r#"{"botId":"user"}"#, "botId must be 1 to 128"),
        (r#"{"botId":"a/b"}"#, "botId must be 1 to 128"),
        (r#"{"botId":"."}"#, "botId must not be `.` or `..`"),
        (r#"{"botId":"é"}"#, "botId must be 1 to 128"),
        (r#"{"botId":"a","name":""}"#, "name must not be empty."),
        (r#"{"botId":"a","name":[]}"#, "name must be a string."),
        (r#"{"botId":"a","balance":5}"#, "\"balance\" is not a field"),
    ] {
        let reply = caller.send("POST", "/v1/wallets/create", &[], body).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{body}: {sentence}");
    }
    assert_eq!(account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn wallets_are_found_in_their_own_account_and_mode_only() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    let user = tenant.user().await;
    let shown = success(&tenant.caller.get(&format!("/v1/wallets/{user}")).await, 200);
    assert_fields!(shown["wallet"], { "botId": null, "name": "user" });
    let stranger = AccountFixture::new(&fixture).await;
    let live = AccountFixture::with_account(&fixture, tenant.account.clone(), Mode::Live).await;
    for outsider in [&stranger, &live] {
        for name in [&bot.number.to_string(), &bot.id, &user.to_string()] {
            for path in [
                format!("/v1/wallets/{name}"),
                format!("/v1/wallets/{name}/transactions"),
            ] {
                problem(&outsider.caller.get(&path).await, 404, "NOT_FOUND");
            }
        }
        let reply = outsider.caller.get("/v1/agents/bot/wallet").await;
        problem(&reply, 404, "NOT_FOUND");
    }
    for name in [
        "0",
        "-1",
        "1.0",
        "999",
        "bot",
        "user",
        "wal_",
        "wal_0",
        "99999999999999999999999",
        "%20",
    ] {
        let reply = tenant.caller.get(&format!("/v1/wallets/{name}")).await;
        problem(&reply, 404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_aggregate_adds_up_all_wallets_on_any_page() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    for n in 0..5 {
        let id = format!("b{n}");
        tenant.bot(&id).await;
        tenant.fund(id, "0.1").await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    tenant.fund("user", "0.2").await;
    let pending = json!({ "wallet": "b0", "amount": "7.000000001", "reference": "p", "pending": true });
    success(&tenant.caller.post("/v1/wallet/deposits", pending).await, 200);

    let reply = tenant.caller.get("/v1/wallet").await;
    let whole = success(&reply, 200);
    let exact = "\"totals\":{\"usdc\":0.7,\"usdcPending\":7.000000001,\"wallets\":6,\"partial\":false},\"total\":5,\"limit\":200,\"offset\":0,\"nextCursor\":null}";
    assert!(reply.text().ends_with(exact), "{}", reply.text());
    let ids = |body: &Value| {
        let wallets = body["agent_wallets"].as_array().unwrap().iter();
        wallets
            .map(|wallet| text(wallet, "/agentId").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&whole), ["b4", "b3", "b2", "b1", "b0"]);
    assert_eq!(whole["agent_wallets"][4]["usdcPending"], json!(7.000000001));
    assert_eq!(whole["user_wallet"]["usdc"], json!(0.2));
    assert_eq!(
        whole["agent_wallets"][0],
        {
            let mut one = success(&tenant.caller.get("/v1/agents/b4/wallet").await, 200);
            one.as_object_mut().unwrap().remove("success");
            one
        },
        "the same snapshot"
    );
    let page = success(&tenant.caller.get("/api/v1/wallet?limit=2&offset=1").await, 200);
    assert_eq!(ids(&page), ["b3", "b2"]);
    assert_fields!(page, { "totals": whole["totals"], "total": 5, "limit": 2, "offset": 1 });
    problem(
        &tenant.caller.get("/v1/wallet?agentId=b0").await,
        400,
        "VALIDATION",
    );
}

/// A transfer between two wallets of the account changes neither the sums nor what the listed wallets add up to.
#[tokio::test]
async fn the_aggregate_is_of_one_moment_while_money_moves() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    for bot in ["b0", "b1", "b2"] {
        tenant.bot(bot).await;
        tenant.fund(bot, 10).await;
    }
    tenant.fund("user", 10).await;
    let transfer = async |from: &str, to: &str| {
        let body = json!({ "from": from, "to": to, "amount": "0.01" });
        success(&tenant.caller.post("/v1/wallet/transfer", body).await, 200);
    };
    for _ in 0..80 {
        let (reply, ..) = tokio::join!(
            tenant.caller.get("/v1/wallet"),
            transfer("user", "b0"),
            transfer("b0", "b1"),
            transfer("b1", "b2"),
            transfer("b2", "user"),
        );
        let whole = success(&reply, 200);
        assert_fields!(whole["totals"], { "usdc": 40, "wallets": 4 }, "{whole}");
        let listed = whole["agent_wallets"].as_array().unwrap().iter();
        let amounts = listed
            .chain([&whole["user_wallet"]])
            .map(|wallet| amount(&wallet["usdc"]));
        assert_eq!(amounts.sum::<u64>(), amount(&json!(40)), "{whole}");
    }
}

/// In nano-USD.
fn amount(value: &Value) -> u64 {
    parse_limit(&value.to_string()).unwrap().get()
}

#[tokio::test]
async fn an_agent_whose_wallet_holds_or_awaits_money_is_not_deleted() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let bot = tenant.bot("bot").await;
    let user = tenant.user().await;
    let refused = async |words: &str| {
        let sentence = problem(&tenant.caller.delete("/v1/agents/bot").await, 409, "CONFLICT");
        assert!(sentence.contains(words), "{sentence}");
    };
    let body = json!({ "wallet": "bot", "amount": 1, "reference": "r", "pending": true });
    success(&tenant.caller.post("/v1/wallet/deposits", body).await, 200);
    refused("waits for a pending deposit").await;
    let confirm = json!({ "reference": "r" });
    let reply = tenant.caller.post("/v1/wallet/deposits/confirm", confirm).await;
    success(&reply, 200);
    refused("holds money").await;
    let out = json!({ "from": "bot", "to": "user", "amount": 1 });
    success(&tenant.caller.post("/v1/wallet/transfer", out).await, 200);
    success(&tenant.caller.delete("/v1/agents/bot").await, 200);

    // The wallet remains, by number and id, with its transactions.
    let reply = tenant.caller.get("/v1/agents/bot/wallet").await;
    problem(&reply, 404, "NOT_FOUND");
    for name in [bot.number.to_string(), bot.id.clone()] {
        let shown = success(&tenant.caller.get(&format!("/v1/wallets/{name}")).await, 200);
        assert_fields!(shown["wallet"], { "status": "closed", "botId": "bot" });
        let path = format!("/v1/wallets/{name}/transactions");
        let listed = success(&tenant.caller.get(&path).await, 200);
        assert_eq!(listed["total"], json!(2));
        let listed = success(&tenant.caller.get(&format!("{path}?type=deposit")).await, 200);
        assert_eq!(listed["total"], json!(1));
    }
    let whole = success(&tenant.caller.get("/v1/wallet").await, 200);
    assert_fields!(whole, { "totals": { "usdc": 1, "usdcPending": 0, "wallets": 1, "partial": false } });

    // The same id again is another wallet, with a history of its own.
    let again = tenant.bot("bot").await;
    assert!(again.number != bot.number && again.id != bot.id && user != again.number);
    tenant.fund("bot", 3).await;
    let count = async |path: &str| success(&tenant.caller.get(path).await, 200)["total"].clone();
    assert_eq!(count("/v1/transactions?agentId=bot").await, json!(1));
    let old = format!("/v1/wallets/{}/transactions", bot.number);
    assert_eq!(count(&old).await, json!(2));
    assert_eq!(count("/v1/transactions").await, json!(4));
}
