//! The names of API keys, virtual keys, policies, people and agents beside their ids.

use crate::fixture::{Fixture, problem, success, text};
use domain::mode::Mode;
use harness::{Role, assert_fields};
use serde_json::{Value, json};

/// One row of `GET /names`.
fn named(id: &str, kind: &str, name: &str) -> Value {
    json!({ "id": id, "kind": kind, "name": name })
}

#[tokio::test]
async fn ids_of_the_account_have_the_names_that_people_gave() {
    let fixture = Fixture::start().await;
    let (owner, session) = fixture.user(Role::Owner).await;
    let (viewer, reader) = fixture.member(&owner.account, Role::Viewer).await;
    let (stranger, other) = fixture.user(Role::Owner).await;

    let key = success(
        &session.post("/v1/api-keys", json!({ "name": "CI <b>" })).await,
        200,
    );
    let key = text(&key, "/apiKey/keyId").to_owned();
    let nameless = success(&session.post("/v1/api-keys", json!({})).await, 200);
    let nameless = text(&nameless, "/apiKey/keyId").to_owned();
    let body = json!({ "name": "Invoice reader" });
    let agent = success(&session.post("/v1/agents", body).await, 200);
    let agent = text(&agent, "/agent/id").to_owned();
    let path = format!("/v1/agents/{agent}/virtual-keys");
    let made = session.post(&path, json!({ "name": "Laptop" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let virtual_key = made.json();
    let virtual_key = text(&virtual_key, "/virtualKey/keyId").to_owned();
    let policy = json!({ "name": "Night", "agentId": agent, "maxSpendPerDay": "5" });
    let policy = success(&session.post("/v1/policies", policy).await, 200);
    let policy = text(&policy, "/policy/id").to_owned();
    let toy = session.in_mode(Mode::Test);
    let toy = success(&toy.post("/v1/agents", json!({ "name": "Toy" })).await, 200);
    let toy = text(&toy, "/agent/id").to_owned();

    let ids = [
        viewer.id.as_str(),
        &key,
        &nameless,
        &agent,
        &virtual_key,
        &policy,
        &toy,
        "operator",
        "nobody",
        &stranger.id,
        &key,
    ];
    let path = format!("/v1/names?ids={}", ids.join(","));
    let expected = json!([
        named(&viewer.id, "user", &viewer.email),
        named(&key, "api_key", "CI <b>"),
        named(&agent, "agent", "Invoice reader"),
        named(&virtual_key, "virtual_key", "Laptop"),
        named(&policy, "policy", "Night"),
    ]);
    // A viewer sees names, too: they are labels of ids that the trail shows to everybody.
    assert_eq!(success(&reader.get(&path).await, 200)["names"], expected);
    // Agents, policies and keys are those of the mode (decision D2); people are the account's.
    let in_test = success(&reader.in_mode(Mode::Test).get(&path).await, 200);
    let expected = json!([
        named(&viewer.id, "user", &viewer.email),
        named(&toy, "agent", "Toy")
    ]);
    assert_eq!(in_test["names"], expected);
    // Another account sees no names of this one.
    let foreign = success(&other.get(&path).await, 200);
    assert_fields!(foreign, { "names": [named(&stranger.id, "user", &stranger.email)] });

    // A removed user has no name.
    success(
        &session.delete(&format!("/api/user/team/{}", viewer.id)).await,
        200,
    );
    let left = success(&session.get(&format!("/v1/names?ids={}", viewer.id)).await, 200);
    assert_eq!(left["names"], json!([]));
    for refused in ["", "a,", "a%20b", "a/b", "a&ids=b", "a&of=b"] {
        let reply = session.get(&format!("/v1/names?ids={refused}")).await;
        problem(&reply, 400, "VALIDATION");
    }
}
