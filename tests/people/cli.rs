//! Effects of `tollgate-admin user` on a running server.

use crate::fixture::{BINARY, Fixture, problem, success};
use domain::mode::Mode;
use harness::{Cli, CliOutput, Role, TEST_PASSWORD, assert_fields};
use serde_json::json;

fn run(cli: &Cli, args: &[&str], stdin: &str) -> CliOutput {
    let args: Vec<&str> = [&["user"], args, &["--json"]].concat();
    cli.run_with_stdin(&args, stdin)
}

#[tokio::test]
async fn the_operator_creates_lists_changes_and_removes_users() {
    let fixture = Fixture::start().await;
    let cli = Cli::new(BINARY, fixture.redis.url());
    let (owner, boss) = fixture.user(Role::Owner).await;
    let account = owner.account.id.as_str();
    let email = ["--email", "Ann@Example.com"];
    let create = [
        &["create", "--account", account],
        &email[..],
        &["--role", "viewer", "--password-stdin"],
    ]
    .concat();
    let made = run(&cli, &create, "a password of hers\n").document(0);
    let id = made["userId"].clone();
    let session = fixture
        .admin
        .sign_in("ann@example.com", "a password of hers")
        .await;
    let list = run(&cli, &["list", "--account", account], "").document(0);
    assert_eq!(list["total"], json!(2));
    assert_fields!(list["users"][0], { "userId": id, "role": "viewer" });
    assert!(list["users"][0]["lastLoginAt"].is_string());
    let table = cli.run(&["user", "list", "--account", account]).stdout;
    assert!(
        table.starts_with("USER") && table.contains("ann@example.com") && !table.contains("argon2"),
        "{table}"
    );

    let set = [&["set-role"], &email[..], &["--role", "admin"]].concat();
    assert_eq!(run(&cli, &set, "").document(0)["role"], json!("admin"));
    success(&session.post("/v1/agents", json!({ "name": "a" })).await, 200);
    let reset = [&["reset-password"], &email[..], &["--password-stdin"]].concat();
    assert_eq!(run(&cli, &reset, "short").document(2)["code"], json!("USAGE"));
    assert_eq!(run(&cli, &reset, "a newer password\n").document(0)["userId"], id);
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let session = fixture.admin.sign_in("ann@example.com", "a newer password").await;
    let remove = [&["remove"], &email[..]].concat();
    assert_eq!(run(&cli, &remove, "").document(0)["removed"], json!(true));
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    assert_eq!(run(&cli, &remove, "").document(1)["code"], json!("NOT_FOUND"));
    let last = run(&cli, &["remove", "--email", &owner.email], "").document(1);
    assert_eq!(last["code"], json!("LAST_OWNER"));
    let last = run(
        &cli,
        &["set-role", "--email", &owner.email, "--role", "viewer"],
        "",
    )
    .document(1);
    assert_eq!(last["code"], json!("LAST_OWNER"));
    success(&boss.get("/api/user/me").await, 200);
    let audit = owner.account.audit(Mode::Live).await;
    let kinds: Vec<&str> = audit
        .iter()
        .filter(|entry| entry.actor == "operator")
        .map(|entry| entry.kind.as_str())
        .collect();
    let expected = [
        "user.created",
        "user.role_changed",
        "user.password_changed",
        "user.removed",
    ];
    assert_eq!(kinds, expected);
    let changed = audit.iter().find(|entry| entry.kind == "user.role_changed");
    assert_fields!(json!(changed.unwrap().data), { "from": "viewer", "to": "admin" });
    let removed = audit.iter().find(|entry| entry.kind == "user.removed");
    assert_eq!(removed.unwrap().data["role"], json!("admin"));
    // The address is free again.
    assert_eq!(
        run(&cli, &create, "a password of hers\n").document(0)["accountId"],
        json!(account)
    );
}

#[tokio::test]
async fn the_operator_helps_a_user_who_cannot_sign_in() {
    let fixture = Fixture::start().await;
    let cli = Cli::new(BINARY, fixture.redis.url());
    let (user, session) = fixture.user(Role::Viewer).await;
    let email = ["--email", user.email.as_str()];
    for _ in 0..11 {
        fixture.try_login(&user.email, "not the password").await;
    }
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&reply, 429, "LOGIN_LOCKED");
    let unlock = [&["unlock"], &email[..]].concat();
    assert_eq!(run(&cli, &unlock, "").document(0)["unlocked"], json!(true));
    fixture.sign_in(&user).await;

    let body = json!({ "password": TEST_PASSWORD });
    let begun = success(&session.post("/api/user/totp", body).await, 200);
    let secret = begun["secret"].as_str().unwrap();
    let code = crate::factors::code_at(secret, clock::now_ms());
    let body = json!({ "code": code });
    success(&session.post("/api/user/totp/confirm", body).await, 200);
    let reply = fixture.try_login(&user.email, TEST_PASSWORD).await;
    problem(&reply, 401, "TOTP_REQUIRED");
    // A link does not bypass the second factor.
    let link = run(&cli, &[&["reset-password"], &email[..]].concat(), "").document(0);
    let token = link["link"]
        .as_str()
        .unwrap()
        .rsplit_once('/')
        .unwrap()
        .1
        .to_owned();
    let reset = json!({ "token": token, "newPassword": "a new password" });
    let nobody = fixture.admin.caller("");
    // A request without a code guesses none, so there are as many as one likes.
    for _ in 0..11 {
        let reply = nobody.post("/api/user/password/reset", reset.clone()).await;
        problem(&reply, 401, "TOTP_REQUIRED");
    }
    let mut guess = reset.clone();
    guess["totp"] = json!("aaaa-aaaa-aaaa-aaaa");
    let reply = nobody.post("/api/user/password/reset", guess).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    let disable = [&["disable-totp"], &email[..]].concat();
    assert_eq!(run(&cli, &disable, "").document(0)["totpEnabled"], json!(false));
    problem(&session.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
    let reply = nobody.post("/api/user/password/reset", reset).await;
    problem(&reply, 404, "NOT_FOUND");
}
