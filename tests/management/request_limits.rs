//! The technical limits (decision D71), on every plan: each test-mode API key and each session has requests a minute of
//! its own, and so have all of them together in an account.

use crate::fixture::{FULL, Fixture, problem, success};
use domain::mode::Mode;
use domain::rate::Rate;
use domain::role::Role;
use futures::future::join_all;
use harness::{Reply, SeedAccount, TEST_PASSWORD};
use serde_json::json;
use std::time::Duration;
use store::keys::AccountKeys;
use store::request_limits::{ALL_CALLERS, CALLERS_AT_ONCE, Limit, LimitOutcome};

const MOST: u64 = 4;

async fn limited() -> Fixture {
    Fixture::start_with(|options| {
        options
            .env("TOLLGATE_LIMITS__TEST_REQUESTS_PER_MINUTE", MOST.to_string())
            .env("TOLLGATE_LIMITS__SESSION_REQUESTS_PER_MINUTE", MOST.to_string())
    })
    .await
}

/// Checks the refusal of a request over the limit. Returns the seconds to wait.
#[track_caller]
fn over(reply: &Reply, whose: &str, most: u64) -> u64 {
    let sentence = problem(reply, 429, "API_KEY_RATE_LIMITED");
    assert!(sentence.starts_with(whose), "{sentence}");
    assert!(sentence.contains(&format!("the {most} requests")), "{sentence}");
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    assert!(sentence.contains(&format!("Wait {wait} seconds")), "{sentence}");
    wait
}

async fn counter(fixture: &Fixture, account: &SeedAccount, rate: Rate, id: &str) -> Option<u64> {
    let name = account.keys.management_rate(rate, id);
    fixture.store.command(redis::cmd("GET").arg(name)).await.unwrap()
}

#[tokio::test]
async fn a_test_mode_key_has_its_own_limit_on_every_plan() {
    let fixture = limited().await;
    for plan in ["free", "enterprise"] {
        let account = fixture.seed.account(plan).await;
        let key = account.issue(Mode::Test, FULL, &[], None).await;
        let caller = fixture.admin.caller(&key.secret);
        for at in 0..MOST {
            let body = json!({ "name": format!("a{at}") });
            success(&caller.post("/v1/agents", body).await, 200);
        }
        let version = account.version().await;
        for _ in 0..3 {
            let refused = caller.post("/v1/agents", json!({ "name": "one more" })).await;
            over(&refused, "This test-mode API key", MOST);
        }
        assert_eq!(account.version().await, version, "nothing was changed");
        assert_eq!(counter(&fixture, &account, Rate::Test, &key.id).await, Some(MOST));
        // Live mode and another key of the account go on.
        let live = fixture.caller(&account, Mode::Live).await;
        success(&live.get("/v1/agents").await, 200);
        let other = fixture.caller(&account, Mode::Test).await;
        success(&other.get("/v1/agents").await, 200);
        // A request after the stated wait passes.
        let name = account.keys.management_rate(Rate::Test, &key.id);
        let _: String = fixture
            .redis
            .command(&["SET", &name, &MOST.to_string(), "PX", "900"]);
        let wait = over(&caller.get("/v1/agents").await, "This test-mode API key", MOST);
        assert_eq!(wait, 1);
        tokio::time::sleep(Duration::from_secs(wait)).await;
        success(&caller.get("/v1/agents").await, 200);
    }
    let limited = fixture
        .admin
        .metric(r#"tollgate_admin_limited_total{limit="test_requests"}"#);
    assert_eq!(limited, Some(8));
}

#[tokio::test]
async fn a_user_has_one_limit_for_all_sessions_in_both_modes() {
    let fixture = limited().await;
    let account = fixture.seed.account("free").await;
    let sign_in = async |role| {
        let user = account.user(role).await;
        fixture.admin.sign_in(&user.email, TEST_PASSWORD).await
    };
    let user = account.user(Role::Viewer).await;
    let mut sessions = Vec::new();
    for _ in 0..=CALLERS_AT_ONCE {
        sessions.push(fixture.admin.sign_in(&user.email, TEST_PASSWORD).await);
    }
    for (session, mode) in sessions
        .iter()
        .zip([Mode::Live, Mode::Test, Mode::Live, Mode::Test])
    {
        success(&session.in_mode(mode).get("/api/v1/agents").await, 200);
    }
    for session in &sessions {
        for mode in Mode::ALL {
            let refused = session.in_mode(mode).get("/api/v1/agents").await;
            over(&refused, "Your sessions", MOST);
        }
    }
    // Operations that end or protect something have a limit of each session: who has stolen one cannot keep its user
    // from ending it, or from freezing an agent.
    for _ in 0..MOST {
        success(&sessions[0].get("/api/user/me").await, 200);
    }
    over(&sessions[0].get("/api/user/me").await, "This session", MOST);
    let [own, last] = [&sessions[1], &sessions[2]];
    success(&own.get("/api/user/sessions").await, 200);
    let frozen = own.post("/api/v1/agents/nobody/freeze", json!({})).await;
    problem(&frozen, 403, "INSUFFICIENT_ROLE");
    success(
        &own.post("/api/user/sessions/revoke-others", json!({})).await,
        200,
    );
    problem(&sessions[0].get("/api/user/me").await, 401, "SESSION_REQUIRED");
    problem(&last.get("/api/user/me").await, 401, "SESSION_REQUIRED");
    let changed = json!({ "currentPassword": "wrong", "newPassword": "another long password" });
    let changed = own.post("/api/user/password", changed).await;
    assert_ne!(changed.status, 429, "{changed:?}");
    assert_eq!(
        counter(&fixture, &account, Rate::Session, &user.id).await,
        Some(MOST)
    );
    // Other users of the account pass, until the account's limit is used up.
    let boss = sign_in(Role::Owner).await;
    for _ in 0..CALLERS_AT_ONCE - 1 {
        let another = sign_in(Role::Viewer).await;
        for _ in 0..MOST {
            success(&another.get("/api/v1/agents").await, 200);
        }
    }
    assert_eq!(
        counter(&fixture, &account, Rate::Session, ALL_CALLERS).await,
        Some(MOST * CALLERS_AT_ONCE)
    );
    let refused = boss.get("/api/v1/agents").await;
    over(&refused, "The sessions of this account", MOST * CALLERS_AT_ONCE);
    // Operations that end or protect something pass within the caller's own limit.
    success(&boss.get("/api/user/me").await, 200);
    let path = format!("/api/user/team/{}", user.id);
    success(&boss.delete(&path).await, 200);
    let frozen = boss.post("/api/v1/agents/nobody/freeze", json!({})).await;
    problem(&frozen, 404, "NOT_FOUND");
    success(&boss.post("/api/user/logout", json!({})).await, 200);
    // Neither an API key nor another account is affected.
    let live = fixture.caller(&account, Mode::Live).await;
    success(&live.get("/v1/agents").await, 200);
    let other = fixture.seed.account("free").await.user(Role::Viewer).await;
    let other = fixture.admin.sign_in(&other.email, TEST_PASSWORD).await;
    success(&other.get("/api/v1/agents").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_test_keys_share_what_the_account_may_do() {
    let fixture = limited().await;
    let account = fixture.seed.account("enterprise").await;
    let mut callers = Vec::new();
    for _ in 0..=CALLERS_AT_ONCE {
        callers.push(fixture.caller(&account, Mode::Test).await);
    }
    let tasks = callers
        .iter()
        .flat_map(|caller| (0..MOST + 2).map(|_| caller.get("/v1/agents")));
    let replies = join_all(tasks).await;
    let passed = replies.iter().filter(|reply| reply.status == 200).count() as u64;
    assert_eq!(
        passed,
        MOST * CALLERS_AT_ONCE,
        "exactly as many as the account may make"
    );
    assert!(replies.iter().all(|reply| [200, 429].contains(&reply.status)));
}

/// The script by itself: both windows open at their first request, keep their length, and count only what passes.
#[tokio::test]
async fn both_windows_count_what_passes() {
    let fixture = limited().await;
    let (store, keys) = (&fixture.store, AccountKeys::new("acct_1"));
    let limit = Limit {
        rate: Rate::Test,
        most: 2,
    };
    let [own, all] = ["key_1", ALL_CALLERS].map(|id| keys.management_rate(Rate::Test, id));
    let get = |name: &str| fixture.redis.command::<Option<String>>(&["GET", name]);
    let left = |name: &str| fixture.redis.command::<i64>(&["PTTL", name]);
    assert_eq!(
        limit.count(store, &keys, "key_1").await.unwrap(),
        LimitOutcome::Passed
    );
    for name in [&own, &all] {
        assert_eq!(get(name).as_deref(), Some("1"));
        assert!((50_000..=60_000).contains(&left(name)));
        let _: u64 = fixture.redis.command(&["PEXPIRE", name, "30000"]);
    }
    assert_eq!(
        limit.count(store, &keys, "key_1").await.unwrap(),
        LimitOutcome::Passed
    );
    let LimitOutcome::Over(wait) = limit.count(store, &keys, "key_1").await.unwrap() else {
        panic!("the third of two passed");
    };
    assert!(
        wait <= Duration::from_secs(30) && wait > Duration::from_secs(20),
        "{wait:?}"
    );
    for name in [&own, &all] {
        assert_eq!(get(name).as_deref(), Some("2"), "what is over is not counted");
        assert!(left(name) <= 30_000, "the window keeps its length");
    }
    // The account's window also refuses a key without earlier requests, whose counter stays as it is.
    let _: String = fixture.redis.command(&["SET", &all, "10", "PX", "5000"]);
    let LimitOutcome::AccountOver(wait) = limit.count(store, &keys, "key_2").await.unwrap() else {
        panic!("the account's window was used up");
    };
    assert!(wait <= Duration::from_secs(5), "{wait:?}");
    assert_eq!(get(&keys.management_rate(Rate::Test, "key_2")), None);
    // `count_alone` neither reads nor changes the account's window.
    assert_eq!(
        limit.count_alone(store, &keys, "key_2").await.unwrap(),
        LimitOutcome::Passed
    );
    assert_eq!(
        get(&keys.management_rate(Rate::Test, "key_2")).as_deref(),
        Some("1")
    );
    assert_eq!(get(&all).as_deref(), Some("10"));
    // A window that ends later than it may is from a clock that was ahead.
    let _: String = fixture.redis.command(&["SET", &all, "10", "PX", "120000"]);
    assert_eq!(
        limit.count(store, &keys, "key_2").await.unwrap(),
        LimitOutcome::Passed
    );
    assert_eq!(get(&all).as_deref(), Some("1"));
    assert!(left(&all) <= 60_000);
    let _: u64 = fixture
        .redis
        .command(&["DEL", &keys.management_rate(Rate::Test, "key_2")]);
    // Sessions have a counter of their own, and a counter without an expiry is ignored.
    let session = Limit {
        rate: Rate::Session,
        ..limit
    };
    assert_eq!(
        session.count(store, &keys, "key_1").await.unwrap(),
        LimitOutcome::Passed
    );
    let _: String = fixture.redis.command(&["SET", &all, "10"]);
    assert_eq!(
        limit.count(store, &keys, "key_2").await.unwrap(),
        LimitOutcome::Passed
    );
    assert_eq!(get(&all).as_deref(), Some("1"));
    assert!(left(&all) > 0);
}
