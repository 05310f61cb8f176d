//! Two people edit one policy: the later one gets 412, and overwrites nothing.

use crate::fixture::{Fixture, problem, success};
use harness::{Caller, Reply, assert_fields};
use serde_json::{Value, json};

async fn set(caller: &Caller, path: &str, headers: &[(&str, &str)], body: Value) -> Reply {
    let headers = [&[("content-type", "application/json")], headers].concat();
    caller.send("POST", path, &headers, body.to_string()).await
}

#[tokio::test]
async fn the_later_of_two_editors_is_reported_and_changes_nothing() {
    let fixture = Fixture::start().await;
    let (account, caller) = fixture.account("builder").await;
    let path = "/v1/policies/bot";
    let first = set(
        &caller,
        path,
        &[("if-none-match", "*")],
        json!({ "maxSpendPerDay": "1" }),
    )
    .await;
    assert_eq!(first.header("etag"), Some("\"1\""));
    assert_eq!(success(&first, 200)["policy"]["revision"], json!(1));
    let twice = set(
        &caller,
        path,
        &[("if-none-match", "*")],
        json!({ "maxSpendPerDay": "9" }),
    )
    .await;
    problem(&twice, 412, "PRECONDITION_FAILED");

    let mine = set(
        &caller,
        path,
        &[("if-match", "\"1\"")],
        json!({ "maxSpendPerDay": "2" }),
    )
    .await;
    assert_eq!(success(&mine, 200)["policy"]["revision"], json!(2));
    let version = account.version().await;
    let yours = set(
        &caller,
        path,
        &[("if-match", "\"1\"")],
        json!({ "maxSpendPerDay": "3" }),
    )
    .await;
    problem(&yours, 412, "PRECONDITION_FAILED");
    assert_eq!(account.version().await, version, "nothing changed");
    let listed = success(&caller.get("/v1/policies?agentId=bot").await, 200);
    assert_eq!(listed["policies"][0]["maxSpendPerDay"], json!(2));
    assert_eq!(listed["policies"][0]["revision"], json!(2));

    // The other route, any revision, no precondition, and one in a list.
    let body = json!({ "name": "n", "agentId": "bot", "maxSpendPerDay": "4" });
    let reply = set(&caller, "/v1/policies", &[("if-match", "\"7\"")], body.clone()).await;
    problem(&reply, 412, "PRECONDITION_FAILED");
    let reply = set(&caller, "/v1/policies", &[("if-match", "*")], body.clone()).await;
    success(&reply, 200);
    let reply = set(&caller, path, &[], json!({ "maxSpendPerRun": "1" })).await;
    success(&reply, 200);
    // The values that are there already: the same revision, under the same preconditions.
    let same = json!({ "maxSpendPerRun": "1" });
    let reply = set(&caller, path, &[("if-match", "\"4\"")], same.clone()).await;
    assert_eq!(reply.header("etag"), Some("\"4\""));
    assert_eq!(success(&reply, 200)["policy"]["revision"], json!(4));
    problem(
        &set(&caller, path, &[("if-match", "\"3\"")], same).await,
        412,
        "PRECONDITION_FAILED",
    );
    let body = json!({ "maxSpendPerRun": null });
    let last = set(&caller, path, &[("if-match", "\"9\", \"4\"")], body).await;
    assert_eq!(success(&last, 200)["policy"]["revision"], json!(5));
    let reply = set(&caller, path, &[("if-match", "4")], json!({})).await;
    problem(&reply, 400, "VALIDATION");
    let none = set(&caller, "/v1/policies/nobody", &[("if-match", "*")], json!({})).await;
    problem(&none, 412, "PRECONDITION_FAILED");
    problem(&caller.get("/v1/agents/nobody").await, 404, "NOT_FOUND");
    let id = success(&last, 200)["policy"]["id"].as_str().unwrap().to_owned();
    let delete = async |id: &str, tag: &str| {
        let path = format!("/v1/policies/{id}");
        caller
            .try_send("DELETE", &path, &[("if-match", tag)], "")
            .await
            .unwrap()
    };
    problem(&delete(&id, "\"4\"").await, 412, "PRECONDITION_FAILED");
    problem(&delete(&id, "4").await, 400, "VALIDATION");
    success(&delete(&id, "\"4\", \"5\"").await, 200);
    problem(&delete(&id, "*").await, 404, "NOT_FOUND");

    // An account-wide policy is a new one every time.
    let wide = json!({ "name": "All" });
    let reply = set(&caller, "/v1/policies", &[("if-match", "*")], wide.clone()).await;
    problem(&reply, 412, "PRECONDITION_FAILED");
    let reply = set(&caller, "/v1/policies", &[("if-none-match", "*")], wide).await;
    success(&reply, 200);
}

#[tokio::test]
async fn of_editors_at_the_same_moment_exactly_one_wins_each_revision() {
    let fixture = Fixture::start().await;
    let (_, caller) = fixture.account("builder").await;
    success(&caller.post("/v1/policies/bot", json!({})).await, 200);
    for round in 1..=20_u64 {
        let tag = format!("\"{round}\"");
        let headers = [("if-match", tag.as_str())];
        let edit = |limit: u64| {
            set(
                &caller,
                "/v1/policies/bot",
                &headers,
                json!({ "maxSpendPerDay": limit }),
            )
        };
        let (one, other) = tokio::join!(edit(2 * round), edit(2 * round + 1));
        let (won, lost) = if one.status == 200 {
            (one, other)
        } else {
            (other, one)
        };
        let won = success(&won, 200);
        problem(&lost, 412, "PRECONDITION_FAILED");
        assert_eq!(won["policy"]["revision"], json!(round + 1));
        let listed = success(&caller.get("/v1/policies?agentId=bot").await, 200);
        assert_fields!(listed["policies"][0], { "maxSpendPerDay": won["policy"]["maxSpendPerDay"] });
    }
}
