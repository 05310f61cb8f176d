//! Bodies of calls: the fields that the edge reads. No struct has them, since the edge forwards every other field of
//! the provider unchanged.

use chat::{COMPLETION_TOKENS_MAX, INPUTS_MAX, MODEL_BYTES_MAX, N_MAX, SERVICE_TIER_BYTES_MAX};
use domain::measured::Endpoint;
use openapi::Json;
use serde_json::{Value, json};

/// Returns the name of the body's schema, the schema, and a minimal call.
pub(super) fn describe(endpoint: Endpoint) -> (&'static str, Json, Json) {
    let (name, schema, example) = match endpoint {
        Endpoint::Chat => ("ChatRequest", chat_completion(), chat_example()),
        Endpoint::Responses => ("ResponsesRequest", response(), response_example()),
        Endpoint::Embeddings => ("EmbeddingsRequest", embedding(), embedding_example()),
    };
    (
        name,
        Json::from_serialize(&schema),
        Json::from_serialize(&example),
    )
}

fn count(most: u64, says: &str) -> Value {
    json!({ "type": ["integer", "null"], "minimum": 1, "maximum": most, "description": says })
}

fn model() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": MODEL_BYTES_MAX,
        "description": "One without a known price is estimated at the dearest.",
    })
}

fn service_tier() -> Value {
    json!({
        "type": ["string", "null"],
        "maxLength": SERVICE_TIER_BYTES_MAX,
        "description": "The price depends on it.",
    })
}

fn stream() -> Value {
    json!({
        "type": ["boolean", "null"],
        "description": "True requests a stream: `stream_not_supported` unless streams are switched on.",
    })
}

/// Returns a field that must be absent or null.
fn refused(says: &str) -> Value {
    json!({ "type": "null", "description": format!("Anything else is refused: `unsupported_field`. {says}") })
}

fn chat_completion() -> Value {
    let limit = "Counts instead of `max_tokens`; 1,024 in the estimate without either.";
    let options = "Only used in a stream. If it does not request usage (`include_usage`), the edge requests it and drops the usage frame, unless the operator has disabled that for the provider.";
    json!({
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": model(),
            "messages": { "type": "array", "minItems": 1, "items": { "type": "object" }, "description": "Not empty." },
            "n": count(N_MAX, "How many answers; each costs."),
            "max_completion_tokens": count(COMPLETION_TOKENS_MAX, limit),
            "max_tokens": count(COMPLETION_TOKENS_MAX, "As `max_completion_tokens`."),
            "service_tier": service_tier(),
            "tools": tools("Functions and custom tools, which the caller runs. Any other type is `unsupported_field`."),
            "stream": stream(),
            "stream_options": { "description": options },
        },
        "additionalProperties": true,
    })
}

fn tools(description: &str) -> Value {
    json!({ "type": ["array", "null"], "items": { "type": "object" }, "description": description })
}

fn response() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let items = json!({ "type": "array", "minItems": 1, "items": { "type": "object" } });
    let input = "A text, or items: messages, calls of tools with their outputs, and reasoning. References to files and items are `unsupported_field`.";
    json!({
        "type": "object",
        "required": ["model", "input"],
        "properties": {
            "model": model(),
            "input": { "anyOf": [text, items], "description": input },
            "instructions": { "type": ["string", "null"], "description": "Counts as prompt." },
            "tools": tools("Tools that the caller runs, such as functions. Those that run at the provider are `unsupported_field`."),
            "max_output_tokens": count(COMPLETION_TOKENS_MAX, "1,024 in the estimate without it."),
            "service_tier": service_tier(),
            "stream": stream(),
            "background": { "type": ["boolean", "null"], "enum": [false, null], "description": "True is `unsupported_field`." },
            "previous_response_id": refused("The provider keeps what it names."),
            "conversation": refused("The provider keeps what it names."),
            "prompt": refused("The provider keeps what it names."),
            "context_management": refused("The provider would work beside the answer."),
        },
        "additionalProperties": true,
    })
}

fn embedding() -> Value {
    let token = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let tokens = json!({ "type": "array", "items": token });
    let list =
        |items: &Value| json!({ "type": "array", "minItems": 1, "maxItems": INPUTS_MAX, "items": items });
    json!({
        "type": "object",
        "required": ["model", "input"],
        "properties": {
            "model": model(),
            "input": {
                "anyOf": [
                    { "type": "string", "minLength": 1 },
                    list(&json!({ "type": "string" })),
                    { "type": "array", "minItems": 1, "items": token },
                    list(&tokens),
                ],
                "description": "A text, texts, the token ids of one input, or those of several.",
            },
            "service_tier": service_tier(),
            "stream": { "type": ["boolean", "null"], "enum": [false, null], "description": "True is `stream_not_supported`." },
        },
        "additionalProperties": true,
    })
}

fn chat_example() -> Value {
    json!({
        "model": "gpt-4o-mini",
        "messages": [{ "role": "user", "content": "Say hello." }],
        "max_completion_tokens": 64,
    })
}

fn response_example() -> Value {
    json!({ "model": "gpt-4o-mini", "input": "Say hello.", "max_output_tokens": 64 })
}

fn embedding_example() -> Value {
    json!({ "model": "text-embedding-3-small", "input": ["Hello.", "Good-bye."] })
}
