//! Blocked addresses on the admin server (decision D11): refused on every path, within seconds, without a restart.

use crate::fixture::{BINARY, FULL, Fixture, problem, success};
use domain::mode::Mode;
use harness::{AdminOptions, Caller, Cli, RawClient, Redis, Seed, until};
use serde_json::{Value, json};
use std::time::Duration;
use store::keys;

const SOON: Duration = Duration::from_secs(20);
/// Requests to all kinds of paths: operations, documents, pages, and unknown ones.
const PATHS: [(&str, &str); 7] = [
    ("GET", "/v1/agents"),
    ("POST", "/api/v1/agents"),
    ("GET", "/"),
    ("GET", "/assets/x.js"),
    ("POST", "/api/user/login"),
    ("PUT", "/v1/agents"),
    ("GET", "/no/such/path"),
];

fn cli(fixture: &Fixture) -> Cli {
    Cli::new(BINARY, fixture.redis.url())
}

/// Blocks a range. Returns the command's document.
fn block(cli: &Cli, range: &str) -> Value {
    cli.json(&["ip", "block", range])
}

fn unblock(cli: &Cli, range: &str) {
    assert_eq!(cli.json(&["ip", "unblock", range])["changed"], json!(true));
}

async fn behind_a_proxy() -> Fixture {
    Fixture::start_with(|options: AdminOptions| {
        options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8")
    })
    .await
}

/// Returns the status for a client with this `X-Forwarded-For`.
async fn from(caller: &Caller, address: &str) -> u16 {
    let headers = [("x-forwarded-for", address)];
    caller.send("GET", "/v1/agents", &headers, "").await.status
}

async fn until_status(caller: &Caller, address: &str, status: u16) {
    until("the list in force", async || {
        from(caller, address).await == status
    })
    .await;
}

#[tokio::test]
async fn nothing_at_all_is_served_to_a_blocked_address() {
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("enterprise").await;
    let key = account.issue(Mode::Live, FULL, &[], None).await;
    let (here, there) = (
        fixture.admin.caller(&key.secret).at_address("127.0.0.1"),
        fixture.admin.caller(&key.secret).at_address("127.0.0.2"),
    );
    success(&there.get("/v1/agents").await, 200);
    let listed = block(&cli(&fixture), "127.0.0.2");
    assert_eq!(listed["blocked"][0]["range"], "127.0.0.2/32");
    until("a refusal", async || there.get("/v1/agents").await.status == 403).await;
    // The block comes before all checks of the key, whatever the forwarding headers say.
    for secret in ["", "svc_live_short", "vk_live_x", &key.secret] {
        let there = fixture.admin.caller(secret).at_address("127.0.0.2");
        for (method, path) in PATHS {
            let headers = [("x-forwarded-for", "127.0.0.1"), ("forwarded", "for=127.0.0.1")];
            let reply = there.send(method, path, &headers, "").await;
            problem(&reply, 403, "IP_BLOCKED");
            assert_eq!(reply.header("set-cookie"), None);
        }
    }
    success(&here.get("/v1/agents").await, 200);
    // The ops listener is not blocked.
    let refused = fixture.admin.metric::<usize>("tollgate_admin_blocked_total");
    assert!(refused > Some(4 * PATHS.len()), "{refused:?}");

    unblock(&cli(&fixture), "127.0.0.2");
    until("an answer", async || there.get("/v1/agents").await.status == 200).await;
    assert!(fixture.admin.is_running());
}

#[tokio::test]
async fn ranges_of_both_families_behind_a_trusted_proxy() {
    let fixture = behind_a_proxy().await;
    let (_, caller) = fixture.account("enterprise").await;
    for range in ["203.0.113.0/24", "2001:db8::/32", "::ffff:198.51.100.7"] {
        block(&cli(&fixture), range);
    }
    until_status(&caller, "198.51.100.7", 403).await;
    for (address, status) in [
        ("203.0.113.255", 403),
        ("203.0.114.0", 200),
        ("[2001:db8:1::9]:4711", 403),
        // The proxy appends the address that it saw to the client's own header.
        ("192.0.2.1, 203.0.113.9", 403),
        // A malformed address does not hide the client either.
        ("é, 203.0.113.9", 403),
        // An unknown address could be any of the blocked ones (decision D73).
        ("unknown", 403),
    ] {
        assert_eq!(from(&caller, address).await, status, "{address}");
    }
    problem(&caller.get("/v1/agents").await, 403, "IP_BLOCKED");
    unblock(&cli(&fixture), "203.0.113.0/24");
    until_status(&caller, "203.0.113.9", 200).await;
    assert_eq!(from(&caller, "2001:db8::1").await, 403, "the others stay");
    unblock(&cli(&fixture), "2001:db8::/32");
    unblock(&cli(&fixture), "::ffff:198.51.100.7");
    until_status(&caller, "unknown", 200).await;
    success(&caller.get("/v1/agents").await, 200);
}

#[tokio::test]
async fn an_open_connection_is_judged_at_each_request() {
    let fixture = Fixture::start().await;
    let account = fixture.seed.account("enterprise").await;
    let key = account.issue(Mode::Live, FULL, &[], None).await;
    let mut connection = RawClient::connect(fixture.admin.addr()).await;
    let request = format!(
        "GET /v1/agents HTTP/1.1\r\nHost: x\r\nx-api-key: {}\r\n\r\n",
        key.secret
    );
    connection.send(&request).await;
    assert_eq!(connection.reply(SOON).await.unwrap().status, 200);
    block(&cli(&fixture), "127.0.0.1");
    let mut until = async |status: u16| {
        let deadline = tokio::time::Instant::now() + SOON;
        while tokio::time::Instant::now() < deadline {
            connection.send(&request).await;
            if connection.reply(SOON).await.expect("the same connection").status == status {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never {status}");
    };
    until(403).await;
    unblock(&cli(&fixture), "127.0.0.1");
    until(200).await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_stays_as_it_was() {
    let fixture = behind_a_proxy().await;
    let (_, caller) = fixture.account("enterprise").await;
    block(&cli(&fixture), "203.0.113.7");
    until_status(&caller, "203.0.113.7", 403).await;
    // A malformed entry, with a version that announces a change.
    let _: u64 = fixture
        .redis
        .command(&["HSET", keys::BLOCKED, "nonsense", "1 x", "version", "other"]);
    until("a complaint", async || {
        fixture
            .admin
            .logs()
            .contains("the blocked addresses cannot be parsed")
    })
    .await;
    assert_eq!(from(&caller, "203.0.113.7").await, 403);
    assert_eq!(from(&caller, "203.0.113.8").await, 200);
    let _: u64 = fixture.redis.command(&["HDEL", keys::BLOCKED, "nonsense"]);
    block(&cli(&fixture), "203.0.113.8");
    until_status(&caller, "203.0.113.8", 403).await;
    // Without the store the list stays in force, and all other requests are refused anyway.
    fixture.redis.stop();
    until("a refusal", async || from(&caller, "203.0.113.9").await == 503).await;
    assert_eq!(from(&caller, "203.0.113.8").await, 403);
}

#[tokio::test]
async fn before_the_list_was_read_nothing_is_served() {
    let redis = Redis::start_durable();
    let store = redis.store();
    Seed::new(&store).await;
    block(&Cli::new(BINARY, redis.url()), "127.0.0.1");
    redis.stop();
    let admin = harness::Admin::start(AdminOptions::new(BINARY, redis.url()).until_alive());
    for (method, path) in PATHS {
        let reply = admin.caller("").send(method, path, &[], "").await;
        problem(&reply, 503, "SERVICE_UNAVAILABLE");
    }
    assert_eq!(admin.ops("/readyz").unwrap().0, 503);
    redis.restart();
    until("the list", async || {
        admin.caller("").get("/v1/agents").await.status == 403
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_ranges_are_searched() {
    let fixture = behind_a_proxy().await;
    let (_, caller) = fixture.account("enterprise").await;
    let mut set = redis::cmd("HSET");
    set.arg(keys::BLOCKED).arg("version").arg("many");
    for number in 0..9_999_u32 {
        let four = std::net::Ipv4Addr::from_bits(0x0b00_0000 + 512 * number);
        set.arg(format!("{four}/24")).arg("1 ");
    }
    let _: u64 = fixture.store.command(&set).await.unwrap();
    until_status(&caller, "11.0.0.1", 403).await;
    for (address, status) in [("11.0.1.1", 200), ("11.78.29.255", 200), ("11.78.28.255", 403)] {
        assert_eq!(from(&caller, address).await, status, "{address}");
    }
    // One more fills the list.
    let cli = cli(&fixture);
    assert_eq!(block(&cli, "203.0.113.7")["total"], json!(10_000));
    let full = cli.run(&["ip", "block", "203.0.113.8", "--json"]);
    let document: Value = serde_json::from_str(&full.stdout).unwrap();
    assert_eq!((full.code, &document["code"]), (Some(1), &json!("CONFLICT")));
    assert_eq!(block(&cli, "203.0.113.7")["changed"], json!(false));
    unblock(&cli, "203.0.113.7");
    assert_eq!(block(&cli, "203.0.113.8")["changed"], json!(true));
}

#[tokio::test]
async fn the_body_of_a_blocked_address_is_not_waited_for() {
    let fixture = Fixture::start().await;
    block(&cli(&fixture), "127.0.0.1");
    let nobody = fixture.admin.caller("");
    until("a refusal", async || nobody.get("/v1/agents").await.status == 403).await;
    let mut connection = RawClient::connect(fixture.admin.addr()).await;
    let head = "POST /v1/agents HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    connection.send(head).await;
    assert_eq!(connection.reply(SOON).await.expect("an answer").status, 403);
}

/// Restores the state of before a change, as a failover to a replica without the change does.
const TAKE_BACK: &str =
    "redis.call('HDEL', KEYS[1], ARGV[1]); redis.call('HSET', KEYS[1], 'version', ARGV[2]); return 1";

#[tokio::test]
async fn a_block_that_the_store_lost_stays_until_it_is_made_again() {
    let fixture = behind_a_proxy().await;
    let (_, caller) = fixture.account("enterprise").await;
    let cli = cli(&fixture);
    block(&cli, "203.0.113.7");
    let before: String = fixture.redis.command(&["HGET", keys::BLOCKED, "version"]);
    block(&cli, "203.0.113.8");
    until_status(&caller, "203.0.113.8", 403).await;
    let _: u64 = fixture
        .redis
        .command(&["EVAL", TAKE_BACK, "1", keys::BLOCKED, "203.0.113.8/32", &before]);
    let says = async |what: &str| {
        until(what, async || fixture.admin.logs().contains(what)).await;
    };
    says("the store lost changes of the blocked addresses").await;
    assert_eq!(from(&caller, "203.0.113.8").await, 403);
    assert!(fixture.admin.logs().contains("203.0.113.8/32"), "it is named");
    // Changes beyond the lost version do not unblock the address, either.
    block(&cli, "203.0.113.9");
    block(&cli, "203.0.113.10");
    until_status(&caller, "203.0.113.10", 403).await;
    assert_eq!(from(&caller, "203.0.113.8").await, 403);
    block(&cli, "203.0.113.8");
    says("the store has all blocked addresses again").await;
    unblock(&cli, "203.0.113.8");
    until_status(&caller, "203.0.113.8", 200).await;
    assert_eq!(from(&caller, "203.0.113.7").await, 403);
}
