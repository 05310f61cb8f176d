//! Streams, responses and embeddings over HTTP, and the record of each call in `/sandbox/calls`.

use super::*;
use harness::{assert_fields, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(30);

/// A streamed chat completion with this scenario.
async fn stream(caller: &Caller, scenario: &str) -> Reply {
    let mut body = chat_body("gpt-4o-mini", "hällo");
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    caller.chat_with(&[("x-sandbox-scenario", scenario)], body).await
}

/// The record of the call of this number. Waits until the call is over.
async fn call_record(caller: &Caller, number: u64) -> Value {
    eventually("the end of a call", SOON, async || {
        let document = caller.get("/sandbox/calls").await.json();
        let calls = document["calls"].as_array().unwrap().clone();
        calls.into_iter().find(|call| call["number"] == number)
    })
    .await
}

fn data(reply: &Reply) -> Vec<String> {
    let text = reply.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_chat_completion_is_streamed_with_its_usage() {
    let caller = caller().await;
    let reply = stream(&caller, "ok").await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("text/event-stream; charset=utf-8"))
    );
    assert!(reply.header("x-request-id").is_some());
    let events = data(&reply);
    assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
    let usage: Value = serde_json::from_str(&events[events.len() - 2]).unwrap();
    let whole = caller.chat(chat_body("gpt-4o-mini", "hällo")).await.json();
    assert_eq!(usage["usage"], whole["usage"], "the same text, the same usage");
    let call = call_record(&caller, 1).await;
    assert_fields!(call, { "end": "whole", "usage": usage["usage"], "stream": true }, "{call}");
    assert_fields!(call, { "endpoint": "chat.completions", "status": 200 });
    assert_eq!(call["bytes"], reply.body.len() as u64);
    let by_user = json!({ "model": "gpt-4o-mini", "messages": [{ "content": "x" }], "stream": true,
        "user": "sandbox-stream:events=3" });
    assert_eq!(data(&caller.chat(by_user).await).len(), 1 + 3 + 1 + 1);
}

#[tokio::test]
async fn bytes_come_as_requested() {
    let caller = caller().await;
    let plain = stream(&caller, "stream:events=3").await.text();
    assert!(plain.contains("né "), "{plain}");
    for options in ["piece=1", "batch=100", "piece=7,batch=2", "delay=1,first=1"] {
        let other = stream(&caller, &format!("stream:events=3,{options}")).await;
        assert_eq!(other.body.len(), plain.len(), "{options}");
        assert_eq!(data(&other).len(), 7, "{options}");
    }
    for (end, text) in [("crlf", "\r\n\r\n"), ("cr", "\r\r")] {
        let other = stream(&caller, &format!("stream:events=3,eol={end}"))
            .await
            .text();
        assert!(other.ends_with(&format!("data: [DONE]{text}")), "{end}");
    }
    let commented = stream(&caller, "stream:events=1,comments,names").await.text();
    assert!(
        commented.starts_with(": a comment\n\nevent: message\ndata: {"),
        "{commented}"
    );
    let large = stream(&caller, "stream:events=2,bytes=1048576").await;
    assert!(large.body.len() > 2 << 20);
    let json = stream(&caller, "stream:json").await;
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(json.json()["object"], "chat.completion");
    let error = stream(&caller, "stream:status=503").await;
    assert_eq!((error.status, data(&error).len()), (503, 1));
    let gzip = stream(&caller, "stream:events=3,gzip").await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&gzip.body[..]), &mut text).unwrap();
    assert_eq!(text.len(), plain.len());
}

#[tokio::test]
async fn a_stream_that_ends_early_is_recorded_so() {
    let address = start(Duration::ZERO).await;
    let caller = Caller::new(&format!("http://{address}"), KEY);
    for (number, scenario, end) in [
        (1, "stream:events=5,cut=3", "cut"),
        (2, "stream:events=5,stall=3", "peer_gone"),
    ] {
        let mut peer = TcpStream::connect(address).await.unwrap();
        let body = r#"{"model":"m","messages":[{"content":"x"}],"stream":true}"#;
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\
             x-sandbox-scenario: {scenario}\r\nX-Client-Request-Id: mine\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        peer.write_all(head.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        while String::from_utf8_lossy(&received).matches("data: ").count() < 3 {
            assert!(peer.read_buf(&mut received).await.unwrap() > 0, "{received:?}");
        }
        drop(peer);
        let call = call_record(&caller, number).await;
        assert_fields!(call, { "end": end, "usage": null, "events": 3 }, "{call}");
        assert_fields!(call, { "client_request_id": "mine", "text_bytes": 8 }, "{call}");
        assert_eq!(call["stalled"], json!(end == "peer_gone"));
    }
    assert_eq!(stats(&caller).await["in_flight"], 0);
}

#[tokio::test]
async fn responses_and_embeddings_are_answered() {
    let caller = caller().await;
    let body = json!({ "model": "gpt-4o-mini", "input": "hello" });
    let whole = caller.post("/v1/responses", body.clone()).await.json();
    assert_fields!(whole, { "object": "response", "status": "completed" });
    let limited = json!({ "model": "gpt-4o-mini", "input": "hello", "max_output_tokens": 5 });
    let cut = caller.post("/v1/responses", limited).await.json();
    let why = json!({ "reason": "max_output_tokens" });
    assert_fields!(cut, { "status": "incomplete", "incomplete_details": why });
    assert_eq!(cut["usage"]["output_tokens"], 5);
    let mut streamed = body;
    streamed["stream"] = json!(true);
    let reply = caller.post("/v1/responses", streamed).await;
    let events = data(&reply);
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["usage"]),
        (&json!("response.completed"), &whole["usage"])
    );
    assert!(reply.text().starts_with("event: response.created\ndata: "));
    let body = json!({ "model": "text-embedding-3-small", "input": ["a", "b"], "dimensions": 4 });
    let embeddings = caller.post("/v1/embeddings", body).await.json();
    assert_eq!(embeddings["data"].as_array().unwrap().len(), 2);
    assert_fields!(embeddings, { "usage": { "prompt_tokens": 2, "total_tokens": 2 } });
    let counted = stats(&caller).await;
    assert_fields!(counted, { "responses": 3, "embeddings": 1, "streams": 1 }, "{counted}");
    let call = call_record(&caller, 4).await;
    assert_fields!(call, { "endpoint": "embeddings", "usage": embeddings["usage"] });
}
