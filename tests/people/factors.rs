//! The second factor: codes, each used once; recovery codes; the master key that seals its secret.

use crate::fixture::{BINARY, Fixture, problem, success, text};
use clock::now_ms;
use data_encoding::BASE32_NOPAD;
use domain::mode::Mode;
use futures::future::join_all;
use harness::{
    Admin, AdminOptions, Cli, Reply, Role, SeedUser, SessionCaller, TEST_MASTER_KEY, TEST_PASSWORD,
    assert_fields, eventually,
};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha1::Sha1;
use std::time::Duration;
use store::keys::{Tries, attempts};

const SOON: Duration = Duration::from_secs(30);

/// The code that an app with this secret shows at `at_ms` (RFC 6238, implemented independently).
pub fn code_at(secret: &str, at_ms: u64) -> String {
    let key = BASE32_NOPAD.decode(secret.as_bytes()).unwrap();
    let mut mac = Hmac::<Sha1>::new_from_slice(&key).unwrap();
    mac.update(&(at_ms / 1000 / 30).to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let at = (hash[19] & 15) as usize;
    let number = u32::from_be_bytes([hash[at] & 127, hash[at + 1], hash[at + 2], hash[at + 3]]);
    format!("{:06}", number % 1_000_000)
}

/// A code that the server accepts after the present one was used.
fn next_code(secret: &str) -> String {
    code_at(secret, now_ms() + 30_000)
}

async fn login(fixture: &Fixture, user: &SeedUser, totp: Option<&str>) -> Reply {
    let mut body = json!({ "email": user.email, "password": TEST_PASSWORD });
    if let Some(code) = totp {
        body["totp"] = json!(code);
    }
    fixture.admin.login(&body).await
}

/// Sets a second factor up. Returns its secret and the recovery codes.
async fn enable(session: &SessionCaller) -> (String, Vec<String>) {
    enable_with(session, TEST_PASSWORD).await
}

/// Sets a second factor up for a user with this password.
pub async fn enable_with(session: &SessionCaller, password: &str) -> (String, Vec<String>) {
    let body = json!({ "password": password });
    let begun = success(&session.post("/api/user/totp", body).await, 200);
    let secret = text(&begun, "/secret").to_owned();
    let code = code_at(&secret, now_ms());
    let body = json!({ "code": code });
    let done = success(&session.post("/api/user/totp/confirm", body).await, 200);
    let codes = done["recoveryCodes"].as_array().unwrap().iter();
    let codes = codes.map(|code| code.as_str().unwrap().to_owned()).collect();
    (secret, codes)
}

#[tokio::test]
async fn a_second_factor_is_set_up_and_required() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    let other = fixture.sign_in(&user).await;
    let confirm = async |code: &str| {
        session
            .post("/api/user/totp/confirm", json!({ "code": code }))
            .await
    };
    problem(&confirm("000000").await, 409, "CONFLICT");
    for (body, status, code) in [
        (json!({}), 400, "VALIDATION"),
        (
            json!({ "password": "not the password" }),
            401,
            "INVALID_CREDENTIALS",
        ),
    ] {
        problem(&session.post("/api/user/totp", body).await, status, code);
    }
    problem(&confirm("000000").await, 409, "CONFLICT");
    let body = json!({ "password": TEST_PASSWORD });
    let begun = success(&session.post("/api/user/totp", body).await, 200);
    let secret = text(&begun, "/secret");
    let url = text(&begun, "/otpauthUrl");
    assert!(
        url.starts_with("otpauth://totp/Tollgate:usr_") && url.contains(secret),
        "{url}"
    );
    assert!(text(&begun, "/qrSvg").contains("<svg"));
    let body = json!({ "password": TEST_PASSWORD });
    let again = success(&session.post("/api/user/totp", body).await, 200);
    assert_ne!(text(&again, "/secret"), secret, "a new beginning");
    let secret = text(&again, "/secret");
    // An unconfirmed factor is not required.
    success(&login(&fixture, &user, None).await, 200);
    let right = code_at(secret, now_ms());
    let wrong = if right == "000000" { "000001" } else { "000000" };
    problem(&confirm(wrong).await, 401, "INVALID_CREDENTIALS");
    let reply = confirm(&code_at(text(&begun, "/secret"), now_ms())).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    let done = success(&confirm(&right).await, 200);
    assert_eq!(done["recoveryCodes"].as_array().unwrap().len(), 10);
    let body = json!({ "password": TEST_PASSWORD });
    problem(&session.post("/api/user/totp", body).await, 409, "CONFLICT");
    problem(&confirm(&right).await, 409, "CONFLICT");
    success(&session.get("/api/user/me").await, 200);
    problem(&other.get("/api/user/me").await, 401, "SESSION_REQUIRED");

    problem(&login(&fixture, &user, None).await, 401, "TOTP_REQUIRED");
    problem(
        &login(&fixture, &user, Some("")).await,
        401,
        "INVALID_CREDENTIALS",
    );
    let reply = login(&fixture, &user, Some(wrong)).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    let stale = code_at(secret, now_ms() - 90_000);
    let reply = login(&fixture, &user, Some(&stale)).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    let body = json!({ "email": user.email, "password": "not the password", "totp": next_code(secret) });
    problem(&fixture.admin.login(&body).await, 401, "INVALID_CREDENTIALS");
    let code = next_code(secret);
    let inside = success(&login(&fixture, &user, Some(&code)).await, 200);
    assert_eq!(inside["user"]["totpEnabled"], json!(true));
    let text = format!("{:?}", user.account.audit(Mode::Live).await);
    assert!(text.contains("user.totp_enabled") && !text.contains(secret));
    let record: String = fixture
        .redis
        .command(&["HGET", &user.account.keys.users(), &user.email]);
    assert!(!record.contains(secret) && !fixture.admin.logs().contains(secret));

    // Off again, with the password only; the other sessions end.
    let third = fixture
        .admin
        .session(&login(&fixture, &user, Some(&text_of_recovery(&done))).await);
    let disable = async |password: &str| {
        session
            .post("/api/user/totp/disable", json!({ "password": password }))
            .await
    };
    problem(&disable("not the password").await, 401, "INVALID_CREDENTIALS");
    success(&disable(TEST_PASSWORD).await, 200);
    problem(&third.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    success(&login(&fixture, &user, None).await, 200);
    success(&disable(TEST_PASSWORD).await, 200);
}

fn text_of_recovery(done: &serde_json::Value) -> String {
    done["recoveryCodes"][0].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_code_is_used_once_also_at_the_same_moment() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let (secret, recovery) = enable(&session).await;
    let spent = code_at(&secret, now_ms());
    let reply = login(&fixture, &user, Some(&spent)).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    let code = next_code(&secret);
    let at_once = join_all((0..5).map(|_| login(&fixture, &user, Some(&code)))).await;
    let inside = at_once.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(inside, 1);
    let reply = login(&fixture, &user, Some(&code)).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");

    // Recovery codes, in any spelling; each works once.
    let key = attempts(Tries::Login, &user.email);
    for code in &recovery[..9] {
        // Wrong codes stay counted, so the counter is reset.
        fixture.redis.command::<i64>(&["DEL", &key]);
        let typed = format!(" {} ", code.to_uppercase().replace('-', ""));
        success(&login(&fixture, &user, Some(&typed)).await, 200);
        let reply = login(&fixture, &user, Some(code)).await;
        problem(&reply, 401, "INVALID_CREDENTIALS");
    }
    let at_once = join_all((0..5).map(|_| login(&fixture, &user, Some(&recovery[9])))).await;
    let inside = at_once.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(inside, 1);
    let reply = login(&fixture, &user, Some(&recovery[0])).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    let audit = format!("{:?}", user.account.audit(Mode::Live).await);
    assert!(recovery.iter().all(|code| !audit.contains(code)));
    let record: String = fixture
        .redis
        .command(&["HGET", &user.account.keys.users(), &user.email]);
    assert!(recovery.iter().all(|code| !record.contains(code)), "{record}");
}

#[tokio::test]
async fn codes_are_guessed_as_often_as_passwords() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let (secret, _) = enable(&session).await;
    let wrong = ["000000", "000001", "000002", "000003"];
    let possible: Vec<String> = (0..4)
        .map(|n| code_at(&secret, now_ms() + n * 30_000 - 30_000))
        .collect();
    let wrong = wrong
        .iter()
        .find(|code| !possible.contains(&(**code).to_owned()))
        .unwrap();
    let guesses = join_all((0..30).map(|_| login(&fixture, &user, Some(wrong)))).await;
    let checked = guesses.iter().filter(|reply| reply.status == 401).count();
    assert_eq!(checked, 10, "a right password alone gives no attempt back");
    let locked = login(&fixture, &user, Some(&next_code(&secret))).await;
    problem(&locked, 429, "LOGIN_LOCKED");
}

#[tokio::test]
async fn a_stolen_session_cannot_guess_the_password() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let guess = |n: usize| {
        let (path, body) = match n % 2 {
            0 => (
                "/api/user/totp/disable",
                json!({ "password": format!("guess {n}") }),
            ),
            _ => (
                "/api/user/password",
                json!({ "currentPassword": format!("guess {n}"), "newPassword": "a new password" }),
            ),
        };
        let session = &session;
        async move { session.post(path, body).await }
    };
    let guesses = join_all((0..30).map(guess)).await;
    assert_eq!(guesses.iter().filter(|reply| reply.status == 401).count(), 10);
    assert_eq!(guesses.iter().filter(|reply| reply.status == 429).count(), 20);
    let body = json!({ "currentPassword": TEST_PASSWORD, "newPassword": "a new password" });
    let reply = session.post("/api/user/password", body).await;
    problem(&reply, 429, "LOGIN_LOCKED");
    success(&session.get("/api/user/me").await, 200);
    // Sign-ins are counted separately.
    success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
}

#[tokio::test]
async fn a_stolen_session_cannot_guess_the_code_of_a_factor_that_was_begun() {
    let fixture = Fixture::start().await;
    let (_, session) = fixture.user(Role::Viewer).await;
    let begun = session
        .post("/api/user/totp", json!({ "password": TEST_PASSWORD }))
        .await;
    let secret = text(&success(&begun, 200), "/secret").to_owned();
    let possible: Vec<String> = (0..4)
        .map(|n| code_at(&secret, now_ms() + n * 30_000 - 30_000))
        .collect();
    let wrong = (0..)
        .map(|n| format!("{n:06}"))
        .find(|code| !possible.contains(code))
        .unwrap();
    let confirm = async |code: &str| {
        session
            .post("/api/user/totp/confirm", json!({ "code": code }))
            .await
    };
    let guesses = join_all((0..30).map(|_| confirm(&wrong))).await;
    assert_eq!(guesses.iter().filter(|reply| reply.status == 401).count(), 10);
    problem(&confirm(&code_at(&secret, now_ms())).await, 429, "LOGIN_LOCKED");
}

/// Changes the time at which a user began a second factor.
fn set_begun(fixture: &Fixture, user: &SeedUser, begun_at_ms: u64) {
    let users = user.account.keys.users();
    let record: String = fixture.redis.command(&["HGET", &users, &user.email]);
    let mut record: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&record).unwrap();
    record.insert("totp_begun_at_ms".to_owned(), json!(begun_at_ms));
    // Scripts find a user by the start of the text.
    let id = record.remove("id").unwrap();
    let rest = serde_json::to_string(&record).unwrap();
    let record = format!("{{\"id\":{id},{}", &rest[1..]);
    fixture
        .redis
        .command::<u64>(&["HSET", &users, &user.email, &record]);
}

/// Whoever finds a secret that was never confirmed, such as in a screenshot, cannot use it days later.
#[tokio::test]
async fn a_second_factor_that_was_begun_ends_after_15_minutes() {
    const LIFE_MS: u64 = 15 * 60_000;
    /// More than the requests of this test take.
    const SLACK_MS: u64 = 60_000;
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let begin = async || {
        let body = json!({ "password": TEST_PASSWORD });
        let begun = success(&session.post("/api/user/totp", body).await, 200);
        text(&begun, "/secret").to_owned()
    };
    let confirm = async |secret: &str| {
        let body = json!({ "code": code_at(secret, now_ms()) });
        session.post("/api/user/totp/confirm", body).await
    };
    let before = now_ms();
    let secret = begin().await;
    for begun in [before - LIFE_MS, 1] {
        set_begun(&fixture, &user, begun);
        problem(&confirm(&secret).await, 409, "CONFLICT");
    }
    let audit = user.account.audit(Mode::Live).await;
    assert!(audit.iter().all(|entry| entry.kind != "user.totp_enabled"));
    success(&login(&fixture, &user, None).await, 200);

    let secret = begin().await;
    let body = json!({ "password": TEST_PASSWORD });
    set_begun(&fixture, &user, now_ms() - LIFE_MS + SLACK_MS);
    success(&confirm(&secret).await, 200);
    problem(&login(&fixture, &user, None).await, 401, "TOTP_REQUIRED");
    success(&session.post("/api/user/totp/disable", body).await, 200);
    problem(&confirm(&secret).await, 409, "CONFLICT");
}

/// Guessing, with a stolen session, the code of a factor that its owner began leaves a trace.
#[tokio::test]
async fn a_refused_code_is_in_the_audit_trail() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Viewer).await;
    let confirm = async |code: &str| {
        session
            .post("/api/user/totp/confirm", json!({ "code": code }))
            .await
    };
    let refused = async || {
        let audit = user.account.audit(Mode::Live).await;
        let entries = audit
            .into_iter()
            .filter(|entry| entry.kind == "user.totp_refused");
        entries.collect::<Vec<_>>()
    };
    // Without a factor there is nothing to guess.
    problem(&confirm("000000").await, 409, "CONFLICT");
    assert!(refused().await.is_empty());
    let body = json!({ "password": TEST_PASSWORD });
    let begun = success(&session.post("/api/user/totp", body).await, 200);
    let secret = text(&begun, "/secret");
    let right = code_at(secret, now_ms());
    let stale = code_at(secret, now_ms() - 600_000);
    problem(&confirm(&stale).await, 401, "INVALID_CREDENTIALS");
    let entries = refused().await;
    assert_eq!(entries.len(), 1);
    let entry = format!("{:?}", entries[0]);
    let me = success(&session.get("/api/user/me").await, 200);
    assert!(entry.contains(text(&me, "/session/id")), "{entry}");
    assert!(entry.contains(&user.id), "{entry}");
    success(&confirm(&right).await, 200);
    assert_eq!(refused().await.len(), 1);
}

#[tokio::test]
async fn second_factors_outlive_a_rotation_of_the_master_key() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    let (secret, _) = enable(&session).await;
    let (pending, beginner) = fixture.member(&user.account, Role::Viewer).await;
    let body = json!({ "password": TEST_PASSWORD });
    let begun = success(&beginner.post("/api/user/totp", body).await, 200);
    let newer = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let both = format!("{newer},{TEST_MASTER_KEY}");
    let cli = Cli::new(BINARY, fixture.redis.url()).env("TOLLGATE_SECRETS__MASTER_KEY", both);
    let rotated = cli.json(&["keys", "rotate"]);
    assert_fields!(rotated, { "reencrypted": 2, "unopenable": [] });
    assert_eq!(cli.json(&["keys", "rotate"])["reencrypted"], json!(0));
    let alone = AdminOptions::new(BINARY, fixture.redis.url()).env("TOLLGATE_SECRETS__MASTER_KEY", newer);
    let admin = Admin::start(alone);
    let body = json!({ "email": user.email, "password": TEST_PASSWORD, "totp": next_code(&secret) });
    success(&admin.login(&body).await, 200);
    let code = code_at(text(&begun, "/secret"), now_ms());
    let confirmed = admin.sign_in(&pending.email, TEST_PASSWORD).await;
    let body = json!({ "code": code });
    success(&confirmed.post("/api/user/totp/confirm", body).await, 200);
    // A server without the new key cannot check a code, and refuses.
    let reply = login(&fixture, &user, Some(&next_code(&secret))).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
}

/// A server whose master key is not the store's is not ready, and seals nothing: no other process could open it.
#[tokio::test]
async fn a_server_with_another_master_key_seals_no_secret() {
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("startup").await;
    let (user, session) = fixture.member(&account, Role::Owner).await;
    // Seals the key of checkpoints, by which a process recognizes the store's master key.
    Cli::new(BINARY, fixture.redis.url()).json(&["store", "init"]);
    let wrong = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    let options =
        |keys: &str| AdminOptions::new(BINARY, fixture.redis.url()).env("TOLLGATE_SECRETS__MASTER_KEY", keys);
    let other = Admin::start(options(wrong).until_alive());
    let why = "sealed under a master key that this process does not have";
    eventually("a server that is not ready", SOON, async || {
        let (status, text) = other.ops("/readyz")?;
        (status == 503 && text.contains(why)).then_some(())
    })
    .await;
    let requests = [
        ("/api/user/totp", json!({ "password": TEST_PASSWORD })),
        (
            "/api/v1/agents/bot/provider-keys",
            json!({ "provider": "openai", "apiKey": "sk-abcdefgh" }),
        ),
        (
            "/api/v1/webhooks",
            json!({ "url": "https://93.184.216.34/", "events": ["agent.frozen"], "secret": "a secret of 32 bytes or more, yes" }),
        ),
    ];
    let through = other.sign_in(&user.email, TEST_PASSWORD).await;
    for (path, body) in &requests {
        problem(
            &through.post(path, body.clone()).await,
            503,
            "SERVICE_UNAVAILABLE",
        );
    }
    let sealed = |text: &str| fixture.redis.command::<Vec<String>>(&["KEYS", text]);
    assert_eq!(sealed("*webhook*"), Vec::<String>::new(), "nothing was stored");
    // The server that has the store's key serves all three, as does one that has both.
    let both = Admin::start(options(&format!("{wrong},{TEST_MASTER_KEY}")));
    let through = both.sign_in(&user.email, TEST_PASSWORD).await;
    for (caller, (path, body)) in [&session, &through, &session].into_iter().zip(requests) {
        let reply = caller.post(path, body).await;
        assert!([200, 201].contains(&reply.status), "{path}: {}", reply.text());
    }
}
