//! A store that is down, empty, behind, full, or a cluster: sessions fail closed, as keys do.

use crate::fixture::{BINARY, Fixture, problem, success, text};
use harness::{Admin, AdminOptions, RedisCluster, Role, Seed, Store, TEST_PASSWORD, until};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn without_a_store_no_session_and_no_login_is_valid() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    fixture.redis.stop();
    problem(&session.get("/api/user/me").await, 503, "SERVICE_UNAVAILABLE");
    problem(&session.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    let reply = session.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    let nobody = fixture.admin.caller("");
    let token = "0a".repeat(32);
    for (path, body) in [
        (
            "/api/user/password/reset",
            json!({ "token": token, "newPassword": "12345678" }),
        ),
        ("/api/user/password/reset/look", json!({ "token": token })),
        ("/api/user/invitations/look", json!({ "token": token })),
        (
            "/api/user/invitations/accept",
            json!({ "token": token, "password": "12345678" }),
        ),
    ] {
        problem(&nobody.post(path, body).await, 503, "SERVICE_UNAVAILABLE");
    }
    problem(&nobody.get("/api/user/me").await, 401, "SESSION_REQUIRED");
}

#[tokio::test]
async fn a_store_that_forgot_or_fell_back_is_not_trusted() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    success(&session.get("/v1/agents").await, 200);
    let record = user.account.keys.record();
    let version: u64 = fixture
        .redis
        .command::<String>(&["HGET", &record, "version"])
        .parse()
        .unwrap();
    let set = |version: u64| {
        fixture
            .redis
            .command::<i64>(&["HSET", &record, "version", &version.to_string()]);
    };
    set(version - 1);
    problem(&session.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    problem(&session.get("/api/user/me").await, 503, "SERVICE_UNAVAILABLE");
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    assert!(fixture.admin.logs().contains("store accept"));
    set(version);
    success(&session.get("/v1/agents").await, 200);

    let epoch: String = fixture.redis.command(&["HGET", store::keys::STORE, "epoch"]);
    fixture
        .redis
        .command::<i64>(&["HDEL", store::keys::STORE, "epoch"]);
    problem(&session.get("/v1/agents").await, 503, "SERVICE_UNAVAILABLE");
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    fixture
        .redis
        .command::<i64>(&["HSET", store::keys::STORE, "epoch", &epoch]);
    until("trust", async || session.get("/v1/agents").await.status == 200).await;
}

#[tokio::test]
async fn a_full_store_lets_people_leave_and_be_stopped() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (user, session) = fixture.member(&owner.account, Role::Admin).await;
    let (leaver, leaving) = fixture.member(&owner.account, Role::Viewer).await;
    let other = fixture.sign_in(&owner).await;
    let made = success(&boss.post("/v1/api-keys", json!({})).await, 200);
    fixture
        .redis
        .command::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    let reply = fixture.try_login(&owner.email, TEST_PASSWORD).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    let reply = boss.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    success(&boss.get("/api/user/me").await, 200);
    let reply = boss
        .patch(
            &format!("/api/user/team/{}", user.id),
            json!({ "role": "viewer" }),
        )
        .await;
    success(&reply, 200);
    let reply = session.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&reply, 403, "INSUFFICIENT_ROLE");
    success(&leaving.post("/api/user/logout", json!({})).await, 200);
    success(&boss.delete(&format!("/api/user/team/{}", leaver.id)).await, 200);
    success(
        &boss.post("/api/user/sessions/revoke-others", json!({})).await,
        200,
    );
    problem(&other.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let reply = boss
        .delete(&format!("/v1/api-keys/{}", text(&made, "/apiKey/keyId")))
        .await;
    success(&reply, 200);
}

#[tokio::test]
async fn people_work_on_a_cluster() {
    let cluster = RedisCluster::start(3);
    let store = Store::open(&cluster.url(), Duration::from_secs(10)).unwrap();
    let seed = Seed::new(&store).await;
    let admin = Admin::start(AdminOptions::new(BINARY, cluster.url()));
    for round in 0..3 {
        let owner = seed.account("builder").await.user(Role::Owner).await;
        let session = admin.sign_in(&owner.email, TEST_PASSWORD).await;
        let email = format!("colleague{round}@example.com");
        let invited = json!({ "email": email, "role": "viewer" });
        let invited = success(&session.post("/api/user/invitations", invited).await, 200);
        let token = text(&invited, "/link").rsplit_once('/').unwrap().1.to_owned();
        let join = json!({ "token": token, "password": "a password of mine" });
        let joined = admin.caller("").post("/api/user/invitations/accept", join).await;
        success(&joined, 200);
        let colleague = admin.session(&joined);
        let change = json!({ "currentPassword": "a password of mine", "newPassword": "another password" });
        let changed = colleague.post("/api/user/password", change).await;
        success(&changed, 200);
        let colleague = colleague.renewed(&changed);
        let body = json!({ "password": "another password" });
        success(&colleague.post("/api/user/totp", body).await, 200);
        let me = success(&colleague.get("/api/user/me").await, 200);
        let path = format!("/api/user/team/{}", text(&me, "/user/id"));
        success(&session.patch(&path, json!({ "role": "manager" })).await, 200);
        success(&session.delete(&path).await, 200);
        problem(&colleague.get("/api/user/me").await, 401, "SESSION_REQUIRED");
        success(&session.post("/api/user/logout", json!({})).await, 200);
    }
}
