//! Requests for a prediction: which are refused, and the models, prices, APIs and upstreams that they may name.

use crate::fixture::{problem, success, text};
use crate::record_fixture::{MODEL, RecordFixture};
use domain::mode::Mode;
use harness::{Answer, Cli, Reply, Upstream, assert_fields, chat_body, merged};
use serde_json::{Value, json};

/// A dry run of a call, with more or other fields.
fn call(more: &Value) -> Value {
    merged(json!({ "agent": "bot", "model": MODEL }), more)
}

/// The estimate of a prediction.
fn nanos(prediction: &Value) -> u64 {
    text(prediction, "/estimateNanos").parse().unwrap()
}

#[tokio::test]
async fn requests_that_cannot_be_predicted_name_what_is_wrong() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({})).await;
    let wrong = async |body: Value, part: &str| {
        let sentence = problem(&client.dry_run(body.clone()).await, 400, "VALIDATION");
        assert!(sentence.contains(part), "{body}: {sentence}");
    };
    for (body, part) in [
        (json!({}), "agent is required"),
        (json!({ "agent": "a b", "amount": 1 }), "agent must be"),
        (json!({ "agent": "..", "amount": 1 }), "agent must not be"),
        (json!({ "agent": "bot" }), "either model"),
        (
            json!({ "agent": "bot", "amount": 0 }),
            "amount must be greater than zero",
        ),
        (
            json!({ "agent": "bot", "amount": 1, "currency": "EUR" }),
            "currency",
        ),
        (json!({ "agent": "bot", "amount": 1, "messages": [] }), "messages"),
    ] {
        wrong(body, part).await;
    }
    for (more, part) in [
        (json!({ "amount": 1 }), "either model"),
        (json!({ "model": null, "amount": null }), "either model"),
        (json!({ "runId": "a b" }), "runId"),
        (json!({ "keyId": "vk_1" }), "keyId must be"),
        (json!({ "model": "" }), "missing_model"),
        (json!({ "messages": [] }), "missing_messages"),
        (json!({ "messages": null }), "missing_messages"),
        (json!({ "stream": true }), "stream_not_supported"),
        (json!({ "n": 0 }), "`n` must be an integer"),
        (json!({ "max_tokens": 2.5 }), "`max_tokens` must be"),
        (json!({ "Stream": true }), "must be written `stream`"),
    ] {
        wrong(call(&more), part).await;
    }
    let twice = r#"{"agent":"bot","model":"m","n":1,"n":2}"#;
    let path = "/v1/decisions/dry-run";
    let reply = client.api.send("POST", path, &[], twice).await;
    problem(&reply, 400, "VALIDATION");
    let far = r#"{"agent":"bot", "model":"m","messages":[{}],"temperature": 1e400}"#;
    let sentence = problem(&client.api.send("POST", path, &[], far).await, 400, "VALIDATION");
    let byte = far.find("1e400").expect("the number");
    assert!(
        sentence.contains(&format!("at byte {byte} of the body")),
        "{sentence}"
    );

    let other = fixture.client("builder", json!({})).await;
    for body in [
        json!({ "agent": "nobody", "amount": 1 }),
        json!({ "agent": "nobody", "model": MODEL }),
        json!({ "agent": "bot", "model": MODEL, "keyId": other.key_id }),
    ] {
        problem(&client.dry_run(body).await, 404, "NOT_FOUND");
    }
    client.account.revoke(&client.key_id).await;
    problem(&client.dry_run(client.call_body(None)).await, 404, "NOT_FOUND");

    let tester = fixture.management.caller(&client.account, Mode::Test).await;
    let call = tester.post(path, json!({ "agent": "bot", "model": MODEL })).await;
    problem(&call, 400, "LIVE_MODE_REQUIRED");
    let policy = json!({ "maxSpendPerDay": 1 });
    success(&tester.post("/v1/policies/tester", policy).await, 200);
    let spend = tester.post(path, json!({ "agent": "tester", "amount": 2 })).await;
    assert_eq!(success(&spend, 200)["reason"], json!("daily_limit"));
}

#[tokio::test]
async fn without_messages_the_prompt_is_empty_and_prices_follow_an_import() {
    let fixture = RecordFixture::start().await;
    let client = fixture.client("builder", json!({})).await;
    let ask = async |model: &str, more: Value| {
        let body = call(&merged(json!({ "model": model, "max_tokens": 1000 }), &more));
        let body = success(&client.dry_run(body).await, 200);
        (nanos(&body), text(&body, "/priceVersion").to_owned())
    };
    let (empty, version) = ask(MODEL, json!({})).await;
    assert_eq!(empty, 600_000, "1,000 completion tokens at 0.6 USD a million");
    let (doubled, _) = ask(MODEL, json!({ "n": 2 })).await;
    assert_eq!(doubled, 2 * empty);
    let tools = json!([{ "type": "function", "function": { "name": "f", "description": "x".repeat(4000) } }]);
    let (with_tools, _) = ask(MODEL, json!({ "tools": tools })).await;
    assert!(
        with_tools > empty + 149_000,
        "their text is billed as prompt: {with_tools}"
    );
    let (unknown, _) = ask("no-such-model", json!({})).await;
    assert!(unknown > empty, "an unknown model costs the dearest prices");

    let file = fixture.management.admin.dir().join("import.json");
    let imported = json!({ "no-such-model": {
        "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6,
    } });
    std::fs::write(&file, imported.to_string()).unwrap();
    let import = Cli::new(crate::fixture::BINARY, fixture.management.redis.url());
    let done = import.json(&["prices", "import", file.to_str().unwrap()]);
    assert_eq!(done["models"], json!(["no-such-model"]));
    let (known, later) = ask("no-such-model", json!({})).await;
    assert_eq!(known, 1_000_000);
    assert_ne!(later, version, "another table");
}

#[tokio::test]
async fn a_limit_that_edges_require_is_required_of_a_prediction() {
    let fixture = RecordFixture::start_with(&[("PROXY__REQUIRE_TOKEN_LIMIT", "true")]).await;
    let client = fixture.client("free", json!({})).await;
    let refused = client.dry_run(call(&json!({}))).await;
    let sentence = problem(&refused, 400, "VALIDATION");
    assert!(sentence.contains("missing_token_limit"), "{sentence}");
    success(&client.dry_run(call(&json!({ "max_tokens": 9 }))).await, 200);
}

/// Dry runs predict calls of any API of the edge, and streams where edges allow them.
#[tokio::test]
async fn responses_embeddings_and_streams_are_predicted() {
    for (streaming, status) in [("false", 400), ("true", 200)] {
        let fixture = RecordFixture::start_with(&[("PROXY__STREAMING", streaming)]).await;
        let client = fixture.client("builder", json!({})).await;
        let ask = async |more: Value| client.dry_run(call(&more)).await;
        let nanos = |reply: &Reply| nanos(&success(reply, 200));
        let of_response = json!({ "endpoint": "responses", "max_output_tokens": 1000 });
        assert_eq!(nanos(&ask(of_response).await), 600_000, "an empty prompt");
        let kept = json!({ "endpoint": "responses", "max_output_tokens": 1000,
            "input": [{ "type": "reasoning", "id": "rs_1", "summary": [] }] });
        assert_eq!(
            nanos(&ask(kept).await),
            600_000 + (25_000 + 4 + 1) * 150,
            "reasoning that the provider keeps, an item and its id"
        );
        let of_texts =
            json!({ "endpoint": "embeddings", "model": "text-embedding-3-small", "input": "x".repeat(4000) });
        let estimate = nanos(&ask(of_texts).await);
        assert!(
            (20_000..21_000).contains(&estimate),
            "1,000 tokens of 0.02 USD a million: {estimate}"
        );
        for more in [
            json!({ "stream": true }),
            json!({ "endpoint": "responses", "stream": true }),
        ] {
            assert_eq!(ask(more).await.status, status, "{streaming}");
        }
        for wrong in [
            json!({ "endpoint": "audio" }),
            json!({ "endpoint": "embeddings" }),
            // The body of another API, without saying so.
            json!({ "input": "x" }),
            json!({ "endpoint": "responses", "previous_response_id": "resp_1" }),
        ] {
            problem(&ask(wrong).await, 400, "VALIDATION");
        }
    }
}

/// The model chooses the upstream in a prediction as on the edge: its provider key, its price, its name.
#[tokio::test]
async fn a_call_to_an_upstream_by_name_is_predicted_as_the_edge_decides() {
    let azure = Upstream::start(|_| Answer::chat(9, 12));
    let base_url = format!("http://{}", azure.addr());
    let fixture = RecordFixture::start_with(&[
        ("UPSTREAMS__AZURE__BASE_URL", &base_url),
        ("UPSTREAMS__AZURE__MODELS", "gpt-4o*"),
        ("UPSTREAMS__AZURE__PRICE_PREFIX", ""),
        ("UPSTREAMS__DEAR__BASE_URL", &base_url),
        ("UPSTREAMS__DEAR__MODELS", "gpt-4.1"),
    ])
    .await;
    let client = fixture.client("builder", json!({ "maxSpendPerDay": 1000 })).await;
    let predict = async |model: &str| {
        let mut body = client.call_body(None);
        body["model"] = json!(model);
        success(&client.dry_run(body).await, 200)
    };
    let prediction = predict(MODEL).await;
    assert_fields!(prediction, {
        "upstream": "azure", "model": MODEL, "reason": "no_provider_key", "wouldApprove": false,
    });
    let reply = client.edge.chat(chat_body(MODEL, "hello")).await;
    assert_eq!(reply.status, 403);
    assert_fields!(reply.json(), { "message": prediction["message"] });
    assert!(text(&prediction, "/message").contains("`azure`"));

    let key = json!({ "provider": "azure", "apiKey": "0123456789abcdef" });
    success(&client.api.post("/v1/agents/bot/provider-keys", key).await, 201);
    let prediction = predict(MODEL).await;
    assert_fields!(prediction, { "upstream": "azure", "wouldApprove": true });
    let reply = client.edge.chat(chat_body(MODEL, "hello")).await;
    assert_eq!((reply.status, azure.requests().len()), (200, 1));
    let sent = azure.requests()[0].header("authorization").map(str::to_owned);
    assert_eq!(sent.as_deref(), Some("Bearer 0123456789abcdef"));

    // Another upstream has no price for its model, so the dearest price applies.
    let (dear, default) = (predict("gpt-4.1").await, predict("no-such-model").await);
    assert_fields!(dear, { "upstream": "dear" });
    assert_fields!(default, { "upstream": null });
    assert_eq!(nanos(&dear), nanos(&default));
    assert!(text(&dear, "/message").contains("`dear`"));
}
