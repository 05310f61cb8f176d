//! Every row of the route table: without a key, with the wrong one, from another account, in the other mode.

use crate::world::{FULL, World, problem, success, text};
use admin::routes::{Access, Modes, ROUTES, Route};
use axum::http::Method;
use harness::{Caller, Reply};
use serde_json::json;
use shared::clock;
use shared::domain::mode::Mode;
use shared::domain::permission::Permission;
use shared::store::script::api_key;
use shared::store::script::change::Scope;

/// A path with ids in the place of its parameters.
fn path(prefix: &str, route: &Route, id: &str, key_id: &str) -> String {
    let path = format!("{prefix}{}", route.path);
    path.replace("{keyId}", key_id)
        .replace("{runId}", "a-run")
        .replace("{id}", id)
}

async fn ask(caller: &Caller, prefix: &str, route: &Route) -> Reply {
    let path = path(prefix, route, "some-bot", "vk_00000000000000000000000000");
    caller.send(route.method.as_str(), &path, &[], "").await
}

#[tokio::test]
async fn every_operation_asks_for_a_key_that_may_do_it() {
    let world = World::start().await;
    let account = world.seed.account("builder").await;
    let none = world.admin.caller("");
    let malformed = world.admin.caller("svc_live_short");
    let unknown = world.admin.caller(&format!("svc_live_{}", "0a".repeat(32)));
    let key = |mode, permissions| world.issue(&account, mode, permissions, &[], None);
    let reader = world
        .admin
        .caller(&key(Mode::Live, &[Permission::Read]).await.secret);
    let writer = world
        .admin
        .caller(&key(Mode::Live, &[Permission::Write]).await.secret);
    let approver = world
        .admin
        .caller(&key(Mode::Live, &[Permission::Approve]).await.secret);
    let tester = world.admin.caller(&key(Mode::Test, FULL).await.secret);
    for (prefix, route) in ROUTES
        .iter()
        .flat_map(|route| route.prefixes().map(move |prefix| (prefix, route)))
    {
        let missing = ask(&none, prefix, route).await;
        problem(&missing, 401, "API_KEY_REQUIRED");
        assert_eq!(missing.header("www-authenticate"), Some("Bearer"));
        problem(&ask(&malformed, prefix, route).await, 401, "INVALID_API_KEY");
        problem(&ask(&unknown, prefix, route).await, 401, "INVALID_API_KEY");
        let Access::Key(needed, _) = route.access else {
            continue;
        };
        let callers = [
            (Permission::Read, &reader),
            (Permission::Write, &writer),
            (Permission::Approve, &approver),
        ];
        for (_, caller) in callers.iter().filter(|(has, _)| *has != needed) {
            let sentence = problem(
                &ask(caller, prefix, route).await,
                403,
                "INSUFFICIENT_API_KEY_PERMISSIONS",
            );
            assert!(sentence.contains(needed.as_str()), "{sentence}");
        }
        let in_test = ask(&tester, prefix, route).await;
        if route.modes == Modes::LiveOnly {
            problem(&in_test, 400, "LIVE_MODE_REQUIRED");
        } else {
            let said = in_test.text();
            assert!(!said.contains("LIVE_MODE_REQUIRED"), "{}: {said}", route.path);
        }
    }
    assert_eq!(
        world.audit_types(&account, Mode::Live).await,
        vec!["api_key.created"; 3],
        "nothing was changed"
    );
}

#[tokio::test]
async fn no_operation_reaches_another_account_or_mode() {
    let private = |options: harness::AdminOptions| options.env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true");
    let world = World::start_with(private).await;
    let (owner, caller) = world.account("builder").await;
    let made = caller
        .post("/v1/agents", json!({ "name": "Mine", "type": "x" }))
        .await;
    let agent = text(&success(&made, 200), "/agent/id").to_owned();
    let key = caller
        .post(&format!("/v1/agents/{agent}/virtual-keys"), json!({}))
        .await;
    let key = text(&success(&key, 201), "/virtualKey/keyId").to_owned();
    let policy = caller
        .post(&format!("/v1/policies/{agent}"), json!({ "maxSpendPerDay": 1 }))
        .await;
    let policy = text(&success(&policy, 200), "/policy/id").to_owned();
    let webhook =
        json!({ "url": "http://127.0.0.1:9/", "events": ["agent.frozen"], "secret": "0123456789abcdef" });
    let webhook = caller.post("/v1/webhooks", webhook).await;
    let webhook = text(&success(&webhook, 201), "/webhook/id").to_owned();
    let before = world.fields(&owner.keys.agent(Mode::Live, &agent)).await;
    let version = world.version(&owner).await;

    let (_, stranger) = world.account("builder").await;
    let tester = world.caller(&owner, Mode::Test).await;
    let after_issue = world.version(&owner).await;
    assert_eq!(after_issue, version + 1);
    for (who, outsider) in [("stranger", &stranger), ("test mode", &tester)] {
        for route in ROUTES {
            let id = match route.path {
                "/policies/{id}" if route.method == Method::DELETE => &policy,
                path if path.starts_with("/webhooks/") => &webhook,
                _ => &agent,
            };
            // These make something of the caller's own under the same id (decision D6), or take no id.
            let changes = route.path.ends_with("freeze") || route.path.ends_with("/test");
            let makes = route.method == Method::POST && !changes;
            if makes || !route.path.contains('{') || (who == "test mode" && route.modes == Modes::LiveOnly) {
                continue;
            }
            let reply = outsider
                .send(
                    route.method.as_str(),
                    &path("/v1", route, id, &key),
                    &[],
                    r#"{"name":"x"}"#,
                )
                .await;
            problem(&reply, 404, "NOT_FOUND");
        }
        let listed = success(&outsider.get("/v1/agents").await, 200);
        assert_eq!(listed["total"], json!(0), "{who}");
        let listed = success(&outsider.get("/v1/policies").await, 200);
        assert_eq!(listed["policies"], json!([]), "{who}");
        let listed = success(&outsider.get(&format!("/v1/policies?agentId={agent}")).await, 200);
        assert_eq!(listed["total"], json!(0), "{who}");
        let listed = success(&outsider.get("/v1/webhooks").await, 200);
        assert_eq!(listed["webhooks"], json!([]), "{who}");
    }
    assert_eq!(world.fields(&owner.keys.agent(Mode::Live, &agent)).await, before);
    assert_eq!(world.version(&owner).await, after_issue, "nothing was changed");

    // The same id in another account is another agent.
    let theirs = stranger
        .post(&format!("/v1/policies/{agent}"), json!({ "maxSpendPerDay": 7 }))
        .await;
    assert_ne!(text(&success(&theirs, 200), "/policy/id"), policy);
    assert_eq!(world.fields(&owner.keys.agent(Mode::Live, &agent)).await, before);
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist() {
    let world = World::start().await;
    let (_, caller) = world.account("free").await;
    for path in [
        "/v1",
        "/v1/",
        "/agents",
        "/v2/agents",
        "/v1/agents/",
        "/v1/agents/a/b/c",
        "/api/v1/nothing",
    ] {
        problem(&caller.get(path).await, 404, "NOT_FOUND");
        problem(&world.admin.caller("").get(path).await, 404, "NOT_FOUND");
    }
    for (method, path, allow) in [
        ("PUT", "/v1/agents", ["GET", "POST"].as_slice()),
        ("DELETE", "/api/v1/policies", &["GET", "POST"]),
        ("POST", "/v1/agents/a", &["GET", "PATCH", "DELETE"]),
        ("GET", "/v1/policies/a", &["POST", "DELETE"]),
        ("OPTIONS", "/v1/agents/a/freeze", &["POST"]),
    ] {
        let reply = caller.send(method, path, &[], "").await;
        problem(&reply, 405, "METHOD_NOT_ALLOWED");
        let allowed = reply.header("allow").unwrap();
        for method in allow {
            assert!(
                allowed.split(',').any(|one| one.trim() == *method),
                "{path}: {allowed}"
            );
        }
    }
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let world = World::start().await;
    let (_, caller) = world.account("free").await;
    for path in ["/v1/agents", "/v1/nothing"] {
        let mine = caller
            .send("GET", path, &[("x-request-id", "my:req.1_x-2")], "")
            .await;
        assert_eq!(mine.header("x-request-id"), Some("my:req.1_x-2"));
        let made = caller.send("GET", path, &[("x-request-id", "a b")], "").await;
        assert!(made.header("x-request-id").unwrap().starts_with("req_"));
    }
}

#[tokio::test]
async fn both_headers_must_agree_and_a_key_binds_as_it_now_is() {
    let world = World::start().await;
    let (account, _) = world.account("free").await;
    let issue = |ips, expires| world.issue(&account, Mode::Live, FULL, ips, expires);
    let (a, b) = (issue(&[], None).await, issue(&[], None).await);
    let get = async |headers: &[(&str, &str)]| {
        let nobody = world.admin.caller("");
        nobody.send("GET", "/v1/agents", headers, "").await
    };
    let bearer = format!("Bearer {}", a.secret);
    success(&get(&[("x-api-key", &a.secret)]).await, 200);
    success(
        &get(&[("authorization", &bearer), ("x-api-key", &a.secret)]).await,
        200,
    );
    let two = get(&[("authorization", &bearer), ("x-api-key", &b.secret)]).await;
    problem(&two, 401, "INVALID_API_KEY");

    let soon = clock::now_ms() + 1500;
    let ending = issue(&[], Some(soon)).await;
    success(&get(&[("x-api-key", &ending.secret)]).await, 200);
    tokio::time::sleep(std::time::Duration::from_millis(1700)).await;
    problem(
        &get(&[("x-api-key", &ending.secret)]).await,
        401,
        "INVALID_API_KEY",
    );

    let here = issue(&["10.0.0.0/8", "127.0.0.1/32"], None).await;
    success(&get(&[("x-api-key", &here.secret)]).await, 200);
    let elsewhere = issue(&["10.0.0.0/8"], None).await;
    let blocked = get(&[("x-api-key", &elsewhere.secret), ("x-forwarded-for", "10.0.0.1")]).await;
    problem(&blocked, 403, "IP_BLOCKED");

    let scope = Scope {
        account: &account.id,
        mode: Mode::Live,
        actor: "test",
    };
    api_key::revoke(&world.store, &scope, &a.id).await.unwrap();
    problem(&get(&[("x-api-key", &a.secret)]).await, 401, "INVALID_API_KEY");
    success(&get(&[("x-api-key", &b.secret)]).await, 200);
}

#[tokio::test]
async fn a_trusted_proxy_tells_the_clients_address() {
    let trust =
        |options: harness::AdminOptions| options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8");
    let world = World::start_with(trust).await;
    let account = world.seed.account("free").await;
    let key = world
        .issue(&account, Mode::Live, FULL, &["203.0.113.0/24"], None)
        .await;
    let caller = world.admin.caller(&key.secret);
    let from = async |address: &str| {
        caller
            .send("GET", "/v1/agents", &[("x-forwarded-for", address)], "")
            .await
    };
    success(&from("203.0.113.9").await, 200);
    success(&from("198.51.100.1, 203.0.113.9").await, 200);
    problem(&from("203.0.113.9, 198.51.100.1").await, 403, "IP_BLOCKED");
    problem(&from("nonsense").await, 403, "IP_BLOCKED");
    problem(&caller.get("/v1/agents").await, 403, "IP_BLOCKED");
}
