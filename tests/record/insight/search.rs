//! Finding agents in the list.

use crate::fixture::{Fixture, problem, success, text};
use harness::{Caller, assert_fields};
use serde_json::{Value, json};

async fn found(caller: &Caller, query: &str) -> (Vec<String>, Value) {
    let listed = success(&caller.get(&format!("/v1/agents?{query}")).await, 200);
    let agents = listed["agents"].as_array().unwrap();
    let names = agents.iter().map(|agent| text(agent, "/name").to_owned());
    (names.collect(), listed)
}

#[tokio::test]
async fn agents_are_found_by_a_part_of_id_or_name_and_by_status() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("enterprise").await;
    for (id, name) in [
        ("shop-bot", "Große Kasse"),
        ("helper", "Support BOT"),
        ("other", "🤖 مساعد"),
    ] {
        let body = json!({ "botId": id, "name": name });
        success(&caller.post("/v1/wallets/create", body).await, 200);
    }
    let reply = caller.send("POST", "/v1/agents/helper/freeze", &[], "").await;
    success(&reply, 200);
    let (names, listed) = found(&caller, "q=bot").await;
    assert_eq!(names, ["Support BOT", "Große Kasse"], "newest first");
    assert_fields!(listed, { "total": 2, "partial": false });
    assert_eq!(found(&caller, "q=GRO%C3%9FE").await.0, ["Große Kasse"]);
    assert_eq!(found(&caller, "q=%D9%85%D8%B3").await.0, ["🤖 مساعد"]);
    assert_eq!(found(&caller, "q=nothing").await.0, [] as [&str; 0]);
    assert_eq!(found(&caller, "status=frozen").await.0, ["Support BOT"]);
    assert_eq!(found(&caller, "status=active&q=bot").await.0, ["Große Kasse"]);
    let (names, listed) = found(&caller, "q=bot&limit=1&offset=1").await;
    assert_eq!(
        (names, &listed["total"]),
        (vec!["Große Kasse".to_owned()], &json!(2))
    );
    let (names, listed) = found(&caller, "q=").await;
    assert_eq!(
        (names.len(), listed.get("partial")),
        (3, None),
        "an empty search finds all"
    );
    problem(&caller.get("/v1/agents?status=asleep").await, 400, "VALIDATION");
    let reply = caller.get(&format!("/v1/agents?q={}", "x".repeat(201))).await;
    problem(&reply, 400, "VALIDATION");
    let (_, stranger) = fixture.account("free").await;
    assert_eq!(found(&stranger, "q=bot").await.0, [] as [&str; 0]);
}
