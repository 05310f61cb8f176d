//! The OpenAPI document of the edge, generated from the lists that answers are built from: denials, refusals, headers.

mod headers;
mod responses;
mod schemas;

use crate::edge::route::{self, Route};
use crate::reply::health::Offered;
use http::Method;
use openapi::{Components, Json, VERSION, object};
use responses::Operation;

const ABOUT: &str = "\
Point an OpenAI client at this server and give it a virtual key: `OPENAI_BASE_URL=<this>/v1`, `OPENAI_API_KEY=vk_live_…`. \
Each call is estimated, checked against the caps of its agent, and forwarded only after an explicit approval; then the real cost is \
settled. Whatever is denied is denied before anything is sent to the provider, and costs nothing.\n\n\
An answer with `X-Service-Decision: approved` is the provider's own: status, headers and body. One with `denied` is Tollgate's, and \
`X-Service-Reason` says why. One with neither is about the request itself.";

/// Generates the document.
#[must_use]
pub fn document() -> Json {
    let mut components = Components::default();
    let paths: Vec<_> = Offered::default()
        .paths()
        .into_iter()
        .map(|path| (path.to_owned(), item(&mut components, path)))
        .collect();
    object([
        ("openapi", VERSION.into()),
        (
            "info",
            object([
                ("title", "Tollgate edge".into()),
                ("version", env!("CARGO_PKG_VERSION").into()),
                (
                    "summary",
                    "A metered, capped, fail-closed proxy for chat completions.".into(),
                ),
                ("description", ABOUT.into()),
                (
                    "license",
                    object([("name", "Apache-2.0".into()), ("identifier", "Apache-2.0".into())]),
                ),
            ]),
        ),
        (
            "servers",
            Json::List(vec![object([
                ("url", "/".into()),
                ("description", "This edge.".into()),
            ])]),
        ),
        (
            "tags",
            Json::List(vec![
                object([("name", "Chat".into()), ("description", "Metered calls.".into())]),
                object([
                    ("name", "Service".into()),
                    ("description", "What the edge can do.".into()),
                ]),
            ]),
        ),
        ("paths", Json::Object(paths)),
        (
            "components",
            object([
                ("schemas", components.into_json()),
                ("headers", headers::components()),
                ("securitySchemes", security_schemes()),
            ]),
        ),
    ])
}

/// The operation of a path; the route table has its method.
fn item(components: &mut Components, path: &str) -> Json {
    let find = |method: &Method| route::find(Offered::default(), method, path);
    match (find(&Method::POST), find(&Method::GET)) {
        (Ok(Route::Call(_)), _) => object([("post", chat(components))]),
        (_, Ok(Route::Models)) => object([("get", models(components))]),
        (_, Ok(Route::Model)) => object([("get", model(components))]),
        (_, Ok(Route::Health)) => object([("get", health(components))]),
        _ => Json::Object(Vec::new()),
    }
}

fn chat(components: &mut Components) -> Json {
    let says = "The body is the provider's chat-completions request and reaches it byte for byte. A body that two JSON parsers could read \
                differently is refused. `stream: true` is 400 unless the operator has switched streams on.";
    let request = components.named("ChatRequest", schemas::request());
    let media = object([("schema", request), ("example", schemas::request_example())]);
    object([
        ("tags", vec!["Chat"].into()),
        ("operationId", "createChatCompletion".into()),
        ("summary", "Make a metered call".into()),
        ("description", says.into()),
        ("parameters", Json::List(headers::chat())),
        (
            "requestBody",
            object([
                ("required", true.into()),
                ("content", object([("application/json", media)])),
            ]),
        ),
        ("responses", responses::all(components, Operation::Chat)),
        ("security", keys()),
    ])
}

fn models(components: &mut Components) -> Json {
    object([
        ("tags", vec!["Service"].into()),
        ("operationId", "listModels".into()),
        ("summary", "List the models that have a price".into()),
        (
            "description",
            "In OpenAI's shape. Counts against the key's rate.".into(),
        ),
        ("parameters", Json::List(vec![headers::request_id()])),
        ("responses", responses::all(components, Operation::Models)),
        ("security", keys()),
    ])
}

fn model(components: &mut Components) -> Json {
    let says = "In OpenAI's shape. A snapshot or fine-tuned model with the price of a listed one is found as well. Counts against the \
                key's rate.";
    let name = object([
        ("name", "model".into()),
        ("in", "path".into()),
        ("required", true.into()),
        ("description", "The name, percent-encoded.".into()),
        ("schema", object([("type", "string".into())])),
        ("example", "gpt-4o-mini".into()),
    ]);
    object([
        ("tags", vec!["Service"].into()),
        ("operationId", "getModel".into()),
        ("summary", "Show a model that has a price".into()),
        ("description", says.into()),
        ("parameters", Json::List(vec![name, headers::request_id()])),
        ("responses", responses::all(components, Operation::Model)),
        ("security", keys()),
    ])
}

fn health(components: &mut Components) -> Json {
    object([
        ("tags", vec!["Service"].into()),
        ("operationId", "getHealth".into()),
        ("summary", "Ask whether calls can be decided".into()),
        ("description", "Needs no key.".into()),
        ("parameters", Json::List(vec![headers::request_id()])),
        ("responses", responses::all(components, Operation::Health)),
        ("security", Json::List(Vec::new())),
    ])
}

fn keys() -> Json {
    let one = |name: &str| object([(name, Json::List(Vec::new()))]);
    Json::List(vec![one("bearer"), one("apiKey")])
}

fn security_schemes() -> Json {
    let says =
        "A virtual key, `vk_live_` and 64 hexadecimal digits. Sent in both headers, it must be the same.";
    object([
        (
            "bearer",
            object([
                ("type", "http".into()),
                ("scheme", "bearer".into()),
                ("description", says.into()),
            ]),
        ),
        (
            "apiKey",
            object([
                ("type", "apiKey".into()),
                ("in", "header".into()),
                ("name", "x-api-key".into()),
                ("description", says.into()),
            ]),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::refusal::RefusalKind;

    #[test]
    fn every_reason_kind_and_path_is_in_it() {
        let text = document().pretty();
        for denial in domain::denial::Denial::ALL {
            assert!(text.contains(&format!("\"{}\"", denial.reason())), "{denial:?}");
        }
        for kind in RefusalKind::ALL {
            if RefusalKind::OF_NO_ROUTE.contains(kind) {
                continue;
            }
            assert!(text.contains(&format!("\"{}\"", kind.code())), "{kind:?}");
        }
        let document = document();
        for path in Offered::default().paths() {
            assert_eq!(
                document.get("paths").unwrap().get(path).unwrap().fields().len(),
                1,
                "{path}"
            );
        }
    }
}
