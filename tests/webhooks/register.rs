//! The routes, bodies and errors to the letter (decisions D42, D59).

use crate::fixture::{Fixture, SECRET, accepting, problem, quick, success, text, url};
use domain::mode::Mode;
use harness::{Redis, assert_fields};
use serde_json::{Value, json};

#[tokio::test]
async fn a_webhook_is_registered_changed_and_deleted() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let caller = &owner.caller;
    let body = json!({ "url": "http://127.0.0.1:9/a?token=t", "secret": SECRET, "description": "Ours",
        "events": ["wallet.deposit", "agent.frozen", "wallet.deposit"] });
    let made = success(&caller.post("/api/v1/webhooks", body).await, 201);
    let id = text(&made, "/webhook/id").to_owned();
    assert!(id.starts_with("wh_") && id.len() == 29, "{id}");
    let created = text(&made, "/webhook/createdAt");
    let expected = json!({
        "id": id, "url": "http://127.0.0.1:9/a?token=t", "events": ["agent.frozen", "wallet.deposit"],
        "description": "Ours", "status": "active", "createdAt": created, "updatedAt": created,
        "secretUpdatedAt": created,
    });
    assert_eq!(made, json!({ "success": true, "webhook": expected }));
    let one = format!("/v1/webhooks/{id}");
    assert_eq!(success(&caller.get(&one).await, 200)["webhook"], expected);
    let listed = success(&caller.get("/v1/webhooks").await, 200);
    let list = json!({ "success": true, "webhooks": [expected], "total": 1, "limit": 50, "offset": 0, "nextCursor": null });
    assert_eq!(listed, list);

    let change = json!({ "events": ["policy.violation"], "description": null, "status": "disabled" });
    let changed = success(&caller.patch(&one, change).await, 200);
    assert_eq!(changed["webhook"]["events"], json!(["policy.violation"]));
    assert_fields!(changed["webhook"], { "description": null, "status": "disabled" });
    assert_fields!(changed["webhook"], { "secretUpdatedAt": created }, "the secret is the same");
    let reply = caller.send("POST", &format!("{one}/test"), &[], "").await;
    problem(&reply, 409, "CONFLICT");
    let change = json!({ "secret": "another secret of theirs", "status": "active" });
    let changed = success(&caller.patch(&one, change).await, 200);
    assert_ne!(changed["webhook"]["secretUpdatedAt"], json!(created));

    assert_eq!(
        success(&caller.delete(&one).await, 200),
        json!({ "success": true })
    );
    for reply in [
        caller.get(&one).await,
        caller.delete(&one).await,
        caller.patch(&one, json!({ "status": "active" })).await,
    ] {
        problem(&reply, 404, "NOT_FOUND");
    }
    assert_eq!(success(&caller.get("/v1/webhooks").await, 200)["total"], json!(0));

    let mut range = redis::cmd("LRANGE");
    range.arg(owner.account.keys.live().audit()).arg(0).arg(-1);
    let lines: Vec<String> = fixture.store.command(&range).await.unwrap();
    let log = lines.join("\n");
    for kind in ["webhook.created", "webhook.updated", "webhook.deleted"] {
        assert!(log.contains(kind), "{log}");
    }
    assert!(
        log.contains(r#""http://127.0.0.1:9""#) && !log.contains("token"),
        "{log}"
    );
    assert!(!log.contains(SECRET) && !log.contains("another secret"), "{log}");
    assert_eq!(
        fixture.webhook_keys(),
        Vec::<String>::new(),
        "nothing is left of it"
    );
}

#[tokio::test]
async fn invalid_fields_are_named() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let good = json!({ "url": "http://127.0.0.1:9/", "events": ["agent.frozen"], "secret": SECRET });
    for (field, value, named) in [
        (
            "url",
            json!("http://no.such.name.invalid/"),
            "url must name a host that can be looked up",
        ),
        ("secret", json!("123456789012345"), "secret must have 16 to 256"),
        ("secret", json!("x".repeat(257)), "secret must have 16 to 256"),
        (
            "description",
            json!("x".repeat(501)),
            "description must have at most 500 characters.",
        ),
        ("colour", json!("red"), "\"colour\" is not a field here"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let sentence = problem(&owner.caller.post("/v1/webhooks", body).await, 400, "VALIDATION");
        assert!(sentence.starts_with(named), "{field}: {sentence}");
    }
    let id = owner.register("http://127.0.0.1:9/", &["agent.frozen"]).await;
    let one = format!("/v1/webhooks/{id}");
    for (body, named) in [
        (json!({}), "Give at least one of"),
        (
            json!({ "status": "paused" }),
            "status must be active or disabled.",
        ),
        (json!({ "secret": null }), "secret must not be null."),
    ] {
        let sentence = problem(&owner.caller.patch(&one, body).await, 400, "VALIDATION");
        assert!(sentence.starts_with(named), "{sentence}");
    }
    let reply = owner.caller.get(&format!("{one}/deliveries?status=lost")).await;
    let sentence = problem(&reply, 400, "VALIDATION");
    assert!(sentence.starts_with("status must be"), "{sentence}");
}

#[tokio::test]
async fn private_receivers_are_for_development_only() {
    let closed =
        |options: harness::AdminOptions| quick(options).env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "false");
    let fixture = Fixture::start_with(Redis::start(), closed).await;
    let owner = fixture.owner().await;
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost./",
        "http://0x7f.1/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        let body = json!({ "url": url, "events": ["agent.frozen"], "secret": SECRET });
        let sentence = problem(&owner.caller.post("/v1/webhooks", body).await, 400, "VALIDATION");
        assert!(sentence.starts_with("url must not"), "{url}: {sentence}");
    }
    assert_fields!(success(&owner.caller.get("/v1/webhooks").await, 200), { "total": 0 });
}

#[tokio::test]
async fn there_are_twenty_at_most_and_each_mode_has_its_own() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let mut first = None;
    for number in 0..20 {
        let id = owner
            .register(&format!("http://127.0.0.1:9/{number}"), &["agent.frozen"])
            .await;
        first.get_or_insert(id);
    }
    let body = json!({ "url": "http://127.0.0.1:9/", "events": ["agent.frozen"], "secret": SECRET });
    let reply = owner.caller.post("/v1/webhooks", body.clone()).await;
    problem(&reply, 403, "WEBHOOK_LIMIT");
    let tester = fixture.admin.caller(&owner.account.api_key(Mode::Test).await);
    let made = success(&tester.post("/v1/webhooks", body.clone()).await, 201);
    let theirs = format!("/v1/webhooks/{}", text(&made, "/webhook/id"));
    problem(&owner.caller.get(&theirs).await, 404, "NOT_FOUND");
    let mine = format!("/v1/webhooks/{}", first.unwrap());
    for path in [mine.clone(), format!("{mine}/deliveries")] {
        problem(&tester.get(&path).await, 404, "NOT_FOUND");
    }
    success(&owner.caller.delete(&mine).await, 200);
    success(&owner.caller.post("/v1/webhooks", body).await, 201);
    assert_fields!(success(&owner.caller.get("/v1/webhooks").await, 200), { "total": 20 });
}

#[tokio::test]
async fn a_test_reaches_its_webhook_alone_and_is_listed_under_every_path() {
    let fixture = Fixture::start().await;
    let owner = fixture.owner().await;
    let (receiver, other) = (accepting(), accepting());
    let id = owner.register(&url(&receiver), &["agent.frozen"]).await;
    let quiet = owner.register(&url(&other), &["agent.frozen"]).await;
    let path = format!("/v1/webhooks/{id}/test");
    let tested = success(&owner.caller.send("POST", &path, &[], "").await, 200);
    let listed = owner.deliveries(&id).await;
    assert_eq!(listed.len(), 1, "it is listed at once: {listed:?}");
    assert_eq!(listed[0]["id"], tested["deliveryId"]);
    let done = owner
        .wait_for(&id, "the test", |delivery| delivery["status"] == "delivered")
        .await;
    assert_eq!(done["event"], json!("webhook.test"));
    assert_fields!(done, { "eventType": done["event"], "auditSeq": tested["auditSeq"], "responseCode": 200 });
    assert_eq!(done["attempts"][0]["responseCode"], json!(200));
    assert_eq!(done["attempts"][0]["responseExcerpt"], json!("ok"));
    assert_fields!(done, { "error": null, "nextAttemptAt": null });
    let request = &receiver.requests()[0];
    assert_eq!(request.header("webhook-id"), tested["deliveryId"].as_str());
    assert_eq!(request.json()["type"], json!("webhook.test"));
    assert_eq!(request.json()["data"]["webhookId"], json!(id));
    assert_eq!(owner.deliveries(&quiet).await, Vec::<Value>::new());
    assert_eq!(other.arrived(), 0);
    for prefix in ["/v1", "/api/v1", "/api/user"] {
        let path = format!("{prefix}/webhooks/{id}/deliveries");
        assert_fields!(success(&owner.caller.get(&path).await, 200), { "deliveries": [done] }, "{prefix}");
    }
    problem(&owner.caller.get("/api/user/webhooks").await, 404, "NOT_FOUND");
}
