//! Requests that are wrong in themselves: every 400, 401, 404, 405, 408 and 413, in OpenAI's error shape, with nothing
//! sent to the provider (specification "Other proxy responses", decisions D34, D39, D62, D63).

use super::shape::{denied, every_answer, refused};
use super::stage::{SOON, Stage, ask, open_cap};
use harness::{RawClient, Reply};
use serde_json::{Value, json};
use std::time::Duration;

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_missing_wrong_or_revoked_key_is_a_401() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let other = stage.actor("enterprise", open_cap()).await;
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
    ];
    let anyone = stage.edge.caller("");
    for case in cases {
        let headers: Vec<(&str, &str)> = case.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = anyone.chat_with(&headers, ask(1)).await;
        refused(&reply, 401, "invalid_api_key");
        assert!(
            !reply.text().contains(&actor.key[8..]),
            "no secret is echoed: {reply:?}"
        );
    }
    actor.agent.account.revoke(&actor.key_id).await;
    refused(&actor.caller.chat(ask(1)).await, 401, "invalid_api_key");
    refused(&actor.caller.get("/v1/models").await, 401, "invalid_api_key");
    assert_eq!(stage.upstream.arrived(), 0);
}

#[tokio::test]
async fn both_key_headers_are_taken() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let anyone = stage.edge.caller("");
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
        let reply = anyone.chat_with(headers, ask(100)).await;
        assert_eq!(reply.status, 200, "{headers:?}: {reply:?}");
    }
}

/// One body with each fault; what the parser makes of bodies in detail is tested beside it.
fn bad_bodies() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let with = |field: &str, value: &str| {
        format!(r#"{{"model":"nano","messages":[{{"role":"user","content":"x"}}],"{field}":{value}}}"#)
    };
    let deep = with("metadata", &format!("{}{}", "[".repeat(129), "]".repeat(129)));
    let text = |text: &str| text.as_bytes().to_vec();
    let mut bodies = vec![
        ("invalid_json", "", vec![]),
        ("invalid_json", "", text("{")),
        ("invalid_json", "", text("[]")),
        ("invalid_json", "", text("null")),
        ("invalid_json", "", text(&format!("{} x", with("n", "1")))),
        (
            "invalid_json",
            "",
            text(&format!("{}{}", with("n", "1"), with("n", "1"))),
        ),
        (
            "invalid_json",
            "",
            [b"{\"model\":\"n\xff\"".to_vec(), text("}")].concat(),
        ),
        ("invalid_json", "", text(&deep)),
        (
            "invalid_json",
            "model",
            text(r#"{"model":"nano","model":"plain","messages":[{}]}"#),
        ),
        (
            "missing_model",
            "model",
            text(r#"{"messages":[{"role":"user","content":"x"}]}"#),
        ),
        (
            "missing_model",
            "model",
            text(r#"{"model":"","messages":[{"role":"user","content":"x"}]}"#),
        ),
        (
            "missing_model",
            "model",
            text(r#"{"model":null,"messages":[{}]}"#),
        ),
        ("missing_messages", "messages", text(r#"{"model":"nano"}"#)),
        (
            "missing_messages",
            "messages",
            text(r#"{"model":"nano","messages":[]}"#),
        ),
        (
            "missing_messages",
            "messages",
            text(r#"{"model":"nano","messages":"x"}"#),
        ),
        ("stream_not_supported", "stream", text(&with("stream", "true"))),
    ];
    for (field, values) in [
        ("stream", &["1", "\"true\"", "[]"][..]),
        ("n", &["0", "-1", "129", "1.5", "\"2\"", "1e1", "true"]),
        ("max_tokens", &["0", "-1", "10000001", "1.0", "\"9\""]),
        ("max_completion_tokens", &["0", "10000001", "{}"]),
    ] {
        bodies.extend(
            values
                .iter()
                .map(|value| ("invalid_json", field, text(&with(field, value)))),
        );
    }
    bodies
}

#[tokio::test]
async fn a_malformed_body_is_a_400_that_names_the_fault() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    for (code, param, body) in bad_bodies() {
        let reply = actor
            .caller
            .send(
                "POST",
                CHAT,
                &[("content-type", "application/json")],
                body.clone(),
            )
            .await;
        refused(&reply, 400, code);
        let error = &reply.json()["error"];
        let body = String::from_utf8_lossy(&body);
        if param.is_empty() {
            assert_eq!(error["param"], Value::Null, "{body}: {error}");
        } else {
            assert_eq!(error["param"], param, "{body}: {error}");
            assert!(
                error["message"].as_str().is_some_and(|text| text.contains(param)),
                "{error}"
            );
        }
    }
    let good = ask(1).to_string();
    for headers in [
        &[("content-type", "text/plain")][..],
        &[("content-type", "")],
        &[("content-type", "application/json"), ("content-encoding", "gzip")],
        &[
            ("content-type", "application/json"),
            ("content-encoding", "identity"),
        ],
    ] {
        refused(
            &actor.caller.send("POST", CHAT, headers, good.clone()).await,
            400,
            "invalid_json",
        );
    }
    for allowed in ["null", "false"] {
        let mut body = ask(100);
        body["stream"] = allowed.parse().expect("JSON");
        assert_eq!(actor.caller.chat(body).await.status, 200, "stream: {allowed}");
    }
    let (n, spaced) = (json!(null), format!(" \r\n\t{good}\n\n "));
    let mut body = ask(100);
    body["n"] = n.clone();
    body["max_completion_tokens"] = n;
    assert_eq!(actor.caller.chat(body).await.status, 200, "null means absent");
    assert_eq!(
        actor.caller.send("POST", CHAT, &[], spaced).await.status,
        200,
        "spaces around are fine"
    );
    assert_eq!(stage.upstream.arrived(), 4);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_a_413() {
    let stage = Stage::with(|options| options.env("TOLLGATE_PROXY__MAX_BODY_BYTES", "20000")).await;
    let actor = stage.actor("free", open_cap()).await;
    let padded = |length: usize| format!("{:length$}", ask(100).to_string());
    assert_eq!(
        actor.caller.send("POST", CHAT, &[], padded(20_000)).await.status,
        200,
        "the limit itself is fine"
    );
    refused(
        &actor.caller.send("POST", CHAT, &[], padded(20_001)).await,
        413,
        "payload_too_large",
    );

    // Declared too long: answered before anything of it is read, and the connection ends there.
    let mut raw = RawClient::connect(stage.edge.addr()).await;
    let head = |key: &str, framing: &str| {
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n{framing}\r\n\r\n"
        )
    };
    raw.send(head(&actor.key, "Content-Length: 99999999999")).await;
    let reply = raw.reply(SOON).await.expect("an answer");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (413, Some("close")),
        "{reply:?}"
    );

    // Not declared: as soon as it is. The request counts toward the rate (decision D30), so the eleventh is a 429.
    for count in 2..=11 {
        let mut raw = RawClient::connect(stage.edge.addr()).await;
        raw.send(head(&actor.key, "Transfer-Encoding: chunked")).await;
        let chunk = padded(16_384);
        let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
        raw.send(&chunk).await;
        raw.send(&chunk).await;
        let reply = raw.reply(SOON).await.expect("an answer");
        assert_eq!(
            reply.status,
            if count <= 10 { 413 } else { 429 },
            "request {count}: {reply:?}"
        );
    }
    assert_eq!(stage.upstream.arrived(), 1);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_a_408() {
    let stage = Stage::with(|options| options.env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "300")).await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let mut raw = RawClient::connect(stage.edge.addr()).await;
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{{",
        actor.key
    );
    raw.send(head).await;
    let reply = raw.reply(SOON).await.expect("an answer");
    assert_eq!(reply.status, 408, "{reply:?}");
    assert!(reply.text().contains("\"code\":\"request_timeout\""), "{reply:?}");
    assert_eq!(stage.upstream.arrived(), 0);
}

#[tokio::test]
async fn other_paths_are_404_and_other_methods_405() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
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
        let head: Reply = actor.caller.send("HEAD", path, &[], "").await;
        assert_eq!((head.status, head.body.len()), (405, 0), "HEAD {path}: {head:?}");
        every_answer(&head);
    }
    assert_eq!(stage.upstream.arrived(), 0);
}

/// The rate is a fixed minute that opens at the key's first request; every request with a known key counts (decision D30).
#[tokio::test]
async fn the_rate_is_a_fixed_minute_in_which_everything_counts() {
    let stage = Stage::new().await;
    let actor = stage.actor("free", open_cap()).await;
    actor.agent.frozen(true).await;
    for _ in 0..3 {
        denied(&actor.caller.chat(ask(1)).await, "frozen");
        refused(&actor.caller.chat(json!({})).await, 400, "missing_model");
        assert_eq!(actor.caller.get("/v1/models").await.status, 200);
    }
    // What is no request with a known key does not.
    refused(
        &stage.edge.caller("vk_live_x").chat(ask(1)).await,
        401,
        "invalid_api_key",
    );
    assert_eq!(actor.caller.get("/v1/health").await.status, 200);
    denied(&actor.caller.chat(ask(1)).await, "frozen");
    actor.agent.frozen(false).await;
    denied(&actor.caller.chat(ask(1)).await, "rate_limited");
    denied(&actor.caller.chat(json!({})).await, "rate_limited");
    denied(&actor.caller.get("/v1/models").await, "rate_limited");

    let rate = actor.agent.account.keys.rate(&actor.key_id);
    let left = || stage.redis.command::<i64>(&["PTTL", &rate]);
    assert!(
        (1..=60_000).contains(&left()),
        "the window ends within a minute of the first request"
    );
    let _: u64 = stage.redis.command(&["PEXPIRE", &rate, "1500"]);
    denied(&actor.caller.chat(ask(1)).await, "rate_limited");
    assert!(left() <= 1500, "a denied request does not prolong the window");
    tokio::time::sleep(Duration::from_millis(1600)).await;
    assert_eq!(
        actor.caller.chat(ask(100)).await.status,
        200,
        "the next window is open"
    );
    let other = stage.actor("free", open_cap()).await;
    assert_eq!(
        other.caller.chat(ask(100)).await.status,
        200,
        "the rate is the key's own"
    );
}
