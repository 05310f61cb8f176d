//! Operations that make metered calls: chat completions, and the endpoints that the operator can switch on.

use super::responses::{self, PathGroup};
use super::{headers, keys, requests};
use domain::measured::Endpoint;
use openapi::{Components, Json, object};

/// Description that all bodies share.
const BODY: &str =
    "reaches it byte for byte. A body that two JSON parsers could read differently is refused.";
/// Description of streams for callers.
const STREAMS: &str = "`stream: true` is 400 `stream_not_supported` unless the operator has switched streams on \
    (`proxy.streaming`, and the account's plan). A stream's head comes before its cost is known; the call is settled before the last \
    event passes. What goes wrong within it is an event `error` with OpenAI's `error` object as its data: `upstream_unreachable` and \
    `upstream_timeout`, `hold_exhausted` where Cap allows no more, `stream_stopped` where the agent was frozen or the key revoked.";

/// Texts of an operation.
struct Words {
    tag: &'static str,
    id: &'static str,
    summary: &'static str,
    description: String,
}

/// Builds the operation of an endpoint.
pub(super) fn call(components: &mut Components, endpoint: Endpoint) -> Json {
    let words = words(endpoint);
    let (name, schema, example) = requests::describe(endpoint);
    let request = components.named(name, schema);
    let media = object([("schema", request), ("example", example)]);
    object([
        ("tags", vec![words.tag].into()),
        ("operationId", words.id.into()),
        ("summary", words.summary.into()),
        ("description", words.description.into()),
        (
            "parameters",
            Json::List(headers::call(endpoint != Endpoint::Embeddings)),
        ),
        (
            "requestBody",
            object([
                ("required", true.into()),
                ("content", object([("application/json", media)])),
            ]),
        ),
        ("responses", responses::all(components, PathGroup::Call(endpoint))),
        ("security", keys()),
    ])
}

fn words(endpoint: Endpoint) -> Words {
    match endpoint {
        Endpoint::Chat => Words {
            tag: "Chat",
            id: "createChatCompletion",
            summary: "Make a metered call",
            description: format!(
                "The body is the provider's chat-completions request and {BODY}\n\n{STREAMS}"
            ),
        },
        Endpoint::Responses => Words {
            tag: "Responses",
            id: "createResponse",
            summary: "Make a metered call of the Responses API",
            description: format!(
                "{} Stateless: what the edge cannot see must not be free, so state and files that the provider keeps, tools that it \
                 runs, and work in the background are 400 `unsupported_field`, with the field as `param`. Reasoning items that it \
                 keeps are accepted, and held for an allowance.\n\n{STREAMS}",
                switched_on_by("proxy.responses")
            ),
        },
        Endpoint::Embeddings => Words {
            tag: "Embeddings",
            id: "createEmbedding",
            summary: "Make a metered call for embeddings",
            description: format!(
                "{} Only its input is held for and charged.",
                switched_on_by("proxy.embeddings")
            ),
        },
    }
}

/// Returns the first sentence of an operation that a setting switches on.
fn switched_on_by(setting: &str) -> String {
    format!(
        "Exists only where the operator has switched it on (`{setting}`); else 404 `not_found`. The body is the provider's request \
         and {BODY}"
    )
}
