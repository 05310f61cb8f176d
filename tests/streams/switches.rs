//! Features that are off by default, and plans without streams.

use crate::fixture::{Fixture, body, open_cap};
use harness::assert_fields;
use serde_json::json;

#[tokio::test]
async fn a_disabled_route_is_answered_as_unknown() {
    let off = |name: &str| format!("TOLLGATE_PROXY__{name}");
    let fixture = Fixture::with(|options| {
        let names = ["STREAMING", "RESPONSES", "EMBEDDINGS"];
        names
            .into_iter()
            .fold(options, |options, name| options.env(&off(name), "false"))
    })
    .await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let caller = fixture.edge.caller(&actor.key);
    let streamed = caller.chat(body(json!({}))).await;
    assert_eq!(
        (streamed.status, streamed.error_code().as_str()),
        (400, "stream_not_supported")
    );
    for path in ["/v1/responses", "/v1/embeddings"] {
        let body = json!({ "model": "nano", "input": "hello" });
        let reply = caller.post(path, body).await;
        assert_eq!(
            (reply.status, reply.error_code().as_str()),
            (404, "not_found"),
            "{path}"
        );
    }
    let health = caller.get("/v1/health").await.json();
    assert_eq!(health["streaming"], false);
    assert_eq!(health["endpoints"].as_array().map(Vec::len), Some(4));
    assert_eq!(fixture.upstream.arrived(), 0);
}

#[tokio::test]
async fn health_lists_what_is_on() {
    let fixture = Fixture::new().await;
    let health = fixture.edge.caller("").get("/v1/health").await.json();
    assert_eq!(health["streaming"], true);
    let endpoints = health["endpoints"].as_array().unwrap();
    assert!(endpoints.contains(&json!("/v1/responses")) && endpoints.contains(&json!("/v1/embeddings")));
}

#[tokio::test]
async fn a_plan_can_do_without_streams() {
    let plans = tempfile::NamedTempFile::new().unwrap();
    let tables = "[free]\nstreaming = false\n[enterprise]\n";
    std::fs::write(plans.path(), tables).unwrap();
    let path = plans.path().to_str().unwrap().to_owned();
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PLANS__FILE", path)).await;
    for (plan, status) in [("free", 400), ("enterprise", 200), ("free", 400)] {
        let actor = fixture.actor(plan, open_cap()).await;
        let mut stream = fixture.open(&actor, json!({})).await;
        assert_eq!(stream.status(), status, "{plan}");
        match status {
            200 => assert!(stream.rest().await.ends_with("data: [DONE]\n\n")),
            _ => {
                let error = stream.whole().await["error"].clone();
                assert_fields!(error, { "code": "stream_not_supported", "param": "stream" });
                assert!(error["message"].as_str().unwrap().contains("free"), "{error}");
                assert_eq!(actor.settled().await, 0, "nothing is charged");
            }
        }
        let caller = fixture.edge.caller(&actor.key);
        let plain = caller.chat(json!({ "model": "nano", "messages": [{ "role": "user", "content": "x" }] }));
        assert_eq!(
            plain.await.status,
            200,
            "{plan}: the provider answers with a stream, which passes whole"
        );
    }
}

#[tokio::test]
async fn bad_stream_options_are_refused() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    for (options, accepted) in [
        (json!(null), true),
        (json!({}), true),
        (json!({ "include_usage": null }), true),
        (
            json!({ "include_usage": false, "include_obfuscation": true }),
            true,
        ),
        (json!({ "include_usage": true }), true),
        (json!(true), false),
        (json!([]), false),
        (json!("x"), false),
        (json!({ "include_usage": "true" }), false),
        (json!({ "include_usage": 1 }), false),
    ] {
        let mut stream = fixture.open(&actor, json!({ "stream_options": options })).await;
        assert_eq!(stream.status() == 200, accepted, "{options}");
        match accepted {
            true => drop(stream.rest().await.to_owned()),
            false => assert_eq!(stream.whole().await["error"]["code"], "invalid_json", "{options}"),
        }
    }
    let not_boolean = fixture.open(&actor, json!({ "stream": 1 })).await;
    assert_eq!(not_boolean.status(), 400);
}
