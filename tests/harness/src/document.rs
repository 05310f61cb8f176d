//! Validates every response of the admin server against its OpenAPI document: an undocumented response fails the test
//! that received it, with the route and the difference. The document allows unknown fields in answers, for later
//! versions; here a field that it does not name is a difference.

use crate::net::REPOSITORY;
use crate::reply::Reply;
use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Longest body that is checked, in bytes.
const BODY_MAX: usize = 1 << 18;
/// Most differences that a message names.
const NAMED_MAX: usize = 5;

/// The document, read once in each test process.
static MANAGEMENT: LazyLock<Document> =
    LazyLock::new(|| Document::read("docs/reference/openapi/management.json"));

struct Document {
    whole: Value,
    paths: Vec<Path>,
    /// By reference to the operation and status.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// A path with its parameters in braces.
struct Path {
    template: String,
    segments: Vec<Option<String>>,
}

/// Checks an answer of the management API. Ignores requests that match no operation.
///
/// # Panics
/// When the answer is not documented.
pub(crate) fn check(method: &str, target: &str, reply: &Reply) {
    let document = &*MANAGEMENT;
    let Some(template) = document.template(target) else {
        return;
    };
    let operation = &document.whole["paths"][template][method.to_ascii_lowercase()];
    if operation.is_null() {
        return;
    }
    let status = reply.status.to_string();
    let wrong = document.wrong(
        &format!("{method} {template} {status}"),
        &operation["responses"][&status],
        reply,
    );
    assert!(
        wrong.is_empty(),
        "{method} {template} answered {status}, which docs/reference/openapi/management.json does not allow: {}\n{}",
        wrong.join("; "),
        reply.text()
    );
}

/// Checks the `data` of a webhook's event.
///
/// # Panics
/// When it is not documented.
#[track_caller]
pub fn check_event(event: &Value) {
    let document = &*MANAGEMENT;
    let name = event["type"].as_str().unwrap_or_default();
    let request = &document.whole["webhooks"][name]["post"]["requestBody"];
    let body = document.resolved(&request["content"]["application/json"]["schema"]);
    let validator = document.validator(name, &body["properties"]["data"]);
    let errors = validator.iter_errors(&event["data"]).take(NAMED_MAX);
    let wrong: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        !body.is_null() && wrong.is_empty(),
        "{}: {event}",
        wrong.join("; ")
    );
}

impl Document {
    fn read(path: &str) -> Self {
        let path = format!("{REPOSITORY}/{path}");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut whole: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        close(&mut whole);
        let templates = whole["paths"].as_object().expect("paths");
        let paths = templates
            .keys()
            .map(|template| Path::from_template(template))
            .collect();
        Self {
            whole,
            paths,
            validators: Mutex::default(),
        }
    }

    /// The path of the document that a request matches: of several, the one with the fewest parameters.
    fn template(&self, target: &str) -> Option<&str> {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let path = match path.strip_prefix("/v1/") {
            Some(rest) => format!("/api/v1/{rest}"),
            None => path.to_owned(),
        };
        let segments: Vec<&str> = path.split('/').collect();
        let met = self.paths.iter().filter(|path| path.is_met_by(&segments));
        let best = met.min_by_key(|path| path.segments.iter().filter(|segment| segment.is_none()).count());
        best.map(|path| path.template.as_str())
    }

    /// Defects of an answer.
    fn wrong(&self, key: &str, response: &Value, reply: &Reply) -> Vec<String> {
        let response = self.resolved(response);
        if response.is_null() {
            return vec!["this status is not documented".to_owned()];
        }
        let mut wrong = Vec::new();
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            if self.resolved(header)["required"] == true && !reply.headers.contains_key(name.as_str()) {
                wrong.push(format!("the header {name} is missing"));
            }
        }
        let kind = reply.header("content-type").unwrap_or_default();
        let media = &response["content"][kind];
        if media.is_null() {
            wrong.push(format!("content of type {kind:?} is not documented"));
        } else if kind == "application/json" && reply.body.len() <= BODY_MAX {
            match serde_json::from_slice(&reply.body) {
                Err(error) => wrong.push(format!("the body is no JSON: {error}")),
                Ok(body) => {
                    let validator = self.validator(key, &media["schema"]);
                    let errors = validator.iter_errors(&body).take(NAMED_MAX);
                    wrong.extend(errors.map(|error| format!("{}: {error}", error.instance_path())));
                }
            }
        }
        wrong
    }

    /// Resolves a `$ref`; returns any other value unchanged.
    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let place = value["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
        place.map_or(value, |place| {
            self.whole
                .pointer(place)
                .expect("a reference that leads somewhere")
        })
    }

    fn validator(&self, key: &str, schema: &Value) -> Arc<Validator> {
        let mut validators = self.validators.lock();
        let made = validators.entry(key.to_owned()).or_insert_with(|| {
            let schemas = &self.whole["components"]["schemas"];
            let schema = json!({ "allOf": [schema], "components": { "schemas": schemas } });
            let options = jsonschema::draft202012::options().should_validate_formats(true);
            Arc::new(
                options
                    .build(&schema)
                    .unwrap_or_else(|error| panic!("{key}: {error}")),
            )
        });
        Arc::clone(made)
    }
}

/// Forbids fields that an object schema does not name, unless the schema has its own `additionalProperties`.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("type").is_some_and(|kind| kind == "object") {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

impl Path {
    fn from_template(template: &str) -> Self {
        let segment = |segment: &str| (!segment.starts_with('{')).then(|| segment.to_owned());
        Self {
            template: template.to_owned(),
            segments: template.split('/').map(segment).collect(),
        }
    }

    fn is_met_by(&self, segments: &[&str]) -> bool {
        let met = |(mine, theirs): (&Option<String>, &&str)| match mine {
            Some(literal) => literal == theirs,
            None => !theirs.is_empty(),
        };
        self.segments.len() == segments.len() && self.segments.iter().zip(segments).all(met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn reply(status: u16, body: &str) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        headers.insert("x-request-id", "req_1".parse().unwrap());
        Reply {
            status,
            headers,
            body: Bytes::from(body.to_owned()),
        }
    }

    #[track_caller]
    fn complaint(method: &'static str, target: &'static str, reply: Reply) -> String {
        let checked = std::panic::catch_unwind(|| check(method, target, &reply));
        checked.unwrap_err().downcast_ref::<String>().unwrap().clone()
    }

    #[test]
    fn only_documented_answers_pass() {
        let good = r#"{"success":true,"agents":[],"total":0,"limit":50,"offset":0,"nextCursor":null}"#;
        check("GET", "/v1/agents?limit=50", &reply(200, good));
        check("GET", "/nowhere", &reply(200, "{}"));
        check("PUT", "/v1/agents", &reply(405, "{}"));
        check(
            "GET",
            "/v1/agents/a",
            &reply(404, r#"{"error":"No.","code":"NOT_FOUND"}"#),
        );
        let message = complaint("GET", "/v1/agents", reply(418, good));
        assert!(
            message.contains("GET /api/v1/agents answered 418") && message.contains("not documented"),
            "{message}"
        );
        let message = complaint(
            "GET",
            "/v1/agents",
            reply(
                200,
                r#"{"success":true,"agents":[],"total":0,"limit":50,"nextCursor":null}"#,
            ),
        );
        assert!(message.contains("offset"), "{message}");
        let message = complaint(
            "GET",
            "/v1/agents",
            reply(200, &good.replace("null}", "null,\"more\":1}")),
        );
        assert!(message.contains("more"), "{message}");
        let message = complaint(
            "GET",
            "/v1/agents/a",
            reply(404, r#"{"error":"No.","code":"FROZEN"}"#),
        );
        assert!(message.contains("FROZEN"), "{message}");
        let mut bare = reply(200, good);
        bare.headers.remove("x-request-id");
        assert!(complaint("GET", "/v1/agents", bare).contains("X-Request-Id"));
    }

    #[test]
    fn the_path_with_the_fewest_parameters_is_met() {
        assert_eq!(
            MANAGEMENT.template("/v1/audit/export"),
            Some("/api/v1/audit/export")
        );
        assert_eq!(
            MANAGEMENT.template("/api/v1/wallets/17"),
            Some("/api/v1/wallets/{id}")
        );
        assert_eq!(MANAGEMENT.template("/v1/agents/"), None);
    }
}
