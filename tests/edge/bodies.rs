//! Bodies that are malformed, too long or never come: 400, 413, 408 (decisions D34, D62, D63).

use super::fixture::{Fixture, SOON, estimated_body, open_cap};
use super::shape::refused;
use harness::RawClient;
use serde_json::{Value, json};
use std::time::Instant;

const CHAT: &str = "/v1/chat/completions";

const JSON: (&str, &str) = ("content-type", "application/json");

/// Malformed bodies, other content types and codings are in `tests/recorded/edge.txt`.
#[tokio::test]
async fn a_header_of_content_that_is_empty_twice_or_needless_is_a_400() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let good = estimated_body(1).to_string();
    for headers in [
        &[("content-type", "")][..],
        &[JSON, JSON],
        &[JSON, ("content-encoding", "identity")],
        &[JSON, ("content-encoding", "")],
    ] {
        let response = actor.caller.send("POST", CHAT, headers, good.clone()).await;
        refused(&response, 400, "invalid_json");
    }
    assert_eq!(fixture.upstream.arrived(), 0);
}

#[tokio::test]
async fn unusual_bodies_are_forwarded_unchanged() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let with = |fields: &str| format!(r#"{{"model":"nano","messages":[{{"role":"user"}}]{fields}}}"#);
    let nested = format!(r#","x":{}{}"#, "[".repeat(127), "]".repeat(127));
    let unusual = [
        with(&nested),
        with(r#","n":null,"stream":null,"max_tokens":null,"max_completion_tokens":null"#),
        with(r#","stream":false,"n":128,"max_tokens":1"#),
        with(r#","x":1e-400,"y":-0.0,"z":123456789012345678901234567890"#),
        format!(" \n{} \r\n\t ", with("")),
        r#"{"messages":[{"a":1,"a":2}],"model":"\u006eano"}"#.to_owned(),
    ];
    for (at, body) in unusual.iter().enumerate() {
        let headers = [("content-type", "application/json; charset=utf-8")];
        let reply = actor.caller.send("POST", CHAT, &headers, body.clone()).await;
        assert_eq!(reply.status, 200, "{body}: {reply:?}");
        assert_eq!(
            fixture.upstream.requests()[at].body,
            body.as_bytes(),
            "byte for byte"
        );
    }
    assert_eq!(fixture.upstream.arrived(), unusual.len());
}

/// An object of a provider's own keys is searched for those that choose what is billed. In each other one it is read as
/// other objects are: once for each of 120 levels, this body took a hundred times as long.
#[tokio::test]
async fn nested_extensions_are_not_read_again_for_each_level() {
    const LEVELS: usize = 120;
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let numbers = "1,".repeat(40_000) + "1";
    let seconds = async |key: &str, status: u16| {
        let opened = format!("{{\"{key}\":").repeat(LEVELS);
        let closed = "}".repeat(LEVELS);
        let member = format!(r#""{key}":{opened}[{numbers}]{closed}"#);
        let body = format!(r#"{{"model":"nano","messages":[{{"role":"user"}}],{member}}}"#);
        let started = Instant::now();
        let reply = actor.caller.send("POST", CHAT, &[JSON], body).await;
        assert_eq!(reply.status, status, "{key}: {reply:?}");
        started.elapsed().as_secs_f64()
    };
    seconds("x", 200).await;
    let plain = seconds("x", 200).await;
    for key in ["extra_body", "google"] {
        let searched = seconds(key, 400).await;
        assert!(
            searched < 20.0 * plain,
            "{key}: {searched} s, otherwise {plain} s"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_a_413() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__MAX_BODY_BYTES", "20000")).await;
    let actor = fixture.actor("free", open_cap()).await;
    let padded = |length: usize| {
        let body = estimated_body(100).to_string();
        let spaces = " ".repeat(length - body.len());
        body + &spaces
    };
    let response = actor.caller.send("POST", CHAT, &[], padded(20_000)).await;
    assert_eq!(response.status, 200, "the limit itself is fine");
    let response = actor.caller.send("POST", CHAT, &[], padded(20_001)).await;
    refused(&response, 413, "payload_too_large");

    // The length is checked before the look-up of the key, and after the check of its form (decision D63).
    let unknown = fixture.edge.caller(&format!("vk_live_{}", "0a".repeat(32)));
    let reply = unknown.send("POST", CHAT, &[], padded(20_001)).await;
    refused(&reply, 413, "payload_too_large");
    let shapeless = fixture.edge.caller("vk_live_0a");
    let reply = shapeless.send("POST", CHAT, &[], padded(20_001)).await;
    refused(&reply, 401, "invalid_api_key");

    // Declared too long: answered before any of the body is read, and the connection ends there.
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
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

    // Not declared: answered once too long. Every request counts toward the rate (decision D30): the 11th is a 429.
    for count in 4..=11 {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
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
    assert_eq!(fixture.upstream.arrived(), 1);
}

#[tokio::test]
async fn a_call_without_a_limit_is_refused_where_one_is_required() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__REQUIRE_TOKEN_LIMIT", "true")).await;
    let actor = fixture.actor("enterprise", open_cap()).await;
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
    assert_eq!(fixture.upstream.arrived(), 0, "nothing is forwarded");
    for limit in ["max_tokens", "max_completion_tokens"] {
        let reply = actor.caller.chat(with(limit, &json!(9))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}
