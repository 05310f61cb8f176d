//! Bodies that are refused, each naming its field, and those that just pass.

use super::parties::Side;
use crate::account_fixture::BAD_AMOUNTS;
use crate::fixture::{Fixture, problem, success};
use harness::assert_fields;
use serde_json::json;
use store::keys::IntentIndex;

#[tokio::test]
async fn bad_bodies() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let (from, to) = (payer.wallet, payee.wallet);
    let send = async |word: &str, body: String| {
        let path = format!("/v1/escrow/{word}");
        payer.caller.send("POST", &path, &[], body).await
    };
    let version = payer.account.version().await;
    for (amount, named) in BAD_AMOUNTS {
        let body = format!(r#"{{"fromWalletId":{from},"toWalletId":{to},"amount":{amount}}}"#);
        let sentence = problem(&send("create", body).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{amount}: {sentence}");
    }
    for (body, named) in [
        (json!({ "toWalletId": to, "amount": 1 }), "fromWalletId"),
        (json!({ "fromWalletId": from, "amount": 1 }), "toWalletId"),
        (json!({ "fromWalletId": from, "toWalletId": to }), "amount"),
        (
            json!({ "fromWalletId": -1, "toWalletId": to, "amount": 1 }),
            "fromWalletId",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": 1.5, "amount": 1 }),
            "toWalletId",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": "a b", "amount": 1 }),
            "toWalletId",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": from, "amount": 1 }),
            "toWalletId",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": payer.owner, "amount": 1 }),
            "toWalletId",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": to, "amount": 1, "currency": "EUR" }),
            "currency",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": to, "amount": 1, "conditions": [] }),
            "conditions",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": to, "amount": 1, "conditions": "{}" }),
            "conditions",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": to, "amount": 1, "conditions": { "x": "y".repeat(16_384) } }),
            "conditions",
        ),
        (
            json!({ "fromWalletId": from, "toWalletId": to, "amount": 1, "memo": "x" }),
            "memo",
        ),
    ] {
        let sentence = problem(&send("create", body.to_string()).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{body}: {sentence}");
    }
    let quoted = json!({ "fromWalletId": from.to_string(), "toWalletId": to, "amount": 1 });
    let reply = send("create", quoted.to_string()).await;
    let sentence = problem(&reply, 404, "NOT_FOUND");
    assert!(sentence.ends_with("in quotes it names an agent."), "{sentence}");
    let deep = format!("{}1{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    for (rest, named) in [
        (format!(r#""amount":1,"conditions":{deep}"#), "conditions"),
        (
            format!(
                r#""amount":1,"conditions":{{"a":[1e15{}]}}"#,
                ",1e15".repeat(1_000)
            ),
            "conditions must have at most 16384 bytes as it is kept",
        ),
        (r#""amount":1,"conditions":{"n":1e400}"#.to_owned(), "conditions"),
    ] {
        let body = format!(r#"{{"fromWalletId":{from},"toWalletId":{to},{rest}}}"#);
        let reply = send("create", body).await;
        assert_eq!(
            (reply.status, reply.json()["code"].clone()),
            (400, json!("VALIDATION"))
        );
        assert!(
            reply.text().contains(named) || reply.text().contains("JSON"),
            "{}",
            reply.text()
        );
    }
    for word in ["fund", "release", "dispute"] {
        for (body, named) in [
            ("{}", "escrowId"),
            (r#"{"escrowId":0}"#, "escrowId"),
            (r#"{"escrowId":1.5}"#, "escrowId"),
            (r#"{"escrowId":"x"}"#, "escrowId"),
            (r#"{"escrowId":99999999999999999999999}"#, "escrowId"),
            (r#"{"escrowId":1,"more":1}"#, "more"),
        ] {
            let sentence = problem(&send(word, body.to_owned()).await, 400, "VALIDATION");
            assert!(sentence.contains(named), "{word} {body}: {sentence}");
        }
    }
    for reason in [json!("x".repeat(501)), json!("a\u{1b}[2J"), json!(7)] {
        let body = json!({ "escrowId": 1, "reason": reason }).to_string();
        assert!(problem(&send("dispute", body).await, 400, "VALIDATION").starts_with("reason"));
    }
    let reply = send("release", r#"{"escrowId":1,"reason":"x"}"#.to_owned()).await;
    problem(&reply, 400, "VALIDATION");
    assert_eq!(payer.account.version().await, version, "nothing changed");
    assert_eq!(payer.index(IntentIndex::All).await, [""; 0]);
}

#[tokio::test]
async fn values_at_the_limits_are_allowed() {
    let fixture = Fixture::start().await;
    let payer = Side::new(&fixture).await;
    let payee = payer.another(&fixture).await;
    let wallet = fixture
        .fields(&payee.account.keys.live().agent(&payee.owner))
        .await["wallet"]
        .clone();
    // Duplicate keys within conditions: the last counts, as it does in JavaScript; the stored form is the one shown.
    let body = format!(
        r#"{{"fromWalletId":"{}","toWalletId":"{wallet}","amount":"9000000","conditions":{{"a":1,"a":2,"ü":"€"}}}}"#,
        payer.owner
    );
    let made = payer.caller.send("POST", "/v1/escrow/create", &[], body).await;
    let made = success(&made, 200);
    assert_eq!(made["escrow"]["conditions"], json!({ "a": 2, "ü": "€" }));
    assert_fields!(made["escrow"], { "toWalletId": payee.wallet, "amount": 9_000_000 });
    for (amount, shown) in [
        ("0.000000001", "0.000000001"),
        ("8999999.999999999", "8999999.999999999"),
        ("1e-9", "0.000000001"),
    ] {
        let body = format!(
            r#"{{"fromWalletId":{},"toWalletId":"user","amount":{amount}}}"#,
            payer.wallet
        );
        let made = payer.caller.send("POST", "/v1/escrow/create", &[], body).await;
        let number = success(&made, 200)["escrow"]["id"].as_u64().unwrap();
        let read = payer.caller.get(&format!("/v1/escrow/{number}")).await;
        for reply in [made, read] {
            assert!(
                reply.text().contains(&format!("\"amount\":{shown},")),
                "{}",
                reply.text()
            );
            assert_eq!(success(&reply, 200)["escrow"]["conditions"], json!({}));
        }
    }
    for (deep, status) in [(100, 200), (101, 400), (127, 400)] {
        let conditions = format!("{}1{}", r#"{"a":["#.repeat(deep / 2), "]}".repeat(deep / 2));
        let conditions = match deep % 2 {
            0 => conditions,
            _ => format!(r#"{{"a":{conditions}}}"#),
        };
        let body = format!(
            r#"{{"fromWalletId":{},"toWalletId":"user","amount":1,"conditions":{conditions}}}"#,
            payer.wallet
        );
        let made = payer.caller.send("POST", "/v1/escrow/create", &[], body).await;
        if status == 400 {
            let sentence = problem(&made, status, "VALIDATION");
            assert_eq!(sentence, "conditions must be nested at most 100 deep.");
            continue;
        }
        let number = success(&made, status)["escrow"]["id"].as_u64().unwrap();
        let read = payer.caller.get(&format!("/v1/escrow/{number}")).await;
        assert_eq!(
            success(&read, 200)["escrow"]["conditions"].to_string(),
            conditions
        );
    }
    let number = payer.funded_to(&payee, 1).await;
    let reason = "é".repeat(500);
    let body = json!({ "escrowId": number.to_string(), "reason": reason });
    let disputed = success(&payer.call_plain("dispute", body).await, 200);
    assert_eq!(disputed["dispute_reason"], json!(reason));
}
