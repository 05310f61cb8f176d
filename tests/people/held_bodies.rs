//! Requests whose body is held back: authority that their caller loses meanwhile is lost for them, too.

use crate::fixture::{Fixture, success, text};
use domain::mode::Mode;
use harness::{RawClient, RawReply, Role, SessionCaller, eventually};
use serde_json::{Value, json};
use std::time::Duration;
use store::api_key::ApiKey;

const SOON: Duration = Duration::from_secs(30);
/// Longer than the greatest age of a caller's authority when a handler begins.
const LONG: Duration = Duration::from_millis(1300);

/// A request of which the last byte has not been sent.
struct Held {
    client: RawClient,
}

fn taken(fixture: &Fixture) -> Option<u64> {
    fixture.admin.metric("tollgate_admin_body_memory_bytes")
}

/// Sends all but the last byte, and waits until the server has the others.
async fn hold(fixture: &Fixture, credential: &str, (method, path): (&str, &str), body: Value) -> Held {
    let before = taken(fixture).unwrap();
    let body = body.to_string();
    let mut client = RawClient::connect(fixture.admin.addr()).await;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{credential}\r\n",
        body.len()
    );
    let most = body.strip_suffix('}').unwrap();
    assert!(client.send(format!("{head}{most}")).await);
    let reached = before + most.len() as u64;
    eventually("the body", SOON, async || {
        (taken(fixture)? >= reached).then_some(())
    })
    .await;
    Held { client }
}

impl Held {
    async fn finish(mut self) -> RawReply {
        assert!(self.client.send("}").await);
        self.client.reply(SOON).await.unwrap()
    }
}

/// Ends a stolen session as the operator does: by a link with which the person sets another password.
async fn set_another_password(fixture: &Fixture, email: &str) {
    let issued = fixture.cli(&["user", "reset-password", "--email", email]);
    let token = text(&issued, "/link").split_once("/#/reset/").unwrap().1;
    let body = json!({ "token": token, "newPassword": "a new password of mine" });
    let nobody = fixture.admin.caller("");
    success(&nobody.post("/api/user/password/reset", body).await, 200);
}

fn cookie(session: &SessionCaller) -> String {
    format!(
        "Cookie: {}\r\nX-CSRF-Token: {}\r\n",
        session.cookie(),
        session.csrf()
    )
}

#[track_caller]
fn refused(reply: &RawReply, status: u16, code: &str) {
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((reply.status, &body["code"]), (status, &json!(code)), "{body}");
}

/// The step that makes a change checks its caller's authority, even if it was lost just before.
#[tokio::test]
async fn a_session_that_lost_its_authority_changes_nothing() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let account = &owner.account;
    let deposit = json!({ "wallet": "user", "amount": 9_000_000, "reference": "r1" });
    let key = json!({ "permissions": ["read", "write", "approve"] });
    let invitation = json!({ "email": "new@example.com", "role": "owner" });
    for (at, (path, body)) in [
        ("/api/v1/api-keys", key.clone()),
        ("/api/v1/wallet/deposits", deposit),
        ("/api/user/invitations", invitation),
    ]
    .into_iter()
    .enumerate()
    {
        for wait in [Duration::ZERO, LONG] {
            let (user, session) = fixture.member(account, Role::Owner).await;
            let held = hold(&fixture, &cookie(&session), ("POST", path), body.clone()).await;
            tokio::time::sleep(wait).await;
            match at {
                0 => set_another_password(&fixture, &user.email).await,
                _ => drop(success(
                    &boss.delete(&format!("/api/user/team/{}", user.id)).await,
                    200,
                )),
            }
            refused(&held.finish().await, 401, "SESSION_REQUIRED");
        }
    }
    // A role that is too low now: nobody can become owner again by a held request.
    for wait in [Duration::ZERO, LONG] {
        let (user, session) = fixture.member(account, Role::Owner).await;
        let path = format!("/api/user/team/{}", user.id);
        let held = hold(
            &fixture,
            &cookie(&session),
            ("PATCH", &path),
            json!({ "role": "owner" }),
        )
        .await;
        let own_key = hold(
            &fixture,
            &cookie(&session),
            ("POST", "/api/v1/api-keys"),
            key.clone(),
        )
        .await;
        success(&boss.patch(&path, json!({ "role": "viewer" })).await, 200);
        tokio::time::sleep(wait).await;
        refused(&held.finish().await, 403, "INSUFFICIENT_ROLE");
        refused(&own_key.finish().await, 403, "INSUFFICIENT_ROLE");
        let team = success(&boss.get("/api/user/team").await, 200);
        let users = team["users"].as_array().unwrap().iter();
        let role = users.clone().find(|one| one["id"] == json!(user.id)).unwrap();
        assert_eq!(role["role"], json!("viewer"));
    }
    let keys = ApiKey::list(&fixture.store, &account.keys).await.unwrap();
    assert_eq!(keys.len(), 0, "{keys:?}");
    let invited = success(&boss.get("/api/user/invitations").await, 200);
    assert_eq!(invited["total"], json!(0));
    let made = account.audit_types(Mode::Live).await;
    assert!(!made.iter().any(|kind| kind.starts_with("deposit.")), "{made:?}");
}

/// A PATCH with the role that the user has already may still revoke API keys.
#[tokio::test]
async fn a_removed_owner_revokes_no_key_by_a_held_change_of_role() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (victim, session) = fixture.member(&owner.account, Role::Admin).await;
    let made = success(&session.post("/api/v1/api-keys", json!({})).await, 200);
    let path = format!("/api/user/team/{}", victim.id);
    let keeping = format!("{path}?keepApiKeys=true");
    let viewer = json!({ "role": "viewer" });
    success(&boss.patch(&keeping, viewer.clone()).await, 200);
    let (removed, session) = fixture.member(&owner.account, Role::Owner).await;
    let held = hold(&fixture, &cookie(&session), ("PATCH", &path), viewer).await;
    success(&boss.delete(&format!("/api/user/team/{}", removed.id)).await, 200);
    refused(&held.finish().await, 401, "SESSION_REQUIRED");
    let keys = success(&boss.get("/api/v1/api-keys").await, 200);
    assert_eq!(text(&keys, "/apiKeys/0/keyId"), text(&made, "/apiKey/keyId"));
    assert_eq!(text(&keys, "/apiKeys/0/status"), "active");
}

/// A lower role that suffices is accepted, and so is a held request of a caller who lost nothing.
#[tokio::test]
async fn a_session_that_lost_nothing_it_needs_goes_on() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (user, session) = fixture.member(&owner.account, Role::Owner).await;
    for wait in [Duration::ZERO, LONG] {
        let held = hold(
            &fixture,
            &cookie(&session),
            ("POST", "/api/v1/api-keys"),
            json!({ "name": "a" }),
        )
        .await;
        let path = format!("/api/user/team/{}", user.id);
        success(&boss.patch(&path, json!({ "role": "admin" })).await, 200);
        tokio::time::sleep(wait).await;
        let reply = held.finish().await;
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
}

#[tokio::test]
async fn a_revoked_key_changes_nothing_and_learns_nothing() {
    let fixture = Fixture::start().await;
    let (_, boss) = fixture.user(Role::Owner).await;
    let issue = json!({ "permissions": ["read", "write"] });
    let predict = json!({ "agent_id": "a", "call": { "model": "gpt-4o", "messages": [] } });
    for (path, body, wait) in [
        ("/v1/agents", json!({ "name": "a" }), Duration::ZERO),
        ("/v1/agents", json!({ "name": "a" }), LONG),
        ("/v1/decisions/dry-run", predict, LONG),
    ] {
        let made = success(&boss.post("/api/v1/api-keys", issue.clone()).await, 200);
        let credential = format!("X-Api-Key: {}\r\n", text(&made, "/key"));
        let held = hold(&fixture, &credential, ("POST", path), body).await;
        tokio::time::sleep(wait).await;
        let path = format!("/api/v1/api-keys/{}", text(&made, "/apiKey/keyId"));
        success(&boss.delete(&path).await, 200);
        refused(&held.finish().await, 401, "INVALID_API_KEY");
    }
    let agents = success(&boss.get("/api/v1/agents").await, 200);
    assert_eq!(agents["total"], json!(0), "{agents}");
}

/// Users who remove themselves leave no key behind, and the answer says so.
#[tokio::test]
async fn an_owner_who_removes_himself_gets_the_whole_answer() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    fixture.member(&owner.account, Role::Owner).await;
    let made = success(&boss.post("/api/v1/api-keys", json!({})).await, 200);
    let removed = success(&boss.delete(&format!("/api/user/team/{}", owner.id)).await, 200);
    assert_eq!(text(&removed, "/apiKeys/0/keyId"), text(&made, "/apiKey/keyId"));
    assert_eq!(text(&removed, "/apiKeys/0/status"), "revoked");
}
