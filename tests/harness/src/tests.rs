//! Tests of the harness itself.

use super::*;
use crypto::seal::SealedFor;
use crypto::sha256_hex;
use domain::mode::Mode;
use serde_json::json;
use std::time::Duration;
use store::lookup::VirtualKeyOwner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_closed_port_refuses_and_is_nobody_elses() {
    let closed = ClosedPort::take();
    assert!(std::net::TcpStream::connect(closed.address()).is_err());
    assert!(std::net::TcpListener::bind(closed.address()).is_err());
}

#[tokio::test]
async fn a_durable_redis_keeps_its_data_and_its_port() {
    let redis = Redis::start_durable();
    let _: String = redis.command(&["SET", "a", "1"]);
    redis.restart();
    assert_eq!(redis.command::<String>(&["GET", "a"]), "1");
    redis.kill9();
    assert!(redis.try_command::<String>(&["GET", "a"]).is_err());
    redis.restart();
    assert_eq!(redis.command::<String>(&["GET", "a"]), "1");
    let pid = redis.pid();
    drop(redis);
    assert!(
        !std::path::Path::new(&format!("/proc/{pid}")).exists(),
        "the server is gone"
    );
}

#[tokio::test]
async fn a_frozen_redis_answers_nothing_until_it_goes_on() {
    let redis = Redis::start();
    let store = redis.store_with(Duration::from_millis(200));
    let ping = redis::cmd("PING");
    assert_eq!(store.command::<String>(&ping).await.unwrap(), "PONG");
    redis.pause();
    assert!(store.command::<String>(&ping).await.is_err());
    redis.resume();
    eventually("PONG", SOON, async || store.command::<String>(&ping).await.ok()).await;
}

#[tokio::test]
async fn what_is_seeded_can_be_looked_up_and_opened() {
    let redis = Redis::shared();
    let seed = Seed::new(&redis.store()).await;
    let (bot, key) = seed.ready_agent("free", CapPolicy::default()).await;
    let owner = VirtualKeyOwner::find(seed.store(), &sha256_hex(key.as_bytes()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((owner.account(), owner.agent()), (bot.account.id.as_str(), "bot"));
    let fields: Vec<String> = redis.command(&[
        "HMGET",
        &bot.account.keys.agent(Mode::Live, "bot"),
        "pk_id:openai",
        "pk_sealed:openai",
    ]);
    let whose = SealedFor {
        account: &bot.account.id,
        agent: "bot",
        provider: "openai",
        key_id: &fields[0],
    };
    assert!(test_sealer().open(&whose, &fields[1]).is_ok());
    assert_eq!(bot.counters().await, AgentCounters::default());
}

#[tokio::test]
async fn a_reply_is_lost_also_to_a_request_in_two_pieces() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    wire.lose_reply_to("lost-value", 1);
    let mut caller = TcpStream::connect(wire.addr()).await.unwrap();
    caller
        .write_all(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$10\r\nlost-")
        .await
        .unwrap();
    eventually("the first piece at the server", SOON, async || {
        (wire.bytes().0 > 0).then_some(())
    })
    .await;
    caller.write_all(b"value\r\n").await.unwrap();
    let mut reply = Vec::new();
    let read = tokio::time::timeout(SOON, caller.read_to_end(&mut reply)).await;
    assert!(read.is_ok(), "the connection stays: {reply:?}");
    assert_eq!((reply.len(), wire.replies_lost()), (0, 1));
    assert_eq!(redis.command::<String>(&["GET", "a"]), "lost-value");
}

#[tokio::test]
async fn a_lost_reply_means_that_the_command_ran() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    let store = Store::open(&wire.redis_url(), Duration::from_millis(500)).unwrap();
    let set = |value: &str| redis::cmd("SET").arg("a").arg(value).take();
    store.command::<String>(&set("1")).await.unwrap();
    wire.lose_reply_to("lost-value", 1);
    let error = store.command::<String>(&set("lost-value")).await.unwrap_err();
    assert!(error.may_have_run(), "{error:?}");
    assert_eq!(redis.command::<String>(&["GET", "a"]), "lost-value");
    assert_eq!(wire.replies_lost(), 1);
    eventually("a new connection", SOON, async || {
        store.command::<String>(&set("1")).await.ok()
    })
    .await;
    wire.swallow_replies(true);
    assert!(store.command::<String>(&set("2")).await.is_err());
    assert_eq!(redis.command::<String>(&["GET", "a"]), "2");
    wire.heal();
    wire.cut();
    eventually("a new connection", SOON, async || {
        store.command::<String>(&set("3")).await.ok()
    })
    .await;
    wire.refuse(true);
    wire.cut();
    assert!(store.command::<String>(&set("4")).await.is_err());
    assert!(wire.bytes().0 > wire.bytes().1 && wire.connections() > 1);
}

#[tokio::test]
async fn a_held_request_arrives_after_its_client_has_gone() {
    let redis = Redis::start();
    let wire = Wire::to_port(redis.port());
    let mut client = RawClient::connect(wire.addr()).await;
    wire.hold_requests();
    client.send("SET late yes\r\n").await;
    eventually("the hold", SOON, async || wire.is_holding().then_some(())).await;
    drop(client);
    assert_eq!(redis.command::<u64>(&["EXISTS", "late"]), 0);
    wire.release_requests();
    let late = async || (redis.command::<u64>(&["EXISTS", "late"]) == 1).then_some(());
    eventually("the late request", SOON, late).await;
}

#[tokio::test]
async fn the_upstream_answers_as_configured() {
    let upstream = Upstream::start(|request| match request.path.as_str() {
        "/v1/plain" => Answer::chat(1, 2).interim(103).header("X-A", "b"),
        "/v1/chunked" => Answer::chat(3, 4)
            .chunked(7)
            .trickle(20, Duration::from_millis(1)),
        "/v1/close" => Answer::json(429, json!({"a": 1})).until_close(),
        "/v1/cut" => Answer::chat(1, 2).reset_after(90),
        "/v1/short" => Answer::chat(1, 2).truncated(5),
        "/v1/twice" => Answer::bytes(200, "x").twice(),
        _ => Answer::reset(),
    });
    let caller = Caller::new(&format!("http://{}", upstream.addr()), "vk");
    let plain = caller.post("/v1/plain", json!({"q": 1})).await;
    assert_eq!((plain.status, plain.header("x-a")), (200, Some("b")));
    assert_eq!(plain.json()["usage"]["total_tokens"], 3);
    assert_eq!(caller.get("/v1/chunked").await.json()["usage"]["total_tokens"], 7);
    assert_eq!(caller.get("/v1/close").await.status, 429);
    for broken in ["/v1/cut", "/v1/short", "/v1/reset"] {
        assert!(caller.try_send("GET", broken, &[], "").await.is_err(), "{broken}");
    }
    let mut raw = RawClient::connect(upstream.addr()).await;
    raw.send("GET /v1/twice HTTP/1.1\r\n\r\n").await;
    for _ in 0..2 {
        assert_eq!(raw.reply(SOON).await.unwrap().text(), "x");
    }
    let seen = upstream.requests();
    assert_eq!(seen[0].body, br#"{"q":1}"#);
    assert_eq!(seen[0].header("authorization"), Some("Bearer vk"));
    assert_eq!(upstream.arrived(), 7);
    upstream.stop();
    assert!(caller.try_send("GET", "/v1/plain", &[], "").await.is_err());
}

#[test]
fn a_cluster_of_three_serves_every_slot() {
    let cluster = RedisCluster::start(3);
    assert_eq!(cluster.nodes().len(), 3);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(&cluster.url(), SOON).unwrap();
        for n in 0..20 {
            let set = redis::cmd("SET").arg(format!("key-{n}")).arg(n).take();
            store.command::<String>(&set).await.unwrap();
        }
    });
}
