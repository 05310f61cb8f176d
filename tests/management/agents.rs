//! Agents: bodies and errors to the letter.

use crate::fixture::{FULL, Fixture, fresh, minted, problem, success, text};
use domain::mode::Mode;
use domain::number::Number;
use harness::{RawClient, assert_fields};
use serde_json::json;
use std::time::Duration;
use store::agent::freeze::{Freeze, Frozen, FrozenBy, set_frozen};
use store::keys::Bucket;
use store::script::change::Scope;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_agent_from_creation_to_deletion() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let body = json!({ "name": "Bücher 日本 🤖", "description": "Two\nlines" });
    let made = success(&caller.post("/api/v1/agents", body).await, 200);
    let id = text(&made, "/agent/id").to_owned();
    minted(&id, "agent_");
    minted(text(&made, "/agent/wallet"), "wal_");
    fresh(text(&made, "/agent/createdAt"));
    let expected = json!({ "success": true, "agent": {
        "id": id, "name": "Bücher 日本 🤖", "type": "custom", "description": "Two\nlines", "source": "custom",
        "status": "active", "spendLimit": null, "walletId": made["agent"]["walletId"], "wallet": made["agent"]["wallet"],
        "createdAt": made["agent"]["createdAt"], "updatedAt": made["agent"]["createdAt"],
    }});
    assert_eq!(made, expected);
    let path = format!("/v1/agents/{id}");
    assert_eq!(success(&caller.get(&path).await, 200), expected);

    let body =
        json!({ "name": "New", "type": "marketplace", "spendLimit": "12.000000001", "description": null });
    let changed = success(&caller.patch(&path, body).await, 200);
    let agent = &changed["agent"];
    assert_fields!(agent, { "name": "New", "type": "marketplace" });
    assert_fields!(agent, { "source": "marketplace", "description": null });
    assert_eq!(agent["createdAt"], made["agent"]["createdAt"]);
    let exact = caller.get(&path).await.text();
    assert!(exact.contains("\"spendLimit\":12.000000001,"), "{exact}");
    let body = json!({ "spendLimit": null, "type": null });
    let cleared = success(&caller.patch(&path, body).await, 200);
    assert_fields!(cleared["agent"], { "spendLimit": null, "type": "custom" });
    let version = account.version().await;
    for same in [
        json!({}),
        json!({ "name": "New", "description": null, "type": "custom" }),
    ] {
        assert_eq!(success(&caller.patch(&path, same).await, 200), cleared);
        assert_eq!(
            account.version().await,
            version,
            "nothing to change, nothing changed"
        );
    }

    assert_eq!(
        success(&caller.delete(&path).await, 200),
        json!({ "success": true })
    );
    problem(&caller.get(&path).await, 404, "NOT_FOUND");
    problem(&caller.delete(&path).await, 404, "NOT_FOUND");
    let reply = caller.patch(&path, json!({ "name": "x" })).await;
    problem(&reply, 404, "NOT_FOUND");
    problem(&caller.patch(&path, json!({})).await, 404, "NOT_FOUND");
    let kinds = account.audit_types(Mode::Live).await;
    assert_eq!(
        kinds,
        [
            "api_key.created",
            "agent.created",
            "agent.updated",
            "agent.updated",
            "agent.deleted"
        ]
    );
    let logged = success(&caller.get(&format!("/v1/audit?agentId={id}")).await, 200);
    let data = |n: usize| logged["logs"][n]["data"].clone();
    let created = json!({ "name": "Bücher 日本 🤖", "type": "custom", "wallet": made["agent"]["wallet"],
        "walletId": made["agent"]["walletId"] });
    // `previous` has the values that were replaced, and no field that was given its own value.
    let changed = json!({ "name": "New", "type": "marketplace", "description": null,
        "spendLimit": 12.000000001, "spendLimitNanos": "12000000001",
        "previous": { "name": "Bücher 日本 🤖", "type": "custom", "description": "Two\nlines", "spendLimit": null, "spendLimitNanos": null } });
    let cleared = json!({ "type": "custom", "spendLimit": null, "spendLimitNanos": null,
        "previous": { "type": "marketplace", "spendLimit": 12.000000001, "spendLimitNanos": "12000000001" } });
    assert_eq!([data(3), data(2), data(1)], [created, changed, cleared]);
}

#[tokio::test]
async fn agents_are_listed_newest_first_in_pages() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    for n in 0..5 {
        let body = json!({ "name": format!("n{n}") });
        success(&caller.post("/v1/agents", body).await, 200);
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let names = async |query: &str| {
        let body = success(&caller.get(&format!("/v1/agents{query}")).await, 200);
        assert_eq!(body["total"], json!(5));
        let agents = body["agents"].as_array().unwrap().iter();
        let names: Vec<String> = agents.map(|agent| text(agent, "/name").to_owned()).collect();
        (names.join(" "), body["limit"].clone(), body["offset"].clone())
    };
    assert_eq!(names("").await, ("n4 n3 n2 n1 n0".into(), json!(50), json!(0)));
    assert_eq!(
        names("?limit=2&offset=1").await,
        ("n3 n2".into(), json!(2), json!(1))
    );
    assert_eq!(names("?offset=9").await, (String::new(), json!(50), json!(9)));
    for (query, named) in [
        ("limit=1&limit=2", "limit"),
        ("limt=1", "\"limt\" is not a query parameter here; known: "),
    ] {
        let reply = caller.get(&format!("/v1/agents?{query}")).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{query}: {sentence}");
    }
}

#[tokio::test]
async fn bad_bodies_are_refused_and_name_the_field() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let made = success(&caller.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let path = format!("/v1/agents/{}", text(&made, "/agent/id"));
    let version = account.version().await;
    let long = "x".repeat(201);
    for (body, named) in [
        ("".to_owned(), "name is required."),
        ("{}".to_owned(), "name is required."),
        (r#"{"name":null}"#.to_owned(), "name must not be null."),
        (r#"{"name":7}"#.to_owned(), "name must be a string."),
        (
            r#"{"name":"\ud800"}"#.to_owned(),
            "name must be a string of valid Unicode.",
        ),
        (
            r#"{"name":"a\u0000"}"#.to_owned(),
            "name must not contain control",
        ),
        (format!(r#"{{"name":"{long}"}}"#), "name must have at most 200"),
        (r#"{"name":"a","type":""}"#.to_owned(), "type must not be empty."),
        (
            format!(r#"{{"name":"a","type":"{}"}}"#, &long[..65]),
            "type must have at most 64",
        ),
        (
            r#"{"name":"a","description":[]}"#.to_owned(),
            "description must be a string.",
        ),
        (r#"{"name":"a","nmae":"b"}"#.to_owned(), "\"nmae\" is not a field"),
        (r#"{"name":"#.to_owned(), "must be a JSON object"),
    ] {
        let reply = caller.send("POST", "/v1/agents", &[], body.clone()).await;
        let sentence = problem(&reply, 400, "VALIDATION");
        assert!(sentence.contains(named), "{body}: {sentence}");
    }
    for (body, named) in [
        (r#"{"spendLimit":-1}"#, "spendLimit must not be negative."),
        (r#"{"name":null}"#, "name must not be null."),
        (r#"{"id":"x"}"#, "\"id\" is not a field"),
    ] {
        let sentence = problem(&caller.send("PATCH", &path, &[], body).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{body}: {sentence}");
    }
    for id in ["user", "a%20b", "a%2Fb", "%C3%A9", &"x".repeat(129)] {
        let reply = caller.get(&format!("/v1/agents/{id}")).await;
        problem(&reply, 400, "VALIDATION");
    }
    problem(&caller.get("/v1/agents/%FF").await, 400, "VALIDATION");
    assert_eq!(account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn an_agent_exists_by_policy_or_key_alone() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let test = fixture.caller(&account, Mode::Test).await;
    problem(&caller.get("/v1/agents/bot").await, 404, "NOT_FOUND");
    let reply = caller.post("/v1/agents/bot/freeze", json!({})).await;
    problem(&reply, 404, "NOT_FOUND");
    let ways = [
        ("by-policy", "/v1/policies/by-policy", json!({})),
        (
            "by-virtual-key",
            "/v1/agents/by-virtual-key/virtual-keys",
            json!({}),
        ),
        (
            "by-provider-key",
            "/v1/agents/by-provider-key/provider-keys",
            json!({ "provider": "openai", "apiKey": "sk-abcdefgh" }),
        ),
    ];
    for (id, path, body) in ways {
        let reply = caller.post(path, body).await;
        assert!(reply.status < 300, "{}", reply.text());
        let agent = success(&caller.get(&format!("/v1/agents/{id}")).await, 200);
        let expected = json!({ "success": true, "agent": {
            "id": id, "name": null, "type": null, "description": null, "source": null, "status": "active",
            "spendLimit": null, "walletId": null, "wallet": null, "createdAt": null, "updatedAt": null,
        }});
        assert_eq!(agent, expected);
        let reply = caller
            .send("POST", &format!("/v1/agents/{id}/freeze"), &[], "")
            .await;
        let frozen = success(&reply, 200);
        assert_eq!(frozen["agent"]["status"], json!("frozen"));
        let reply = caller.delete(&format!("/v1/agents/{id}")).await;
        problem(&reply, 404, "NOT_FOUND");
        let body = json!({ "name": "x" });
        let reply = caller.patch(&format!("/v1/agents/{id}"), body).await;
        problem(&reply, 404, "NOT_FOUND");
        problem(&test.get(&format!("/v1/agents/{id}")).await, 404, "NOT_FOUND");
    }
    assert_fields!(success(&caller.get("/v1/agents").await, 200), {
        "total": 0,
    }, "the list holds wallet rows");
}

#[tokio::test]
async fn freeze_and_unfreeze_and_the_operators_freeze() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    let send = async |verb: &str| {
        caller
            .send("POST", &format!("/api/v1/agents/bot/{verb}"), &[], "")
            .await
    };
    for (verb, status) in [
        ("freeze", "frozen"),
        ("freeze", "frozen"),
        ("unfreeze", "active"),
        ("unfreeze", "active"),
    ] {
        assert_eq!(success(&send(verb).await, 200)["agent"]["status"], json!(status));
    }
    let scope = Scope {
        account: &account.id,
        mode: Mode::Live,
        actor: "operator",
    };
    let operator = async |freeze| set_frozen(&fixture.store, &scope, "bot", freeze).await.unwrap();
    assert_eq!(operator(Freeze::By(FrozenBy::Operator)).await, Frozen::Done);
    problem(&send("unfreeze").await, 403, "OPERATOR_FREEZE");
    success(&send("freeze").await, 200);
    problem(&send("unfreeze").await, 403, "OPERATOR_FREEZE");
    assert_eq!(operator(Freeze::Lift(FrozenBy::Operator)).await, Frozen::Done);
    assert_fields!(success(&caller.get("/v1/agents/bot").await, 200)["agent"], { "status": "active" });
    let kinds = account.audit_types(Mode::Live).await;
    assert_eq!(
        &kinds[2..],
        ["agent.frozen", "agent.unfrozen", "agent.frozen", "agent.unfrozen"]
    );
}

#[tokio::test]
async fn the_plan_limits_custom_agents_in_live_mode_only() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("free").await;
    for n in 0..5 {
        let reply = caller.post("/v1/agents", json!({ "name": n.to_string() })).await;
        success(&reply, 200);
    }
    let sixth = json!({ "name": "6", "type": "marketplace" });
    problem(&caller.post("/v1/agents", sixth.clone()).await, 403, "TIER_LIMIT");
    let tester = fixture.caller(&account, Mode::Test).await;
    for n in 0..7 {
        let reply = tester.post("/v1/agents", json!({ "name": n.to_string() })).await;
        success(&reply, 200);
    }
    account.set_plan("builder").await;
    let made = success(&caller.post("/v1/agents", sixth).await, 200);
    let listed = success(&caller.get("/v1/agents").await, 200);
    assert_eq!(listed["total"], json!(6));

    // Refused agents leave no look-up of a wallet number behind, and later numbers are larger, in both modes.
    let places: Vec<String> = fixture.redis.command(&["KEYS", "{b*}/wallet/*"]);
    assert_eq!(places.len(), 13, "{places:?}");
    let number = made["agent"]["walletId"].as_u64().unwrap();
    let key = Bucket::wallet_place(Number::from_u64(number).unwrap());
    assert_eq!(places.iter().max(), Some(&key));
    let place: String = fixture.redis.command(&["GET", &key]);
    let (id, wallet) = (text(&made, "/agent/id"), text(&made, "/agent/wallet"));
    assert_eq!(place, format!("{} live {id} {wallet}", account.id));
}

/// Clients resolve `.` and `..` in paths, so no agent or run may have these names (D6).
#[tokio::test]
async fn a_name_that_no_path_holds_is_refused_where_it_is_taken_in() {
    let fixture = Fixture::start().await;
    let (account, _) = fixture.account("builder").await;
    let key = account.issue(Mode::Live, FULL, &[], None).await;
    let mut client = RawClient::connect(fixture.admin.addr()).await;
    for request in [
        "GET /v1/agents/..",
        "POST /v1/agents/../freeze",
        "GET /v1/policies?agentId=..",
        "GET /v1/agents/bot/runs/..",
        "POST /v1/agents/bot/runs/..",
        "POST /v1/agents/../virtual-keys",
        "POST /v1/agents/./provider-keys",
        "POST /v1/policies/..",
    ] {
        let head = format!(
            "{request} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Length: 0\r\n\r\n",
            key.secret
        );
        assert!(client.send(head).await, "{request}");
        let reply = client.reply(SOON).await.expect(request);
        let says_why = reply.text().contains("must not be `.` or `..`");
        assert!(reply.status == 400 && says_why, "{request}: {}", reply.text());
    }
}
