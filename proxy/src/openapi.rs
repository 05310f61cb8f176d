//! The OpenAPI document of the edge, generated from the lists that answers are built from: denials, refusals and
//! headers. Tests alone generate it: they compare it with docs/reference/openapi/edge.json, which the admin server
//! contains as data.

mod calls;
mod headers;
mod requests;
mod responses;
mod schemas;

use crate::routes::{EdgeRoute, OfferedRoutes, RouteRow};
use openapi::parts::{self, requirement, tag};
use openapi::{Components, Json, VERSION, object};
use responses::PathGroup;

const ABOUT: &str = "\
Point an OpenAI client at this server and give it a virtual key: `OPENAI_BASE_URL=<this>/v1`, `OPENAI_API_KEY=vk_live_…`. \
Each call is estimated, checked against the caps of its agent, and forwarded only after an explicit approval; then the real cost is \
settled. Whatever is denied is denied before anything is sent to the provider, and costs nothing.\n\n\
An answer with `X-Service-Decision: approved` is the provider's own: status, headers and body. One with `denied` is Tollgate's, and \
`X-Service-Reason` says why. One with neither is about the request itself.\n\n\
Streams, `POST /v1/responses` and `POST /v1/embeddings` are off unless the operator has switched them on. `GET /v1/health` says what \
is on: `streaming`, `endpoints`.";

/// Generates the document.
fn document() -> Json {
    let mut components = Components::default();
    let paths: Json = OfferedRoutes::ALL
        .rows()
        .map(|row| (row.path.to_owned(), item(&mut components, row)))
        .collect();
    object([
        ("openapi", VERSION.into()),
        ("info", info()),
        ("servers", parts::servers("This edge.")),
        ("tags", tags()),
        ("paths", paths),
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

fn info() -> Json {
    let summary = "A metered, capped, fail-closed proxy for chat completions, responses and embeddings.";
    parts::info("Tollgate edge", summary, ABOUT)
}

fn tags() -> Json {
    Json::List(vec![
        tag("Chat", "Metered calls."),
        tag(
            "Responses",
            "Metered calls of the Responses API, where it is switched on.",
        ),
        tag(
            "Embeddings",
            "Metered calls for embeddings, where they are switched on.",
        ),
        tag("Service", "What the edge can do."),
    ])
}

/// Builds the operation of a path.
fn item(components: &mut Components, row: &RouteRow) -> Json {
    let operation = match row.route {
        EdgeRoute::Call(endpoint) => calls::call(components, endpoint),
        EdgeRoute::Models => models(components),
        EdgeRoute::Model => model(components),
        EdgeRoute::Health => health(components),
    };
    object([(row.method.to_ascii_lowercase().as_str(), operation)])
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
        ("responses", responses::all(components, PathGroup::Models)),
        ("security", keys()),
    ])
}

fn model(components: &mut Components) -> Json {
    let says = "In OpenAI's shape. A snapshot or fine-tuned model with the price of a listed one is found as well. Counts against the \
                key's rate.";
    let schema = object([("type", "string".into())]);
    let name = parts::parameter("path", ("model", true), "The name, percent-encoded.", schema)
        .with("example", "gpt-4o-mini");
    object([
        ("tags", vec!["Service"].into()),
        ("operationId", "getModel".into()),
        ("summary", "Show a model that has a price".into()),
        ("description", says.into()),
        ("parameters", Json::List(vec![name, headers::request_id()])),
        ("responses", responses::all(components, PathGroup::Model)),
        ("security", keys()),
    ])
}

fn health(components: &mut Components) -> Json {
    object([
        ("tags", vec!["Service"].into()),
        ("operationId", "getHealth".into()),
        ("summary", "Show whether calls can be decided".into()),
        ("description", "Needs no key.".into()),
        ("parameters", Json::List(vec![headers::request_id()])),
        ("responses", responses::all(components, PathGroup::Health)),
        ("security", Json::List(Vec::new())),
    ])
}

fn keys() -> Json {
    Json::List(vec![requirement("bearer"), requirement("apiKey")])
}

fn security_schemes() -> Json {
    let says =
        "A virtual key, `vk_live_` and 64 hexadecimal digits. Sent in both headers, it must be the same.";
    object([
        ("bearer", parts::bearer(says)),
        ("apiKey", parts::secret("header", "x-api-key", says)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::refusal::RefusalKind;
    use harness::compare_written;

    #[test]
    fn the_document_of_the_edge_is_that_of_the_code() {
        compare_written(
            "docs/reference/openapi/edge.json",
            &document().pretty(),
            "--lib --test openapi is_that_of_the_code",
        );
    }

    #[test]
    fn every_reason_kind_and_path_is_in_it() {
        let text = document().pretty();
        for denial in domain::denial::Denial::ALL {
            assert!(text.contains(&format!("\"{}\"", denial.reason())), "{denial:?}");
        }
        for kind in RefusalKind::ALL {
            let is_there = text.contains(&format!("\"{}\"", kind.code()));
            assert_eq!(is_there, !RefusalKind::OF_NO_ROUTE.contains(kind), "{kind:?}");
        }
        let document = document();
        let paths = document.get("paths").unwrap();
        assert_eq!(paths.fields().len(), OfferedRoutes::ALL.paths().len());
        for path in OfferedRoutes::ALL.paths() {
            assert_eq!(paths.get(path).unwrap().fields().len(), 1, "{path}");
        }
    }

    /// Returns the error codes of an operation's answers with one status.
    fn codes(document: &Json, path: &str, status: &str) -> Vec<String> {
        let operation = document
            .get("paths")
            .unwrap()
            .get(path)
            .unwrap()
            .get("post")
            .unwrap();
        let response = operation.get("responses").unwrap().get(status);
        let codes = response.and_then(|response| response.get("x-codes"));
        let codes = codes.map(Json::items).unwrap_or_default();
        codes.iter().map(|code| code.text().unwrap().to_owned()).collect()
    }

    #[test]
    fn operations_that_are_off_by_default_say_so_and_have_their_own_errors() {
        let document = document();
        let (chat, responses, embeddings) = ("/v1/chat/completions", "/v1/responses", "/v1/embeddings");
        for (path, code, expected) in [
            (chat, "missing_messages", true),
            (chat, "missing_input", false),
            (chat, "unsupported_field", true),
            (responses, "missing_input", true),
            (responses, "unsupported_field", true),
            (responses, "missing_token_limit", true),
            (embeddings, "missing_input", true),
            (embeddings, "unsupported_field", true),
            (embeddings, "missing_token_limit", false),
        ] {
            let is_there = codes(&document, path, "400").iter().any(|known| known == code);
            assert_eq!(is_there, expected, "{path} {code}");
        }
        assert_eq!(codes(&document, chat, "404"), Vec::<String>::new());
        for path in [responses, embeddings] {
            assert_eq!(codes(&document, path, "404"), ["not_found"], "{path}");
        }
    }
}
