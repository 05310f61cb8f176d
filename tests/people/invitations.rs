//! Invitations: links by which a person joins once, with the role of the invitation.

use crate::fixture::{Fixture, problem, success, text};
use clock::now_ms;
use crypto::sha256_hex;
use crypto::token::Token;
use domain::id::IdKind;
use domain::mode::Mode;
use futures::future::join_all;
use harness::{Reply, Role, SessionCaller, TEST_PASSWORD, assert_fields};
use serde_json::{Value, json};
use std::time::Duration;
use store::invitation::Invitation;
use store::invitation::script::{self as script, Joined};
use store::keys;
use store::script::change::Scope;
use store::session::script::NewSession;
use store::user::User;

const PASSWORD: &str = "a password of mine";

async fn invite(session: &SessionCaller, email: &str, role: &str) -> Reply {
    session
        .post("/api/user/invitations", json!({ "email": email, "role": role }))
        .await
}

/// The token in the link of an invitation.
#[track_caller]
fn token(invited: &Value) -> String {
    let link = text(invited, "/link");
    link.split_once("/#/join/")
        .unwrap_or_else(|| panic!("{link}"))
        .1
        .to_owned()
}

async fn get_invitation(fixture: &Fixture, token: &str) -> Reply {
    fixture
        .admin
        .caller("")
        .post("/api/user/invitations/look", json!({ "token": token }))
        .await
}

async fn accept(fixture: &Fixture, token: &str) -> Reply {
    let body = json!({ "token": token, "password": PASSWORD });
    fixture
        .admin
        .caller("")
        .post("/api/user/invitations/accept", body)
        .await
}

#[tokio::test]
async fn an_invited_user_reads_the_invitation_and_joins() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let invited = success(&invite(&boss, "New@Example.com", "manager").await, 200);
    assert!(text(&invited, "/link").starts_with(&fixture.admin.url()));
    assert_eq!(text(&invited, "/invitation/email"), "new@example.com");
    assert_eq!(text(&invited, "/invitation/invitedBy"), owner.id);
    let list = success(&boss.get("/api/user/invitations").await, 200);
    assert_eq!(list["invitations"], json!([invited["invitation"]]));
    let token = token(&invited);
    assert!(!list.to_string().contains(&token));
    let body = success(&get_invitation(&fixture, &token).await, 200);
    assert_eq!(
        body,
        json!({ "success": true, "email": "new@example.com", "role": "manager", "accountName": "Test" })
    );
    let short = json!({ "token": token, "password": "short" });
    let reply = fixture
        .admin
        .caller("")
        .post("/api/user/invitations/accept", short)
        .await;
    problem(&reply, 400, "VALIDATION");

    let at_once = join_all((0..5).map(|_| accept(&fixture, &token))).await;
    let joined: Vec<&Reply> = at_once.iter().filter(|reply| reply.status == 200).collect();
    assert_eq!(joined.len(), 1);
    for reply in at_once.iter().filter(|reply| reply.status != 200) {
        assert!([404, 409].contains(&reply.status), "{}", reply.text());
    }
    let session = fixture.admin.session(joined[0]);
    let me = success(&session.get("/api/user/me").await, 200);
    assert_eq!(me["user"]["role"], json!("manager"));
    assert_eq!(text(&me, "/account/id"), owner.account.id);
    problem(&get_invitation(&fixture, &token).await, 404, "NOT_FOUND");
    problem(&accept(&fixture, &token).await, 404, "NOT_FOUND");
    fixture.admin.sign_in("new@example.com", PASSWORD).await;
    assert_fields!(success(&boss.get("/api/user/invitations").await, 200), { "total": 0 });
    let lookup = keys::user_lookup("new@example.com");
    assert_eq!(
        fixture.redis.command::<i64>(&["PTTL", &lookup]),
        -1,
        "the e-mail is taken for good"
    );
    let audit = owner.account.audit(Mode::Live).await;
    let joined = audit.iter().find(|entry| entry.kind == "user.joined").unwrap();
    assert_eq!(joined.data["invitationId"], invited["invitation"]["id"]);
    assert!(!format!("{audit:?}").contains(&token) && !fixture.admin.logs().contains(&token));
}

#[tokio::test]
async fn links_that_lead_nowhere_are_all_alike() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (second, deputy) = fixture.member(&owner.account, Role::Owner).await;
    let invited = success(&invite(&boss, "a@example.com", "viewer").await, 200);
    let revoked = token(&invited);
    let path = format!("/api/user/invitations/{}", text(&invited, "/invitation/id"));
    success(&boss.delete(&path).await, 200);
    problem(&boss.delete(&path).await, 404, "NOT_FOUND");

    let expired = token(&success(&invite(&boss, "b@example.com", "viewer").await, 200));
    let key = owner.account.keys.invitations();
    let ends: String = fixture.redis.command(&["HGET", &key, "b@example.com"]);
    let words: Vec<&str> = ends.splitn(3, ' ').collect();
    let past = format!("{} {} {}", words[0], words[0], words[2]);
    fixture
        .redis
        .command::<i64>(&["HSET", &key, "b@example.com", &past]);

    // A removed or demoted owner's invitations do not count.
    let backed = token(&success(&invite(&deputy, "c@example.com", "owner").await, 200));
    success(&get_invitation(&fixture, &backed).await, 200);
    let demote = format!("/api/user/team/{}", second.id);
    success(&boss.patch(&demote, json!({ "role": "admin" })).await, 200);
    let unknown = "0a".repeat(32);
    let mut sentences = Vec::new();
    for dead in [&revoked, &expired, &backed, &unknown, "x", ""] {
        sentences.push(problem(&get_invitation(&fixture, dead).await, 404, "NOT_FOUND"));
        sentences.push(problem(&accept(&fixture, dead).await, 404, "NOT_FOUND"));
    }
    sentences.dedup();
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert_fields!(success(&boss.get("/api/user/invitations").await, 200), { "total": 0 });
    // Their places are free again.
    for email in ["a@example.com", "b@example.com", "c@example.com"] {
        success(&invite(&boss, email, "viewer").await, 200);
    }
    let left: i64 = fixture.redis.command(&["PTTL", &key]);
    assert!(left > 6 * 86_400_000);
}

#[tokio::test]
async fn invitations_have_their_bounds() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let other = "other@example.com";
    fixture.make_user(&fixture.seed.account("free").await, other, TEST_PASSWORD);
    for (body, named) in [
        (json!({ "role": "viewer" }), "email"),
        (json!({ "email": "a@example.com" }), "role"),
        (json!({ "email": "a b@example.com", "role": "viewer" }), "email"),
        (json!({ "email": "a@example.com", "role": "king" }), "role"),
        (
            json!({ "email": "a@example.com", "role": "viewer", "days": 1 }),
            "days",
        ),
    ] {
        let sentence = problem(&boss.post("/api/user/invitations", body).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
    problem(&invite(&boss, &owner.email, "viewer").await, 409, "CONFLICT");
    success(&invite(&boss, "twice@example.com", "viewer").await, 200);
    let reply = invite(&boss, "Twice@example.com", "owner").await;
    problem(&reply, 409, "CONFLICT");
    // A user of another account can be invited, and no answer reveals the other account.
    let elsewhere = token(&success(&invite(&boss, other, "viewer").await, 200));
    success(&accept(&fixture, &elsewhere).await, 200);
    fixture.admin.sign_in(other, TEST_PASSWORD).await;
    fixture.admin.sign_in(other, PASSWORD).await;
    for n in 0..99 {
        success(&invite(&boss, &format!("n{n}@example.com"), "viewer").await, 200);
    }
    let reply = invite(&boss, "more@example.com", "viewer").await;
    problem(&reply, 409, "CONFLICT");
    let list = success(&boss.get("/api/user/invitations?limit=200").await, 200);
    assert_eq!(list["total"], json!(100));
}

/// A look-up is outside the account's bucket, where no budget counts it: so there is one for each open invitation and
/// no more.
#[tokio::test]
async fn an_invitation_that_is_none_leaves_no_look_up() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let lookups = || {
        fixture
            .redis
            .command::<Vec<String>>(&["KEYS", "tollgate/invitation/*"])
            .len()
    };
    let invited = success(&invite(&boss, "a@example.com", "viewer").await, 200);
    for email in ["a@example.com", &owner.email] {
        problem(&invite(&boss, email, "viewer").await, 409, "CONFLICT");
    }
    assert_eq!(lookups(), 1, "refused ones leave none");
    let path = format!("/api/user/invitations/{}", text(&invited, "/invitation/id"));
    success(&boss.delete(&path).await, 200);
    assert_eq!(lookups(), 0, "nor does one that was taken back");
    let again = token(&success(&invite(&boss, "a@example.com", "viewer").await, 200));
    assert_eq!(lookups(), 1);
    success(&accept(&fixture, &again).await, 200);
    assert_eq!(lookups(), 0, "nor one that was used");
}

#[tokio::test]
async fn a_user_removed_during_an_acceptance_cannot_return() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (deputy, deputys) = fixture.member(&owner.account, Role::Owner).await;
    let token = token(&success(
        &invite(&deputys, "back@example.com", "owner").await,
        200,
    ));
    // Accepting reads the invitation first and then hashes the password; meanwhile the deputy is removed.
    let hash = sha256_hex(token.as_bytes());
    let found = Invitation::find(&fixture.store, &hash, now_ms()).await.unwrap();
    let (account, invitation) = found.expect("an open invitation");
    let fresh = Token::mint().unwrap();
    let user = User {
        id: IdKind::User.mint(now_ms()).unwrap(),
        email: invitation.email.clone(),
        role: invitation.body.role,
        password: "$argon2id$".to_owned(),
        created_at_ms: now_ms(),
        totp: None,
        totp_pending: None,
        totp_begun_at_ms: None,
    };
    let scope = Scope {
        account: &account,
        mode: Mode::Live,
        actor: &user.id,
    };
    let session = NewSession {
        id: "ses_1",
        token: &fresh,
        client: None,
        user_agent: "",
        life: Duration::from_secs(60),
    };
    let path = format!("/api/user/team/{}", deputy.id);
    let accepted = async || {
        script::accept(&fixture.store, &scope, &invitation, &user, &session)
            .await
            .unwrap()
    };
    success(&boss.patch(&path, json!({ "role": "admin" })).await, 200);
    assert_eq!(accepted().await, Joined::Missing, "demoted");
    success(&boss.patch(&path, json!({ "role": "owner" })).await, 200);
    success(&boss.delete(&path).await, 200);
    assert_eq!(accepted().await, Joined::Missing, "removed");
    assert_eq!(success(&boss.get("/api/user/team").await, 200)["total"], json!(1));
    // The e-mail is not taken.
    success(&invite(&boss, "back@example.com", "viewer").await, 200);
    let owned: Option<String> = fixture
        .redis
        .command(&["GET", &keys::user_lookup("back@example.com")]);
    assert_eq!(owned, None);
}

#[tokio::test]
async fn a_joined_user_is_signed_in_whatever_the_browser_had_before() {
    let fixture = Fixture::start().await;
    let (_, boss) = fixture.user(Role::Owner).await;
    let token = token(&success(&invite(&boss, "new@example.com", "viewer").await, 200));
    // The look-up of the browser's earlier session is malformed, so the session cannot be ended.
    let earlier = "0a".repeat(32);
    let lookup = keys::session_lookup(&sha256_hex(earlier.as_bytes()));
    fixture.redis.command::<String>(&["SET", &lookup, "nonsense"]);
    let body = json!({ "token": token, "password": PASSWORD }).to_string();
    let cookie = format!("tollgate_session={earlier}");
    let headers = [("cookie", cookie.as_str()), ("content-type", "application/json")];
    let nobody = fixture.admin.caller("");
    let reply = nobody
        .send("POST", "/api/user/invitations/accept", &headers, body)
        .await;
    success(&reply, 200);
    success(&fixture.admin.session(&reply).get("/api/user/me").await, 200);
}

/// An invitation from a store clock that was ahead ends later than one that is made now, and stays valid until then.
#[tokio::test]
async fn a_later_invitation_shortens_no_earlier_one() {
    const AHEAD_MS: i64 = 280_000;
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    success(&invite(&boss, "first@example.com", "viewer").await, 200);
    let key = owner.account.keys.invitations();
    let ends = || fixture.redis.command::<i64>(&["PEXPIRETIME", &key]);
    let later = ends() + AHEAD_MS;
    let _: i64 = fixture.redis.command(&["PEXPIREAT", &key, &later.to_string()]);
    success(&invite(&boss, "second@example.com", "viewer").await, 200);
    assert_eq!(ends(), later);
    let _: i64 = fixture
        .redis
        .command(&["PEXPIREAT", &key, &(later - 3 * AHEAD_MS).to_string()]);
    success(&invite(&boss, "third@example.com", "viewer").await, 200);
    assert!(
        (later - 2 * AHEAD_MS..later).contains(&ends()),
        "as long as the last one"
    );
}
