//! Well-formed calls, refused keys, and counters, all in the provider's format.

use super::*;
use harness::assert_fields;

#[tokio::test]
async fn a_completion_has_the_providers_shape_and_plausible_usage() {
    let caller = caller().await;
    let body = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "12345678" }],
        "max_completion_tokens": 3, "max_tokens": 9, "n": 2, "service_tier": "auto" });
    let reply = caller.chat(body.clone()).await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json"))
    );
    for name in [
        "x-request-id",
        "openai-processing-ms",
        "openai-version",
        "x-ratelimit-remaining-requests",
    ] {
        assert!(reply.header(name).is_some(), "{name}: {reply:?}");
    }
    let answer = reply.json();
    assert!(
        answer["id"].as_str().unwrap().starts_with("chatcmpl-"),
        "{answer}"
    );
    assert_fields!(answer, { "object": "chat.completion", "model": "gpt-4o-mini" });
    assert!(
        answer["created"].is_u64() && answer["system_fingerprint"].is_string(),
        "{answer}"
    );
    assert_eq!(answer["service_tier"], "default");
    let choices = answer["choices"].as_array().unwrap();
    assert_eq!((choices.len(), &choices[1]["index"]), (2, &json!(1)));
    assert_eq!(
        (&choices[0]["message"]["role"], &choices[0]["finish_reason"]),
        (&json!("assistant"), &json!("length"))
    );
    let usage = &answer["usage"];
    assert_fields!(usage, { "prompt_tokens": 6, "completion_tokens": 6 });
    assert_eq!(usage["total_tokens"], 12);
    assert_fields!(usage, { "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 } });
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 0);

    let again = caller.chat(body).await.json();
    assert_fields!(again, { "choices": answer["choices"], "usage": answer["usage"] }, "deterministic");
    assert_ne!(again["id"], answer["id"]);
    let body =
        json!({ "model": "gpt-4o-mini", "messages": [{ "content": "hello" }], "service_tier": "flex" });
    let whole = caller.chat(body).await.json();
    assert_fields!(whole, { "service_tier": "flex" });
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
}

/// The parts of a streamed choice: its deltas, and how it ended.
fn streamed(text: &str) -> (Vec<Value>, Value) {
    let chunks = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    let chunks: Vec<Value> = chunks
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).expect("JSON"))
        .collect();
    let choices: Vec<&Value> = chunks
        .iter()
        .filter_map(|chunk| chunk.pointer("/choices/0"))
        .collect();
    let end = choices.last().expect("a choice")["finish_reason"].clone();
    (
        choices.iter().map(|choice| choice["delta"].clone()).collect(),
        end,
    )
}

#[tokio::test]
async fn a_forced_tool_is_called_with_arguments_that_fit() {
    let caller = caller().await;
    let parameters = json!({ "type": "object", "required": ["city", "days"], "additionalProperties": false,
        "properties": { "city": { "type": "string" }, "days": { "type": "integer", "minimum": 3 } } });
    let other = json!({ "type": "function", "function": { "name": "other" } });
    let weather = json!({ "type": "function", "function": { "name": "weather", "parameters": parameters } });
    let expected = json!({ "city": "sandbox", "days": 3 });
    for (tools, choice) in [
        (
            json!([other, weather]),
            json!({ "type": "function", "function": { "name": "weather" } }),
        ),
        (json!([weather, other]), json!("required")),
    ] {
        let mut body = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "hi" }],
            "tools": tools, "tool_choice": choice });
        let answer = caller.chat(body.clone()).await.json();
        let one = &answer["choices"][0];
        assert_eq!(
            (&one["finish_reason"], &one["message"]["content"]),
            (&json!("tool_calls"), &Value::Null)
        );
        let call = &one["message"]["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["function"]["name"]),
            (&json!("function"), &json!("weather"))
        );
        assert!(call["id"].as_str().unwrap().starts_with("call_"), "{call}");
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments, expected);
        body["stream"] = json!(true);
        let (deltas, end) = streamed(&caller.chat(body).await.text());
        assert_eq!(end, "tool_calls");
        assert_eq!(deltas[0]["tool_calls"][0]["function"]["name"], "weather");
        let parts = deltas
            .iter()
            .filter_map(|delta| delta.pointer("/tool_calls/0/function/arguments")?.as_str());
        let arguments: Value = serde_json::from_str(&parts.collect::<String>()).unwrap();
        assert_eq!(arguments, expected);
    }
    let body = json!({ "model": "gpt-4o-mini", "messages": [{ "content": "hi" }], "tools": [weather], "tool_choice": "auto" });
    let answer = caller.chat(body).await.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn a_response_format_is_answered_with_json_that_fits() {
    let caller = caller().await;
    let schema =
        json!({ "type": "object", "required": ["done"], "properties": { "done": { "type": "boolean" } } });
    let named = json!({ "type": "json_schema", "json_schema": { "name": "answer", "strict": true, "schema": schema } });
    for (format, expected) in [
        (
            json!({ "type": "json_object" }),
            json!({ "answer": "This is the Tollgate sandbox." }),
        ),
        (named, json!({ "done": true })),
    ] {
        let mut body =
            json!({ "model": "gpt-4o-mini", "messages": [{ "content": "hi" }], "response_format": format });
        let answer = caller.chat(body.clone()).await.json();
        let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(content).unwrap(), expected);
        body["stream"] = json!(true);
        let (deltas, end) = streamed(&caller.chat(body).await.text());
        assert_eq!(end, "stop");
        let content: String = deltas
            .iter()
            .filter_map(|delta| delta["content"].as_str())
            .collect();
        assert_eq!(serde_json::from_str::<Value>(&content).unwrap(), expected);
    }
}

#[tokio::test]
async fn models_are_listed() {
    let caller = caller().await;
    let models = caller.get("/v1/models").await.json();
    assert_eq!(models["object"], "list");
    let data = models["data"].as_array().unwrap();
    assert!(
        data.iter()
            .any(|model| model["id"] == "gpt-4o-mini" && model["object"] == "model"),
        "{models}"
    );
}

#[tokio::test]
async fn refusals_of_the_provider_are_passed_on() {
    let address = start(Duration::ZERO).await;
    let caller = Caller::new(&format!("http://{address}"), KEY);
    let nobody = Caller::new(&format!("http://{address}"), "");
    let fine = chat_body("gpt-4o-mini", "hello");
    assert_eq!(nobody.chat(fine.clone()).await.status, 401);
    assert_eq!(nobody.get("/v1/models").await.status, 401);
    for (body, code) in [
        (
            json!({ "messages": [{ "role": "user", "content": "x" }] }),
            "missing_required_parameter",
        ),
        (json!({ "model": "gpt-4o-mini" }), "missing_required_parameter"),
        (
            json!({ "model": "gpt-4o-mini", "messages": [] }),
            "missing_required_parameter",
        ),
        (json!([]), ""),
    ] {
        let reply = caller.chat(body.clone()).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, code), "{body}");
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    }
    assert_eq!(caller.get("/v1/chat/completions").await.status, 405);
    assert_eq!(caller.post("/v1/elsewhere", json!({})).await.status, 404);
    let counted = stats(&caller).await;
    assert_fields!(counted, { "requests": 8, "unauthorized": 2 }, "{counted}");
}

#[tokio::test]
async fn a_virtual_key_is_refused_loudly_wherever_it_stands() {
    let address = start(Duration::ZERO).await;
    let virtual_key = format!("vk_live_{}", "0a".repeat(32));
    let caller = Caller::new(&format!("http://{address}"), KEY);
    let leaking = Caller::new(&format!("http://{address}"), &virtual_key);
    let reply = leaking.chat(chat_body("gpt-4o-mini", "hello")).await;
    assert_eq!(
        (reply.status, reply.error_code().as_str()),
        (418, "virtual_key_leaked")
    );
    for header in ["x-api-key", "x-forwarded-key", "cookie"] {
        let reply = caller
            .chat_with(&[(header, &virtual_key)], chat_body("gpt-4o-mini", "hello"))
            .await;
        assert_eq!(reply.status, 418, "{header}");
    }
    assert_eq!(leaking.get("/v1/models").await.status, 418);
    assert_eq!(leaking.get("/elsewhere").await.status, 418);
    let counted = stats(&caller).await;
    assert_fields!(counted, { "virtual_keys_seen": 6, "requests": 6 }, "{counted}");
    assert!(!counted.to_string().contains("vk_live_"));
}

#[tokio::test]
async fn stats_count_requests_and_show_no_secret() {
    let caller = caller().await;
    caller.chat(chat_body("gpt-4o-mini", "hello")).await;
    caller
        .chat_with(&[("X-Service-Run-Id", "r")], chat_body("gpt-4o-mini", "hello"))
        .await;
    let counted = stats(&caller).await;
    let expected = json!({ "requests": 2, "chat_completions": 2, "responses": 0, "embeddings": 0, "streams": 0,
        "in_flight": 0, "unauthorized": 0,
        "virtual_keys_seen": 0, "service_headers_seen": 1, "last_authorization_last4": "cdef" });
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn it_takes_a_thousand_calls_at_once() {
    let caller = caller().await;
    let calls = (0..1000).map(|_| caller.chat(chat_body("gpt-4o-mini", "hello")));
    let replies = futures::future::join_all(calls).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert_eq!(stats(&caller).await["chat_completions"], 1000);
}
