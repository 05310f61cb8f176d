//! New passwords: by their users, and by links that the operator hands out.

use crate::fixture::{BINARY, Fixture, problem, success, text};
use domain::mode::Mode;
use futures::future::join_all;
use harness::{Cli, Role, TEST_PASSWORD};
use serde_json::{Value, json};

const NEW: &str = "a new password of mine";

#[tokio::test]
async fn a_new_password_renews_the_session_and_ends_the_others() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let other = fixture.sign_in(&user).await;
    let change = async |current: &str, new: &str| {
        let body = json!({ "currentPassword": current, "newPassword": new });
        session.post("/api/user/password", body).await
    };
    problem(&change("not the password", NEW).await, 401, "INVALID_CREDENTIALS");
    for bad in ["short", "1234567", &"x".repeat(1025)] {
        assert!(problem(&change(TEST_PASSWORD, bad).await, 400, "VALIDATION").contains("newPassword"));
    }
    success(&other.get("/api/user/me").await, 200);
    let changed = change(TEST_PASSWORD, NEW).await;
    success(&changed, 200);
    let renewed = session.renewed(&changed);
    assert_ne!(renewed.cookie(), session.cookie());
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    problem(&other.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let me = success(&renewed.get("/api/user/me").await, 200);
    assert_eq!(me["csrfToken"], changed.json()["csrfToken"]);
    success(
        &renewed.post("/api/user/sessions/revoke-others", json!({})).await,
        200,
    );
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    fixture.admin.sign_in(&user.email, NEW).await;
    let audit = format!("{:?}", user.account.audit(Mode::Live).await);
    assert!(audit.contains("user.password_changed") && !audit.contains(NEW) && !audit.contains("argon2"));
}

fn token(link: &str, part: &str) -> String {
    link.split_once(part)
        .unwrap_or_else(|| panic!("{part} in {link}"))
        .1
        .to_owned()
}

async fn reset(fixture: &Fixture, token: &str, new: &str) -> harness::Reply {
    let body = json!({ "token": token, "newPassword": new });
    fixture
        .admin
        .caller("")
        .post("/api/user/password/reset", body)
        .await
}

/// Looks whether the link works, as the page does before it asks for a password.
async fn check_link(fixture: &Fixture, token: &str) -> harness::Reply {
    let body = json!({ "token": token });
    let nobody = fixture.admin.caller("");
    nobody.post("/api/user/password/reset/look", body).await
}

#[tokio::test]
async fn a_look_at_a_reset_link_says_whether_it_works_and_does_not_use_it() {
    let fixture = Fixture::start().await;
    let cli =
        Cli::new(BINARY, fixture.redis.url()).env("TOLLGATE_ADMIN__PUBLIC_URL", "https://gate.example.com");
    let (user, _session) = fixture.user(Role::Admin).await;
    let issue = || -> String {
        let issued = cli.json(&["user", "reset-password", "--email", &user.email]);
        token(text(&issued, "/link"), "/#/reset/")
    };
    problem(&check_link(&fixture, "0a").await, 404, "NOT_FOUND");
    let old = issue();
    // More often than wrong links lock an address.
    for _ in 0..101 {
        assert_eq!(
            success(&check_link(&fixture, &old).await, 200),
            json!({ "success": true })
        );
    }
    let link = issue();
    problem(&check_link(&fixture, &old).await, 404, "NOT_FOUND");
    success(&check_link(&fixture, &link).await, 200);
    success(&reset(&fixture, &link, NEW).await, 200);
    problem(&check_link(&fixture, &link).await, 404, "NOT_FOUND");
    // Looks at wrong links are guesses, as wrong links of resets are.
    let wrong = "0a".repeat(32);
    for _ in 0..98 {
        problem(&check_link(&fixture, &wrong).await, 404, "NOT_FOUND");
    }
    problem(&check_link(&fixture, &wrong).await, 429, "LOGIN_LOCKED");
    problem(&reset(&fixture, &wrong, NEW).await, 429, "LOGIN_LOCKED");
}

#[tokio::test]
async fn a_reset_link_works_once_and_for_an_hour() {
    let fixture = Fixture::start().await;
    let cli =
        Cli::new(BINARY, fixture.redis.url()).env("TOLLGATE_ADMIN__PUBLIC_URL", "https://gate.example.com");
    let (user, session) = fixture.user(Role::Admin).await;
    let issue = || -> Value { cli.json(&["user", "reset-password", "--email", &user.email]) };
    let first = issue();
    assert_eq!(first["userId"], json!(user.id));
    let link = text(&first, "/link");
    assert!(link.starts_with("https://gate.example.com/#/reset/"), "{link}");
    let old = token(link, "/#/reset/");
    let second = token(text(&issue(), "/link"), "/#/reset/");
    problem(&reset(&fixture, &old, NEW).await, 404, "NOT_FOUND");
    problem(&reset(&fixture, &second, "short").await, 400, "VALIDATION");
    // Of ten at once, one succeeds.
    let at_once = join_all((0..10).map(|_| reset(&fixture, &second, NEW))).await;
    let done: Vec<_> = at_once.iter().filter(|reply| reply.status == 200).collect();
    assert_eq!(done.len(), 1);
    let inside = fixture.admin.session(done[0]);
    let me = success(&inside.get("/api/user/me").await, 200);
    assert_eq!(text(&me, "/user/id"), user.id);
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    for reply in at_once.iter().filter(|reply| reply.status != 200) {
        problem(reply, 404, "NOT_FOUND");
    }
    fixture.admin.sign_in(&user.email, NEW).await;

    // A link expires, and ends when the password is set by other means.
    let third = token(text(&issue(), "/link"), "/#/reset/");
    let key = user.account.keys.reset(&user.id);
    let left: i64 = fixture.redis.command(&["PTTL", &key]);
    assert!((3_590_000..=3_600_000).contains(&left));
    let stored: String = fixture.redis.command(&["GET", &key]);
    assert_ne!(stored, third, "only its hash is stored");
    fixture.redis.command::<i64>(&["DEL", &key]);
    problem(&reset(&fixture, &third, NEW).await, 404, "NOT_FOUND");
    let fourth = token(text(&issue(), "/link"), "/#/reset/");
    let body = json!({ "currentPassword": NEW, "newPassword": TEST_PASSWORD });
    success(&inside.post("/api/user/password", body).await, 200);
    problem(&reset(&fixture, &fourth, NEW).await, 404, "NOT_FOUND");
    for nonsense in ["", "x", &"0a".repeat(32)] {
        problem(&reset(&fixture, nonsense, NEW).await, 404, "NOT_FOUND");
    }
    assert!(!fixture.admin.logs().contains(&second));
}
