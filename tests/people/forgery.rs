//! Requests that other sites make a browser send: a change needs the token that only our pages can read, and must come
//! from a page of ours.

use crate::fixture::{Fixture, problem, success};
use domain::mode::Mode;
use harness::{Role, TEST_PASSWORD};
use serde_json::json;

const BODY: &str = r#"{"name":"a"}"#;

#[tokio::test]
async fn a_change_needs_the_token_of_its_session() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    let other = fixture.sign_in(&user).await;
    let token = session.cookie()["tollgate_session=".len()..].to_owned();
    let longer = format!("{}0", session.csrf());
    for (method, path, body) in [
        ("POST", "/v1/agents", BODY),
        ("PATCH", "/v1/agents/a", BODY),
        ("DELETE", "/v1/agents/a", ""),
        ("POST", "/v1/decisions/dry-run", r#"{"agent":"a"}"#),
        ("POST", "/api/user/logout", "{}"),
        ("POST", "/api/user/password", "{}"),
        ("DELETE", "/api/user/sessions/ses_01KAH3V9J80123456789ABCDEF", ""),
        ("POST", "/v1/api-keys", "{}"),
    ] {
        let json = ("content-type", "application/json");
        for headers in [
            vec![json],
            vec![json, ("x-csrf-token", "")],
            vec![json, ("x-csrf-token", &token)],
            vec![json, ("x-csrf-token", other.csrf())],
            vec![json, ("x-csrf-token", &longer)],
            vec![json, ("x-csrf-token", &session.csrf()[1..])],
            vec![
                json,
                ("x-csrf-token", session.csrf()),
                ("x-csrf-token", session.csrf()),
            ],
        ] {
            let reply = session.send_bare(method, path, &headers, body).await;
            problem(&reply, 403, "CSRF_FAILED");
        }
    }
    // Without the token a viewer's refusal says nothing of roles, and reading needs none.
    let (_, viewer) = fixture.member(&user.account, Role::Viewer).await;
    let reply = viewer.send_bare("POST", "/v1/agents", &[], BODY).await;
    problem(&reply, 403, "CSRF_FAILED");
    success(&viewer.send_bare("GET", "/v1/agents", &[], "").await, 200);
    success(&session.get("/api/user/me").await, 200);
    let kinds = user.account.audit_types(Mode::Live).await;
    assert_eq!(kinds, vec!["user.login"; 3], "nothing was changed");
}

#[tokio::test]
async fn a_page_that_says_where_it_is_from_must_be_ours() {
    let public = |options: harness::AdminOptions| {
        options.env("TOLLGATE_ADMIN__PUBLIC_URL", "https://gate.example.com")
    };
    let fixture = Fixture::start_with(public).await;
    let (user, session) = fixture.user(Role::Owner).await;
    let here = fixture.admin.url();
    let login = json!({ "email": user.email, "password": TEST_PASSWORD }).to_string();
    let nobody = fixture.admin.caller("");
    for headers in [
        vec![],
        vec![("origin", here.as_str())],
        vec![("origin", "https://gate.example.com")],
        vec![("origin", &here), ("sec-fetch-site", "same-origin")],
        vec![("sec-fetch-site", "none")],
        // The referrer is not checked, the token is.
        vec![("referer", "https://evil.example.org/x")],
    ] {
        let reply = session.send("POST", "/v1/agents", &headers, BODY).await;
        assert_eq!(reply.status, 200, "{headers:?}: {}", reply.text());
        let reply = nobody
            .send("POST", "/api/user/login", &headers, login.clone())
            .await;
        assert_eq!(reply.status, 200, "{headers:?}: {}", reply.text());
    }
    let agents = success(&session.get("/v1/agents").await, 200)["total"].clone();
    for headers in [
        vec![("origin", "null")],
        vec![("origin", "https://evil.example.org")],
        vec![("origin", "http://gate.example.com")],
        vec![("origin", "https://gate.example.com.evil.org")],
        vec![
            ("origin", "https://gate.example.com"),
            ("sec-fetch-site", "cross-site"),
        ],
        vec![("origin", &here), ("origin", "https://evil.example.org")],
        vec![("sec-fetch-site", "cross-site")],
        vec![("origin", "")],
    ] {
        let reply = session.send("POST", "/v1/agents", &headers, BODY).await;
        assert_eq!(reply.status, 403, "{headers:?}: {}", reply.text());
        problem(&reply, 403, "CSRF_FAILED");
        for path in [
            "/api/user/login",
            "/api/user/password/reset",
            "/api/user/password/reset/look",
            "/api/user/invitations/look",
            "/api/user/invitations/accept",
        ] {
            let reply = nobody.send("POST", path, &headers, login.clone()).await;
            problem(&reply, 403, "CSRF_FAILED");
            assert!(reply.header("set-cookie").is_none());
        }
    }
    assert_eq!(success(&session.get("/v1/agents").await, 200)["total"], agents);
    // API keys come from programs, not from pages.
    let made = success(&session.post("/v1/api-keys", json!({})).await, 200);
    let key = fixture.admin.caller(made["key"].as_str().unwrap());
    let foreign = [("origin", "https://evil.example.org")];
    success(&key.send("POST", "/v1/agents", &foreign, BODY).await, 200);
}

#[tokio::test]
async fn no_form_can_sign_anybody_in() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("free").await.user(Role::Viewer).await;
    let login = json!({ "email": user.email, "password": TEST_PASSWORD }).to_string();
    let nobody = fixture.admin.caller("");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
    ] {
        for path in [
            "/api/user/login",
            "/api/user/password/reset",
            "/api/user/invitations/accept",
        ] {
            let reply = nobody
                .send("POST", path, &[("content-type", kind)], login.clone())
                .await;
            problem(&reply, 415, "UNSUPPORTED_MEDIA_TYPE");
        }
    }
    for method in ["GET", "PUT"] {
        let reply = nobody.send(method, "/api/user/login", &[], login.clone()).await;
        problem(&reply, 405, "METHOD_NOT_ALLOWED");
    }
}
