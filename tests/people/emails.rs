//! The look-ups of e-mails: each address has one user in the whole installation, and none is blocked for ever.

use crate::world::{World, problem, success};
use futures::future::join_all;
use harness::{Role, SeedAccount, TEST_PASSWORD};
use serde_json::json;
use shared::clock::now_ms;
use shared::domain::id::Kind;
use shared::store::email::EmailOwner;
use shared::store::keys::user_lookup;
use shared::store::script::account::{UserAdded, add_user};
use shared::store::user::User;

const EMAIL: &str = "ann@example.com";

fn new(email: &str) -> User {
    User {
        id: Kind::User.mint(now_ms()).unwrap(),
        email: email.to_owned(),
        role: Role::Owner,
        password:
            "$argon2id$v=19$m=8,t=1,p=1$dG9sbGdhdGUgaGFybmVzcw$UTMKx4LLHBAIm8gYfxKPSgSGHySmmj2alHU4eE8BEcI"
                .to_owned(),
        created_at_ms: now_ms(),
        totp: None,
        totp_pending: None,
    }
}

async fn add(world: &World, account: &SeedAccount, user: &User) -> UserAdded {
    add_user(&world.store, &account.id, user, "test").await.unwrap()
}

#[tokio::test]
async fn of_many_who_want_an_address_one_has_it() {
    let world = World::start().await;
    let mut accounts = Vec::new();
    for _ in 0..20 {
        accounts.push(world.seed.account("free").await);
    }
    let users: Vec<User> = accounts.iter().map(|_| new(EMAIL)).collect();
    let adding = accounts
        .iter()
        .zip(&users)
        .map(|(account, user)| add(&world, account, user));
    let answers = join_all(adding).await;
    let done = answers
        .iter()
        .filter(|answer| **answer == UserAdded::Done)
        .count();
    assert_eq!(done, 1, "{answers:?}");
    let mut records = 0;
    for account in &accounts {
        records += world.redis.command::<i64>(&["HLEN", &account.keys.users()]);
    }
    assert_eq!(records, 1);
    world.admin.sign_in(EMAIL, TEST_PASSWORD).await;
}

#[tokio::test]
async fn a_removal_that_was_cut_off_does_not_block_the_address() {
    let world = World::start().await;
    let (a, b) = (world.seed.account("free").await, world.seed.account("free").await);
    let (first, second, third) = (new(EMAIL), new(EMAIL), new(EMAIL));
    assert_eq!(add(&world, &a, &first).await, UserAdded::Done);
    assert_eq!(add(&world, &b, &second).await, UserAdded::EmailTaken);
    // The record is gone, and the look-up is not: the process died in between.
    world.redis.command::<i64>(&["HDEL", &a.keys.users(), EMAIL]);
    problem(
        &world.try_login(EMAIL, TEST_PASSWORD).await,
        401,
        "INVALID_CREDENTIALS",
    );
    assert_eq!(add(&world, &b, &second).await, UserAdded::Done);
    let session = world.admin.sign_in(EMAIL, TEST_PASSWORD).await;
    let me = success(&session.get("/api/user/me").await);
    assert_eq!(me["account"]["id"], json!(b.id));

    // Should that removal go on after all, it frees nothing that is not its own.
    let late = EmailOwner {
        account: a.id.clone(),
        user: first.id.clone(),
    };
    late.release(&world.store, EMAIL).await.unwrap();
    success(&session.get("/api/user/me").await);
    world.admin.sign_in(EMAIL, TEST_PASSWORD).await;
    assert_eq!(add(&world, &a, &third).await, UserAdded::EmailTaken);
}

#[tokio::test]
async fn a_reservation_that_nobody_confirms_ends_and_a_user_confirms_it_late() {
    let world = World::start().await;
    let (a, b) = (world.seed.account("free").await, world.seed.account("free").await);
    let (first, second) = (new(EMAIL), new(EMAIL));
    let reserved = EmailOwner {
        account: a.id.clone(),
        user: first.id.clone(),
    };
    assert!(reserved.reserve(&world.store, EMAIL).await.unwrap());
    assert_eq!(add(&world, &b, &second).await, UserAdded::EmailTaken);
    let lookup = user_lookup(EMAIL);
    let left: i64 = world.redis.command(&["PTTL", &lookup]);
    assert!((3_590_000..=3_600_000).contains(&left), "{left}");
    world.redis.command::<i64>(&["DEL", &lookup]);
    assert_eq!(add(&world, &b, &second).await, UserAdded::Done);

    // The confirmation was cut off: signing in makes up for it, and so does asking for the address.
    world.redis.command::<i64>(&["PEXPIRE", &lookup, "3600000"]);
    world.admin.sign_in(EMAIL, TEST_PASSWORD).await;
    assert_eq!(world.redis.command::<i64>(&["PTTL", &lookup]), -1);
    world.redis.command::<i64>(&["PEXPIRE", &lookup, "3600000"]);
    assert_eq!(add(&world, &a, &first).await, UserAdded::EmailTaken);
    assert_eq!(world.redis.command::<i64>(&["PTTL", &lookup]), -1);
    // It ended even so: the operator who adds the user again brings it back.
    world.redis.command::<i64>(&["DEL", &lookup]);
    problem(
        &world.try_login(EMAIL, TEST_PASSWORD).await,
        401,
        "INVALID_CREDENTIALS",
    );
    assert_eq!(add(&world, &b, &new(EMAIL)).await, UserAdded::EmailTaken);
    world.admin.sign_in(EMAIL, TEST_PASSWORD).await;
    assert_eq!(world.redis.command::<i64>(&["PTTL", &lookup]), -1);
}

#[tokio::test]
async fn the_look_up_of_an_earlier_version_names_the_account_only() {
    let world = World::start().await;
    let (owner, boss) = world.user(Role::Owner).await;
    let (user, _) = world.member(&owner.account, Role::Viewer).await;
    let lookup = user_lookup(&user.email);
    world
        .redis
        .command::<String>(&["SET", &lookup, &owner.account.id]);
    world.admin.sign_in(&user.email, TEST_PASSWORD).await;
    success(&boss.delete(&format!("/api/user/team/{}", user.id)).await);
    assert_eq!(world.redis.command::<i64>(&["EXISTS", &lookup]), 0);
}
