//! Blocked addresses at the edge (decisions D11, D63): before anything else, within seconds, without a restart.

use super::fixture::{Fixture, SOON, estimated_body, open_cap};
use harness::{Caller, Cli, RawClient, Redis, Reply, eventually, until};
use serde_json::json;
use std::sync::Arc;

const ADMIN: &str = env!("CARGO_BIN_EXE_tollgate-admin");

fn operate(redis: &Redis, what: &str, range: &str) {
    let done = Cli::new(ADMIN, redis.url()).json(&["ip", what, range]);
    assert_eq!(done["changed"], json!(true), "{what} {range}: {done}");
}

/// Asserts a refusal in OpenAI's shape, without anything about a decision.
#[track_caller]
fn blocked(reply: &Reply) {
    assert_eq!(reply.status, 403, "{reply:?}");
    let body = reply.json();
    let message = body["error"]["message"].as_str().unwrap();
    let error =
        json!({ "message": message, "type": "request_forbidden", "param": null, "code": "IP_BLOCKED" });
    assert_eq!(body, json!({ "error": error }));
    assert_eq!(reply.header("x-service-decision"), None);
    assert_eq!(reply.header("x-should-retry"), Some("false"));
    assert!(reply.header("x-request-id").is_some() && reply.header("x-service-overhead-ms").is_some());
}

async fn until_status(caller: &Caller, headers: &[(&str, &str)], status: u16) {
    until("the list in force", async || {
        let reply = caller.send("GET", "/v1/models", headers, "").await;
        reply.status == status
    })
    .await;
}

#[tokio::test]
async fn blocked_before_key_body_path_and_method() {
    let fixture = Fixture::alone().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let (here, there) = (
        actor.caller.clone().at_address("127.0.0.1"),
        actor.caller.clone().at_address("127.0.0.2"),
    );
    assert_eq!(there.chat(estimated_body(1)).await.status, 200);
    operate(&fixture.redis, "block", "127.0.0.2");
    until_status(&there, &[], 403).await;
    let arrived = fixture.upstream.arrived();
    for key in [actor.key.as_str(), "", "vk_live_short", "sk-x"] {
        let there = fixture.edge.caller(key).at_address("127.0.0.2");
        // The edge ignores the caller's own `X-Forwarded-For`.
        let spoofed = [("x-forwarded-for", "127.0.0.1")];
        blocked(&there.chat_with(&spoofed, estimated_body(1)).await);
        blocked(&there.chat(json!("no object")).await);
        blocked(&there.get("/v1/models").await);
        blocked(&there.send("DELETE", "/v1/models", &[], "").await);
        blocked(&there.get("/v1/nothing").await);
        blocked(&there.send("POST", "/v1/health", &[], "").await);
        let long = "x".repeat(2 << 20);
        blocked(&there.send("POST", "/v1/chat/completions", &[], long).await);
    }
    let response = there.get("/v1/health").await;
    assert_eq!(response.status, 200, "health is for everybody");
    assert_eq!(fixture.upstream.arrived(), arrived);
    assert_eq!(here.chat(estimated_body(1)).await.status, 200);
    let refused = fixture
        .edge
        .metric::<u64>(r#"tollgate_proxy_refused_total{code="IP_BLOCKED"}"#);
    assert!(refused > Some(28), "{refused:?}");

    operate(&fixture.redis, "unblock", "127.0.0.2");
    until_status(&there, &[], 200).await;
    assert_eq!(there.chat(estimated_body(1)).await.status, 200);
}

#[tokio::test]
async fn ranges_of_both_families_behind_a_trusted_proxy() {
    let redis = Arc::new(Redis::start());
    let fixture = Fixture::on(redis, |options| {
        options.env("TOLLGATE_NETWORK__TRUSTED_PROXIES", "127.0.0.0/8")
    })
    .await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for range in ["203.0.113.0/24", "2001:db8::/32", "::ffff:198.51.100.7"] {
        operate(&fixture.redis, "block", range);
    }
    until_status(&actor.caller, &[("x-forwarded-for", "198.51.100.7")], 403).await;
    for (address, status) in [
        ("203.0.113.255", 403),
        ("203.0.114.0", 200),
        ("[2001:db8::9]:4711", 403),
        ("192.0.2.1, 203.0.113.9", 403),
        ("unknown", 403),
    ] {
        let reply = actor
            .caller
            .chat_with(&[("x-forwarded-for", address)], estimated_body(1))
            .await;
        assert_eq!(reply.status, status, "{address}: {reply:?}");
    }
    // A client whose address no proxy names could be any of those on the list (decision D73).
    let reply = actor.caller.chat(estimated_body(1)).await;
    blocked(&reply);
    assert!(reply.text().contains("X-Forwarded-For"), "{}", reply.text());
    assert_eq!(actor.caller.get("/v1/health").await.status, 200);
    for range in ["203.0.113.0/24", "2001:db8::/32", "::ffff:198.51.100.7"] {
        operate(&fixture.redis, "unblock", range);
    }
    let unreadable = [("x-forwarded-for", "unknown")];
    until_status(&actor.caller, &unreadable, 200).await;
    let response = actor.caller.chat(estimated_body(1)).await;
    assert_eq!(response.status, 200, "an empty list blocks nobody");
}

#[tokio::test]
async fn open_connections_are_judged_at_each_request() {
    let fixture = Fixture::alone().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let h2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    let h2 = actor.caller.clone().with_client(h2.build().unwrap());
    let mut connection = RawClient::connect(fixture.edge.addr()).await;
    let request = format!(
        "GET /v1/models HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\r\n",
        actor.key
    );
    assert!(connection.send(&request).await);
    assert_eq!(connection.reply(SOON).await.unwrap().status, 200);
    assert_eq!(h2.chat(estimated_body(1)).await.status, 200);
    for (what, status) in [("block", 403), ("unblock", 200)] {
        operate(&fixture.redis, what, "127.0.0.0/8");
        until_status(&h2, &[], status).await;
        assert_eq!(h2.chat(estimated_body(1)).await.status, status);
        assert!(connection.send(&request).await);
        let reply = connection.reply(SOON).await.expect("the same connection");
        assert_eq!(reply.status, status, "{}", reply.head);
    }
}

#[tokio::test]
async fn the_list_stays_while_the_store_is_away_and_nothing_comes_in_before_it_is_read() {
    let redis = Arc::new(Redis::start_durable());
    let fixture = Fixture::on(Arc::clone(&redis), |options| options).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    operate(&redis, "block", "127.0.0.2");
    let there = actor.caller.clone().at_address("127.0.0.2");
    until_status(&there, &[], 403).await;
    redis.stop();
    eventually("not ready", SOON, async || {
        (fixture.edge.ops("/readyz")?.0 == 503).then_some(())
    })
    .await;
    blocked(&there.chat(estimated_body(1)).await);
    assert_eq!(actor.caller.chat(estimated_body(1)).await.status, 503);

    // An edge that starts now has no list. It answers 503 to everybody, also to an invalid key.
    let upstream = fixture.upstream.base_url();
    let late = super::fixture::options(&redis, &upstream).until_alive();
    let late = harness::Edge::start(late);
    eventually("a listener", SOON, async || {
        tokio::net::TcpStream::connect(late.addr()).await.ok()
    })
    .await;
    for key in ["sk-x", &actor.key] {
        let reply = late.caller(key).chat(estimated_body(1)).await;
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (503, "service_unavailable")
        );
        let reply = late.caller(key).get("/v1/models").await;
        assert_eq!(reply.status, 503, "{reply:?}");
    }
    assert_eq!(late.ops("/readyz").unwrap().0, 503);
    redis.restart();
    let there = late.caller(&actor.key).at_address("127.0.0.2");
    until_status(&there, &[], 403).await;
    until("a call", async || {
        let caller = late.caller(&actor.key).at_address("127.0.0.1");
        caller.chat(estimated_body(1)).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_forwarding_address_that_is_not_trusted_is_warned_of_once() {
    let fixture = Fixture::alone().await;
    let caller = fixture.edge.caller("");
    let warned = || fixture.edge.logs().matches("X-Forwarded-For").count();
    caller.get("/v1/models").await;
    assert_eq!(warned(), 0);
    for _ in 0..3 {
        let headers = [("x-forwarded-for", "203.0.113.9")];
        caller.send("GET", "/v1/models", &headers, "").await;
    }
    until("a warning", async || warned() == 1).await;
    assert!(fixture.edge.logs().contains("trusted_proxies"));
}
