//! The list of deposits, and deposits that the operator cancels before they arrive.

use crate::account_fixture::{AccountFixture, replayed};
use crate::fixture::{Fixture, fresh, problem, success, text};
use harness::{Reply, assert_fields};
use serde_json::{Value, json};
use store::deposit::script::{Cancelled, cancel};
use store::script::change::Scope;

const PATH: &str = "/v1/wallet/deposits";
const CONFIRM: &str = "/v1/wallet/deposits/confirm";

async fn announce(tenant: &AccountFixture, wallet: &str, reference: &str) -> Reply {
    let body = json!({ "wallet": wallet, "amount": 2, "reference": reference, "pending": true });
    tenant.caller.post(PATH, body).await
}

async fn take_back(fixture: &Fixture, tenant: &AccountFixture, reference: &str) {
    let scope = Scope {
        account: &tenant.account.id,
        mode: tenant.mode,
        actor: "operator",
    };
    let cancelled = cancel(&fixture.store, &scope, reference).await.unwrap();
    assert!(
        matches!(cancelled, Cancelled::Done { again: false, .. }),
        "{cancelled:?}"
    );
}

/// The references of a page, and its body.
async fn page(tenant: &AccountFixture, query: &str) -> (Vec<String>, Value) {
    let listed = success(&tenant.caller.get(&format!("{PATH}?{query}")).await, 200);
    let deposits = listed["deposits"].as_array().unwrap().iter();
    let references = deposits.map(|deposit| text(deposit, "/reference").to_owned());
    (references.collect(), listed)
}

#[tokio::test]
async fn deposits_are_listed_newest_first_and_by_state() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    let stranger = AccountFixture::new(&fixture).await;
    stranger.bot("bot").await;
    success(&announce(&stranger, "bot", "a").await, 200);
    let gone = tenant.bot("gone").await;
    success(&tenant.caller.delete("/v1/agents/gone").await, 200);
    let bot = tenant.bot("bot").await;
    for reference in ["a", "b", "c", "d"] {
        success(&announce(&tenant, "bot", reference).await, 200);
    }
    // A refused announcement is no deposit.
    problem(&announce(&tenant, &gone.id, "e").await, 409, "WALLET_CLOSED");
    let body = json!({ "wallet": "user", "amount": "0.1", "reference": "f" });
    success(&tenant.caller.post(PATH, body).await, 200);
    success(
        &tenant.caller.post(CONFIRM, json!({ "reference": "b" })).await,
        200,
    );
    take_back(&fixture, &tenant, "c").await;

    let (all, listed) = page(&tenant, "").await;
    assert_eq!(all, ["f", "d", "c", "b", "a"]);
    assert_fields!(listed, { "total": 5, "limit": 50, "offset": 0, "nextCursor": null, "partial": false });
    let [_, waits, taken, arrived, _] = listed["deposits"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    assert_fields!(waits, { "state": "pending", "amount": 2, "walletId": bot.number, "confirmedAt": null,
        "cancelledAt": null, "currency": "USD" });
    assert_fields!(taken, { "state": "cancelled", "confirmedAt": null });
    fresh(text(taken, "/cancelledAt"));
    assert_fields!(arrived, { "state": "confirmed", "cancelledAt": null });
    fresh(text(arrived, "/confirmedAt"));
    for (query, found) in [
        ("state=pending", &["d", "a"][..]),
        ("state=confirmed", &["f", "b"]),
        ("state=cancelled", &["c"]),
        ("limit=2&offset=1", &["d", "c"]),
        ("offset=5", &[]),
    ] {
        assert_eq!(page(&tenant, query).await.0, found, "{query}");
    }
    assert_eq!(page(&stranger, "").await.0, ["a"]);

    for filter in ["", "&state=pending"] {
        let expected = page(&tenant, filter).await.0;
        let (mut cursor, mut found) = (String::new(), Vec::new());
        loop {
            let (part, listed) = page(&tenant, &format!("limit=1{filter}{cursor}")).await;
            found.extend(part);
            match listed["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected);
    }
    for (query, named) in [
        (
            "state=open",
            "state must be one of pending, confirmed, cancelled.",
        ),
        ("reference=a", "\"reference\" is not a query parameter here"),
    ] {
        let reply = tenant.caller.get(&format!("{PATH}?{query}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
}

#[tokio::test]
async fn a_cancelled_deposit_is_not_pending_and_never_arrives() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    let body = json!({ "wallet": "bot", "amount": 2, "reference": "lost", "pending": true });
    let first = tenant.keyed(PATH, "key", &body).await;
    success(&first, 200);
    let sentence = problem(&tenant.caller.delete("/v1/agents/bot").await, 409, "CONFLICT");
    assert!(sentence.contains("waits for a pending deposit"), "{sentence}");
    take_back(&fixture, &tenant, "lost").await;
    assert_eq!(tenant.wallet(&fixture, "bot").await.pending.get(), 0);

    let used = "reference: this deposit was cancelled: use another reference.";
    let late = tenant.caller.post(CONFIRM, json!({ "reference": "lost" })).await;
    assert_eq!(problem(&late, 409, "CONFLICT"), used);
    for pending in [true, false] {
        let body = json!({ "wallet": "bot", "amount": 2, "reference": "lost", "pending": pending });
        let reply = tenant.caller.post(PATH, body).await;
        assert_eq!(problem(&reply, 422, "IDEMPOTENCY_KEY_REUSED"), used);
    }
    // The request that announced it has its first answer, as every request with a key.
    let replayed = success(&tenant.keyed(PATH, "key", &body).await, 200);
    assert_fields!(replayed, { "replayed": true, "transactionId": first.json()["transactionId"] });
    assert_fields!(replayed["deposit"], { "state": "pending", "cancelledAt": null });
    assert_eq!(tenant.balance(&fixture, "bot").await, 0);
    success(&tenant.caller.delete("/v1/agents/bot").await, 200);
    let audit = tenant.account.audit_types(tenant.mode).await;
    assert_eq!(
        audit.iter().filter(|kind| *kind == "deposit.cancelled").count(),
        1
    );
}

/// The refusal is final, so it is stored as a result: its key serves no other request (decision D26).
#[tokio::test]
async fn a_refused_confirmation_is_repeated_and_its_key_is_taken() {
    let fixture = Fixture::start().await;
    let tenant = AccountFixture::new(&fixture).await;
    tenant.bot("bot").await;
    tenant.fund("bot", 5).await;
    success(&announce(&tenant, "bot", "wire-1").await, 200);
    take_back(&fixture, &tenant, "wire-1").await;
    let confirm = json!({ "reference": "wire-1" });
    let first = tenant.keyed(CONFIRM, "k", &confirm).await;
    problem(&first, 409, "CONFLICT");
    replayed(&first, &tenant.keyed(CONFIRM, "k", &confirm).await);
    let transfer = json!({ "from": "bot", "to": "user", "amount": 1 });
    let other = tenant.keyed("/v1/wallet/transfer", "k", &transfer).await;
    problem(&other, 422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(tenant.balance(&fixture, "bot").await, 5_000_000_000);
    let unkeyed = tenant.caller.post(CONFIRM, confirm).await;
    assert_eq!((unkeyed.status, unkeyed.text()), (first.status, first.text()));
}
