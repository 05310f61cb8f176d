//! Repeated requests, and the records that the calls leave: intents, siblings, lists.

use super::parties::{Side, refused, replayed, usd};
use crate::fixture::{Fixture, problem, success, text};
use domain::intent::Reason;
use serde_json::{Value, json};
use store::escrow::search::SCANNED_MAX;
use store::keys::IntentIndex;

#[tokio::test]
async fn the_same_request_again() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    payer.deposit(usd(10)).await;
    let body = json!({ "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 1, "conditions": { "b": 1, "a": "x" } });
    let first = payer.call("create", "create", body).await;
    let number = success(&first, 200)["escrow"]["id"].as_u64().unwrap();
    let id = json!({ "escrowId": number });
    let funded = payer.call("fund", "fund", id.clone()).await;
    success(&funded, 200);
    payer.deposit(usd(1)).await;
    let released = payer.call("release", "release", id.clone()).await;
    success(&released, 200);
    // Another order of fields and another way to write the amount: the same request.
    let same = format!(
        r#"{{"amount":"1.00","conditions":{{"a":"x","b":1}},"toWalletId":{},"fromWalletId":{},"currency":"USD"}}"#,
        payee.wallet, payer.wallet
    );
    let header = [("idempotency-key", "create")];
    replayed(
        &first,
        &payer
            .caller
            .send("POST", "/v1/escrow/create", &header, same)
            .await,
    );
    replayed(&funded, &payer.call("fund", "fund", id.clone()).await);
    for field in ["intent_id", "idempotency_key"] {
        let body = json!({ "escrowId": number, field: "fund" });
        replayed(&funded, &payer.call_plain("fund", body).await);
    }

    let again = payer.call("release", "release", id.clone()).await;
    let intent = text(&released.json(), "/intent_id").to_owned();
    assert_eq!(again.status, 409);
    assert_eq!(
        again.json(),
        json!({ "success": true, "escrowId": number, "status": "released", "intentId": intent, "intent_id": intent,
            "error": "The escrow is already resolved.", "code": "ESCROW_RESOLVED", "replayed": true })
    );
    let other = payer.funded_to(&payee, usd(1)).await;
    let body = json!({ "escrowId": other, "reason": "Late" });
    let disputed = payer.call("dispute", "dispute", body.clone()).await;
    let intent = text(&success(&disputed, 200), "/intent_id").to_owned();
    let again = payer.call("dispute", "dispute", body).await;
    assert_eq!(again.status, 409);
    assert_eq!(
        again.json(),
        json!({ "success": true, "escrowId": other, "status": "disputed", "dispute_reason": "Late",
            "intentId": intent, "intent_id": intent, "error": "The escrow is already resolved.",
            "code": "ESCROW_RESOLVED", "replayed": true })
    );

    let intents = payer.index(IntentIndex::All).await.len();
    for (word, key, body) in [
        ("fund", "create", id.clone()),
        ("release", "fund", id.clone()),
        ("dispute", "release", id.clone()),
        ("fund", "fund", json!({ "escrowId": other })),
        (
            "dispute",
            "dispute",
            json!({ "escrowId": other, "reason": "Other" }),
        ),
        ("dispute", "dispute", json!({ "escrowId": other })),
        (
            "create",
            "create",
            json!({ "fromWalletId": payer.wallet, "toWalletId": payee.wallet, "amount": 1 }),
        ),
    ] {
        problem(&payer.call(word, key, body).await, 422, "IDEMPOTENCY_KEY_REUSED");
    }
    problem(&payer.call("fund", "é", id.clone()).await, 400, "VALIDATION");
    assert_eq!(payer.index(IntentIndex::All).await.len(), intents);
    // Without a key each call is its own, and still has an intent.
    let one = payer.call_plain("release", id.clone()).await;
    let two = payer.call_plain("release", id).await;
    let ids = [&one, &two].map(|reply| refused(reply, 409, "ESCROW_RESOLVED", Reason::EscrowReleased));
    assert_ne!(ids[0], ids[1]);
    assert_eq!((payer.balance().await, payee.balance().await), (usd(10), usd(1)));
}

#[tokio::test]
async fn intents_are_listed_and_siblings_are_bounded() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let number = payer.escrow_to(&payee, usd(1)).await;
    for _ in 0..105 {
        let reply = payer.call_plain("release", json!({ "escrowId": number })).await;
        refused(&reply, 400, "ESCROW_WRONG_STATE", Reason::EscrowNotFunded);
    }
    assert_eq!(
        payer.siblings(number).await.len(),
        99,
        "the last place is the winner's"
    );
    payer.deposit(usd(1)).await;
    let reply = payer.call_plain("fund", json!({ "escrowId": number })).await;
    success(&reply, 200);
    let reply = payer.call_plain("release", json!({ "escrowId": number })).await;
    let won = success(&reply, 200);
    let lost = payer.call_plain("dispute", json!({ "escrowId": number })).await;
    let lost = refused(&lost, 409, "ESCROW_RESOLVED", Reason::EscrowReleased);
    payer.blocked(&lost, Reason::EscrowReleased).await;
    let siblings = payer.siblings(number).await;
    assert_eq!(siblings.len(), 100);
    assert_eq!(
        siblings[99],
        format!("{} {}", payer.account.id, text(&won, "/intent_id"))
    );

    assert_eq!(payer.index(IntentIndex::All).await.len(), 109);
    assert_eq!(payer.index(IntentIndex::Kind("escrow_release")).await.len(), 106);
    assert_eq!(payer.index(IntentIndex::Kind("escrow_dispute")).await, [lost]);
    assert_eq!(payer.index(IntentIndex::Agent(&payer.owner)).await.len(), 109);
}

#[tokio::test]
async fn escrows_are_listed_newest_first() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let empty = success(&payer.caller.get("/v1/escrow").await, 200);
    assert_eq!(
        empty,
        json!({ "success": true, "escrows": [], "total": 0, "limit": 50, "offset": 0, "nextCursor": null })
    );
    let mut numbers = Vec::new();
    for _ in 0..12 {
        numbers.insert(0, payer.escrow_to(&payee, usd(1)).await);
    }
    let ids = |list: &Value| -> Vec<u64> {
        let escrows = list["escrows"].as_array().unwrap().iter();
        escrows.map(|escrow| escrow["id"].as_u64().unwrap()).collect()
    };
    let all = success(&payer.caller.get("/v1/escrow").await, 200);
    assert_eq!((ids(&all), &all["total"]), (numbers.clone(), &json!(12)));
    let reply = payer.caller.get(&format!("/v1/escrow/{}", numbers[0])).await;
    let read = success(&reply, 200);
    assert_eq!(all["escrows"][0], read["escrow"]);
    let page = success(&payer.caller.get("/v1/escrow?limit=2&offset=1").await, 200);
    assert_eq!(
        (ids(&page), &page["total"], &page["limit"]),
        (numbers[1..3].to_vec(), &json!(12), &json!(2))
    );
    let beyond = success(&payer.caller.get("/v1/escrow?offset=12").await, 200);
    assert_eq!(ids(&beyond), [0; 0]);
    let reply = payer.caller.get("/v1/escrow?state=funded").await;
    problem(&reply, 400, "VALIDATION");
    for missing in ["999999", "0", "x", "-1", "+1", "99999999999999999999999", "1.0"] {
        let reply = payer.caller.get(&format!("/v1/escrow/{missing}")).await;
        problem(&reply, 404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn escrows_are_found_by_state_and_wallet() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let (payee, other, stranger) = (
        payer.another(&fixture).await,
        payer.another(&fixture).await,
        Side::new(&fixture).await,
    );
    let pending = payer.escrow_to(&payee, usd(1)).await;
    let funded = payer.funded_to(&payee, usd(1)).await;
    let to_other = payer.funded_to(&other, usd(1)).await;
    let abroad = other.escrow_to(&stranger, usd(1)).await;
    let list = async |side: &Side, query: &str| {
        let listed = success(&side.caller.get(&format!("/v1/escrow?{query}")).await, 200);
        assert_eq!(listed["partial"], json!(false), "{listed}");
        let escrows = listed["escrows"].as_array().unwrap().iter();
        let ids: Vec<u64> = escrows.map(|escrow| escrow["id"].as_u64().unwrap()).collect();
        assert_eq!(listed["total"], json!(ids.len()), "{listed}");
        ids
    };
    assert_eq!(list(&payer, "status=pending").await, [abroad, pending]);
    assert_eq!(list(&payer, "status=funded").await, [to_other, funded]);
    assert_eq!(list(&payer, "status=disputed").await, [0; 0]);
    let wallet = |side: &Side| format!("walletId={}", side.wallet);
    assert_eq!(list(&payer, &wallet(&payee)).await, [funded, pending]);
    // As payer or payee, also a wallet of another account, whose other escrows are not listed.
    assert_eq!(list(&payer, &wallet(&other)).await, [abroad, to_other]);
    assert_eq!(list(&payer, &wallet(&stranger)).await, [abroad]);
    assert_eq!(list(&stranger, &wallet(&payer)).await, [0; 0]);
    assert_eq!(list(&stranger, &wallet(&other)).await, [abroad]);
    let both = format!("{}&status=funded", wallet(&other));
    assert_eq!(list(&payer, &both).await, [to_other]);
    let shown = success(
        &payer.caller.get(&format!("/v1/wallets/{}", payee.wallet)).await,
        200,
    );
    let id = format!("walletId={}", text(&shown, "/wallet/id"));
    for (query, found) in [
        (id.as_str(), vec![funded, pending]),
        ("walletId=1", vec![]),
        ("walletId=wal_00000000000000000000000000", vec![]),
    ] {
        assert_eq!(list(&payer, query).await, found, "{query}");
    }

    // Page by page with a cursor, each once.
    let (mut cursor, mut found) = (String::new(), Vec::new());
    loop {
        let path = format!("/v1/escrow?{}&limit=1{cursor}", wallet(&payer));
        let page = success(&payer.caller.get(&path).await, 200);
        found.extend(
            page["escrows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|escrow| escrow["id"].as_u64().unwrap()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, [to_other, funded, pending]);
    for (query, named) in [
        (
            "status=open",
            "status must be one of pending, funded, released, disputed, refunded.",
        ),
        (
            "walletId=user",
            "walletId must be the number of a wallet or its id",
        ),
        ("walletId=", "walletId must be"),
        ("walletId=wal_1", "walletId must be"),
    ] {
        let sentence = problem(
            &payer.caller.get(&format!("/v1/escrow?{query}")).await,
            400,
            "VALIDATION",
        );
        assert!(sentence.contains(named), "{sentence}");
    }
}

/// Numbers whose escrow was never written, as a crash leaves them, cost a page as much as others.
#[tokio::test]
async fn a_page_of_a_search_reads_a_thousand_escrows_at_most() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let number = payer.escrow_to(&payee, usd(1)).await;
    let list = payer.account.keys.in_mode(payer.mode).escrows();
    let before: u64 = fixture.redis.command(&["ZCARD", &list]);
    let fill = "for n = 1, tonumber(ARGV[1]) do \
        local number = string.format('%d', tonumber(ARGV[2]) + n) \
        redis.call('ZADD', KEYS[1], number, number) end return 1";
    let scanned = SCANNED_MAX as u64;
    for (more, is_found) in [(scanned - before, true), (scanned, false)] {
        let (count, above) = (more.to_string(), number.to_string());
        let _: u64 = fixture.redis.command(&["EVAL", fill, "1", &list, &count, &above]);
        let first = success(&payer.caller.get("/v1/escrow?status=pending").await, 200);
        assert_eq!(first["escrows"].as_array().unwrap().len(), usize::from(is_found));
        assert_eq!(first["partial"], json!(!is_found));
        if !is_found {
            let next = text(&first, "/nextCursor");
            let path = format!("/v1/escrow?status=pending&cursor={next}");
            let rest = success(&payer.caller.get(&path).await, 200);
            assert_eq!(rest["escrows"][0]["id"], json!(number));
            assert_eq!(
                (&rest["partial"], &rest["nextCursor"]),
                (&json!(false), &Value::Null)
            );
        }
    }
}
