//! One person in several accounts (decision D74), with one e-mail: invited, accepted and removed in each account
//! separately. A sign-in names the account if the password is that of several.

use crate::factors::enable_with;
use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use harness::{Reply, Role, SeedAccount, SessionCaller, assert_fields};
use serde_json::{Value, json};
use store::keys::{Tries, attempts};

const PASSWORD: &str = "a password of mine";
const EMAIL: &str = "grace@example.com";

/// Invites an address and accepts the invitation. Returns the answer.
async fn join(fixture: &Fixture, boss: &SessionCaller, email: &str, password: &str) -> Reply {
    let body = json!({ "email": email, "role": "viewer" });
    let invited = success(&boss.post("/api/user/invitations", body).await, 200);
    let token = text(&invited, "/link").split_once("/#/join/").unwrap().1;
    let body = json!({ "token": token, "password": password });
    let nobody = fixture.admin.caller("");
    nobody.post("/api/user/invitations/accept", body).await
}

async fn login(fixture: &Fixture, more: Value) -> Reply {
    let mut body = json!({ "email": EMAIL, "password": PASSWORD });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    fixture.admin.login(&body).await
}

/// Asserts that a sign-in is refused until it names an account.
#[track_caller]
fn which_account(reply: &Reply) {
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["code"]),
        (400, &json!("ACCOUNT_REQUIRED")),
        "{body}"
    );
}

async fn account_of(fixture: &Fixture, reply: &Reply) -> String {
    success(reply, 200);
    let me = success(&fixture.admin.session(reply).get("/api/user/me").await, 200);
    text(&me, "/account/id").to_owned()
}

async fn failures(account: &SeedAccount) -> usize {
    let types = account.audit_types(Mode::Live).await;
    types.iter().filter(|kind| *kind == "user.login_failed").count()
}

/// Two accounts can have users of the same address, each with its own password.
#[tokio::test]
async fn an_address_is_invited_accepted_and_removed_in_each_account_by_itself() {
    let fixture = Fixture::start().await;
    let ((one, first), (two, second)) = (fixture.user(Role::Owner).await, fixture.user(Role::Owner).await);
    success(&join(&fixture, &first, EMAIL, "what a stranger chose").await, 200);
    let joined = join(&fixture, &second, EMAIL, PASSWORD).await;
    assert_eq!(account_of(&fixture, &joined).await, two.account.id);
    // Each password signs in to its account.
    let of_stranger = json!({ "password": "what a stranger chose" });
    assert_eq!(
        account_of(&fixture, &login(&fixture, of_stranger.clone()).await).await,
        one.account.id
    );
    let mine = login(&fixture, json!({})).await;
    assert_eq!(account_of(&fixture, &mine).await, two.account.id);
    let mine = fixture.admin.session(&mine);
    // The other account's user, password and removal do not affect this one.
    let team = success(&first.get("/api/user/team").await, 200);
    let stranger = team["users"]
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["email"] == json!(EMAIL));
    let path = format!("/api/user/team/{}", text(stranger.unwrap(), "/id"));
    problem(&second.delete(&path).await, 404, "NOT_FOUND");
    success(&first.delete(&path).await, 200);
    success(&mine.get("/api/user/me").await, 200);
    problem(&login(&fixture, of_stranger).await, 401, "INVALID_CREDENTIALS");
    assert_eq!(
        account_of(&fixture, &login(&fixture, json!({})).await).await,
        two.account.id
    );
    // One account cannot invite the address twice.
    let body = json!({ "email": EMAIL, "role": "viewer" });
    let reply = second.post("/api/user/invitations", body.clone()).await;
    problem(&reply, 409, "CONFLICT");
    success(&first.post("/api/user/invitations", body).await, 200);
}

#[tokio::test]
async fn one_password_in_several_accounts_asks_which() {
    let fixture = Fixture::start().await;
    let (mut accounts, mut bosses) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let (owner, boss) = fixture.user(Role::Owner).await;
        accounts.push(owner.account);
        bosses.push(boss);
    }
    for (boss, password) in bosses.iter().zip([PASSWORD, PASSWORD, "of the third account"]) {
        success(&join(&fixture, boss, EMAIL, password).await, 200);
    }
    let ambiguous = login(&fixture, json!({})).await;
    which_account(&ambiguous);
    let two: Vec<Value> = accounts[..2]
        .iter()
        .map(|account| json!({ "id": account.id, "name": "Test" }))
        .collect();
    assert_fields!(ambiguous.json(), { "accounts": two }, "those that the password opens, and no other");
    for account in &accounts[..2] {
        let reply = login(&fixture, json!({ "account": account.id })).await;
        assert_eq!(account_of(&fixture, &reply).await, account.id);
    }
    // Without the right password no answer names an account.
    let unknown = fixture.try_login("nobody@example.com", "wrong password").await;
    let mut reported = vec![unknown.text()];
    problem(&unknown, 401, "INVALID_CREDENTIALS");
    for more in [
        json!({ "password": "wrong password" }),
        json!({ "account": accounts[2].id }),
        json!({ "account": "acct_none" }),
        json!({ "account": "acct 1/../x" }),
    ] {
        let reply = login(&fixture, more).await;
        problem(&reply, 401, "INVALID_CREDENTIALS");
        reported.push(reply.text());
    }
    reported.dedup();
    assert_eq!(reported.len(), 1, "{reported:?}");
    for bad in [json!({ "account": 5 }), json!({ "account": "x".repeat(65) })] {
        assert!(problem(&login(&fixture, bad).await, 400, "VALIDATION").contains("account"));
    }
    // A wrong password counts as a failure in every account; if the request names one, in that account only.
    assert_eq!(failures(&accounts[0]).await, 1);
    assert_eq!(failures(&accounts[2]).await, 2);
}

#[tokio::test]
async fn the_second_factor_is_that_of_the_account_and_no_code_is_used_up_before() {
    let fixture = Fixture::start().await;
    let ((one, first), (two, second)) = (fixture.user(Role::Owner).await, fixture.user(Role::Owner).await);
    let joined = join(&fixture, &first, EMAIL, PASSWORD).await;
    let mine = fixture.admin.session(&joined);
    success(&join(&fixture, &second, EMAIL, PASSWORD).await, 200);
    let (_, codes) = enable_with(&mine, PASSWORD).await;
    let recovery = &codes[0];
    for more in [json!({}), json!({ "totp": recovery })] {
        which_account(&login(&fixture, more).await);
    }
    let reply = login(&fixture, json!({ "account": one.account.id })).await;
    problem(&reply, 401, "TOTP_REQUIRED");
    let reply = login(&fixture, json!({ "account": two.account.id })).await;
    assert_eq!(account_of(&fixture, &reply).await, two.account.id);
    let with = json!({ "account": one.account.id, "totp": recovery });
    let reply = login(&fixture, with.clone()).await;
    assert_eq!(
        account_of(&fixture, &reply).await,
        one.account.id,
        "the code was not used up"
    );
    problem(&login(&fixture, with).await, 401, "INVALID_CREDENTIALS");
}

/// Ten attempts at the user in one account lock that user, and leave the same person's other users alone.
#[tokio::test]
async fn each_account_of_an_e_mail_has_its_own_attempts() {
    let fixture = Fixture::start().await;
    let ((one, first), (two, second)) = (fixture.user(Role::Owner).await, fixture.user(Role::Owner).await);
    success(&join(&fixture, &first, EMAIL, PASSWORD).await, 200);
    success(&join(&fixture, &second, EMAIL, PASSWORD).await, 200);
    let named = |account: &SeedAccount| json!({ "account": account.id });
    let wrong = |account: &SeedAccount| json!({ "password": "wrong password", "account": account.id });
    for _ in 0..10 {
        problem(
            &login(&fixture, wrong(&one.account)).await,
            401,
            "INVALID_CREDENTIALS",
        );
    }
    problem(&login(&fixture, named(&one.account)).await, 429, "LOGIN_LOCKED");
    success(&login(&fixture, named(&two.account)).await, 200);
    let user = format!("{EMAIL} {}", one.account.id);
    assert_eq!(
        fixture
            .redis
            .command::<i64>(&["LLEN", &attempts(Tries::LoginAccount, &user)]),
        10
    );
    // A sign-in without an account skips the locked one, and the answer does not mention it.
    let reply = login(&fixture, json!({})).await;
    assert_eq!(account_of(&fixture, &reply).await, two.account.id);
    for _ in 0..10 {
        let reply = login(&fixture, json!({ "password": "wrong password" })).await;
        problem(&reply, 429, "LOGIN_LOCKED");
        assert_eq!(reply.header("retry-after"), Some("900"));
    }
    // These were ten attempts at the e-mail, which lock every account.
    problem(&login(&fixture, named(&two.account)).await, 429, "LOGIN_LOCKED");
}

/// Ten attempts at an account, and then one without: the answer is the same where the e-mail has a user in the account,
/// where it has one elsewhere, and where it has none.
#[tokio::test]
async fn a_lock_does_not_reveal_the_users_of_an_account() {
    let fixture = Fixture::start().await;
    let ((one, first), (_, second)) = (fixture.user(Role::Owner).await, fixture.user(Role::Owner).await);
    success(&join(&fixture, &first, EMAIL, PASSWORD).await, 200);
    success(
        &join(&fixture, &second, "elsewhere@example.com", PASSWORD).await,
        200,
    );
    for email in [EMAIL, "elsewhere@example.com", "nobody@example.com"] {
        let wrong = json!({ "email": email, "password": "wrong password" });
        let named = json!({ "email": email, "password": "wrong password", "account": one.account.id });
        for _ in 0..9 {
            problem(&login(&fixture, named.clone()).await, 401, "INVALID_CREDENTIALS");
        }
        problem(&login(&fixture, wrong.clone()).await, 401, "INVALID_CREDENTIALS");
        problem(&login(&fixture, named.clone()).await, 401, "INVALID_CREDENTIALS");
        problem(&login(&fixture, named).await, 429, "LOGIN_LOCKED");
        let reply = login(&fixture, wrong).await;
        problem(&reply, 429, "LOGIN_LOCKED");
        assert_eq!(reply.header("retry-after"), Some("900"), "{email}");
    }
    let right = json!({ "email": "elsewhere@example.com" });
    success(&login(&fixture, right).await, 200);
}

/// An account does not learn what its people do elsewhere: a failed sign-in without an account records no IP address.
#[tokio::test]
async fn a_wrong_password_without_an_account_leaves_no_address() {
    let fixture = Fixture::start().await;
    let ((one, first), (_, second)) = (fixture.user(Role::Owner).await, fixture.user(Role::Owner).await);
    success(&join(&fixture, &first, EMAIL, PASSWORD).await, 200);
    let wrong = json!({ "password": "wrong password" });
    // The same with one user and with two.
    problem(&login(&fixture, wrong.clone()).await, 401, "INVALID_CREDENTIALS");
    success(&join(&fixture, &second, EMAIL, "another password").await, 200);
    problem(&login(&fixture, wrong.clone()).await, 401, "INVALID_CREDENTIALS");
    let named = json!({ "password": "wrong password", "account": one.account.id });
    problem(&login(&fixture, named).await, 401, "INVALID_CREDENTIALS");
    let logs = success(&first.get("/api/v1/audit").await, 200)["logs"].clone();
    let failed = logs.as_array().unwrap().iter();
    let failed = failed.filter(|entry| entry["type"] == json!("user.login_failed"));
    let addresses: Vec<&Value> = failed.map(|entry| &entry["data"]["ip"]).collect();
    assert_eq!(
        addresses,
        [&json!("127.0.0.1"), &Value::Null, &Value::Null],
        "newest first"
    );
}

#[tokio::test]
async fn the_operator_names_the_account_where_there_are_several() {
    let fixture = Fixture::start().await;
    let (one, two) = (
        fixture.seed.account("free").await,
        fixture.seed.account("free").await,
    );
    let cli = harness::Cli::new(crate::fixture::BINARY, fixture.redis.url());
    for account in [&one, &two] {
        let id = &account.id;
        let create =
            format!("user create --account {id} --email {EMAIL} --role owner --password-stdin --json");
        let made = cli.run_with_stdin(&harness::words(&create), PASSWORD);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    let unlock = ["user", "unlock", "--email", EMAIL, "--json"];
    let output = cli.run(&unlock);
    assert_eq!(output.code, Some(1));
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(document["code"], json!("ACCOUNT_REQUIRED"), "{document}");
    assert!(
        document["error"].as_str().unwrap().contains(&two.id),
        "{document}"
    );
    let named = [&unlock[..], &["--account", &two.id]].concat();
    let done: Value = serde_json::from_str(&cli.run(&named).stdout).unwrap();
    assert_eq!(done["accountId"], json!(two.id), "{done}");
    which_account(&login(&fixture, json!({})).await);
}
