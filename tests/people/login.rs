//! Signing in: the information in answers, rotation, fixation, signing out.

use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use harness::{Role, TEST_PASSWORD, assert_fields, cookie_of};
use serde_json::json;

#[tokio::test]
async fn a_user_signs_in_reads_and_signs_out() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("builder").await.user(Role::Owner).await;
    let typed = format!(" {} ", user.email.to_uppercase());
    let reply = fixture.try_login(&typed, TEST_PASSWORD).await;
    let body = success(&reply, 200);
    assert_eq!(text(&body, "/user/id"), user.id);
    assert_eq!(text(&body, "/user/email"), user.email);
    assert_fields!(body["user"], { "role": "owner", "totpEnabled": false });
    assert!(body["user"]["lastLoginAt"].is_string() && body["user"]["createdAt"].is_string());
    assert_fields!(body, { "account": { "id": user.account.id, "name": "Test", "plan": "builder" } });
    assert!(!reply.text().contains("argon2"));
    let set = reply.header("set-cookie").unwrap();
    let (pair, attributes) = set.split_once("; ").unwrap();
    let token = pair.strip_prefix("tollgate_session=").unwrap();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert!(!reply.text().contains(token), "the token is in the cookie only");

    let session = fixture.admin.session(&reply);
    let me = success(&session.get("/api/user/me").await, 200);
    assert_fields!(me, { "user": body["user"], "account": body["account"], "csrfToken": body["csrfToken"] });
    assert!(text(&me, "/session/id").starts_with("ses_"));
    success(&session.get("/v1/agents").await, 200);
    success(
        &session.post("/api/v1/agents", json!({ "name": "Mine" })).await,
        200,
    );
    let list = success(&session.get("/api/user/sessions").await, 200);
    assert_eq!(list["total"], json!(1));
    assert_eq!(list["sessions"][0]["id"], me["session"]["id"]);
    assert_eq!(list["sessions"][0]["current"], json!(true));
    assert_eq!(list["sessions"][0]["ip"], json!("127.0.0.1"));

    let bye = session.post("/api/user/logout", json!({})).await;
    success(&bye, 200);
    assert!(
        bye.header("set-cookie")
            .unwrap()
            .starts_with("tollgate_session=; Max-Age=0; ")
    );
    let after = session.get("/api/user/me").await;
    problem(&after, 401, "SESSION_REQUIRED");
    assert!(
        after
            .header("set-cookie")
            .unwrap()
            .starts_with("tollgate_session=; Max-Age=0; ")
    );
    assert_eq!(after.header("www-authenticate"), None);
    let audit = user.account.audit(Mode::Live).await;
    let kinds: Vec<&str> = audit.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["user.login", "agent.created", "user.logout"]);
    assert!(audit.iter().all(|entry| entry.actor == user.id), "{audit:?}");
    assert!(!format!("{audit:?}").contains(token));
    assert!(!fixture.admin.logs().contains(token) && !fixture.admin.logs().contains(TEST_PASSWORD));
}

#[tokio::test]
async fn the_cookie_is_for_tls_only_where_the_public_address_is() {
    let secure = |options: harness::AdminOptions| {
        options.env("TOLLGATE_ADMIN__PUBLIC_URL", "https://gate.example.com/")
    };
    let fixture = Fixture::start_with(secure).await;
    let user = fixture.seed.account("free").await.user(Role::Viewer).await;
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    success(&reply, 200);
    let set = reply.header("set-cookie").unwrap();
    assert!(
        set.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"),
        "{set}"
    );
}

#[tokio::test]
async fn a_login_makes_a_new_session_and_ends_the_one_the_browser_had() {
    let fixture = Fixture::start().await;
    let (user, first) = fixture.user(Role::Viewer).await;
    let other_browser = fixture.sign_in(&user).await;
    let body = json!({ "email": user.email, "password": TEST_PASSWORD }).to_string();
    let again = first
        .send_bare("POST", "/api/user/login", &[], body.clone())
        .await;
    success(&again, 200);
    let second = fixture.admin.session(&again);
    assert_ne!(first.cookie(), second.cookie());
    assert_ne!(first.csrf(), second.csrf());
    problem(&first.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    success(&second.get("/api/user/me").await, 200);
    success(&other_browser.get("/api/user/me").await, 200);

    // A cookie that somebody planted never becomes a session.
    let planted = format!("tollgate_session={}", "0a".repeat(32));
    let nobody = fixture.admin.caller("");
    let reply = nobody
        .send("POST", "/api/user/login", &[("cookie", &planted)], body)
        .await;
    success(&reply, 200);
    assert_ne!(cookie_of(&reply).unwrap(), planted);
    let stranger = nobody
        .send("GET", "/api/user/me", &[("cookie", &planted)], "")
        .await;
    problem(&stranger, 401, "SESSION_REQUIRED");
}

#[tokio::test]
async fn responses_do_not_reveal_whether_a_user_exists() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("free").await.user(Role::Viewer).await;
    let wrong = fixture.try_login(&user.email, "not the password").await;
    let unknown = fixture.try_login("nobody@example.com", "not the password").await;
    assert_eq!(
        problem(&wrong, 401, "INVALID_CREDENTIALS"),
        problem(&unknown, 401, "INVALID_CREDENTIALS")
    );
    for reply in [&wrong, &unknown] {
        assert!(cookie_of(reply).is_none() && reply.header("www-authenticate").is_none());
    }
    let audit = user.account.audit(Mode::Live).await;
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0].kind, "user.login_failed");
    assert!(!format!("{audit:?}").contains("not the password"));
    for (bad, named) in [
        (json!({ "password": "x" }), "email"),
        (json!({ "email": "a@example.com" }), "password"),
        (json!({ "email": "a", "password": "x" }), "email"),
        (
            json!({ "email": "a@example.com", "password": "x".repeat(1025) }),
            "password",
        ),
        (
            json!({ "email": "a@example.com", "password": "x", "role": "owner" }),
            "role",
        ),
        (json!({ "email": ["a@example.com"], "password": "x" }), "email"),
        (
            json!({ "email": "a@example.com", "password": "x", "totp": "0".repeat(65) }),
            "totp must have at most 64 bytes.",
        ),
        (
            json!({ "email": "a@example.com", "password": "x", "account": "a".repeat(65) }),
            "account must have at most 64 bytes.",
        ),
    ] {
        let sentence = problem(&fixture.admin.login(&bad).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
}
