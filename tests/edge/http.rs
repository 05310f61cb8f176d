//! The edge as an HTTP server: health, models, odd but valid requests, and pipelining.

use super::fixture::{Fixture, SOON, estimated_body, open_cap};
use super::shape::{denied, every_answer, refused};
use harness::{Answer, RawClient, Redis, assert_fields};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

#[tokio::test]
async fn health_says_whether_calls_can_be_decided() {
    let redis = Arc::new(Redis::start());
    let fixture = Fixture::on(redis, |options| options.env("TOLLGATE_STORE__TIMEOUT_MS", "1000")).await;
    let anyone = fixture.edge.caller("");
    let check = async |status: u16, word: &str| {
        let reply = anyone.get("/v1/health").await;
        assert_eq!(reply.status, status, "{reply:?}");
        every_answer(&reply);
        let mut body = reply.json();
        let latency = body["latencyMs"].take();
        assert!(latency.as_f64().is_some_and(|ms| ms >= 0.0), "{reply:?}");
        let decisions = if status == 200 { "available" } else { "unavailable" };
        let expected = json!({
            "status": word, "failClosed": true, "decisions": decisions, "streaming": false, "upstream": "127.0.0.1",
            "endpoints": ["/v1/chat/completions", "/v1/models", "/v1/models/{model}", "/v1/health"], "latencyMs": null,
        });
        assert_eq!(body, expected);
    };
    check(200, "ok").await;
    fixture.redis.pause();
    check(503, "degraded").await;
    fixture.redis.resume();
    harness::until("health", async || anyone.get("/v1/health").await.status == 200).await;
    check(200, "ok").await;
    fixture.redis.kill9();
    check(503, "degraded").await;
    assert_eq!(fixture.upstream.arrived(), 0);
}

/// Whoever needs no key decides how often the store is read no more than by how long he keeps asking.
#[tokio::test]
async fn pipelined_requests_for_health_share_reads_of_the_store() {
    const CONNECTIONS: usize = 50;
    const REQUESTS: usize = 50;
    let fixture = Fixture::new().await;
    let before = fixture.redis.calls("hgetall");
    let requests = "GET /v1/health HTTP/1.1\r\nHost: edge\r\n\r\n".repeat(REQUESTS);
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(RawClient::connect(fixture.edge.addr()).await);
    }
    for raw in &mut connections {
        assert!(raw.send(&requests).await);
    }
    for raw in &mut connections {
        for _ in 0..REQUESTS {
            assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
        }
    }
    let reads = fixture.redis.calls("hgetall") - before;
    assert!(reads <= (CONNECTIONS * REQUESTS / 5) as u64, "{reads} reads");
}

#[tokio::test]
async fn models_lists_what_has_a_price() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let reply = actor.caller.get("/v1/models").await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json")),
        "{reply:?}"
    );
    every_answer(&reply);
    let body = reply.json();
    assert_eq!(body["object"], "list");
    let models = body["data"].as_array().expect("a list");
    for model in models {
        let fields: HashSet<&str> = model
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(fields, HashSet::from(["id", "object", "created", "owned_by"]));
        assert_fields!(model, { "object": "model", "owned_by": "openai" });
        assert!(model["created"].is_u64());
    }
    let ids: HashSet<&str> = models.iter().filter_map(|model| model["id"].as_str()).collect();
    assert_eq!(ids.len(), models.len(), "no name twice");
    for name in ["nano", "plain", "sound", "search", "seek", "grain"] {
        assert!(ids.contains(name), "{name} in {ids:?}");
    }
    let response = fixture.edge.caller("").get("/v1/models").await;
    refused(&response, 401, "invalid_api_key");
    assert_eq!(
        actor.agent.counters().await.tracked_nanos,
        0,
        "the list costs nothing"
    );
}

/// `GET /v1/models/{model}`, which OpenAI's clients call as `models.retrieve`.
#[tokio::test]
async fn one_model_is_shown_or_not_found() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for (path, id) in [
        ("nano", "nano"),
        ("seek", "seek"),
        ("plain-2030-01-31", "plain-2030-01-31"),
        ("ft%3Aplain%3Aorg%3A%3Aid", "ft:plain:org::id"),
        ("ft:plain:org::id", "ft:plain:org::id"),
    ] {
        let reply = actor.caller.get(&format!("/v1/models/{path}")).await;
        every_answer(&reply);
        assert_eq!(
            (reply.status, reply.json()),
            (
                200,
                json!({ "id": id, "object": "model", "created": 0, "owned_by": "openai" })
            ),
            "{path}"
        );
    }
    let long = "x".repeat(300);
    for path in ["who-knows", "NANO", "%FF", "nano/", "a/b", &long] {
        let reply = actor.caller.get(&format!("/v1/models/{path}")).await;
        refused(&reply, 404, "model_not_found");
        assert_eq!(reply.json()["error"]["param"], "model", "{path}");
    }
    let nobody = fixture.edge.caller("");
    refused(&nobody.get("/v1/models/nano").await, 401, "invalid_api_key");
    let response = nobody.send("POST", "/v1/models/nano", &[], "").await;
    refused(&response, 405, "method_not_allowed");
    refused(&actor.caller.get("/v1/models/").await, 404, "not_found");
    let free = fixture.actor("free", open_cap()).await;
    for _ in 0..10 {
        assert_eq!(free.caller.get("/v1/models/nano").await.status, 200);
    }
    denied(&free.caller.get("/v1/models/nano").await, "rate_limited");
    assert_eq!(fixture.upstream.arrived(), 0);
}

#[tokio::test]
async fn a_connection_is_kept_and_its_requests_may_follow_at_once() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = estimated_body(100).to_string();
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    for round in 0..5 {
        assert!(
            raw.send_chat(&actor.key, "", body.as_bytes()).await,
            "round {round}"
        );
        let reply = raw.reply(SOON).await.expect("an answer");
        assert_eq!(
            (reply.status, reply.header("connection")),
            (200, Some("keep-alive"))
        );
        // Also after an answer that is no approval.
        raw.send("GET /v1/nowhere HTTP/1.1\r\nHost: edge\r\n\r\n").await;
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 404);
    }
    assert_eq!(fixture.upstream.arrived(), 5);
    assert_eq!(
        fixture.upstream.connections(),
        1,
        "the connection to the provider is kept as well"
    );

    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    raw.send_chat(&actor.key, "Connection: close\r\n", body.as_bytes())
        .await;
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    assert!(raw.closed(SOON).await, "closed when asked to");

    // Three requests in one write: each is answered, in order.
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    let head = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: edge\r\n\r\n");
    raw.send([head("/v1/health"), head("/a"), head("/v1/health")].concat())
        .await;
    for expected in [200, 404, 200] {
        let reply = raw.reply(SOON).await.expect("an answer");
        assert_eq!(reply.status, expected, "{reply:?}");
        assert_eq!(reply.header("connection"), Some("keep-alive"), "{reply:?}");
    }
}

/// Pipelined requests are each charged and answered once, in order, whatever frames their bodies and stands between
/// them.
#[tokio::test]
async fn pipelined_calls_are_answered_in_order() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    fixture.upstream.set(|request| {
        let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12 });
        Answer::json(200, json!({ "for": request.json()["user"], "usage": usage }))
    });
    let call = |number: u64, framing: &str, rest: &str| {
        let mut body = estimated_body(100);
        body["user"] = number.to_string().into();
        let body = body.to_string();
        let (framing, body) = match framing {
            "chunked" => (
                "Transfer-Encoding: chunked".to_owned(),
                format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            ),
            _ => (format!("Content-Length: {}", body.len()), body),
        };
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{framing}\r\n\r\n{body}{rest}",
            actor.key
        )
    };
    let mut number = 0;
    for framing in ["length", "chunked"] {
        for between in ["", "\r\n"] {
            let calls: String = (number..number + 5)
                .map(|number| call(number, framing, between))
                .collect();
            let closing =
                call(number + 5, framing, "").replacen("Host: edge", "Host: edge\r\nConnection: close", 1);
            let mut raw = RawClient::connect(fixture.edge.addr()).await;
            assert!(raw.send(calls + &closing + &call(99, framing, "")).await);
            for at in 0..6 {
                let reply = raw
                    .reply(SOON)
                    .await
                    .unwrap_or_else(|| panic!("{number} {framing} {between:?}"));
                assert_eq!(reply.status, 200, "{reply:?}");
                assert!(
                    reply.text().contains(&format!("\"for\":\"{number}\"")),
                    "{number}: {reply:?}"
                );
                let kept = if at < 5 { "keep-alive" } else { "close" };
                assert_eq!(reply.header("connection"), Some(kept), "{number}: {reply:?}");
                number += 1;
            }
            assert!(raw.closed(SOON).await, "what follows the close is not answered");
        }
    }
    assert_eq!(
        fixture.upstream.arrived() as u64,
        number,
        "each call was sent once"
    );
    assert_eq!(actor.agent.counters().await.day_nanos, 12 * number);
}

#[tokio::test]
async fn a_caller_that_expects_100_continue_receives_it() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = estimated_body(100).to_string();
    let head = |key: &str, length: usize| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\nExpect: 100-continue\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    raw.send(head(&actor.key, body.len())).await;
    assert_eq!(raw.reply(SOON).await.expect("an interim answer").status, 100);
    raw.send(&body).await;
    assert_eq!(raw.reply(SOON).await.expect("the answer").status, 200);
    let sent = fixture.upstream.requests().pop().expect("a request");
    assert_eq!(sent.header("expect"), None);
    // A key that is wrong, or a body that is too long, is refused before the body is requested.
    for (key, length, status) in [("vk_live_x", body.len(), 401), (actor.key.as_str(), 1 << 30, 413)] {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        raw.send(head(key, length)).await;
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, status);
    }
    assert_eq!(fixture.upstream.arrived(), 1);
}

#[tokio::test]
async fn unusual_but_valid_requests_are_understood() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = estimated_body(100).to_string();
    let rest = |target: &str, version: &str, headers: &str| {
        format!(
            "POST {target} HTTP/{version}\r\n{headers}aUtHoRiZaTiOn:   bearer {}  \r\nCONTENT-TYPE: APPLICATION/json;charset=UTF-8\r\n\
             content-length: {}\r\n\r\n{body}",
            actor.key,
            body.len()
        )
    };
    for (what, target, version, headers) in [
        (
            "a query",
            "/v1/chat/completions?api-version=1",
            "1.1",
            "Host: edge\r\n",
        ),
        (
            "the absolute form",
            "http://edge/v1/chat/completions",
            "1.1",
            "Host: edge\r\n",
        ),
        ("HTTP/1.0", "/v1/chat/completions", "1.0", ""),
        (
            "another host",
            "/v1/chat/completions",
            "1.1",
            "Host: whatever.test:99\r\n",
        ),
    ] {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        raw.send(rest(target, version, headers)).await;
        let reply = raw
            .reply(SOON)
            .await
            .unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(reply.status, 200, "{what}: {reply:?}");
        let sent = fixture.upstream.requests().pop().expect("a request");
        assert_eq!(
            (sent.path.as_str(), sent.body == body.as_bytes()),
            ("/v1/chat/completions", true),
            "{what}"
        );
        assert_eq!(
            sent.header("host"),
            Some(fixture.upstream.addr().to_string().as_str()),
            "{what}"
        );
    }
}
