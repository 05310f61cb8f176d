//! Schemas that no struct of the edge has: the fields that are read from a body, and the provider's answers.

use openapi::{Json, object};
use serde_json::json;

/// Fields that the edge reads. The provider has many more, and all of them are forwarded.
pub(super) fn request() -> Json {
    let count = |most: u64, says: &str| json!({ "type": ["integer", "null"], "minimum": 1, "maximum": most, "description": says });
    Json::from_serialize(&json!({
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": { "type": "string", "minLength": 1, "description": "One without a known price is estimated at the dearest." },
            "messages": { "type": "array", "minItems": 1, "items": { "type": "object" }, "description": "Not empty." },
            "n": count(128, "How many answers; each costs."),
            "max_completion_tokens": count(10_000_000, "Counts instead of `max_tokens`; 1,024 in the estimate without either."),
            "max_tokens": count(10_000_000, "As `max_completion_tokens`."),
            "stream": { "type": ["boolean", "null"], "enum": [false, null], "description": "True is refused: `stream_not_supported`." },
        },
        "additionalProperties": true,
    }))
}

/// A minimal call.
pub(super) fn request_example() -> Json {
    Json::from_serialize(&json!({
        "model": "gpt-4o-mini",
        "messages": [{ "role": "user", "content": "Say hello." }],
        "max_completion_tokens": 64,
    }))
}

/// A successful answer of the provider.
pub(super) fn completion() -> Json {
    object([
        ("type", "object".into()),
        ("description", "The provider's answer, unchanged.".into()),
        ("additionalProperties", true.into()),
    ])
}

/// An error of the provider, without fragments of keys.
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

/// Example of a successful answer.
pub(super) fn completion_example() -> Json {
    Json::from_serialize(&json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_795_248_930,
        "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello." }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11 },
    }))
}
