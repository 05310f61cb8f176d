//! `POST /v1/responses` and `POST /v1/embeddings`.

use crate::fixture::{Fixture, HELD, open_cap};
use harness::{Answer, EventStream, Script};
use serde_json::{Value, json};

fn usage(input: u64, output: u64) -> Value {
    json!({ "input_tokens": input, "output_tokens": output, "total_tokens": input + output })
}

/// A response with this usage.
fn completed(input: u64, output: u64) -> Answer {
    let response =
        json!({ "id": "resp_1", "status": "completed", "output": [], "usage": usage(input, output) });
    Answer::json(200, response)
}

#[tokio::test]
async fn a_response_is_charged_what_it_used() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let caller = fixture.edge.caller(&actor.key);
    fixture.upstream.set(|_| completed(9, 12));
    let sent = json!({ "model": "nano", "input": "hello", "instructions": "be brief", "store": false });
    let reply = caller.post("/v1/responses", sent.clone()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("x-service-estimated-usd"), Some("0.000001024"));
    assert_eq!(reply.header("x-service-actual-usd"), Some("0.000000012"));
    let received = fixture.upstream.requests().pop().unwrap();
    assert_eq!((received.path.as_str(), received.json()), ("/v1/responses", sent));
    let limited = json!({ "model": "nano", "input": "hello", "max_output_tokens": 50 });
    let reply = caller.post("/v1/responses", limited).await;
    assert_eq!(reply.header("x-service-estimated-usd"), Some("0.00000005"));
    assert_eq!(actor.settled().await, 24);
}

/// A client with a reasoning model sends back the model's reasoning before a tool call. Of reasoning that the provider
/// keeps, it has only the id: an allowance is held, and what the provider counted is charged.
#[tokio::test]
async fn reasoning_that_the_provider_keeps_is_held_for_an_allowance() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let caller = fixture.edge.caller(&actor.key);
    fixture.upstream.set(|_| completed(309, 12));
    let kept = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    let with = |content: &str| {
        let mut item = json!({ "type": "reasoning", "id": "rs_2", "summary": [] });
        item["encrypted_content"] = json!(content);
        item
    };
    let encrypted = with(&"g".repeat(100));
    // No encrypted reasoning is that short, so the provider may go by the id.
    let short = with("gAAAAABx");
    let asked = json!({ "role": "user", "content": "12345678" });
    // At 2,000 nano-USD a prompt token and 8,000 for each of ten of the answer. A message is framed by four tokens.
    for (input, estimated) in [
        (json!([asked, encrypted]), "0.000152"),
        (json!([asked, short]), "0.000906"),
        (json!([asked, kept]), "0.000902"),
        (json!([asked, kept, kept]), "0.001712"),
    ] {
        let sent = json!({ "model": "plain", "max_output_tokens": 10, "input": input });
        let reply = caller.post("/v1/responses", sent.clone()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("x-service-estimated-usd"), Some(estimated), "{sent}");
        assert_eq!(reply.header("x-service-actual-usd"), Some("0.000714"));
        assert_eq!(fixture.upstream.requests().pop().unwrap().json(), sent);
    }
    assert_eq!(actor.settled().await, 4 * 714_000);
}

/// The last event has the usage, and its end waits for the settlement, however long the event is.
#[tokio::test]
async fn a_response_streams() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let long = "x".repeat(300_000);
    for name in ["response.completed", "response.incomplete", "response.failed"] {
        let response = json!({ "status": "ended", "instructions": long, "tools": [{ "usage": { "input_tokens": 1, "output_tokens": 1 } }], "usage": usage(9, 12) });
        let script = Script::new()
            .named_event(
                "response.created",
                json!({ "type": "response.created", "response": { "usage": null } }),
            )
            .named_event(
                "response.output_text.delta",
                json!({ "type": "response.output_text.delta", "delta": "hello" }),
            )
            .named_event(name, json!({ "type": name, "response": response }));
        fixture.provider_streams(script.clone());
        let sent = json!({ "model": "nano", "input": "hello", "stream": true });
        let mut stream =
            EventStream::open(fixture.edge.addr(), "/v1/responses", &actor.key, "", sent.clone()).await;
        assert_eq!(stream.status(), 200, "{}", stream.head);
        assert_eq!(stream.rest().await.as_bytes(), script.bytes(), "{name}");
        assert_eq!(
            fixture.upstream.requests().pop().unwrap().json(),
            sent,
            "the body is the caller's"
        );
    }
    assert_eq!(actor.settled().await, 3 * 12);
    fixture.provider_streams(Script::response(&["hello"], &Value::Null));
    let sent = json!({ "model": "nano", "input": "hello", "stream": true });
    let mut stream =
        EventStream::open(fixture.edge.addr(), "/v1/responses", &actor.key, "", sent.clone()).await;
    stream.rest().await;
    assert_eq!(actor.settled().await, 3 * 12 + HELD, "no usage");
    // Usage of an event before the last covers the response so far, and does not end it.
    let so_far = json!({ "type": "response.in_progress", "response": { "usage": usage(9, 0) } });
    let script = Script::new()
        .named_event("response.in_progress", so_far)
        .named_event(
            "response.output_text.delta",
            json!({ "type": "response.output_text.delta", "delta": "hello" }),
        );
    fixture.provider_streams(script);
    let mut stream = EventStream::open(fixture.edge.addr(), "/v1/responses", &actor.key, "", sent).await;
    assert!(stream.rest().await.contains("upstream_unreachable"));
    assert_eq!(actor.settled().await, 3 * 12 + 2 * HELD, "usage so far");
}

/// A client that asks for a WebSocket receives the status at which Codex goes on without.
#[tokio::test]
async fn a_websocket_is_refused_with_426() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let caller = fixture.edge.caller(&actor.key);
    let asks = |upgrade| {
        [
            ("connection", "Upgrade"),
            ("upgrade", upgrade),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]
    };
    for upgrade in ["websocket", "WebSocket"] {
        let reply = caller.send("GET", "/v1/responses", &asks(upgrade), "").await;
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (426, "upgrade_required"),
            "{reply:?}"
        );
        assert_eq!(reply.header("upgrade"), Some("HTTP/1.1"));
        assert_eq!(reply.header("allow"), Some("POST"));
    }
    for headers in [&[][..], &asks("h2c")] {
        let reply = caller.send("GET", "/v1/responses", headers, "").await;
        assert_eq!(reply.error_code(), "method_not_allowed", "{reply:?}");
    }
    let sent = json!({ "model": "nano", "input": "hello" });
    let reply = caller
        .send("POST", "/v1/responses", &asks("websocket"), sent.to_string())
        .await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let off = Fixture::with(|options| options.env("TOLLGATE_PROXY__RESPONSES", "false")).await;
    let reply = off
        .edge
        .caller(&actor.key)
        .send("GET", "/v1/responses", &asks("websocket"), "")
        .await;
    assert_eq!(reply.error_code(), "not_found", "{reply:?}");
}

/// A stream that breaks off ends with an error event, and then as the provider would end one that failed.
#[tokio::test]
async fn a_response_that_breaks_off_has_failed() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let events = ["response.created", "response.output_text.delta"];
    let script = events
        .iter()
        .enumerate()
        .fold(Script::new(), |script, (at, name)| {
            script.named_event(
                name,
                json!({ "type": name, "sequence_number": at, "delta": "hello" }),
            )
        });
    fixture.provider_streams(script.clone().break_off());
    let sent = json!({ "model": "nano", "input": "hello", "stream": true });
    let mut stream = EventStream::open(fixture.edge.addr(), "/v1/responses", &actor.key, "", sent).await;
    let allow_id = stream.header("x-service-allow-id").unwrap().to_owned();
    let body = stream.rest().await.to_owned();
    let behind = body.strip_prefix(&*String::from_utf8(script.bytes()).unwrap());
    let events: Vec<(&str, Value)> = behind
        .unwrap()
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once("\ndata: ").unwrap();
            let name = name.strip_prefix("event: ").unwrap();
            (name, serde_json::from_str(data).unwrap())
        })
        .collect();
    let [("error", error), ("response.failed", failed)] = &events[..] else {
        panic!("{body}");
    };
    assert_eq!(failed["type"], "response.failed");
    assert_eq!(
        (&error["sequence_number"], &failed["sequence_number"]),
        (&json!(2), &json!(3))
    );
    let response = &failed["response"];
    assert_eq!(response["status"], "failed");
    assert_eq!(
        (&response["id"], &response["model"]),
        (&json!(allow_id), &json!("nano"))
    );
    assert_eq!(response["error"]["code"], "upstream_unreachable");
    assert_eq!(response["error"]["message"], error["message"]);
    assert_eq!(error["error"]["code"], "upstream_unreachable");
    assert_eq!(actor.settled().await, HELD);
}

/// Fields with a cost that the edge cannot see must not be free. The tests of the parser have every one of them.
#[tokio::test]
async fn fields_whose_cost_the_edge_cannot_see_are_refused() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let caller = fixture.edge.caller(&actor.key);
    for (field, value) in [
        ("previous_response_id", json!("resp_1")),
        ("tools", json!([{ "type": "web_search" }])),
        ("input", json!([{ "type": "message", "id": "msg_1" }])),
    ] {
        let mut sent = json!({ "model": "nano", "input": "hello" });
        sent[field] = value;
        let reply = caller.post("/v1/responses", sent).await;
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (400, "unsupported_field"),
            "{field}"
        );
        let param = reply.json()["error"]["param"].clone();
        assert!(
            param.as_str().is_some_and(|param| param.starts_with(field)),
            "{field}: {param}"
        );
    }
    assert_eq!(
        caller
            .post("/v1/responses", json!({ "model": "nano" }))
            .await
            .error_code(),
        "missing_input"
    );
    assert_eq!((fixture.upstream.arrived(), actor.settled().await), (0, 0));
    // A message of an earlier answer, as clients without stored state send it back.
    let echoed = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "Done.", "annotations": [] }] });
    assert_eq!(
        caller
            .post(
                "/v1/responses",
                json!({ "model": "nano", "input": [echoed, { "role": "user", "content": "Go on." }] }),
            )
            .await
            .status,
        200
    );
    assert_eq!(fixture.upstream.arrived(), 1);
}

#[tokio::test]
async fn embeddings_cost_their_input() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let caller = fixture.edge.caller(&actor.key);
    fixture.upstream.set(|_| {
        Answer::json(
            200,
            json!({ "data": [], "usage": { "prompt_tokens": 6, "total_tokens": 6 } }),
        )
    });
    for (input, tokens) in [
        (json!("hello world, it is I"), 5 + 1),
        (json!(["hello", "world"]), 3 + 2),
        (json!([1, 2, 3]), 3 + 1),
        (json!([[1, 2], [3]]), 3 + 2),
    ] {
        let body = json!({ "model": "plain", "input": input });
        let reply = caller.post("/v1/embeddings", body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        // 2 USD a million tokens; some more for the frame of each input.
        let estimate = reply.header("x-service-estimated-usd").unwrap().to_owned();
        let nanos = (estimate.parse::<f64>().unwrap() * 1e9).round() as u64;
        assert!(
            (tokens - 2..=tokens + 4).contains(&(nanos / 2000)),
            "{input}: {estimate}"
        );
        assert_eq!(reply.header("x-service-actual-usd"), Some("0.000012"));
    }
    assert_eq!(actor.settled().await, 4 * 12_000);
    assert_eq!(fixture.upstream.requests().pop().unwrap().path, "/v1/embeddings");
}
