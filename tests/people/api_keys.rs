//! API keys that people make (decision D8).

use crate::fixture::{Fixture, problem, success, text};
use clock::now_ms;
use domain::mode::Mode;
use domain::timestamp::iso_from_ms;
use harness::{Redis, Role, SessionCaller, TEST_PASSWORD, assert_fields};
use serde_json::{Value, json};
use store::api_key::script::revoke_made_by;
use store::api_key::{API_KEYS_MAX, ApiKey};
use store::script::change::Scope;

async fn make(session: &SessionCaller, body: Value) -> Value {
    success(&session.post("/api/v1/api-keys", body).await, 200)
}

#[tokio::test]
async fn a_key_works_at_once_as_requested() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Admin).await;
    let made = make(&session, json!({})).await;
    let key = text(&made, "/key");
    assert!(key.starts_with("svc_live_") && key.len() == 73);
    let shown = &made["apiKey"];
    let expected = json!({
        "keyId": shown["keyId"], "name": "", "mode": "live", "status": "active", "permissions": ["read", "write"],
        "allowIps": [], "prefix": &key[..13], "createdAt": shown["createdAt"], "expiresAt": null, "revokedAt": null,
        "lastUsedAt": null, "createdBy": user.id,
    });
    assert_eq!(*shown, expected);
    success(&fixture.admin.caller(key).get("/v1/agents").await, 200);

    let soon = iso_from_ms(now_ms() + 1500);
    let body = json!({ "name": "Ci \u{1f916}", "mode": "test", "permissions": ["approve", "read", "read"],
        "allowIps": ["10.1.2.3/8", "::ffff:127.0.0.1"], "expiresAt": soon, "prefix": "sk_service" });
    let other = make(&session, body).await;
    let short = text(&other, "/key");
    assert!(short.starts_with("sk_service_test_"));
    let shown = &other["apiKey"];
    assert_eq!(shown["permissions"], json!(["read", "approve"]));
    assert_eq!(shown["allowIps"], json!(["10.0.0.0/8", "127.0.0.1/32"]));
    assert_fields!(shown, { "name": "Ci \u{1f916}", "expiresAt": soon });
    let caller = fixture.admin.caller(short);
    success(&caller.get("/v1/agents").await, 200);
    let reply = caller.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&reply, 403, "INSUFFICIENT_API_KEY_PERMISSIONS");
    tokio::time::sleep(std::time::Duration::from_millis(1700)).await;
    problem(&caller.get("/v1/agents").await, 401, "INVALID_API_KEY");
    let elsewhere = make(&session, json!({ "allowIps": ["192.0.2.0/24"] })).await;
    let elsewhere = fixture.admin.caller(text(&elsewhere, "/key"));
    problem(&elsewhere.get("/v1/agents").await, 403, "IP_BLOCKED");

    let list = success(&session.get("/v1/api-keys").await, 200);
    assert_eq!(list["total"], json!(3));
    let names: Vec<&str> = list["apiKeys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| text(key, "/status"))
        .collect();
    assert_eq!(names, ["active", "expired", "active"], "newest first");
    assert_fields!(success(&session.get("/v1/api-keys?mode=test").await, 200), { "total": 1 });
    problem(&session.get("/v1/api-keys?mode=x").await, 400, "VALIDATION");
    assert!(!list.to_string().contains(key));

    // A session of either mode revokes every key of the account.
    let path = format!("/v1/api-keys/{}", text(&made, "/apiKey/keyId"));
    success(&session.in_mode(Mode::Test).delete(&path).await, 200);
    let reply = fixture.admin.caller(key).get("/v1/agents").await;
    problem(&reply, 401, "INVALID_API_KEY");
    problem(&session.delete(&path).await, 404, "NOT_FOUND");
    let audit = user.account.audit(Mode::Live).await;
    let kinds: Vec<(&str, &str)> = audit
        .iter()
        .map(|entry| (entry.kind.as_str(), entry.actor.as_str()))
        .collect();
    let id = user.id.as_str();
    let expected = [
        ("user.login", id),
        ("api_key.created", id),
        ("api_key.created", id),
        ("api_key.revoked", id),
    ];
    assert_eq!(kinds, expected, "the test key stands in the log of its mode");
}

#[tokio::test]
async fn keys_that_cannot_be_made_or_are_not_there() {
    let fixture = Fixture::start().await;
    let (_, boss) = fixture.user(Role::Owner).await;
    make(&boss, json!({ "permissions": ["read", "write", "approve"] })).await;
    let (_, stranger) = fixture.user(Role::Owner).await;
    assert_eq!(
        success(&stranger.get("/v1/api-keys").await, 200)["total"],
        json!(0)
    );
    for unknown in ["key_1", "x", "key_01KAH3V9J80123456789ABCDEF"] {
        let reply = boss.delete(&format!("/v1/api-keys/{unknown}")).await;
        problem(&reply, 404, "NOT_FOUND");
    }
    for (body, named) in [
        (json!({ "mode": "prod" }), "mode"),
        (json!({ "permissions": [] }), "permissions"),
        (json!({ "permissions": ["root"] }), "permissions"),
        (json!({ "permissions": "read" }), "permissions"),
        (json!({ "allowIps": ["10.0.0.0/33"] }), "allowIps"),
        (json!({ "allowIps": vec!["10.0.0.1"; 101] }), "allowIps"),
        (json!({ "expiresAt": "2020-01-01T00:00:00Z" }), "expiresAt"),
        (json!({ "expiresAt": "soon" }), "expiresAt"),
        (json!({ "prefix": "sk" }), "prefix"),
        (json!({ "name": "x".repeat(201) }), "name"),
        (json!({ "secret": "x" }), "secret"),
    ] {
        let sentence = problem(&boss.post("/v1/api-keys", body).await, 400, "VALIDATION");
        assert!(sentence.contains(named), "{sentence}");
    }
}

#[tokio::test]
async fn secrets_are_shown_once_and_are_nowhere() {
    let fixture = Fixture::on(Redis::start_durable(), |options| options).await;
    let (_, session) = fixture.user(Role::Owner).await;
    let made = make(&session, json!({ "name": "canary-name" })).await;
    let secret = text(&made, "/key").to_owned();
    success(&fixture.admin.caller(&secret).get("/v1/agents").await, 200);
    let invited = json!({ "email": "a@example.com", "role": "viewer" });
    let invited = success(&session.post("/api/user/invitations", invited).await, 200);
    let token = text(&invited, "/link").rsplit_once('/').unwrap().1.to_owned();
    // The append-only file has every command that the store executed.
    let files = std::fs::read_dir(fixture.redis.dir().join("appendonlydir")).unwrap();
    let written: String = files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    assert!(
        written.contains("canary-name"),
        "the searched files are those of the store"
    );
    let logs = fixture.admin.logs();
    let cookie = &session.cookie()["tollgate_session=".len()..];
    // A list shows the first four digits of a key.
    for hidden in [&secret[13..], cookie, session.csrf(), &token, TEST_PASSWORD] {
        assert!(!written.contains(hidden) && !logs.contains(hidden), "{hidden}");
    }
}

/// Revoked keys stay listed until their places are needed; then the oldest of them are removed.
#[tokio::test]
async fn revoked_keys_make_room_for_new_ones() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    let keys = &user.account.keys;
    let list = async |path: &str| success(&session.get(path).await, 200)["apiKeys"].clone();
    let mut made = Vec::new();
    for name in ["a", "b", "c"] {
        made.push(make(&session, json!({ "name": name })).await);
    }
    let ids = made.iter().map(|made| text(made, "/apiKey/keyId"));
    let [a, b, c] = ids.collect::<Vec<_>>()[..] else {
        panic!("three keys")
    };
    // As many keys as the account can have.
    let mut fill = redis::pipe();
    for n in made.len()..API_KEYS_MAX {
        let id = format!("key_{n:026}");
        fill.cmd("COPY")
            .arg(keys.api_key(c))
            .arg(keys.api_key(&id))
            .ignore();
        fill.hset(keys.api_key(&id), "id", &id).ignore();
        fill.zadd(keys.api_keys(), &id, 1000 + n).ignore();
    }
    let () = fixture.store.pipeline(&fill).await.unwrap();
    let full = async || problem(&session.post("/v1/api-keys", json!({})).await, 409, "CONFLICT");
    let sentence = full().await;
    assert!(sentence.contains("1000 API keys"), "{sentence}");
    for id in [b, a] {
        success(&session.delete(&format!("/v1/api-keys/{id}")).await, 200);
    }
    let listed = list("/v1/api-keys?limit=3&offset=997").await;
    let states = ["active", "revoked", "revoked"];
    assert_eq!([0, 1, 2].map(|n| text(&listed[n], "/status")), states);

    let d = make(&session, json!({ "name": "d" })).await;
    success(
        &fixture.admin.caller(text(&d, "/key")).get("/v1/agents").await,
        200,
    );
    let listed = list("/v1/api-keys?limit=3&offset=997").await;
    assert_eq!(listed[2]["keyId"], json!(b), "the oldest revoked key went");
    assert_eq!(listed[2]["status"], json!("revoked"));
    for gone in [&made[0], &made[1]] {
        let caller = fixture.admin.caller(text(gone, "/key"));
        problem(&caller.get("/v1/agents").await, 401, "INVALID_API_KEY");
    }
    let reply = session.delete(&format!("/v1/api-keys/{a}")).await;
    problem(&reply, 404, "NOT_FOUND");
    success(
        &fixture
            .admin
            .caller(text(&made[2], "/key"))
            .get("/v1/agents")
            .await,
        200,
    );
    make(&session, json!({ "name": "e" })).await;
    full().await;
    assert_eq!(
        success(&session.get("/v1/api-keys").await, 200)["total"],
        json!(1000)
    );

    let audit = user.account.audit(Mode::Live).await;
    let of = |wanted: &str| {
        let entries = audit.iter().filter(|entry| entry.kind == wanted);
        entries.map(|entry| json!(entry.data)).collect::<Vec<_>>()
    };
    assert_eq!(
        of("api_key.revoked"),
        [json!({ "keyId": b }), json!({ "keyId": a })]
    );
    let dropped = of("api_key.created")
        .into_iter()
        .map(|data| data["droppedKeyId"].clone());
    assert_eq!(
        dropped.collect::<Vec<_>>(),
        [json!(null), json!(null), json!(null), json!(a), json!(b)]
    );
}

/// Returns the status of a key as its owner sees it.
async fn status(boss: &SessionCaller, key: &Value) -> String {
    let list = success(&boss.get("/v1/api-keys?limit=200").await, 200);
    let keys = list["apiKeys"].as_array().unwrap();
    let found = keys.iter().find(|one| one["keyId"] == key["apiKey"]["keyId"]);
    text(found.expect("the key"), "/status").to_owned()
}

#[tokio::test]
async fn a_removed_user_leaves_no_key_unless_requested() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    for keeps in [false, true] {
        let (leaver, session) = fixture.member(&owner.account, Role::Admin).await;
        let live = make(&session, json!({ "name": "live" })).await;
        let test = make(&session, json!({ "name": "test", "mode": "test" })).await;
        let gone = make(&session, json!({ "name": "gone" })).await;
        let of_boss = make(&boss, json!({ "name": "of the boss" })).await;
        let path = format!("/v1/api-keys/{}", text(&gone, "/apiKey/keyId"));
        success(&session.delete(&path).await, 200);
        let by: Value = fixture.cli(&["api-key", "list", "--account", &owner.account.id]);
        let by_id = |id: &Value| {
            let keys = by["apiKeys"].as_array().unwrap();
            keys.iter().find(|key| key["keyId"] == *id).unwrap()["createdBy"].clone()
        };
        assert_eq!(by_id(&live["apiKey"]["keyId"]), json!(leaver.id));
        assert_eq!(by_id(&of_boss["apiKey"]["keyId"]), json!(owner.id));

        let query = if keeps { "?keepApiKeys=true" } else { "" };
        let wrong = format!("/api/user/team/{}?keepApiKeys=perhaps", leaver.id);
        let sentence = problem(&boss.delete(&wrong).await, 400, "VALIDATION");
        assert!(sentence.contains("keepApiKeys"), "{sentence}");
        let path = format!("/api/user/team/{}{query}", leaver.id);
        let removed = success(&boss.delete(&path).await, 200);
        let shown: Vec<(&str, &str)> = removed["apiKeys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| (text(key, "/name"), text(key, "/status")))
            .collect();
        let state = if keeps { "active" } else { "revoked" };
        assert_eq!(shown, [("test", state), ("live", state)], "{removed}");
        for key in [&live, &test] {
            assert_eq!(status(&boss, key).await, state);
            let reply = fixture.admin.caller(text(key, "/key")).get("/v1/agents").await;
            assert_eq!(reply.status == 200, keeps, "{}", reply.text());
        }
        assert_eq!(status(&boss, &of_boss).await, "active");
        let audit = owner.account.audit(Mode::Live).await;
        let data = &audit
            .iter()
            .rfind(|entry| entry.kind == "user.removed")
            .unwrap()
            .data;
        let named = data["revokedApiKeys"].as_array().unwrap().len();
        assert_eq!(named, if keeps { 0 } else { 2 }, "{data:?}");
    }
}

/// A demotion to a role that can make no keys revokes the user's keys, unless they are kept. Any other demotion keeps
/// them.
#[tokio::test]
async fn a_demotion_revokes_the_keys_of_the_user() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    for (role, query, state) in [
        ("owner", "", "active"),
        ("viewer", "", "revoked"),
        ("manager", "", "revoked"),
        ("manager", "?keepApiKeys=true", "active"),
    ] {
        let (member, session) = fixture.member(&owner.account, Role::Admin).await;
        let live = make(&session, json!({ "name": "live" })).await;
        let test = make(&session, json!({ "name": "test", "mode": "test" })).await;
        let of_boss = make(&boss, json!({ "name": "of the boss" })).await;
        let path = format!("/api/user/team/{}{query}", member.id);
        let changed = success(&boss.patch(&path, json!({ "role": role })).await, 200);
        assert_eq!(changed["user"]["role"], json!(role), "{changed}");
        let named = changed["apiKeys"].as_array().unwrap();
        assert!(named.iter().all(|key| key["status"] == json!(state)), "{changed}");
        assert_eq!(named.len(), if role == "owner" { 0 } else { 2 }, "{changed}");
        for key in [&live, &test] {
            assert_eq!(status(&boss, key).await, state);
            let reply = fixture.admin.caller(text(key, "/key")).get("/v1/agents").await;
            assert_eq!(reply.status == 200, state == "active", "{}", reply.text());
        }
        assert_eq!(status(&boss, &of_boss).await, "active");
        let audit = owner.account.audit(Mode::Live).await;
        let changed = audit.iter().rfind(|entry| entry.kind == "user.role_changed");
        let data = &changed.unwrap().data;
        let revoked = data["revokedApiKeys"].as_array().unwrap().len();
        assert_eq!(revoked, if state == "revoked" { 2 } else { 0 }, "{data:?}");
    }
    // Keys that were kept, or that a change which was cut off left, go with the next change, also to the same role.
    let by_operator = |user: &str, role: &str| {
        let args = [
            "user",
            "set-role",
            "--account",
            &owner.account.id,
            "--email",
            user,
            "--role",
            role,
        ];
        fixture.cli(&args)
    };
    for role in ["manager", "viewer"] {
        for is_operator in [false, true] {
            let (member, session) = fixture.member(&owner.account, Role::Admin).await;
            let key = make(&session, json!({})).await;
            let path = format!("/api/user/team/{}", member.id);
            let keeping = format!("{path}?keepApiKeys=true");
            let kept = success(&boss.patch(&keeping, json!({ "role": "manager" })).await, 200);
            assert_eq!(kept["apiKeys"][0]["status"], "active", "{kept}");
            let ids = match is_operator {
                true => by_operator(&member.email, role)["revokedApiKeys"].clone(),
                false => {
                    let changed = success(&boss.patch(&path, json!({ "role": role })).await, 200);
                    json!([changed["apiKeys"][0]["keyId"]])
                }
            };
            assert_eq!(ids, json!([key["apiKey"]["keyId"]]), "{role}");
            assert_eq!(status(&boss, &key).await, "revoked");
        }
    }
    let (member, _) = fixture.member(&owner.account, Role::Admin).await;
    let wrong = format!("/api/user/team/{}?keepApiKeys=perhaps", member.id);
    let sentence = problem(
        &boss.patch(&wrong, json!({ "role": "viewer" })).await,
        400,
        "VALIDATION",
    );
    assert!(sentence.contains("keepApiKeys"), "{sentence}");
}

/// The revocations of a demotion may run after another owner has promoted the user again: they take no key that the
/// user made since.
#[tokio::test]
async fn a_late_revocation_leaves_the_keys_made_since() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (member, session) = fixture.member(&owner.account, Role::Admin).await;
    let path = format!("/api/user/team/{}?keepApiKeys=true", member.id);
    let before = make(&session, json!({})).await;
    success(&boss.patch(&path, json!({ "role": "manager" })).await, 200);
    let last_key = ApiKey::last_number(&fixture.store, &owner.account.keys)
        .await
        .unwrap();
    success(&boss.patch(&path, json!({ "role": "admin" })).await, 200);
    let since = make(&session, json!({ "mode": "test" })).await;
    let (scope, mut revoked) = (Scope::live(&owner.account.id, &owner.id), Vec::new());
    revoke_made_by(&fixture.store, &scope, &member.id, last_key, &mut revoked)
        .await
        .unwrap();
    assert_eq!(json!(revoked), json!([before["apiKey"]["keyId"]]));
    assert_eq!(status(&boss, &before).await, "revoked");
    assert_eq!(status(&boss, &since).await, "active");
}

/// A refused removal revokes no keys.
#[tokio::test]
async fn the_last_owner_stays_with_the_keys() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let key = make(&boss, json!({})).await;
    let path = format!("/api/user/team/{}", owner.id);
    problem(&boss.delete(&path).await, 409, "LAST_OWNER");
    assert_eq!(status(&boss, &key).await, "active");
}
