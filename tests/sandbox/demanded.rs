//! Answers whose content the request demands: a call of a tool, JSON of a schema. In chat completions and responses.

use super::*;

const TEXT: &str = "This is the Tollgate sandbox. You said: hi";

/// The data of a stream's events.
fn streamed(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    data.map(|rest| serde_json::from_str(&format!("{{{rest}")).expect("JSON"))
        .collect()
}

/// The answers to a request for a response: whole, and the events of the stream.
async fn both(caller: &Caller, with: Value) -> (Value, Vec<Value>) {
    let mut body = json!({ "model": "gpt-5-mini", "input": "hi" });
    body.as_object_mut()
        .unwrap()
        .extend(with.as_object().unwrap().clone());
    let whole = caller.post("/v1/responses", body.clone()).await.json();
    body["stream"] = json!(true);
    let stream = caller.post("/v1/responses", body).await.text();
    (whole, streamed(&stream))
}

/// The texts of the deltas of this type, together, and the types of all events.
fn deltas(events: &[Value], kind: &str) -> (String, Vec<String>) {
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    let text = of_kind.map(|event| event["delta"].as_str().unwrap()).collect();
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    (
        text,
        kinds
            .map(|kind| kind.trim_start_matches("response.").to_owned())
            .collect(),
    )
}

fn parsed(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("a text")).expect("JSON")
}

#[tokio::test]
async fn a_response_calls_the_function_that_it_must() {
    let caller = caller().await;
    let parameters = json!({ "type": "object", "required": ["city", "days"], "additionalProperties": false,
        "properties": { "city": { "type": "string" }, "days": { "type": "integer", "minimum": 3 } } });
    let other = json!({ "type": "function", "name": "other", "parameters": null });
    let weather = json!({ "type": "function", "name": "weather", "parameters": parameters, "strict": true });
    let named = json!({ "type": "function", "name": "weather" });
    let allowed = json!({ "type": "allowed_tools", "mode": "required", "tools": [named] });
    for (tools, choice) in [
        (json!([other, weather]), named),
        (json!([weather, other]), json!("required")),
        (json!([other, weather]), allowed),
    ] {
        let asked = json!({ "tools": tools, "tool_choice": choice });
        let (whole, events) = both(&caller, asked).await;
        assert_eq!(
            (&whole["status"], &whole["tools"], &whole["tool_choice"]),
            (&json!("completed"), &tools, &choice)
        );
        let call = &whole["output"][0];
        assert_eq!(
            (&call["type"], &call["name"], &call["status"]),
            (&json!("function_call"), &json!("weather"), &json!("completed"))
        );
        assert!(call["call_id"].as_str().unwrap().starts_with("call_"), "{call}");
        assert_eq!(
            parsed(&call["arguments"]),
            json!({ "city": "sandbox", "days": 3 })
        );
        let (text, kinds) = deltas(&events, "response.function_call_arguments.delta");
        assert_eq!(json!(text), call["arguments"]);
        assert_eq!(kinds[..3], ["created", "in_progress", "output_item.added"]);
        let ends = ["function_call_arguments.done", "output_item.done", "completed"];
        assert_eq!(kinds[kinds.len() - 3..], ends);
        let last = &events.last().unwrap()["response"];
        assert_eq!(last["output"][0]["arguments"], call["arguments"]);
        assert_eq!(last["usage"], whole["usage"]);
        let done = &events[events.len() - 2];
        assert_eq!(
            done["item"], last["output"][0],
            "the same item, with the same ids"
        );
    }
    let (free, _) = both(&caller, json!({ "tools": [weather], "tool_choice": "auto" })).await;
    assert_eq!(free["output"][0]["content"][0]["text"], TEXT);
    let cut = json!({ "tools": [weather], "tool_choice": "required", "max_output_tokens": 2 });
    let (whole, events) = both(&caller, cut).await;
    assert_eq!(
        (&whole["status"], &whole["output"][0]["status"]),
        (&json!("incomplete"), &json!("incomplete"))
    );
    assert_eq!(events.last().unwrap()["type"], "response.incomplete");
}

#[tokio::test]
async fn a_custom_tool_is_called_with_a_text() {
    let caller = caller().await;
    let asked = json!({ "tools": [{ "type": "custom", "name": "code" }],
        "tool_choice": { "type": "custom", "name": "code" } });
    let (whole, events) = both(&caller, asked).await;
    let call = &whole["output"][0];
    assert_eq!(
        (&call["type"], &call["name"], &call["input"]),
        (&json!("custom_tool_call"), &json!("code"), &json!("sandbox"))
    );
    let (text, kinds) = deltas(&events, "response.custom_tool_call_input.delta");
    assert_eq!(
        (json!(text), &kinds[kinds.len() - 3]),
        (call["input"].clone(), &"custom_tool_call_input.done".to_owned())
    );

    let tool = json!({ "type": "custom", "custom": { "name": "code" } });
    let named = json!({ "mode": "required", "tools": [tool] });
    for choice in [
        tool.clone(),
        json!("required"),
        json!({ "type": "allowed_tools", "allowed_tools": named }),
    ] {
        let mut body = json!({ "model": "gpt-5-mini", "messages": [{ "content": "hi" }], "tools": [tool],
            "tool_choice": choice });
        let answer = caller.chat(body.clone()).await.json();
        let call = &answer["choices"][0]["message"]["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["custom"]),
            (&json!("custom"), &json!({ "name": "code", "input": "sandbox" }))
        );
        body["stream"] = json!(true);
        let events = streamed(&caller.chat(body).await.text());
        let of = |event: &Value| {
            event
                .pointer("/choices/0/delta/tool_calls/0/custom/input")
                .cloned()
        };
        let parts: Vec<Value> = events.iter().filter_map(of).collect();
        assert_eq!(parts, [json!(""), json!("sandbox")]);
    }
}

#[tokio::test]
async fn a_response_has_the_format_that_its_text_must_have() {
    let caller = caller().await;
    let schema =
        json!({ "type": "object", "required": ["done"], "properties": { "done": { "type": "boolean" } } });
    let named = json!({ "type": "json_schema", "name": "answer", "strict": true, "schema": schema });
    for (format, expected) in [
        (
            json!({ "type": "json_object" }),
            json!({ "answer": "This is the Tollgate sandbox." }),
        ),
        (named, json!({ "done": true })),
    ] {
        let (whole, events) = both(
            &caller,
            json!({ "text": { "format": format, "verbosity": "low" } }),
        )
        .await;
        assert_eq!(whole["text"], json!({ "format": format, "verbosity": "low" }));
        assert_eq!(parsed(&whole["output"][0]["content"][0]["text"]), expected);
        let (text, _) = deltas(&events, "response.output_text.delta");
        assert_eq!(parsed(&json!(text)), expected);
    }
    let (plain, _) = both(&caller, json!({ "text": { "format": { "type": "text" } } })).await;
    assert_eq!(plain["output"][0]["content"][0]["text"], TEXT);
}

#[tokio::test]
async fn a_response_repeats_what_the_request_set() {
    let caller = caller().await;
    let set = json!({ "instructions": "be short", "metadata": { "a": "b" }, "parallel_tool_calls": false,
        "reasoning": { "effort": "low" }, "store": true, "temperature": 0.5, "tool_choice": "none",
        "tools": [{ "type": "custom", "name": "code" }], "top_p": 0.5, "truncation": "auto", "user": "u" });
    let (whole, events) = both(&caller, set.clone()).await;
    for answer in [
        &whole,
        &events[0]["response"],
        &events.last().unwrap()["response"],
    ] {
        for (name, value) in set
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name != "reasoning")
        {
            assert_eq!(&answer[name], value, "{name}");
        }
        assert_eq!(answer["reasoning"], json!({ "effort": "low", "summary": null }));
    }
    let (unset, _) = both(&caller, json!({ "tools": null, "metadata": null })).await;
    assert_eq!(
        (
            &unset["tools"],
            &unset["metadata"],
            &unset["tool_choice"],
            &unset["text"]
        ),
        (
            &json!([]),
            &json!({}),
            &json!("auto"),
            &json!({ "format": { "type": "text" } })
        )
    );
}
