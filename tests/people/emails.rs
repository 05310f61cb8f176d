//! The look-ups of e-mails: an address has one user in each account (decision D74), and what a crash leaves behind
//! blocks nobody.

use crate::fixture::{Fixture, problem, success};
use clock::now_ms;
use domain::id::IdKind;
use futures::future::join_all;
use harness::scripts::crashing_at;
use harness::{Role, SeedAccount, TEST_PASSWORD};
use serde_json::json;
use store::account::script::{NewAccount, UserAdded, add_user, create};
use store::keys::user_lookup;
use store::script::names::InputNames;
use store::script::{self, Script, WhenFull};
use store::user::User;
use store::user::email::{ACCOUNTS_MAX, EmailOwner};

const EMAIL: &str = "ann@example.com";

fn new(email: &str) -> User {
    User {
        id: IdKind::User.mint(now_ms()).unwrap(),
        email: email.to_owned(),
        role: Role::Owner,
        password:
            "$argon2id$v=19$m=8,t=1,p=1$dG9sbGdhdGUgaGFybmVzcw$UTMKx4LLHBAIm8gYfxKPSgSGHySmmj2alHU4eE8BEcI"
                .to_owned(),
        created_at_ms: now_ms(),
        totp: None,
        totp_pending: None,
        totp_begun_at_ms: None,
    }
}

async fn add(fixture: &Fixture, account: &SeedAccount, user: &User) -> UserAdded {
    add_user(&fixture.store, &account.id, user, "test").await.unwrap()
}

/// The users that an address leads to.
async fn owners(fixture: &Fixture) -> Vec<(String, String)> {
    let owners = EmailOwner::all(&fixture.store, EMAIL).await.unwrap();
    owners
        .into_iter()
        .map(|owner| (owner.account, owner.user))
        .collect()
}

#[tokio::test]
async fn an_address_has_a_user_in_each_account_and_one_in_each() {
    let fixture = Fixture::start().await;
    let mut accounts = Vec::new();
    // Many at once: each is added to the look-up, however many others change it meanwhile.
    for _ in 0..64 {
        accounts.push(fixture.seed.account("free").await);
    }
    let users: Vec<User> = accounts.iter().chain(&accounts).map(|_| new(EMAIL)).collect();
    let adding = accounts
        .iter()
        .chain(&accounts)
        .zip(&users)
        .map(|(account, user)| add(&fixture, account, user));
    let answers = join_all(adding).await;
    for (first, second) in answers.iter().zip(&answers[accounts.len()..]) {
        let mut both = [*first, *second].map(|answer| answer == UserAdded::Done);
        both.sort_unstable();
        assert_eq!(both, [false, true], "{answers:?}");
    }
    let owners = owners(&fixture).await;
    assert_eq!(owners.len(), accounts.len());
    for account in &accounts {
        let record: String = fixture.redis.command(&["HGET", &account.keys.users(), EMAIL]);
        let there = owners.iter().find(|(id, _)| *id == account.id);
        let (_, user) = there.expect("the account");
        assert!(record.contains(user), "{record}: {user}");
    }
}

#[tokio::test]
async fn remains_of_a_crash_lock_no_user_out() {
    let fixture = Fixture::start().await;
    let (a, b) = (
        fixture.seed.account("free").await,
        fixture.seed.account("free").await,
    );
    let (first, second) = (new(EMAIL), new(EMAIL));
    assert_eq!(add(&fixture, &a, &first).await, UserAdded::Done);
    // The record is gone, but not the look-up: the process died in between.
    fixture.redis.command::<i64>(&["HDEL", &a.keys.users(), EMAIL]);
    let reply = fixture.try_login(EMAIL, TEST_PASSWORD).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    assert_eq!(add(&fixture, &b, &second).await, UserAdded::Done);
    let session = fixture.admin.sign_in(EMAIL, TEST_PASSWORD).await;
    let me = success(&session.get("/api/user/me").await, 200);
    assert_eq!(me["account"]["id"], json!(b.id));
    // If that removal continues later, it removes nothing of others.
    let late = EmailOwner {
        account: a.id.clone(),
        user: first.id.clone(),
    };
    late.leave(&fixture.store, EMAIL).await.unwrap();
    assert_eq!(owners(&fixture).await, [(b.id.clone(), second.id.clone())]);
    let other = EmailOwner {
        account: b.id.clone(),
        user: first.id.clone(),
    };
    other.leave(&fixture.store, EMAIL).await.unwrap();
    fixture.admin.sign_in(EMAIL, TEST_PASSWORD).await;
    // The look-up was lost: adding the user again restores it.
    let lookup = user_lookup(EMAIL);
    fixture.redis.command::<i64>(&["DEL", &lookup]);
    let reply = fixture.try_login(EMAIL, TEST_PASSWORD).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
    assert_eq!(add(&fixture, &b, &new(EMAIL)).await, UserAdded::EmailTaken);
    fixture.admin.sign_in(EMAIL, TEST_PASSWORD).await;
}

#[tokio::test]
async fn a_look_up_is_bounded_and_users_beyond_it_name_the_account() {
    let fixture = Fixture::start().await;
    let lines: Vec<String> = (0..ACCOUNTS_MAX).map(|n| format!("acct_{n} usr_{n}")).collect();
    fixture
        .redis
        .command::<String>(&["SET", &user_lookup(EMAIL), &lines.join("\n")]);
    let account = fixture.seed.account("free").await;
    assert_eq!(add(&fixture, &account, &new(EMAIL)).await, UserAdded::Done);
    assert_eq!(owners(&fixture).await.len(), ACCOUNTS_MAX);
    let body = json!({ "email": EMAIL, "password": TEST_PASSWORD, "account": account.id });
    success(&fixture.admin.login(&body).await, 200);
    let reply = fixture.try_login(EMAIL, TEST_PASSWORD).await;
    problem(&reply, 401, "INVALID_CREDENTIALS");
}

/// A repeated creation has another id, so the records of a failed one would stay.
#[tokio::test]
async fn an_account_that_was_not_made_is_not_named() {
    let fixture = Fixture::start().await;
    let user = new(EMAIL);
    let id = IdKind::Account.mint(now_ms()).unwrap();
    let account = NewAccount {
        id: &id,
        name: "a",
        plan: "free",
        owner: Some(&user),
    };
    // Its record may exist when the reply is lost.
    for (failing, left) in [
        ("lookup_note", vec![]),
        ("account_create", vec![(id.clone(), user.id.clone())]),
    ] {
        let store = crashing_at(&fixture.store, failing);
        create(&store, &account, "test").await.unwrap_err();
        assert_eq!(owners(&fixture).await, left, "{failing}");
    }
}

#[tokio::test]
async fn an_account_that_a_full_store_refuses_is_not_named() {
    let fixture = Fixture::start().await;
    let user = new(EMAIL);
    let account = NewAccount {
        id: &IdKind::Account.mint(now_ms()).unwrap(),
        name: "a",
        plan: "free",
        owner: Some(&user),
    };
    // The list of accounts is written before the store is full.
    let noted = Script::new(
        "lookup_note",
        script::ScriptKind::Timeless,
        WhenFull::Run,
        InputNames::default(),
        &["return {'noted'}"],
    );
    let store = fixture.store.replacing(noted);
    let limit = |bytes: &str| {
        let set = ["CONFIG", "SET", "maxmemory", bytes];
        fixture.redis.command::<String>(&set)
    };
    limit("1");
    let error = create(&store, &account, "test").await.unwrap_err();
    assert!(!error.may_have_run(), "{error:?}");
    limit("0");
    assert_eq!(owners(&fixture).await, vec![]);
}
