//! The document lists exactly the fields of bodies and the parameters of queries that the server reads. The server
//! names them when it refuses an unknown one.

use crate::fixture::Fixture;
use harness::Reply;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Pairs of parameters that enclose a span of time, and two values in the order of time.
const SPANS: [(&str, &str, &str, &str); 2] = [
    (
        "from",
        "to",
        "2026-11-24T00:00:00.000Z",
        "2026-11-24T00:00:00.001Z",
    ),
    ("chargedFrom", "chargedTo", "2026-11-24", "2026-11-25"),
];

const UNKNOWN: &str = "nobodyKnowsThis";
/// The error for a field of a body that has none.
const WITHOUT_FIELDS: &str = "is not a field here; the body has none";
/// The error for a query parameter of an operation that has none.
const WITHOUT_QUERY: &str = "is not a query parameter here; this operation has none.";

/// Returns the names after `mark` in the error for an unknown one.
fn known(reply: &Reply, mark: &str) -> Option<BTreeSet<String>> {
    let sentence = reply.json()["error"].as_str()?.to_owned();
    let (_, names) = sentence.split_once(mark)?;
    let names = names.trim().trim_end_matches('.').split(',').map(str::trim);
    Some(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn documented<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn bodies_have_the_fields_that_are_documented() {
    let fixture = Fixture::start().await;
    let mut compared = 0;
    for operation in fixture.operations() {
        let Some(schema) = operation.body(&fixture.document) else {
            continue;
        };
        if schema["additionalProperties"] == true {
            continue;
        }
        let path = fixture.path(&operation).await;
        let body = json!({ UNKNOWN: 1 }).to_string();
        let reply = fixture.owner.send(&operation.method, &path, &[], body).await;
        let message = match reply.text().contains(WITHOUT_FIELDS) {
            true => Some(BTreeSet::new()),
            false => known(&reply, "is not a field here; known:"),
        };
        let message = message.unwrap_or_else(|| panic!("{operation}: {} {}", reply.status, reply.text()));
        let properties = schema["properties"].as_object().expect("properties");
        assert_eq!(
            message,
            documented(properties.keys().map(String::as_str)),
            "{operation}"
        );
        compared += 1;
    }
    assert!(compared > 25, "{compared} bodies were compared");
}

#[tokio::test]
async fn bodies_are_objects_that_are_sent_as_json() {
    let fixture = Fixture::start().await;
    let mut refused = 0;
    for operation in fixture.operations() {
        if operation.body(&fixture.document).is_none() {
            continue;
        }
        let path = fixture.path(&operation).await;
        let plain = ("content-type", "text/plain");
        for (headers, body, status, code) in [
            (&[][..], "{", 400, "VALIDATION"),
            (&[], "[]", 400, "VALIDATION"),
            (&[plain], "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ] {
            let reply = fixture.owner.send(&operation.method, &path, headers, body).await;
            let answer = (reply.status, &reply.json()["code"]);
            assert_eq!(
                answer,
                (status, &json!(code)),
                "{operation} {body}: {}",
                reply.text()
            );
        }
        refused += 1;
    }
    assert!(refused > 25, "{refused} bodies were refused");
}

#[tokio::test]
async fn queries_have_the_parameters_that_are_documented() {
    let fixture = Fixture::start().await;
    for operation in fixture.operations() {
        let parameters = operation.json["parameters"].as_array().expect("parameters");
        let in_query = parameters.iter().filter(|parameter| parameter["in"] == "query");
        let expected = documented(in_query.filter_map(|parameter| parameter["name"].as_str()));
        let path = format!("{}?{UNKNOWN}=1", fixture.path(&operation).await);
        let body = if operation.method == "GET" { "" } else { "{}" };
        let reply = fixture.owner.send(&operation.method, &path, &[], body).await;
        let message = match serde_json::from_slice::<Value>(&reply.body) {
            Ok(_) if reply.text().contains(WITHOUT_QUERY) => Some(BTreeSet::new()),
            Ok(_) => known(&reply, "is not a query parameter here; known:"),
            Err(_) => None,
        };
        assert_eq!(
            message.as_ref(),
            Some(&expected),
            "{operation}: {} {}",
            reply.status,
            reply.text()
        );
    }
}

#[tokio::test]
async fn a_span_that_begins_after_its_end_is_refused() {
    let fixture = Fixture::start().await;
    let mut tried = 0;
    for operation in fixture.operations() {
        let parameters = operation.json["parameters"].as_array().expect("parameters");
        let has = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        for (from, to, early, late) in SPANS {
            assert_eq!(has(from), has(to), "{operation}");
            if !has(from) {
                continue;
            }
            let path = fixture.path(&operation).await;
            let reply = fixture
                .owner
                .get(&format!("{path}?{from}={late}&{to}={early}"))
                .await;
            assert_eq!(reply.status, 400, "{operation}: {}", reply.text());
            let expected =
                json!({ "error": format!("{from} must not be after {to}."), "code": "VALIDATION" });
            assert_eq!(reply.json(), expected, "{operation}");
            let reply = fixture
                .owner
                .get(&format!("{path}?{from}={early}&{to}={late}"))
                .await;
            assert_eq!(reply.status, 200, "{operation}: {}", reply.text());
            tried += 1;
        }
    }
    assert_eq!(tried, 9, "spans of operations");
}

/// A request of the document that mixes fields which exclude each other would be refused, or mean something else.
#[tokio::test]
async fn the_example_of_a_prediction_is_one_call() {
    let fixture = Fixture::start().await;
    let operation = &fixture.document["paths"]["/api/v1/decisions/dry-run"]["post"];
    let example = &operation["requestBody"]["content"]["application/json"]["example"];
    let fields: Vec<&str> = example
        .as_object()
        .expect("fields")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        ["agent", "endpoint", "keyId", "messages", "model", "runId"]
    );
    let agent = json!({ "botId": example["agent"], "name": "Example" });
    fixture.owner.post("/api/v1/wallets/create", agent).await;
    let mut body = example.clone();
    // The key of the example does not exist.
    body["keyId"] = Value::Null;
    let reply = fixture.owner.post("/api/v1/decisions/dry-run", body).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["model"], example["model"]);
}
