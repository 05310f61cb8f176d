//! Sessions: how they end, and invalid cookies.

use crate::fixture::{Fixture, problem, success, text};
use crypto::sha256_hex;
use domain::mode::Mode;
use harness::{Role, SeedUser, SessionCaller, TEST_PASSWORD, assert_fields};
use serde_json::json;
use store::keys;
use store::session::SESSIONS_MAX;

async fn id_of(session: &SessionCaller) -> String {
    let me = success(&session.get("/api/user/me").await, 200);
    text(&me, "/session/id").to_owned()
}

/// Asserts that a session that ended is listed no more after the next sign-in, and has no record.
async fn is_forgotten(fixture: &Fixture, user: &SeedUser, id: &str) {
    let other = fixture.sign_in(user).await;
    let list = success(&other.get("/api/user/sessions").await, 200);
    assert_eq!(list["total"], json!(1), "only open ones are listed");
    let key = user.account.keys.sessions(&user.id);
    assert_eq!(fixture.redis.command::<i64>(&["HEXISTS", &key, id]), 0);
}

#[tokio::test]
async fn a_pause_and_a_lifetime_end_a_session() {
    let short = |options: harness::AdminOptions| {
        options
            .env("TOLLGATE_SESSIONS__IDLE_MINUTES", "10")
            .env("TOLLGATE_SESSIONS__ABSOLUTE_HOURS", "1")
    };
    let fixture = Fixture::start_with(short).await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let (key, id) = (user.account.keys.sessions(&user.id), id_of(&session).await);
    let seen = format!("seen:{id}");
    let read = |field: &str| fixture.redis.command::<String>(&["HGET", &key, field]);
    let set = |field: &str, value: &str| {
        fixture.redis.command::<i64>(&["HSET", &key, field, value]);
    };
    let times = |text: &str| -> Vec<u64> { text.split(' ').take(2).map(|ms| ms.parse().unwrap()).collect() };
    let whole = read(&id);
    assert_eq!(times(&whole)[1] - times(&whole)[0], 3_600_000);
    let lookup = keys::session_lookup(&sha256_hex(
        &session.cookie().as_bytes()["tollgate_session=".len()..],
    ));
    for key in [&key, &lookup] {
        let left: i64 = fixture.redis.command(&["PTTL", key]);
        assert!((3_590_000..=3_600_000).contains(&left), "{key}: {left}");
    }

    // After nine minutes without a request the session continues, and the pause begins anew.
    let ago = |ms: u64| (read(&seen).parse::<u64>().unwrap() - ms).to_string();
    set(&seen, &ago(9 * 60_000));
    let before = read(&seen);
    success(&session.get("/api/user/me").await, 200);
    assert_ne!(read(&seen), before);
    // Uses within the same minute are not recorded.
    let now = read(&seen);
    success(&session.get("/api/user/me").await, 200);
    assert_eq!(read(&seen), now);
    set(&seen, &ago(10 * 60_000 + 1));
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    problem(&session.get("/v1/agents").await, 401, "SESSION_REQUIRED");
    set(&seen, &now);
    success(&session.get("/v1/agents").await, 200);

    // A session has a greatest age, however often it is used.
    let ended = whole.replacen(
        &times(&whole)[1].to_string(),
        &(times(&whole)[0] + 1).to_string(),
        1,
    );
    set(&id, &ended);
    problem(&session.get("/v1/agents").await, 401, "SESSION_REQUIRED");
    is_forgotten(&fixture, &user, &id).await;
}

/// Otherwise the session would last longer by as much as the store's clock was ahead when it was opened.
#[tokio::test]
async fn a_session_from_a_clock_that_was_ahead_is_none() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let (key, id) = (user.account.keys.sessions(&user.id), id_of(&session).await);
    let whole: String = fixture.redis.command(&["HGET", &key, &id]);
    let (created, rest) = whole.split_once(' ').expect("a time");
    let created: u64 = created.parse().expect("a time");
    for (ahead_ms, is_open) in [
        (3_600_000, false),
        (120_000, false),
        (20_000, true),
        (36_000_000, false),
    ] {
        let moved = format!("{} {rest}", created + ahead_ms);
        let _: i64 = fixture.redis.command(&["HSET", &key, &id, &moved]);
        let reply = session.get("/api/user/me").await;
        if is_open {
            success(&reply, 200);
        } else {
            problem(&reply, 401, "SESSION_REQUIRED");
        }
    }
    is_forgotten(&fixture, &user, &id).await;
}

#[tokio::test]
async fn sessions_are_listed_and_revoked() {
    let fixture = Fixture::start().await;
    let (user, first) = fixture.user(Role::Viewer).await;
    let (second, third) = (fixture.sign_in(&user).await, fixture.sign_in(&user).await);
    let agent = [("user-agent", "Spider\u{202e} 1.0 <b>")];
    let body = json!({ "email": user.email, "password": TEST_PASSWORD }).to_string();
    let foreign = fixture
        .admin
        .caller("")
        .send("POST", "/api/user/login", &agent, body)
        .await;
    success(&foreign, 200);
    let list = success(&first.get("/api/user/sessions?limit=3").await, 200);
    assert_fields!(list, { "total": 4, "limit": 3, "offset": 0 });
    assert_eq!(list["sessions"].as_array().unwrap().len(), 3);
    let rest = success(&first.get("/api/user/sessions?offset=3").await, 200);
    assert_fields!(rest["sessions"][0], { "id": id_of(&first).await }, "newest first");
    assert_eq!(rest["sessions"][0]["current"], json!(true));

    let id = id_of(&second).await;
    success(&first.delete(&format!("/api/user/sessions/{id}")).await, 200);
    problem(&second.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let reply = first.delete(&format!("/api/user/sessions/{id}")).await;
    problem(&reply, 404, "NOT_FOUND");
    for unknown in ["ses_1", "x", "ses_01KAH3V9J80123456789ABCDEF"] {
        let path = format!("/api/user/sessions/{unknown}");
        problem(&first.delete(&path).await, 404, "NOT_FOUND");
    }
    // Another user's session is not found, even in the same account.
    let (_, colleague) = fixture.member(&user.account, Role::Owner).await;
    let path = format!("/api/user/sessions/{}", id_of(&third).await);
    problem(&colleague.delete(&path).await, 404, "NOT_FOUND");
    success(&third.get("/api/user/me").await, 200);

    success(
        &first.post("/api/user/sessions/revoke-others", json!({})).await,
        200,
    );
    problem(&third.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let reply = fixture.admin.session(&foreign).get("/api/user/me").await;
    problem(&reply, 401, "SESSION_REQUIRED");
    success(
        &first.post("/api/user/sessions/revoke-others", json!({})).await,
        200,
    );
    let path = format!("/api/user/sessions/{}", id_of(&first).await);
    let own = first.delete(&path).await;
    success(&own, 200);
    assert!(own.header("set-cookie").unwrap().contains("Max-Age=0"));
    problem(&first.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    success(&colleague.get("/api/user/me").await, 200);
    let revoked = user.account.audit_types(Mode::Live).await;
    let revoked = revoked.iter().filter(|kind| *kind == "session.revoked").count();
    assert_eq!(revoked, 3);
}

#[tokio::test]
async fn the_oldest_of_too_many_sessions_ends() {
    let fixture = Fixture::start().await;
    let (user, first) = fixture.user(Role::Viewer).await;
    let second = fixture.sign_in(&user).await;
    for _ in 0..18 {
        fixture.sign_in(&user).await;
    }
    success(&first.get("/api/user/me").await, 200);
    fixture.sign_in(&user).await;
    problem(&first.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let list = success(&second.get("/api/user/sessions").await, 200);
    assert_eq!(list["total"], json!(20));
    let key = user.account.keys.sessions(&user.id);
    assert_eq!(
        fixture.redis.command::<i64>(&["HLEN", &key]),
        40,
        "nothing is left behind"
    );
}

#[tokio::test]
async fn cookies_that_are_none_open_nothing_and_are_taken_away() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    let token = session.cookie().to_owned();
    let nobody = fixture.admin.caller("");
    let mut forged = token.clone();
    let last = if forged.ends_with('0') { '1' } else { '0' };
    forged.pop();
    forged.push(last);
    let hash = sha256_hex(&token.as_bytes()["tollgate_session=".len()..]);
    for cookie in [
        forged.as_str(),
        &format!("tollgate_session={}", "0".repeat(64)),
        &format!("tollgate_session={hash}"),
        &format!("tollgate_session={}", user.id),
        "tollgate_session=",
        "tollgate_session=../../x",
        &token
            .to_uppercase()
            .replace("TOLLGATE_SESSION", "tollgate_session"),
        &format!("{token}; {token}"),
        &format!("{token}; tollgate_session=x"),
        &format!("{token}0"),
    ] {
        for path in ["/api/user/me", "/v1/agents"] {
            let reply = nobody.send("GET", path, &[("cookie", cookie)], "").await;
            problem(&reply, 401, "SESSION_REQUIRED");
            let taken = reply.header("set-cookie").unwrap();
            assert!(taken.starts_with("tollgate_session=; Max-Age=0; "), "{taken}");
            assert_eq!(reply.header("www-authenticate"), None);
        }
    }
    let two = [("cookie", token.as_str()), ("cookie", token.as_str())];
    let reply = nobody.send("GET", "/v1/agents", &two, "").await;
    problem(&reply, 401, "SESSION_REQUIRED");
    let among = format!("theme=dark; {token}; x=\"y\"");
    success(
        &nobody.send("GET", "/v1/agents", &[("cookie", &among)], "").await,
        200,
    );
    // Without any credential the answer asks for an API key.
    let none = nobody.get("/v1/agents").await;
    problem(&none, 401, "API_KEY_REQUIRED");
    assert_eq!(none.header("www-authenticate"), Some("Bearer"));
    let none = nobody.get("/api/user/me").await;
    problem(&none, 401, "SESSION_REQUIRED");
    assert!(none.header("www-authenticate").is_none() && none.header("set-cookie").is_none());
}

#[tokio::test]
async fn an_api_key_counts_before_a_cookie() {
    let fixture = Fixture::start().await;
    let (_, session) = fixture.user(Role::Owner).await;
    let body = json!({ "permissions": ["read"] });
    let made = success(&session.post("/v1/api-keys", body).await, 200);
    let bearer = format!("Bearer {}", text(&made, "/key"));
    let both = [("authorization", bearer.as_str())];
    success(&session.send("GET", "/v1/agents", &both, "").await, 200);
    let reply = session.send("POST", "/v1/agents", &both, r#"{"name":"a"}"#).await;
    problem(&reply, 403, "INSUFFICIENT_API_KEY_PERMISSIONS");
    let reply = session.send("GET", "/api/user/me", &both, "").await;
    let sentence = problem(&reply, 403, "INSUFFICIENT_API_KEY_PERMISSIONS");
    assert!(sentence.contains("session of the dashboard"), "{sentence}");
    let wrong = [("x-api-key", "svc_live_nonsense")];
    let reply = session.send("GET", "/v1/agents", &wrong, "").await;
    problem(&reply, 401, "INVALID_API_KEY");
}

#[tokio::test]
async fn a_session_works_in_the_mode_that_it_names() {
    let fixture = Fixture::start().await;
    let (_, session) = fixture.user(Role::Owner).await;
    let test = session.in_mode(Mode::Test);
    success(&session.post("/v1/agents", json!({ "name": "Live" })).await, 200);
    success(&test.post("/v1/agents", json!({ "name": "Test" })).await, 200);
    for (session, name) in [
        (&session, "Live"),
        (&test, "Test"),
        (&session.in_mode(Mode::Live), "Live"),
    ] {
        let list = success(&session.get("/v1/agents").await, 200);
        assert_eq!(list["total"], json!(1));
        assert_eq!(list["agents"][0]["name"], json!(name));
    }
    let reply = test.get("/v1/agents/x/virtual-keys").await;
    problem(&reply, 400, "LIVE_MODE_REQUIRED");
    for bad in ["", "LIVE", "both"] {
        let reply = session
            .send("GET", "/v1/agents", &[("x-tollgate-mode", bad)], "")
            .await;
        assert!(problem(&reply, 400, "VALIDATION").contains("X-Tollgate-Mode"));
    }

    // Live money: owners only; the same deposit by a key stays forbidden (decision D17).
    let deposit = |reference: &str| json!({ "wallet": "user", "amount": 5, "reference": reference });
    let done = success(&session.post("/v1/wallet/deposits", deposit("a")).await, 200);
    assert_eq!(done["balance"], json!(5));
    success(&test.post("/v1/wallet/deposits", deposit("a")).await, 200);
    let made = success(&session.post("/v1/api-keys", json!({})).await, 200);
    let key = fixture.admin.caller(text(&made, "/key"));
    let reply = key.post("/v1/wallet/deposits", deposit("b")).await;
    problem(&reply, 403, "OWNER_REQUIRED");
}

/// Every end of a session removes its look-up, so that repeated sign-ins do not fill the store.
#[tokio::test]
async fn an_ended_session_leaves_no_look_up() {
    let fixture = Fixture::start().await;
    let (owner, boss) = fixture.user(Role::Owner).await;
    let (user, first) = fixture.member(&owner.account, Role::Viewer).await;
    let look_ups = || {
        let all: Vec<String> = fixture.redis.command(&["KEYS", &keys::session_lookup("*")]);
        all.len()
    };
    assert_eq!(look_ups(), 2);
    for _ in 0..3 {
        let session = fixture.sign_in(&user).await;
        assert_eq!(look_ups(), 3);
        success(&session.post("/api/user/logout", json!({})).await, 200);
        assert_eq!(look_ups(), 2);
    }
    fixture.sign_in(&user).await;
    success(
        &first.post("/api/user/sessions/revoke-others", json!({})).await,
        200,
    );
    assert_eq!(look_ups(), 2);
    // Beyond the most sessions of a user the oldest one ends.
    for _ in 0..SESSIONS_MAX + 3 {
        fixture.sign_in(&user).await;
    }
    assert_eq!(look_ups(), SESSIONS_MAX + 1);
    let last = fixture.sign_in(&user).await;
    let body = json!({ "currentPassword": TEST_PASSWORD, "newPassword": "a new password of mine" });
    success(&last.post("/api/user/password", body).await, 200);
    assert_eq!(look_ups(), 2);
    success(&boss.delete(&format!("/api/user/team/{}", user.id)).await, 200);
    assert_eq!(look_ups(), 1);
}
