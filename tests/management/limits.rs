//! The management rate limits (decisions D10, D53): counted requests, headers of answers, and a key's last use.

use crate::fixture::{BINARY, FULL, Fixture, problem, success};
use domain::mode::Mode;
use domain::permission::Permission;
use domain::rate::Rate;
use futures::future::join_all;
use harness::{Caller, Cli, Reply, SeedAccount, SeedApiKey, eventually};
use serde_json::json;
use std::time::Duration;
use store::api_key;
use store::api_key::script::count;
use store::api_key::script::count::{Allowed, CountOutcome};
use store::script::change::Scope;

/// Small limits, a plan without limits, and a limit of 0.
const PLANS: &str = "
[free]
wallet_requests_per_minute = 3
agent_requests_per_day = 2
management_requests_per_minute = 5

[builder]
wallet_requests_per_minute = 7
agent_requests_per_day = 7
management_requests_per_minute = 7

[crowd]
management_requests_per_minute = 20

[none]
management_requests_per_minute = 0

[enterprise]
";
const HEADERS: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/// A server with these plans.
async fn limited() -> (Fixture, tempfile::NamedTempFile) {
    Fixture::with_plans(PLANS, |options| options).await
}

async fn account_with_caller(fixture: &Fixture, plan: &str, mode: Mode) -> (SeedAccount, SeedApiKey, Caller) {
    let account = fixture.seed.account(plan).await;
    let key = account.issue(mode, FULL, &[], None).await;
    let caller = fixture.admin.caller(&key.secret);
    (account, key, caller)
}

/// Returns limit and remaining requests. Checks that the window ends within its length from now.
#[track_caller]
fn rate_headers(reply: &Reply, window_s: u64) -> (u64, u64) {
    let [limit, remaining, reset] = HEADERS.map(|name| {
        let text = reply
            .header(name)
            .unwrap_or_else(|| panic!("no {name}: {reply:?}"));
        text.parse::<u64>().unwrap()
    });
    let now = clock::now_ms() / 1000;
    assert!(
        reset >= now && reset <= now + window_s + 1,
        "{reset} is not within {window_s} s of {now}"
    );
    (limit, remaining)
}

#[track_caller]
fn silent(reply: &Reply) {
    for name in HEADERS.iter().chain(&["retry-after"]) {
        assert_eq!(reply.header(name), None, "{name}: {reply:?}");
    }
}

/// Checks the refusal of a request over the limit. Returns the seconds to wait.
#[track_caller]
fn over(reply: &Reply, limit: u64, window_s: u64) -> u64 {
    let sentence = problem(reply, 429, "API_KEY_RATE_LIMITED");
    assert_eq!(rate_headers(reply, window_s), (limit, 0));
    let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=window_s + 1).contains(&wait), "{wait}");
    assert!(sentence.contains(&wait.to_string()), "{sentence}");
    wait
}

async fn requests(fixture: &Fixture, account: &SeedAccount, key: &SeedApiKey, rate: Rate) -> Option<u64> {
    let name = account.keys.management_rate(rate, &key.id);
    fixture.store.command(redis::cmd("GET").arg(name)).await.unwrap()
}

#[tokio::test]
async fn each_key_has_each_rate_and_both_bases_share_it() {
    let (fixture, _plans) = limited().await;
    let (account, _, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    for (base, left) in [("/v1", 4), ("/api/v1", 3), ("/v1", 2)] {
        let reply = caller.get(&format!("{base}/agents")).await;
        success(&reply, 200);
        assert_eq!(rate_headers(&reply, 60), (5, left));
    }
    // The other rates are untouched, and each has its own window.
    for left in [2, 1, 0] {
        let reply = caller.get("/v1/wallets/17").await;
        problem(&reply, 404, "NOT_FOUND");
        assert_eq!(rate_headers(&reply, 60), (3, left), "specification §4.1");
    }
    for left in [1, 0] {
        let reply = caller.get("/v1/audit").await;
        success(&reply, 200);
        assert_eq!(rate_headers(&reply, 86_400), (2, left), "specification §4.2");
    }
    over(&caller.get("/v1/wallets/17").await, 3, 60);
    over(&caller.get("/api/v1/transactions").await, 2, 86_400);
    assert_eq!(rate_headers(&caller.get("/v1/policies").await, 60), (5, 1));
    // Another key of the account has windows of its own.
    let other = fixture.caller(&account, Mode::Live).await;
    assert_eq!(rate_headers(&other.get("/v1/audit").await, 86_400), (2, 1));
}

#[tokio::test]
async fn refused_requests_count_and_say_so() {
    let (fixture, _plans) = limited().await;
    let account = fixture.seed.account("builder").await;
    let key = account.issue(Mode::Live, &[Permission::Read], &[], None).await;
    let caller = fixture.admin.caller(&key.secret);
    let refused = caller.post("/v1/policies", json!({})).await;
    problem(&refused, 403, "INSUFFICIENT_API_KEY_PERMISSIONS");
    assert_eq!(rate_headers(&refused, 60), (7, 6));
    let missing = caller.get("/v1/agents/nobody").await;
    problem(&missing, 404, "NOT_FOUND");
    assert_eq!(rate_headers(&missing, 60), (7, 5));
    let wrong = caller.get("/v1/agents?limit=0").await;
    problem(&wrong, 400, "VALIDATION");
    assert_eq!(rate_headers(&wrong, 60), (7, 4));
    let head = caller.send("HEAD", "/v1/agents", &[], "").await;
    assert_eq!((head.status, rate_headers(&head, 60)), (200, (7, 3)));
    let stream = caller.get("/v1/audit/export").await;
    assert_eq!((stream.status, rate_headers(&stream, 60)), (200, (7, 2)));
    // A path without an operation counts for no key.
    silent(&caller.get("/v1/nothing").await);
    silent(&caller.send("PUT", "/v1/agents", &[], "").await);
    assert_eq!(rate_headers(&caller.get("/v1/agents").await, 60), (7, 1));
}

#[tokio::test]
async fn a_request_too_many_does_nothing_and_the_wait_is_true() {
    let (fixture, _plans) = limited().await;
    let (account, key, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    for _ in 0..5 {
        success(&caller.get("/v1/agents").await, 200);
    }
    let version = account.version().await;
    for _ in 0..3 {
        over(&caller.post("/v1/policies", json!({ "name": "p" })).await, 5, 60);
    }
    assert_eq!(account.version().await, version, "nothing was changed");
    assert_eq!(
        requests(&fixture, &account, &key, Rate::PerMinute).await,
        Some(5),
        "what is over the limit is not counted"
    );
    let name = account.keys.management_rate(Rate::PerMinute, &key.id);
    let left: u64 = fixture.redis.command(&["PTTL", &name]);
    assert!((1..=60_000).contains(&left));
    // Put the end of the window near. Requests do not move it.
    for left_ms in ["1000", "1500", "1999"] {
        let _: String = fixture.redis.command(&["SET", &name, "5", "PX", left_ms]);
        let wait = over(&caller.get("/v1/agents").await, 5, 60);
        assert!(wait <= 2, "{wait}");
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let reply = caller.get("/v1/agents").await;
        success(&reply, 200);
        assert_eq!(rate_headers(&reply, 60), (5, 4), "a window of its own");
    }
}

#[tokio::test]
async fn the_window_opens_at_the_first_request_and_keeps_its_length() {
    let (fixture, _plans) = limited().await;
    let (account, key, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    let name = account.keys.management_rate(Rate::PerDay, &key.id);
    success(&caller.get("/v1/audit").await, 200);
    let left: u64 = fixture.redis.command(&["PTTL", &name]);
    assert!((86_300_000..=86_400_000).contains(&left), "{left}");
    let _: u64 = fixture.redis.command(&["PEXPIRE", &name, "50000000"]);
    let reply = caller.get("/v1/audit").await;
    assert_eq!(rate_headers(&reply, 50_000), (2, 0));
    let wait = over(&caller.get("/v1/audit").await, 2, 86_400);
    assert!((49_000..=50_001).contains(&wait), "{wait}");
    let left: u64 = fixture.redis.command(&["PTTL", &name]);
    assert!(left <= 50_000_000, "{left}");
    // A counter without an expiry is ignored.
    let _: String = fixture.redis.command(&["SET", &name, "2"]);
    assert_eq!(rate_headers(&caller.get("/v1/audit").await, 86_400), (2, 1));
    assert!(fixture.redis.command::<i64>(&["PTTL", &name]) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_as_many_as_the_plan_allows_pass_at_once() {
    let (fixture, _plans) = limited().await;
    for _ in 0..3 {
        let (account, key, caller) = account_with_caller(&fixture, "crowd", Mode::Live).await;
        let tasks = (0..64).map(|_| {
            let caller = caller.clone();
            async move { caller.get("/v1/agents").await }
        });
        let replies = join_all(tasks).await;
        let passed = replies.iter().filter(|reply| reply.status == 200);
        let mut left: Vec<u64> = passed.map(|reply| rate_headers(reply, 60).1).collect();
        left.sort_unstable();
        assert_eq!(left, (0..20).collect::<Vec<u64>>(), "each place is given once");
        let refused = replies.iter().filter(|reply| reply.status == 429).count();
        assert_eq!(refused, 44);
        assert_eq!(
            requests(&fixture, &account, &key, Rate::PerMinute).await,
            Some(20)
        );
    }
}

#[tokio::test]
async fn a_change_of_plan_binds_the_next_request() {
    let (fixture, _plans) = limited().await;
    let (account, _, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    for _ in 0..5 {
        success(&caller.get("/v1/agents").await, 200);
    }
    over(&caller.get("/v1/agents").await, 5, 60);
    account.set_plan("builder").await;
    assert_eq!(rate_headers(&caller.get("/v1/agents").await, 60), (7, 1));
    account.set_plan("free").await;
    over(&caller.get("/v1/agents").await, 5, 60);
    account.set_plan("enterprise").await;
    silent(&caller.get("/v1/agents").await);
    account.set_plan("none").await;
    over(&caller.get("/v1/agents").await, 0, 60);
    // An unknown plan: nothing can be decided (decision D7).
    account.set_plan("gone").await;
    let lost = caller.get("/v1/agents").await;
    problem(&lost, 503, "SERVICE_UNAVAILABLE");
    silent(&lost);
    assert!(fixture.admin.logs().contains("plans.file"));
}

#[tokio::test]
async fn no_plan_counts_test_mode_and_an_unlimited_one_counts_nothing() {
    let (fixture, _plans) = limited().await;
    for (plan, mode) in [
        ("enterprise", Mode::Live),
        ("free", Mode::Test),
        ("gone", Mode::Test),
    ] {
        let (account, key, caller) = account_with_caller(&fixture, plan, mode).await;
        for path in ["/v1/agents", "/v1/audit", "/v1/wallet"].repeat(4) {
            let reply = caller.get(path).await;
            success(&reply, 200);
            silent(&reply);
        }
        for rate in [Rate::WalletMinute, Rate::PerDay, Rate::PerMinute] {
            assert_eq!(
                requests(&fixture, &account, &key, rate).await,
                None,
                "{plan} {mode}"
            );
        }
        let used = &fixture.fields(&account.keys.api_key(&key.id)).await["last_used"];
        assert_eq!(used.parse::<u64>().unwrap() % 60_000, 0, "noted to the minute");
    }
}

#[tokio::test]
async fn keys_that_may_not_come_in_are_not_counted() {
    let (fixture, _plans) = limited().await;
    let (account, revoked, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    let scope = Scope {
        account: &account.id,
        mode: Mode::Live,
        actor: "test",
    };
    api_key::script::revoke(&fixture.store, &scope, &revoked.id)
        .await
        .unwrap();
    let expired = account
        .issue(Mode::Live, FULL, &[], Some(clock::now_ms() - 1))
        .await;
    let elsewhere = account.issue(Mode::Live, FULL, &["203.0.113.0/24"], None).await;
    for (key, status, code) in [
        (&revoked, 401, "INVALID_API_KEY"),
        (&expired, 401, "INVALID_API_KEY"),
        (&elsewhere, 403, "IP_BLOCKED"),
    ] {
        let reply = fixture.admin.caller(&key.secret).get("/v1/agents").await;
        problem(&reply, status, code);
        silent(&reply);
        assert_eq!(requests(&fixture, &account, key, Rate::PerMinute).await, None);
        let fields = fixture.fields(&account.keys.api_key(&key.id)).await;
        assert!(!fields.contains_key("last_used"), "{fields:?}");
    }
    // A key that is revoked between its check and the count.
    let allowed = Some(Allowed {
        rate: Rate::PerMinute,
        limit: 5,
    });
    for key in [revoked.id.as_str(), "key_none"] {
        let counted = count::count(&fixture.store, &account.keys, key, allowed)
            .await
            .unwrap();
        assert_eq!(counted, CountOutcome::Gone);
        let name = account.keys.management_rate(Rate::PerMinute, key);
        assert_eq!(fixture.redis.command::<u64>(&["EXISTS", &name]), 0);
    }
    assert_eq!(
        fixture
            .redis
            .command::<u64>(&["EXISTS", &account.keys.api_key("key_none")]),
        0
    );
    silent(&caller.get("/v1/agents").await);
}

#[tokio::test]
async fn requests_that_cannot_be_counted_are_refused() {
    let (fixture, _plans) = limited().await;
    let (account, key, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    let name = account.keys.management_rate(Rate::PerMinute, &key.id);
    let _: u64 = fixture.redis.command(&["RPUSH", &name, "no number"]);
    let _: u64 = fixture.redis.command(&["PEXPIRE", &name, "60000"]);
    let version = account.version().await;
    let reply = caller.post("/v1/policies", json!({ "name": "p" })).await;
    problem(&reply, 503, "SERVICE_UNAVAILABLE");
    silent(&reply);
    assert_eq!(account.version().await, version, "nothing was changed");
}

#[tokio::test]
async fn a_full_store_still_counts() {
    let (fixture, _plans) = limited().await;
    let (account, key, caller) = account_with_caller(&fixture, "free", Mode::Live).await;
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    fixture
        .redis
        .command::<String>(&["CONFIG", "SET", "maxmemory", "1"]);
    let reply = caller.send("POST", "/v1/agents/bot/freeze", &[], "").await;
    success(&reply, 200);
    assert_eq!(rate_headers(&reply, 60), (5, 4));
    assert_eq!(requests(&fixture, &account, &key, Rate::PerMinute).await, Some(1));
}

#[tokio::test]
async fn a_counted_request_costs_one_script_and_an_uncounted_one_none() {
    let (fixture, _plans) = limited().await;
    let (_, _, counted) = account_with_caller(&fixture, "builder", Mode::Live).await;
    let (_, _, free) = account_with_caller(&fixture, "enterprise", Mode::Live).await;
    // The first request of each caller loads the script and records the minute.
    success(&counted.get("/v1/policies").await, 200);
    success(&free.get("/v1/policies").await, 200);
    let scripts = async |caller: &Caller| {
        let before = fixture.redis.calls("evalsha");
        success(&caller.get("/v1/policies").await, 200);
        fixture.redis.calls("evalsha") - before
    };
    // The sealer executes scripts too, now and then.
    let mut fewest = u64::MAX;
    for _ in 0..5 {
        fewest = fewest.min(scripts(&counted).await);
    }
    assert_eq!(fewest, 1);
    let none = async || (scripts(&free).await == 0).then_some(());
    eventually("a request without a script", Duration::from_secs(10), none).await;
}

#[tokio::test]
async fn when_a_key_was_used_is_listed() {
    let (fixture, _plans) = limited().await;
    let cli = Cli::new(BINARY, fixture.redis.url());
    for mode in [Mode::Live, Mode::Test] {
        let (account, _, caller) = account_with_caller(&fixture, "free", mode).await;
        let list = || cli.json(&["api-key", "list", "--account", &account.id])["apiKeys"][0].clone();
        assert_eq!(list()["lastUsedAt"], json!(null));
        let before = clock::now_ms();
        caller.get("/v1/nothing").await;
        assert_eq!(list()["lastUsedAt"], json!(null), "it was used for nothing");
        success(&caller.get("/v1/agents").await, 200);
        // Rounded down to the minute, but not before the key was made.
        let (used, made) = (list()["lastUsedAt"].clone(), list()["createdAt"].clone());
        let used = used.as_str().unwrap();
        assert!(used.ends_with(":00.000Z") || used == made, "{used} {made}");
        assert!(used >= made.as_str().unwrap(), "{used} {made}");
        let used = domain::timestamp::ms_from_iso(used).unwrap();
        assert!(used <= clock::now_ms() && used + 120_000 > before, "{used}");
        let table = cli.run(&["api-key", "list", "--account", &account.id]);
        assert!(table.stdout.contains("LAST USED"), "{table:?}");
    }
}
