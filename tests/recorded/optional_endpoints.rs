//! Streams, responses and embeddings of an edge that has them switched on.

use crate::edge::{Fixture, MODEL, with};
use harness::{Answer, CapPolicy, Nanos, Script, open_cap};
use serde_json::{Value, json};

const SWITCHES: [(&str, &str); 4] = [
    ("PROXY__STREAMING", "true"),
    ("PROXY__STREAM_EXTEND", "true"),
    ("PROXY__RESPONSES", "true"),
    ("PROXY__EMBEDDINGS", "true"),
];

fn usage() -> Value {
    json!({ "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21 })
}

async fn streams(fixture: &mut Fixture) {
    let (_, caller) = fixture.agent("startup", open_cap()).await;
    let (streamed, whole) = (
        with("stream", json!(true)),
        Script::chat(&["Hel", "lo."], &usage()),
    );
    let unfinished = Script::new().event(json!({ "choices": [{ "delta": { "content": "Hel" } }] }));
    let refused = Answer::error(400, "bad", "no such parameter sk-abcdefghijklmnop");
    for (title, answer) in [
        ("a stream", Answer::stream(whole.clone())),
        (
            "no usage",
            Answer::stream(Script::chat(&["Hello."], &Value::Null)),
        ),
        ("the stream breaks off", Answer::stream(unfinished.break_off())),
        ("an answer that is no stream", Answer::chat(9, 12)),
        ("the provider refuses", refused),
        ("the provider fails", Answer::error(500, "oops", "oops")),
    ] {
        fixture.upstream.set(move |_| answer.clone());
        fixture.call(title, &caller, &[], &streamed).await;
    }
    let answer = Answer::stream(whole);
    fixture.upstream.set(move |_| answer.clone());
    let cost = [("x-service-stream-cost", "true")];
    fixture
        .call("the cost behind a stream", &caller, &cost, &streamed)
        .await;
    let with_options = |options: Value| {
        let mut body: Value = serde_json::from_str(&streamed).unwrap();
        body["stream_options"] = options;
        body.to_string()
    };
    let sent = with_options(json!({ "include_usage": true }));
    fixture.call("usage on request", &caller, &[], &sent).await;
    let sent = with_options(json!(1));
    fixture
        .call("options that are no object", &caller, &[], &sent)
        .await;
    let little = |nanos: u64| CapPolicy {
        daily: Nanos::new(nanos),
        ..open_cap()
    };
    let (_, caller) = fixture.agent("free", little(1)).await;
    fixture.call("a denied stream", &caller, &[], &streamed).await;
    // The hold of one token fits under the cap, and no larger one.
    let (_, caller) = fixture.agent("free", little(2_000)).await;
    let long = json!({ "choices": [{ "delta": { "content": "four".repeat(300) } }] });
    let answer = Answer::stream(Script::new().event(long));
    fixture.upstream.set(move |_| answer.clone());
    let mut body: Value = serde_json::from_str(&streamed).unwrap();
    body["max_completion_tokens"] = json!(1);
    fixture
        .call("a stream beyond its hold", &caller, &[], &body.to_string())
        .await;
}

async fn other_endpoints(fixture: &mut Fixture) {
    let (_, caller) = fixture.agent("startup", open_cap()).await;
    let tokens = json!({ "input_tokens": 9, "output_tokens": 12, "total_tokens": 21 });
    let response = json!({ "object": "response", "status": "completed", "output": [], "usage": tokens });
    let vector = json!({ "object": "embedding", "index": 0, "embedding": [0.5] });
    let vectors =
        json!({ "object": "list", "data": [vector], "usage": { "prompt_tokens": 2, "total_tokens": 2 } });
    let (responses, embeddings) = (("POST", "/v1/responses"), ("POST", "/v1/embeddings"));
    let asked = |more: Value| {
        let mut body = json!({ "model": MODEL, "input": "hello" });
        let more = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(more);
        body
    };
    let embedded = |input: Value| json!({ "model": "text-embedding-3-small", "input": input });
    let streamed = Answer::stream(Script::response(&["Hello."], &tokens));
    for (title, answer, route, body) in [
        (
            "a response",
            Answer::json(200, response),
            responses,
            asked(json!({})),
        ),
        (
            "a streamed response",
            streamed.clone(),
            responses,
            asked(json!({ "stream": true })),
        ),
        (
            "a response behind another one",
            streamed,
            responses,
            asked(json!({ "previous_response_id": "resp_1" })),
        ),
        (
            "an embedding",
            Answer::json(200, vectors.clone()),
            embeddings,
            embedded(json!("hello")),
        ),
        (
            "an embedding of tokens",
            Answer::json(200, vectors.clone()),
            embeddings,
            embedded(json!([1, 2])),
        ),
        (
            "an embedding of nothing",
            Answer::json(200, vectors),
            embeddings,
            embedded(json!({})),
        ),
    ] {
        fixture.upstream.set(move |_| answer.clone());
        let sent = body.to_string();
        fixture.recording.call(title, &caller, route, &[], &sent).await;
    }
    let route = ("GET", "/v1/health");
    fixture
        .recording
        .call("what is on", &caller, route, &[], "")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_edge_answers_as_before_with_everything_switched_on() {
    let mut fixture = Fixture::start(&SWITCHES).await;
    streams(&mut fixture).await;
    other_endpoints(&mut fixture).await;
    let Fixture { recording, edge, .. } = fixture;
    recording.compare_with("switched_on.txt", || edge.logs()).await;
}
