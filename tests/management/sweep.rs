//! Every row of the route tables from another account and in the other mode; unknown paths; keys whose restrictions
//! took effect meanwhile.

use crate::fixture::{FULL, Fixture, problem, success, text};
use api_docs::table::routes;
use axum::http::Method;
use domain::mode::Mode;
use endpoint::{Access, Modes, Route};
use harness::{Caller, Role, SeedAccount, TEST_PASSWORD};
use serde_json::json;
use store::api_key;
use store::script::change::{Scope, VERSION_STEP};

/// The sentence of every 404 to a test-mode key, whatever records live mode has.
const IN_TEST_MODE: &str = " Your API key is in test mode, which has records of its own.";

#[tokio::test]
async fn no_operation_reaches_another_account_or_mode() {
    let private = |options: harness::AdminOptions| options.env("TOLLGATE_WEBHOOKS__ALLOW_PRIVATE", "true");
    let fixture = Fixture::start_with(private).await;
    let (owner, caller) = fixture.account("builder").await;
    let own = Ids::make(&fixture, &owner, &caller).await;
    let before = fixture.fields(&owner.keys.live().agent(&own.agent)).await;
    let version = owner.version().await;

    // On a plan that has webhooks in the dashboard.
    let (other, stranger) = fixture.account("enterprise").await;
    let tester = fixture.caller(&owner, Mode::Test).await;
    let after_issue = owner.version().await;
    assert_eq!(after_issue, version + VERSION_STEP);
    let boss = other.user(Role::Owner).await;
    let boss = fixture.admin.sign_in(&boss.email, TEST_PASSWORD).await;
    for route in routes() {
        let Some(path) = own.path(route) else { continue };
        let (method, body) = (route.method.as_str(), own.body(route));
        if matches!(route.access, Access::Key(..)) {
            let reply = stranger.send(method, &path, &[], body).await;
            problem(&reply, 404, "NOT_FOUND");
            if route.modes == Modes::Both {
                let reply = tester.send(method, &path, &[], body).await;
                let sentence = problem(&reply, 404, "NOT_FOUND");
                assert!(sentence.ends_with(IN_TEST_MODE), "{method} {path}: {sentence}");
            }
        }
        let reply = boss.send(method, &path, &[], body).await;
        problem(&reply, 404, "NOT_FOUND");
    }
    for (who, outsider) in [("stranger", &stranger), ("test mode", &tester)] {
        let listed = success(&outsider.get("/v1/agents").await, 200);
        assert_eq!(listed["total"], json!(0), "{who}");
        let listed = success(&outsider.get("/v1/policies").await, 200);
        assert_eq!(listed["policies"], json!([]), "{who}");
        let reply = outsider.get(&format!("/v1/policies?agentId={}", own.agent)).await;
        let listed = success(&reply, 200);
        assert_eq!(listed["total"], json!(0), "{who}");
        let listed = success(&outsider.get("/v1/webhooks").await, 200);
        assert_eq!(listed["webhooks"], json!([]), "{who}");
    }
    assert_eq!(fixture.fields(&owner.keys.live().agent(&own.agent)).await, before);
    assert_eq!(owner.version().await, after_issue, "nothing was changed");

    // The same id in another account is another agent.
    let theirs = stranger
        .post(
            &format!("/v1/policies/{}", own.agent),
            json!({ "maxSpendPerDay": 7 }),
        )
        .await;
    assert_ne!(text(&success(&theirs, 200), "/policy/id"), own.policy);
    assert_eq!(fixture.fields(&owner.keys.live().agent(&own.agent)).await, before);
}

/// The ids of one record of each kind of an account.
struct Ids {
    agent: String,
    virtual_key: String,
    policy: String,
    webhook: String,
    api_key: String,
    user: String,
    session: String,
    invitation: String,
}

impl Ids {
    async fn make(fixture: &Fixture, account: &SeedAccount, caller: &Caller) -> Self {
        let body = json!({ "name": "Mine", "type": "x" });
        let made = caller.post("/v1/agents", body).await;
        let agent = text(&success(&made, 200), "/agent/id").to_owned();
        let key = caller
            .post(&format!("/v1/agents/{agent}/virtual-keys"), json!({}))
            .await;
        let body = json!({ "maxSpendPerDay": 1 });
        let policy = caller.post(&format!("/v1/policies/{agent}"), body).await;
        let webhook =
            json!({ "url": "http://127.0.0.1:9/", "events": ["agent.frozen"], "secret": "0123456789abcdef" });
        let webhook = caller.post("/v1/webhooks", webhook).await;
        let user = account.user(Role::Owner).await;
        let session = fixture.admin.sign_in(&user.email, TEST_PASSWORD).await;
        let me = success(&session.get("/api/user/me").await, 200);
        let invited = json!({ "email": "new@example.com", "role": "viewer" });
        let invited = session.post("/api/user/invitations", invited).await;
        Self {
            agent,
            virtual_key: text(&success(&key, 201), "/virtualKey/keyId").to_owned(),
            policy: text(&success(&policy, 200), "/policy/id").to_owned(),
            webhook: text(&success(&webhook, 201), "/webhook/id").to_owned(),
            api_key: account.issue(Mode::Live, FULL, &[], None).await.id,
            user: user.id,
            session: text(&me, "/session/id").to_owned(),
            invitation: text(&success(&invited, 200), "/invitation/id").to_owned(),
        }
    }

    /// Returns the path of an operation on these ids; `None` if it takes none, or creates a record of the caller's own
    /// under the same id (decision D6).
    fn path(&self, route: &Route) -> Option<String> {
        let acts = ["/freeze", "/unfreeze", "/test", "/redeliver"];
        let acts = acts.iter().any(|end| route.path.ends_with(end));
        if !route.path.contains('{') || (route.method == Method::POST && !acts) {
            return None;
        }
        let id = match route.path {
            "/policies/{id}" => &self.policy,
            path if path.starts_with("/webhooks/") => &self.webhook,
            path if path.starts_with("/api-keys/") => &self.api_key,
            path if path.starts_with("/team/") => &self.user,
            path if path.starts_with("/sessions/") => &self.session,
            path if path.starts_with("/invitations/") => &self.invitation,
            _ => &self.agent,
        };
        let prefix = route.prefixes().next()?;
        let path = format!("{prefix}{}", route.path);
        let path = path
            .replace("{keyId}", &self.virtual_key)
            .replace("{deliveryId}", "whd_01KAH3V9J80123456789ABCDEF");
        Some(path.replace("{runId}", "a-run").replace("{id}", id))
    }

    /// A valid body of the operation.
    fn body(&self, route: &Route) -> &'static str {
        match route.path {
            "/team/{id}" => r#"{"role":"viewer"}"#,
            _ => r#"{"name":"x"}"#,
        }
    }
}

/// An OpenAI client that was given the management server's address.
#[tokio::test]
async fn a_client_of_the_edge_gets_the_address_of_the_edge() {
    const EDGE: &str = "https://edge.example";
    let public = |options: harness::AdminOptions| options.env("TOLLGATE_PROXY__PUBLIC_URL", EDGE);
    let fixture = Fixture::start_with(public).await;
    let caller = fixture.admin.caller("");
    for path in ["/v1/chat/completions", "/v1/models", "/v1/responses"] {
        for method in ["GET", "POST"] {
            let reply = caller.send(method, path, &[], "{}").await;
            let sentence = problem(&reply, 404, "NOT_FOUND");
            assert!(
                sentence.ends_with("at https://edge.example/v1."),
                "{path}: {sentence}"
            );
        }
    }
    let sentence = problem(&caller.get("/api/v1/models").await, 404, "NOT_FOUND");
    assert!(!sentence.contains(EDGE), "{sentence}");
}

#[tokio::test]
async fn head_is_get_without_its_body() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("free").await;
    for (path, status) in [
        ("/v1/agents", 200),
        ("/v1/agents/none", 404),
        ("/api/v1/audit?limit=0", 400),
    ] {
        let of_get = caller.get(path).await;
        let of_head = caller.send("HEAD", path, &[], "").await;
        assert_eq!((of_get.status, of_head.status), (status, status), "{path}");
        assert_eq!(of_head.body.len(), 0, "{path}");
        for name in ["content-type", "content-length"] {
            assert_eq!(of_head.header(name), of_get.header(name), "{path} {name}");
        }
    }
    let reply = caller.send("HEAD", "/v1/policies/a", &[], "").await;
    assert_eq!((reply.status, reply.body.len()), (405, 0));
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("free").await;
    for path in [
        "/v1",
        "/v1/",
        "/agents",
        "/v2/agents",
        "/v1/agents/",
        "/v1/agents/a/b/c",
        "/api/v1/nothing",
    ] {
        for caller in [&caller, &fixture.admin.caller("")] {
            let sentence = problem(&caller.get(path).await, 404, "NOT_FOUND");
            let of_edge = match path.starts_with("/v1/") {
                true => " Calls of agents go to the edge (`tollgate-proxy`).",
                false => "",
            };
            assert_eq!(
                sentence,
                format!("There is no such path; /reference lists those of the API.{of_edge}"),
                "{path}"
            );
        }
    }
    for (method, path, allow) in [
        ("PUT", "/v1/agents", ["GET", "POST"].as_slice()),
        ("DELETE", "/api/v1/policies", &["GET", "POST"]),
        ("POST", "/v1/agents/a", &["GET", "PATCH", "DELETE"]),
        ("GET", "/v1/policies/a", &["POST", "DELETE"]),
        ("OPTIONS", "/v1/agents/a/freeze", &["POST"]),
    ] {
        let reply = caller.send(method, path, &[], "").await;
        let sentence = problem(&reply, 405, "METHOD_NOT_ALLOWED");
        let allowed = reply.header("allow").unwrap();
        for method in allow {
            assert!(sentence.contains(method), "{path}: {sentence}");
            assert!(
                allowed.split(',').any(|one| one.trim() == *method),
                "{path}: {allowed}"
            );
        }
    }
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("free").await;
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
    let fixture = Fixture::start().await;
    let (account, _) = fixture.account("free").await;
    let issue = |ips, expires| account.issue(Mode::Live, FULL, ips, expires);
    let (a, b) = (issue(&[], None).await, issue(&[], None).await);
    let get = async |headers: &[(&str, &str)]| {
        let nobody = fixture.admin.caller("");
        nobody.send("GET", "/v1/agents", headers, "").await
    };
    let bearer = format!("Bearer {}", a.secret);
    success(&get(&[("x-api-key", &a.secret)]).await, 200);
    let reply = get(&[("authorization", &bearer), ("x-api-key", &a.secret)]).await;
    success(&reply, 200);
    let two = get(&[("authorization", &bearer), ("x-api-key", &b.secret)]).await;
    problem(&two, 401, "INVALID_API_KEY");

    let soon = clock::now_ms() + 1500;
    let ending = issue(&[], Some(soon)).await;
    success(&get(&[("x-api-key", &ending.secret)]).await, 200);
    tokio::time::sleep(std::time::Duration::from_millis(1700)).await;
    let reply = get(&[("x-api-key", &ending.secret)]).await;
    problem(&reply, 401, "INVALID_API_KEY");

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
    api_key::script::revoke(&fixture.store, &scope, &a.id)
        .await
        .unwrap();
    problem(&get(&[("x-api-key", &a.secret)]).await, 401, "INVALID_API_KEY");
    success(&get(&[("x-api-key", &b.secret)]).await, 200);
}

#[tokio::test]
async fn a_trusted_proxy_names_the_clients_address() {
    let trust =
        |options: harness::AdminOptions| options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8");
    let fixture = Fixture::start_with(trust).await;
    let account = fixture.seed.account("free").await;
    let key = account.issue(Mode::Live, FULL, &["203.0.113.0/24"], None).await;
    let caller = fixture.admin.caller(&key.secret);
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
