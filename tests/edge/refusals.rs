//! Requests that are wrong in themselves: every 400, 401, 404, 405, 408 and 413, in OpenAI's error shape, with nothing
//! sent to the provider (specification "Other proxy responses", decisions D34, D39, D62, D63).

use super::fixture::{Fixture, estimated_body, open_cap};
use super::shape::{denied, every_answer, refused};
use harness::Reply;
use serde_json::json;
use std::time::Duration;

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_missing_wrong_or_revoked_key_is_a_401() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let other = fixture.actor("enterprise", open_cap()).await;
    let flipped = if actor.key.ends_with('0') { "1" } else { "0" };
    let forged = format!("{}{flipped}", &actor.key[..actor.key.len() - 1]);
    let upper = actor.key.replacen("vk_live_", "VK_LIVE_", 1);
    let test = actor.key.replacen("live", "test", 1);
    let bearer = |key: &str| format!("Bearer {key}");
    let good = bearer(&actor.key);
    let cases: Vec<Vec<(&str, String)>> = vec![
        vec![],
        vec![("authorization", bearer(""))],
        vec![("authorization", "Bearer".into())],
        vec![("authorization", actor.key.clone())],
        vec![("authorization", format!("Basic {}", actor.key))],
        vec![("authorization", bearer("sk-test-provider-key"))],
        vec![("authorization", bearer(&forged))],
        vec![("authorization", bearer(&upper))],
        vec![("authorization", bearer(&test))],
        vec![("authorization", bearer(&actor.key[..70]))],
        vec![("authorization", bearer(&format!("{}0", actor.key)))],
        vec![("authorization", bearer(&format!("vk_live_{}", "0a".repeat(32))))],
        vec![("authorization", format!("{good}, {good}"))],
        vec![("cookie", format!("key={}", actor.key))],
        vec![("x-api-key", forged.clone())],
        vec![("x-api-key", good.clone())],
        vec![("authorization", good.clone()), ("x-api-key", other.key.clone())],
        vec![("authorization", good.clone()), ("x-api-key", String::new())],
        vec![("authorization", good.clone()), ("authorization", good.clone())],
        vec![
            ("authorization", good.clone()),
            ("authorization", bearer(&other.key)),
        ],
        vec![("x-api-key", actor.key.clone()), ("x-api-key", actor.key.clone())],
        vec![("api-key", actor.key.clone())],
    ];
    let anyone = fixture.edge.caller("");
    for case in cases {
        let headers: Vec<(&str, &str)> = case.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = anyone.chat_with(&headers, estimated_body(1)).await;
        refused(&reply, 401, "invalid_api_key");
        assert!(
            !reply.text().contains(&actor.key[8..]),
            "no secret is echoed: {reply:?}"
        );
    }
    // The answer does not reveal whether a key ever existed.
    let invented = anyone
        .chat_with(&[("x-api-key", &forged)], estimated_body(1))
        .await;
    actor.agent.account.revoke(&actor.key_id).await;
    let revoked = actor.caller.chat(estimated_body(1)).await;
    refused(&revoked, 401, "invalid_api_key");
    assert_eq!(revoked.body, invented.body);
    refused(&actor.caller.get("/v1/models").await, 401, "invalid_api_key");
    assert_eq!(fixture.upstream.arrived(), 0);
}

#[tokio::test]
async fn both_key_headers_are_taken() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let anyone = fixture.edge.caller("");
    let bearer = format!("Bearer {}", actor.key);
    let lower = format!("bearer  {}", actor.key);
    for headers in [
        &[("authorization", bearer.as_str())][..],
        &[("authorization", lower.as_str())],
        &[("x-api-key", actor.key.as_str())],
        &[
            ("authorization", bearer.as_str()),
            ("x-api-key", actor.key.as_str()),
        ],
    ] {
        let reply = anyone.chat_with(headers, estimated_body(100)).await;
        assert_eq!(reply.status, 200, "{headers:?}: {reply:?}");
    }
}

#[tokio::test]
async fn other_paths_are_404_and_other_methods_405() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for path in [
        "/",
        "/v1",
        "/v1/completions",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/v2/models",
        "/V1/health",
    ] {
        refused(&actor.caller.get(path).await, 404, "not_found");
    }
    // Paths that `AzureOpenAI` calls with `azure_endpoint` or `base_url`: refused before the key is checked.
    for path in [
        "/openai/deployments/nano/chat/completions?api-version=2024-10-21",
        "/v1/deployments/nano/chat/completions?api-version=2024-10-21",
    ] {
        let headers = [("api-key", actor.key.as_str())];
        let body = estimated_body(1).to_string();
        let reply = fixture.edge.caller("").send("POST", path, &headers, body).await;
        refused(&reply, 404, "not_found");
        assert!(reply.text().contains("Use `OpenAI` with `base_url`"), "{reply:?}");
    }
    let h2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    let h2 = actor.caller.clone().with_client(h2.build().unwrap());
    for (path, methods, allow) in [
        (CHAT, &["GET", "PUT", "DELETE", "PATCH", "OPTIONS"][..], "POST"),
        ("/v1/models", &["POST", "DELETE", "OPTIONS"], "GET"),
        ("/v1/health", &["POST", "PUT"], "GET"),
    ] {
        for method in methods {
            let reply = actor.caller.send(method, path, &[], "").await;
            refused(&reply, 405, "method_not_allowed");
            assert_eq!(reply.header("allow"), Some(allow));
        }
        for caller in [&actor.caller, &h2] {
            let head: Reply = caller.send("HEAD", path, &[], "").await;
            assert_eq!((head.status, head.body.len()), (405, 0), "HEAD {path}: {head:?}");
            every_answer(&head);
        }
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}

/// The rate is a fixed minute that opens at the key's first request; every request with a known key counts (decision
/// D30).
#[tokio::test]
async fn the_rate_is_a_fixed_minute_in_which_everything_counts() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("free", open_cap()).await;
    actor.agent.frozen(true).await;
    for _ in 0..3 {
        denied(&actor.caller.chat(estimated_body(1)).await, "frozen");
        refused(&actor.caller.chat(json!({})).await, 400, "missing_model");
        assert_eq!(actor.caller.get("/v1/models").await.status, 200);
    }
    // A request without a known key does not count.
    let reply = fixture.edge.caller("vk_live_x").chat(estimated_body(1)).await;
    refused(&reply, 401, "invalid_api_key");
    assert_eq!(actor.caller.get("/v1/health").await.status, 200);
    denied(&actor.caller.chat(estimated_body(1)).await, "frozen");
    actor.agent.frozen(false).await;
    denied(&actor.caller.chat(estimated_body(1)).await, "rate_limited");
    denied(&actor.caller.chat(json!({})).await, "rate_limited");
    denied(&actor.caller.get("/v1/models").await, "rate_limited");

    let rate = actor.agent.account.keys.rate(&actor.key_id);
    let left = || fixture.redis.command::<i64>(&["PTTL", &rate]);
    assert!(
        (1..=60_000).contains(&left()),
        "the window ends within a minute of the first request"
    );
    let _: u64 = fixture.redis.command(&["PEXPIRE", &rate, "30000"]);
    denied(&actor.caller.chat(estimated_body(1)).await, "rate_limited");
    assert!(left() <= 30_000, "a denied request does not prolong the window");
    let _: u64 = fixture.redis.command(&["PEXPIRE", &rate, "1"]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let reply = actor.caller.chat(estimated_body(100)).await;
    assert_eq!(reply.status, 200, "the next window is open");
    let other = fixture.actor("free", open_cap()).await;
    let reply = other.caller.chat(estimated_body(100)).await;
    assert_eq!(reply.status, 200, "the rate is the key's own");
}
