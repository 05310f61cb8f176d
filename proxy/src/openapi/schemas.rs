//! Schemas of the provider's answers. No struct of the edge has these fields.

use domain::measured::Endpoint;
use openapi::{Json, object};
use serde_json::{Value, json};

/// Returns the name and schema of a complete answer.
pub(super) fn answer(endpoint: Endpoint) -> (&'static str, Json) {
    let (name, example) = match endpoint {
        Endpoint::Chat => ("Completion", completion_example()),
        Endpoint::Responses => ("Response", response_example()),
        Endpoint::Embeddings => ("Embeddings", embeddings_example()),
    };
    let schema = object([
        ("type", "object".into()),
        ("description", "The provider's answer, unchanged.".into()),
        ("additionalProperties", true.into()),
    ]);
    (name, schema.example(Json::from_serialize(&example)))
}

/// Returns the name and schema of the events; `None` if the endpoint has no streams.
pub(super) fn events(endpoint: Endpoint) -> Option<(&'static str, Json)> {
    let (name, example) = match endpoint {
        Endpoint::Chat => ("CompletionEvents", completion_events_example()),
        Endpoint::Responses => ("ResponseEvents", response_events_example()),
        Endpoint::Embeddings => return None,
    };
    let says =
        "The provider's server-sent events. An event `error` of the edge has the shape of its other errors.";
    let schema = object([("type", "string".into()), ("description", says.into())]);
    Some((name, schema.example(example)))
}

/// Returns the schema of an error of the provider, without fragments of keys.
pub(super) fn provider_error() -> Json {
    object([
        ("type", "object".into()),
        (
            "description",
            "The provider's own error; `X-Service-Decision` is `approved` then.".into(),
        ),
        ("required", vec!["error"].into()),
        (
            "properties",
            object([(
                "error",
                object([("type", "object".into()), ("additionalProperties", true.into())]),
            )]),
        ),
        ("additionalProperties", true.into()),
    ])
}

fn completion_example() -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_795_248_930,
        "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello." }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 },
    })
}

fn response_example() -> Value {
    let text = json!({ "type": "output_text", "text": "Hello.", "annotations": [] });
    json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1_795_248_930,
        "status": "completed",
        "model": "gpt-4o-mini",
        "output": [{ "id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text] }],
        "usage": { "input_tokens": 9, "output_tokens": 2, "total_tokens": 11 },
    })
}

fn embeddings_example() -> Value {
    let one = |index: u64| json!({ "object": "embedding", "index": index, "embedding": [0.25, -0.5] });
    json!({
        "object": "list",
        "data": [one(0), one(1)],
        "model": "text-embedding-3-small",
        "usage": { "prompt_tokens": 5, "total_tokens": 5 },
    })
}

fn completion_events_example() -> String {
    let chunk = |delta: Value, end: Value| {
        json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_795_248_930,
            "model": "gpt-4o-mini",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": end }],
        })
    };
    let (text, end) = (
        chunk(json!({ "content": "Hello." }), Value::Null),
        chunk(json!({}), json!("stop")),
    );
    format!("data: {text}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

fn response_events_example() -> String {
    let delta = json!({ "type": "response.output_text.delta", "sequence_number": 4, "item_id": "msg_1", "delta": "Hello." });
    let end = json!({ "type": "response.completed", "sequence_number": 5, "response": response_example() });
    format!("event: response.output_text.delta\ndata: {delta}\n\nevent: response.completed\ndata: {end}\n\n")
}
