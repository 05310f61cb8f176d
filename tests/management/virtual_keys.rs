//! Virtual keys: the secret is shown once, the plan's limit holds, a revoked key is unknown to the edge.

use crate::fixture::{Fixture, fresh, minted, problem, success, text};
use crypto::virtual_key::WellFormed;
use domain::id::IdKind;
use domain::mode::Mode;
use domain::plan::{DEFAULT_PLANS, Plans};
use serde_json::{Value, json};
use store::call::authorize::{AccountView, Authorize, AuthorizeOutcome, AuthorizeReply};
use store::call::hold::HoldName;
use store::lookup::VirtualKeyOwner;
use store::sanity;

/// Executes `authorize` for a request with this key, as the edge does.
async fn probe(fixture: &Fixture, secret: &str) -> Option<AuthorizeOutcome> {
    let key = WellFormed::parse(secret.as_bytes()).unwrap();
    let owner = VirtualKeyOwner::find(&fixture.store, &key.hash())
        .await
        .unwrap()?;
    let name = HoldName {
        account: owner.account().to_owned(),
        agent: owner.agent().to_owned(),
        run: "r".to_owned(),
        allow_id: IdKind::Allow.mint(clock::now_ms()).unwrap(),
    };
    let plans = Plans::parse(DEFAULT_PLANS).unwrap();
    let view = AccountView {
        plan: "builder".to_owned(),
        ..AccountView::default()
    };
    let ask = Authorize {
        name: &name,
        key_id: owner.key_id(),
        view: &view,
        plan: plans.get("builder").unwrap(),
        charge: None,
    };
    let AuthorizeReply { outcome, .. } = ask.execute(&name.keys(), &fixture.store).await.unwrap();
    Some(outcome)
}

#[tokio::test]
async fn a_key_from_issue_to_revocation() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let path = "/api/v1/agents/my-bot/virtual-keys";
    let body = json!({ "name": "läptop 🔑" });
    let made = success(&caller.post(path, body).await, 201);
    let (id, secret) = (
        text(&made, "/virtualKey/keyId").to_owned(),
        text(&made, "/secret").to_owned(),
    );
    minted(&id, "vk_");
    fresh(text(&made, "/virtualKey/createdAt"));
    let formed = WellFormed::parse(secret.as_bytes()).expect("the form of the specification");
    let check = sanity::record(&fixture.store).await.unwrap().check_secret;
    assert!(check.issued(&formed), "the edge recognises it");
    let mut record = json!({ "keyId": id, "agentId": "my-bot", "name": "läptop 🔑", "prefix": secret[..12],
        "status": "active", "createdAt": made["virtualKey"]["createdAt"], "lastUsedAt": null });
    assert_eq!(made["virtualKey"], record);
    assert!(text(&made, "/note").contains("Store this secret"));
    // Nobody had this id: it may be mistyped.
    assert_eq!(made["newAgent"], json!(true));
    assert!(
        text(&made, "/note")
            .ends_with("There was no agent `my-bot`: this key made it, without a wallet and a policy.")
    );
    assert_eq!(made.as_object().unwrap().len(), 5, "{made}");

    let ttl: i64 = fixture
        .store
        .command(redis::cmd("TTL").arg(store::keys::virtual_key_lookup(&formed.hash())))
        .await
        .unwrap();
    assert_eq!(ttl, -1, "the look-up lasts");
    assert_eq!(probe(&fixture, &secret).await, Some(AuthorizeOutcome::Counted));
    let listed = success(&caller.get(path).await, 200);
    fresh(text(&listed, "/virtualKeys/0/lastUsedAt"));
    record["lastUsedAt"] = listed["virtualKeys"][0]["lastUsedAt"].clone();
    let expected = json!({ "success": true, "virtualKeys": [record], "total": 1, "limit": 50, "offset": 0, "nextCursor": null });
    assert_eq!(listed, expected);

    let other = success(&caller.send("POST", path, &[], "").await, 201);
    assert_eq!(other.as_object().unwrap().len(), 4, "the agent is there: {other}");
    assert_eq!(other["virtualKey"]["name"], json!("default"));
    let delete = format!("{path}/{id}");
    assert_eq!(
        success(&caller.delete(&delete).await, 200),
        json!({ "success": true })
    );
    problem(&caller.delete(&delete).await, 404, "NOT_FOUND");
    assert_eq!(probe(&fixture, &secret).await, Some(AuthorizeOutcome::Revoked));
    let listed = success(&caller.get(path).await, 200);
    assert_eq!(listed["virtualKeys"][0], other["virtualKey"], "newest first");
    record["status"] = json!("revoked");
    assert_eq!(listed["virtualKeys"][1], record);
    assert_eq!(listed["total"], json!(2));
    let page = success(&caller.get(&format!("{path}?limit=1&offset=1")).await, 200);
    assert_eq!(page["virtualKeys"], json!([record]));
    let kinds = account.audit_types(Mode::Live).await;
    assert_eq!(
        &kinds[1..],
        [
            "virtual_key.created",
            "virtual_key.created",
            "virtual_key.revoked"
        ]
    );
    let logs = fixture.admin.logs();
    assert!(
        !logs.contains(&secret) && !logs.contains(&secret[12..]),
        "no log line holds a key"
    );
}

#[tokio::test]
async fn a_key_is_revoked_through_its_own_agent_only() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    let made = success(&caller.post("/v1/agents/a/virtual-keys", json!({})).await, 201);
    success(&caller.post("/v1/agents/b/virtual-keys", json!({})).await, 201);
    let id = text(&made, "/virtualKey/keyId");
    for path in [
        format!("/v1/agents/b/virtual-keys/{id}"),
        format!("/v1/agents/none/virtual-keys/{id}"),
        "/v1/agents/a/virtual-keys/vk_00000000000000000000000000".to_owned(),
        "/v1/agents/a/virtual-keys/vk_1".to_owned(),
        "/v1/agents/a/virtual-keys/%7Bx%7D".to_owned(),
    ] {
        problem(&caller.delete(&path).await, 404, "NOT_FOUND");
    }
    assert_eq!(
        probe(&fixture, text(&made, "/secret")).await,
        Some(AuthorizeOutcome::Counted)
    );
    let reply = caller.get("/v1/agents/none/virtual-keys").await;
    problem(&reply, 404, "NOT_FOUND");
    for (body, named) in [
        (json!({ "name": 1 }), "name must be a string."),
        (json!({ "name": "" }), "name must not be empty."),
        (json!({ "label": "x" }), "\"label\" is not a field"),
    ] {
        let reply = caller.post("/v1/agents/a/virtual-keys", body).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
}

#[tokio::test]
async fn the_plan_limits_active_keys_of_the_whole_account() {
    let public = |options: harness::AdminOptions| {
        options.env("TOLLGATE_ADMIN__PUBLIC_URL", "https://gate.example.com/")
    };
    let fixture = Fixture::start_with(public).await;
    let (account, caller) = fixture.account("free").await;
    let reply = caller.post("/v1/agents/first/virtual-keys", json!({})).await;
    let first = success(&reply, 201);
    let refused = async || caller.post("/v1/agents/second/virtual-keys", json!({})).await;
    let check = |reply: &harness::Reply, agents: Value, plan: &str, limit: &str, up: &str| {
        assert_eq!(reply.status, 402, "{}", reply.text());
        let body = reply.json();
        let expected = json!({ "error": body["error"], "code": "PLAN_VIRTUAL_KEY_LIMIT", "activeKeyAgents": agents,
            "plan": plan, "limit": limit, "upgradeTo": up,
            "upgradeUrl": format!("https://gate.example.com/plan?to={up}") });
        assert_eq!(body, expected);
        assert!(body["error"].is_string());
    };
    check(&refused().await, json!(["first"]), "free", "1", "builder");
    let reply = caller.get("/v1/agents/second/virtual-keys").await;
    problem(&reply, 404, "NOT_FOUND");
    let leftovers = fixture.redis.command::<Vec<String>>(&["KEYS", "tollgate/vk/*"]);
    assert_eq!(leftovers.len(), 1, "a refused key leaves no look-up");

    account.set_plan("builder").await;
    for n in 0..9 {
        let agent = if n % 2 == 0 { "first" } else { "second" };
        let reply = caller
            .post(&format!("/v1/agents/{agent}/virtual-keys"), json!({}))
            .await;
        success(&reply, 201);
    }
    let reply = refused().await;
    check(&reply, json!(["first", "second"]), "builder", "10", "startup");
    account.set_plan("free").await;
    let reply = refused().await;
    check(&reply, json!(["first", "second"]), "free", "1", "builder");
    account.set_plan("builder").await;
    let id = text(&first, "/virtualKey/keyId");
    let reply = caller
        .delete(&format!("/v1/agents/first/virtual-keys/{id}"))
        .await;
    success(&reply, 200);
    success(&refused().await, 201);
    account.set_plan("enterprise").await;
    for _ in 0..5 {
        success(&refused().await, 201);
    }
    account.set_plan("no-such-plan").await;
    problem(&refused().await, 503, "SERVICE_UNAVAILABLE");
}

#[tokio::test]
async fn a_plan_without_a_next_one_has_no_way_up() {
    let (fixture, _plans) = Fixture::with_plans("[only]\nactive_virtual_keys = 0\n", |options| options).await;
    let (_, caller) = fixture.account("only").await;
    let reply = caller.post("/v1/agents/a/virtual-keys", json!({})).await;
    let body = reply.json();
    let expected = json!({ "error": body["error"], "code": "PLAN_VIRTUAL_KEY_LIMIT", "activeKeyAgents": [],
        "plan": "only", "limit": "0", "upgradeTo": null, "upgradeUrl": null });
    assert_eq!((reply.status, body), (402, expected));
}
