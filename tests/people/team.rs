//! Roles and the team: a change applies to the next call, and one owner always remains.

use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use futures::future::join;
use harness::{Role, TEST_PASSWORD};
use serde_json::json;

#[tokio::test]
async fn a_role_binds_the_next_call() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (user, session) = fixture.member(&owner.account, Role::Viewer).await;
    let path = format!("/api/user/team/{}", user.id);
    let create = async || session.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&create().await, 403, "INSUFFICIENT_ROLE");
    let changed = success(&boss.patch(&path, json!({ "role": "admin" })).await, 200);
    assert_eq!(changed["user"]["role"], json!("admin"));
    success(&create().await, 200);
    success(&boss.patch(&path, json!({ "role": "manager" })).await, 200);
    let sentence = problem(&create().await, 403, "INSUFFICIENT_ROLE");
    assert!(
        sentence.contains("admin") && sentence.contains("manager"),
        "{sentence}"
    );
    success(&boss.patch(&path, json!({ "role": "manager" })).await, 200);
    for (bad, named) in [
        (json!({}), "role"),
        (json!({ "role": "root" }), "role"),
        (json!({ "role": "owner", "email": "x" }), "email"),
    ] {
        let sentence = problem(&boss.patch(&path, bad).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
    for role in ["viewer", "manager", "admin"] {
        success(&boss.patch(&path, json!({ "role": role })).await, 200);
        let own = session.patch(&path, json!({ "role": "owner" })).await;
        problem(&own, 403, "INSUFFICIENT_ROLE");
    }
    let team = success(&session.get("/api/user/team").await, 200);
    assert_eq!(team["total"], json!(2));
    assert!(!team.to_string().contains("argon2"));

    success(&boss.delete(&path).await, 200);
    problem(&create().await, 401, "SESSION_REQUIRED");
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let gone = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&gone, 401, "INVALID_CREDENTIALS");
    for unknown in [&path, "/api/user/team/usr_1", "/api/user/team/x"] {
        problem(&boss.delete(unknown).await, 404, "NOT_FOUND");
    }
    let audit = owner.account.audit(Mode::Live).await;
    let changes: Vec<&str> = audit
        .iter()
        .filter(|entry| entry.actor == owner.id && entry.kind.starts_with("user."))
        .map(|entry| entry.kind.as_str())
        .collect();
    let role_changes = ["user.role_changed"; 5];
    assert_eq!(
        changes,
        [&["user.login"], &role_changes[..], &["user.removed"]].concat()
    );
    // Nothing of the user is left.
    for key in [
        owner.account.keys.sessions(&user.id),
        store::keys::user_lookup(&user.email),
    ] {
        assert_eq!(fixture.redis.command::<i64>(&["EXISTS", &key]), 0, "{key}");
    }
    let logins = owner.account.keys.last_logins();
    assert_eq!(fixture.redis.command::<i64>(&["HEXISTS", &logins, &user.id]), 0);
}

#[tokio::test]
async fn an_owner_is_left_also_when_two_demote_each_other() {
    let fixture = Fixture::start().await;
    let (owner, alone) = fixture.user(Role::Owner).await;
    let own = format!("/api/user/team/{}", owner.id);
    let reply = alone.patch(&own, json!({ "role": "viewer" })).await;
    problem(&reply, 409, "LAST_OWNER");
    problem(&alone.delete(&own).await, 409, "LAST_OWNER");
    fixture.member(&owner.account, Role::Admin).await;
    problem(&alone.delete(&own).await, 409, "LAST_OWNER");
    for round in 0..8 {
        let account = fixture.seed.account("free").await;
        let ((a, by_a), (b, by_b)) = (
            fixture.member(&account, Role::Owner).await,
            fixture.member(&account, Role::Owner).await,
        );
        let (of_a, of_b) = (
            format!("/api/user/team/{}", a.id),
            format!("/api/user/team/{}", b.id),
        );
        let role = json!({ "role": "viewer" });
        let (first, second) = if round % 2 == 0 {
            join(by_a.patch(&of_b, role.clone()), by_b.patch(&of_a, role)).await
        } else {
            join(by_a.delete(&of_b), by_b.delete(&of_a)).await
        };
        // The other call is refused by the last owner, or since its caller is no longer an owner.
        let done = [&first, &second]
            .iter()
            .filter(|reply| reply.status == 200)
            .count();
        assert_eq!(done, 1, "{} {}", first.text(), second.text());
        let winner = if first.status == 200 { &by_a } else { &by_b };
        let team = success(&winner.get("/api/user/team").await, 200);
        let users = team["users"].as_array().unwrap();
        let owners = users.iter().filter(|user| user["role"] == json!("owner")).count();
        assert_eq!(owners, 1, "{team}");
    }
}

#[tokio::test]
async fn an_owner_who_leaves_another_one_behind_may_go() {
    let fixture = Fixture::start().await;
    let (owner, session) = fixture.user(Role::Owner).await;
    let (_, other) = fixture.member(&owner.account, Role::Owner).await;
    let own = format!("/api/user/team/{}", owner.id);
    success(&session.patch(&own, json!({ "role": "viewer" })).await, 200);
    problem(&session.delete(&own).await, 403, "INSUFFICIENT_ROLE");
    success(&other.delete(&own).await, 200);
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let team = success(&other.get("/api/user/team").await, 200);
    assert_eq!(team["total"], json!(1));
    assert_eq!(text(&team, "/users/0/role"), "owner");
}
