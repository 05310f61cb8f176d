//! Guesses (decision D9): ten in a quarter of an hour, counted before they are checked.

use crate::fixture::{Fixture, problem, success};
use domain::mode::Mode;
use futures::future::join_all;
use harness::{Reply, Role, SeedAccount, SessionCaller, TEST_PASSWORD};
use serde_json::json;
use store::credential_attempts::{AttemptPermit, Attempts};
use store::keys::{Tries, attempts};

const WRONG: &str = "not the password";

/// Checks a refusal. Returns the seconds to wait.
#[track_caller]
fn locked(reply: &Reply) -> u64 {
    problem(reply, 429, "LOGIN_LOCKED");
    reply.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn of_fifty_guesses_at_once_ten_are_checked() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("free").await.user(Role::Owner).await;
    let guesses = (0..50).map(|_| fixture.try_login(&user.email, WRONG));
    let replies = join_all(guesses).await;
    let checked = replies.iter().filter(|reply| reply.status == 401).count();
    assert_eq!(checked, 10);
    for reply in replies.iter().filter(|reply| reply.status != 401) {
        let seconds = locked(reply);
        assert!((890..=900).contains(&seconds), "{seconds}");
    }
    let failures = user.account.audit_types(Mode::Live).await;
    assert_eq!(failures, vec!["user.login_failed"; 10]);
    locked(&fixture.try_login(&user.email, TEST_PASSWORD).await);

    // The lock lasts as long as the answer says.
    let key = attempts(Tries::Login, &user.email);
    let left: i64 = fixture.redis.command(&["PTTL", &key]);
    let refusal = locked(&fixture.try_login(&user.email, WRONG).await);
    assert!(refusal * 1000 <= u64::try_from(left).unwrap() + 999 && refusal > 0);
    let after: i64 = fixture.redis.command(&["PTTL", &key]);
    assert!(after <= left, "a refused attempt does not make the lock longer");
    fixture.redis.command::<i64>(&["PEXPIRE", &key, "1500"]);
    assert_eq!(locked(&fixture.try_login(&user.email, TEST_PASSWORD).await), 2);
    tokio::time::sleep(std::time::Duration::from_millis(1600)).await;
    success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
}

#[tokio::test]
async fn an_unknown_e_mail_locks_in_the_same_way() {
    let fixture = Fixture::start().await;
    let guesses = (0..30).map(|_| fixture.try_login("Nobody@Example.com", WRONG));
    let replies = join_all(guesses).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 401).count(), 10);
    locked(&fixture.try_login("nobody@example.com", TEST_PASSWORD).await);
    let other = fixture.try_login("somebody@example.com", WRONG).await;
    problem(&other, 401, "INVALID_CREDENTIALS");
}

#[tokio::test]
async fn a_right_password_gives_its_own_attempt_back() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("free").await.user(Role::Viewer).await;
    let key = attempts(Tries::Login, &user.email);
    let taken = || fixture.redis.command::<i64>(&["LLEN", &key]);
    for wrong in 1..=9 {
        let reply = fixture.try_login(&user.email, WRONG).await;
        problem(&reply, 401, "INVALID_CREDENTIALS");
        for _ in 0..2 {
            success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
            assert_eq!(taken(), wrong, "what was wrong stays counted");
        }
    }
    problem(
        &fixture.try_login(&user.email, WRONG).await,
        401,
        "INVALID_CREDENTIALS",
    );
    locked(&fixture.try_login(&user.email, TEST_PASSWORD).await);
}

/// The password that a stranger chose for a user with another person's e-mail.
const OWN: &str = "a password of mine";
/// The e-mail of that person.
const VICTIM: &str = "victim@example.com";

/// Makes users of this e-mail in two accounts. Returns the stranger's.
async fn of_one_e_mail(fixture: &Fixture) -> SeedAccount {
    let [theirs, own] = [
        fixture.seed.account("free").await,
        fixture.seed.account("free").await,
    ];
    fixture.make_user(&theirs, VICTIM, TEST_PASSWORD);
    fixture.make_user(&own, VICTIM, OWN);
    own
}

/// A user with the same e-mail in an account of one's own gives no further guesses at the other person's password.
#[tokio::test]
async fn signing_in_to_an_own_account_gives_back_no_guess_at_another_one() {
    let fixture = Fixture::start().await;
    let victim = fixture.seed.account("free").await.user(Role::Owner).await;
    let own = fixture.seed.account("free").await;
    fixture.make_user(&own, &victim.email, OWN);
    let login = async |password: &str, account: &SeedAccount| {
        let body = json!({ "email": victim.email, "password": password, "account": account.id });
        fixture.admin.login(&body).await
    };
    for _ in 0..9 {
        problem(&login(WRONG, &victim.account).await, 401, "INVALID_CREDENTIALS");
    }
    for _ in 0..3 {
        success(&login(OWN, &own).await, 200);
    }
    problem(&login(WRONG, &victim.account).await, 401, "INVALID_CREDENTIALS");
    locked(&login(WRONG, &victim.account).await);
    locked(&login(TEST_PASSWORD, &victim.account).await);
    let failures = victim.account.audit_types(Mode::Live).await;
    assert_eq!(failures, vec!["user.login_failed"; 10]);
}

/// A person with a user of somebody else's e-mail can sign in as often as anybody, and locks nobody by that.
#[tokio::test]
async fn right_sign_ins_lock_no_other_user_of_the_e_mail() {
    let fixture = Fixture::start().await;
    let own = of_one_e_mail(&fixture).await;
    fixture.make_user(&own, "nobody@example.com", OWN);
    for email in [VICTIM, "nobody@example.com"] {
        for _ in 0..12 {
            success(&fixture.try_login(email, OWN).await, 200);
        }
    }
    success(&fixture.try_login(VICTIM, TEST_PASSWORD).await, 200);
}

/// In a sign-in without an account, the right password of one user is a guess at the others of the e-mail. The number
/// of different right passwords is limited, even where there is no other user.
#[tokio::test]
async fn different_right_passwords_are_guesses() {
    let fixture = Fixture::start().await;
    let own = of_one_e_mail(&fixture).await;
    fixture.make_user(&own, "nobody@example.com", OWN);
    for email in [VICTIM, "nobody@example.com"] {
        let tries = Tries::RightPasswords;
        for _ in 0..10 {
            let taken = Attempts { tries, of: email }.take(&fixture.store).await.unwrap();
            assert_eq!(taken, AttemptPermit::Yes);
        }
        for _ in 0..2 {
            locked(&fixture.try_login(email, OWN).await);
        }
        let body = json!({ "email": email, "password": OWN, "account": own.id });
        success(&fixture.admin.login(&body).await, 200);
    }
    locked(&fixture.try_login(VICTIM, TEST_PASSWORD).await);
}

/// While an e-mail is locked no password is checked, so its attempts are no guesses of the IP address.
#[tokio::test]
async fn attempts_at_a_locked_e_mail_lock_no_address() {
    let fixture = Fixture::start().await;
    let (user, other) = (
        fixture.seed.account("free").await.user(Role::Viewer).await,
        fixture.seed.account("free").await.user(Role::Viewer).await,
    );
    for _ in 0..10 {
        fixture.try_login(&user.email, WRONG).await;
    }
    for _ in 0..10 {
        for reply in join_all((0..10).map(|_| fixture.try_login(&user.email, TEST_PASSWORD))).await {
            locked(&reply);
        }
    }
    success(&fixture.try_login(&other.email, TEST_PASSWORD).await, 200);
}

#[tokio::test]
async fn one_address_has_a_hundred_wrong_attempts() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("free").await.user(Role::Viewer).await;
    for batch in 0..10 {
        let guesses = (0..10).map(|n| {
            let email = format!("nobody{batch}-{n}@example.com");
            let fixture = &fixture;
            async move { fixture.try_login(&email, WRONG).await }
        });
        for reply in join_all(guesses).await {
            problem(&reply, 401, "INVALID_CREDENTIALS");
        }
        if batch == 8 {
            // Correct passwords are not counted.
            for _ in 0..20 {
                success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
            }
        }
    }
    locked(&fixture.try_login(&user.email, TEST_PASSWORD).await);
    let key = attempts(Tries::Login, &user.email);
    let taken: i64 = fixture.redis.command(&["EXISTS", &key]);
    assert_eq!(taken, 0, "a refused address takes no attempt from the user");
    // Links are counted separately.
    problem(&open_link(&fixture).await, 404, "NOT_FOUND");
    problem(&reset(&fixture).await, 404, "NOT_FOUND");
}

/// A read of an invitation that does not exist.
async fn open_link(fixture: &Fixture) -> Reply {
    let body = json!({ "token": "0a".repeat(32) });
    let nobody = fixture.admin.caller("");
    nobody.post("/api/user/invitations/look", body).await
}

/// A new password through an invalid link.
async fn reset(fixture: &Fixture) -> Reply {
    let body = json!({ "token": "0a".repeat(32), "newPassword": "a new password of mine" });
    let nobody = fixture.admin.caller("");
    nobody.post("/api/user/password/reset", body).await
}

#[tokio::test]
async fn wrong_links_of_one_kind_lock_links_of_that_kind_alone() {
    let fixture = Fixture::start().await;
    let user = fixture.seed.account("free").await.user(Role::Viewer).await;
    for _ in 0..100 {
        problem(&open_link(&fixture).await, 404, "NOT_FOUND");
    }
    locked(&open_link(&fixture).await);
    success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
    for _ in 0..100 {
        problem(&reset(&fixture).await, 404, "NOT_FOUND");
    }
    locked(&reset(&fixture).await);
    success(&fixture.try_login(&user.email, TEST_PASSWORD).await, 200);
}

#[tokio::test]
async fn a_locked_e_mail_ends_no_session() {
    let fixture = Fixture::start().await;
    let (user, session) = fixture.user(Role::Owner).await;
    for _ in 0..10 {
        fixture.try_login(&user.email, WRONG).await;
    }
    locked(&fixture.try_login(&user.email, TEST_PASSWORD).await);
    let change = async |session: &SessionCaller, current: &str, new: &str| {
        let body = json!({ "currentPassword": current, "newPassword": new });
        session.post("/api/user/password", body).await
    };
    let new = "a new password of mine";
    let changed = change(&session, TEST_PASSWORD, new).await;
    success(&changed, 200);
    let session = session.renewed(&changed);
    // A stolen session has ten guesses of its own, and they lock no sign-in.
    for _ in 0..10 {
        problem(&change(&session, WRONG, new).await, 401, "INVALID_CREDENTIALS");
    }
    locked(&change(&session, new, TEST_PASSWORD).await);
    fixture
        .redis
        .command::<i64>(&["DEL", &attempts(Tries::Login, &user.email)]);
    success(&fixture.try_login(&user.email, new).await, 200);
}

#[tokio::test]
async fn a_forwarding_address_that_is_not_trusted_is_warned_of_once() {
    let fixture = Fixture::start().await;
    let warned = || fixture.admin.logs().matches("X-Forwarded-For").count();
    fixture.try_login("nobody@example.com", WRONG).await;
    assert_eq!(warned(), 0);
    for _ in 0..3 {
        let headers = [("x-forwarded-for", "203.0.113.9, 198.51.100.4")];
        fixture
            .admin
            .caller("")
            .send("GET", "/v1/agents", &headers, "")
            .await;
    }
    harness::until("a warning", async || warned() == 1).await;
    let logs = fixture.admin.logs();
    assert!(
        logs.contains("trusted_proxies") && logs.contains("127.0.0.1"),
        "{logs}"
    );
    assert!(!logs.contains("203.0.113.9"), "outside text is no log text");
}
