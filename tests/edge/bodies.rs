//! Bodies that are malformed, too long or never come: 400, 413, 408 (decisions D34, D62, D63).

use super::shape::refused;
use super::stage::{SOON, Stage, estimated_body, open_cap};
use harness::RawClient;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

/// One body with each fault. The parser has tests of its own for the details.
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
    let good = estimated_body(1).to_string();
    for headers in [
        &[("content-type", "text/plain")][..],
        &[("content-type", "")],
        &[("content-type", "application/json"), ("content-encoding", "gzip")],
        &[
            ("content-type", "application/json"),
            ("content-encoding", "identity"),
        ],
    ] {
        let response = actor.caller.send("POST", CHAT, headers, good.clone()).await;
        refused(&response, 400, "invalid_json");
    }
    for allowed in ["null", "false"] {
        let mut body = estimated_body(100);
        body["stream"] = allowed.parse().expect("JSON");
        assert_eq!(actor.caller.chat(body).await.status, 200, "stream: {allowed}");
    }
    let (n, spaced) = (json!(null), format!(" \r\n\t{good}\n\n "));
    let mut body = estimated_body(100);
    body["n"] = n.clone();
    body["max_completion_tokens"] = n;
    assert_eq!(actor.caller.chat(body).await.status, 200, "null means absent");
    let response = actor.caller.send("POST", CHAT, &[], spaced).await;
    assert_eq!(response.status, 200, "spaces around are fine");
    assert_eq!(stage.upstream.arrived(), 4);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_a_413() {
    let stage = Stage::with(|options| options.env("TOLLGATE_PROXY__MAX_BODY_BYTES", "20000")).await;
    let actor = stage.actor("free", open_cap()).await;
    let padded = |length: usize| {
        let body = estimated_body(100).to_string();
        let spaces = " ".repeat(length - body.len());
        body + &spaces
    };
    let response = actor.caller.send("POST", CHAT, &[], padded(20_000)).await;
    assert_eq!(response.status, 200, "the limit itself is fine");
    let response = actor.caller.send("POST", CHAT, &[], padded(20_001)).await;
    refused(&response, 413, "payload_too_large");

    // It comes before the look-up of the key, and after the check of its form (decision D63).
    let unknown = stage.edge.caller(&format!("vk_live_{}", "0a".repeat(32)));
    let reply = unknown.send("POST", CHAT, &[], padded(20_001)).await;
    refused(&reply, 413, "payload_too_large");
    let shapeless = stage.edge.caller("vk_live_0a");
    let reply = shapeless.send("POST", CHAT, &[], padded(20_001)).await;
    refused(&reply, 401, "invalid_api_key");

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

    // Not declared: as soon as it is. Every request counts toward the rate (decision D30), so the eleventh is a 429.
    for count in 4..=11 {
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
async fn a_body_of_32_mib_passes_and_one_byte_more_does_not() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let mut body = estimated_body(100);
    let empty = {
        body["messages"][0]["content"] = "".into();
        body.to_string().len()
    };
    for (length, status) in [(32 << 20, 200), ((32 << 20) + 1, 413)] {
        body["messages"][0]["content"] = "x".repeat(length - empty).into();
        let reply = actor.caller.chat(body.clone()).await;
        assert_eq!(reply.status, status, "{length}: {}", reply.text());
    }
    assert_eq!(stage.upstream.requests()[0].body.len(), 32 << 20);
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
async fn a_call_without_a_limit_is_refused_where_one_is_required() {
    let stage = Stage::with(|options| options.env("TOLLGATE_PROXY__REQUIRE_TOKEN_LIMIT", "true")).await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let with = |limit: &str, value: &Value| {
        let mut body = json!({ "model": "nano", "messages": [{ "role": "user", "content": "x" }] });
        body[limit] = value.clone();
        body
    };
    for body in [with("n", &json!(2)), with("max_tokens", &Value::Null)] {
        let reply = actor.caller.chat(body).await;
        refused(&reply, 400, "missing_token_limit");
        let error = &reply.json()["error"];
        assert_eq!(error["param"], "max_completion_tokens", "{error}");
    }
    assert_eq!(stage.upstream.arrived(), 0, "nothing is forwarded");
    for limit in ["max_tokens", "max_completion_tokens"] {
        let reply = actor.caller.chat(with(limit, &json!(9))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}
