//! The provider's answers: chat completions, responses and embeddings in OpenAI's form, streamed and not.

use crate::plan::{Behaviour, Call};
use harness::{Answer, Recorded, Script};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The text of each answer arrives in these pieces.
pub const PIECES: [&str; 2] = ["Hel", "lo."];
/// The numbers of an embedding, as a client prints them.
pub const VECTOR: &str = "0.5,-1.5";
/// The same two numbers of four bytes each, in base64.
const VECTOR_BASE64: &str = "AAAAPwAAwL8=";
/// Time for the edge to notice that a caller has left, before the rest of the stream is sent. A caller with the whole
/// stream does not count as one who left.
const AFTER_LEAVING: Duration = Duration::from_secs(3);
const CALL_ID: &str = "call_test";
const TOOL: &str = "weather_in";
const TOOL_INPUT: &str = r#"{"city":"Oslo"}"#;
/// A command whose output contains the tool's answer, while its text does not.
const COMMAND: &str = "printf 'rain %s' 'in Oslo'";

/// The reasoning that comes before a response's text or call of a tool.
const REASONING_ID: &str = "rs_test";

/// Answers as the call with the number in the request's text requires. `gates` holds back the streams whose callers
/// leave.
pub fn answer(calls: &[Call], gates: &[Arc<Notify>], request: &Recorded) -> Answer {
    let number = number_of(request);
    let call = &calls[number];
    if matches!(call.behaviour, Behaviour::FailsCharged | Behaviour::FailsRepeated) {
        return Answer::error(500, "provider_500", "as told");
    }
    let sent = request.json();
    let reasons = call.behaviour == Behaviour::Reasons;
    let uses_tool = reasons || call.behaviour == Behaviour::UsesTool;
    let wants_tool = uses_tool && !sent.to_string().contains("rain in Oslo");
    let (whole, events) = match request.path.as_str() {
        "/v1/chat/completions" => (chat(wants_tool), chat_events(&sent, wants_tool)),
        "/v1/responses" => {
            let reasoning = reasons.then(|| reasoning(&sent));
            let done = item(&sent, wants_tool);
            let events = response_events(reasoning.as_ref(), &done);
            let output: Vec<Value> = reasoning.into_iter().chain([done]).collect();
            (response("completed", &output), events)
        }
        "/v1/embeddings" => (embedding(&sent), Vec::new()),
        other => panic!("a call of {other}"),
    };
    if sent["stream"] != true {
        return Answer::json(200, whole);
    }
    let gate = (call.behaviour == Behaviour::Leaves).then(|| &gates[number]);
    Answer::stream(script(&events, call.behaviour, gate))
}

/// The number of the call that a request belongs to.
pub fn number_of(request: &Recorded) -> usize {
    let text = String::from_utf8_lossy(&request.body);
    let (_, behind) = text.split_once("call number ").expect("the text of a call");
    let digits = behind.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("a number")
}

/// The events of a stream, to where it breaks off or waits for its caller to leave.
fn script(events: &[String], behaviour: Behaviour, gate: Option<&Arc<Notify>>) -> Script {
    let mut script = Script::new();
    for event in events {
        script = script.send(event.as_str());
        if !event.contains(&format!("\"{}\"", PIECES[0])) {
            continue;
        }
        script = match (behaviour, gate) {
            (Behaviour::BreaksOff, _) => return script.break_off(),
            (_, Some(gate)) => script.wait_for(gate).pause(AFTER_LEAVING),
            _ => script,
        };
    }
    script
}

fn chat_usage() -> Value {
    json!({
        "prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21,
        "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0 },
    })
}

fn chat(wants_tool: bool) -> Value {
    let (message, reason) = if wants_tool {
        let function = json!({ "name": TOOL, "arguments": TOOL_INPUT });
        let calls = json!([{ "id": CALL_ID, "type": "function", "function": function }]);
        (
            json!({ "role": "assistant", "content": null, "tool_calls": calls, "refusal": null }),
            "tool_calls",
        )
    } else {
        (
            json!({ "role": "assistant", "content": PIECES.concat(), "refusal": null, "annotations": [] }),
            "stop",
        )
    };
    json!({
        "id": "chatcmpl-test", "object": "chat.completion", "created": 1_760_000_000, "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": chat_usage(), "service_tier": "default", "system_fingerprint": "fp_test",
    })
}

fn chat_events(sent: &Value, wants_tool: bool) -> Vec<String> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "", "refusal": null })];
    if wants_tool {
        let function = json!({ "name": TOOL, "arguments": "" });
        deltas = vec![
            json!({ "role": "assistant", "content": null, "tool_calls":
                [{ "index": 0, "id": CALL_ID, "type": "function", "function": function }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": TOOL_INPUT } }] }),
        ];
    } else {
        deltas.extend(PIECES.map(|piece| json!({ "content": piece })));
    }
    let wants_usage = sent["stream_options"]["include_usage"] == true;
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1_760_000_000,
            "model": "gpt-4o-mini", "service_tier": "default", "system_fingerprint": "fp_test", "choices": choices,
        });
        if wants_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: &Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason });
        chunk(json!([choice]), Value::Null)
    };
    let mut events: Vec<String> = deltas.iter().map(|delta| choice(delta, Value::Null)).collect();
    let reason = if wants_tool { "tool_calls" } else { "stop" };
    events.push(choice(&json!({}), json!(reason)));
    if wants_usage {
        events.push(chunk(json!([]), chat_usage()));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// The output item of a response.
fn item(sent: &Value, wants_tool: bool) -> Value {
    if wants_tool {
        return tool_call(sent);
    }
    json!({
        "id": "msg_test", "type": "message", "status": "completed", "role": "assistant",
        "content": [text_part(&PIECES.concat())],
    })
}

/// The reasoning item: an id alone, as OpenAI sends it, unless the request asks for the encrypted form.
fn reasoning(sent: &Value) -> Value {
    let mut item = json!({ "id": REASONING_ID, "type": "reasoning", "summary": [] });
    let included = sent["include"].as_array();
    if included.is_some_and(|included| included.contains(&json!("reasoning.encrypted_content"))) {
        item["encrypted_content"] = json!(format!("gAAAAAB{}", "x".repeat(100)));
    }
    item
}

/// Returns the call of a tool that the request offers: a script or the shell of Codex, or other clients' function.
fn tool_call(sent: &Value) -> Value {
    if sent["input"][0]["type"] == "additional_tools" {
        let script =
            format!("const ran = await tools.exec_command({{ cmd: \"{COMMAND}\" }}); text(ran.output);");
        return json!({
            "id": "ctc_test", "type": "custom_tool_call", "status": "completed", "call_id": CALL_ID,
            "namespace": "functions", "name": "exec", "input": script,
        });
    }
    let tools = sent["tools"].as_array();
    let has_shell = tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "exec_command"));
    let (name, arguments) = if has_shell {
        ("exec_command", json!({ "cmd": COMMAND }).to_string())
    } else {
        (TOOL, TOOL_INPUT.to_owned())
    };
    json!({
        "id": "fc_test", "type": "function_call", "status": "completed", "call_id": CALL_ID, "name": name,
        "arguments": arguments,
    })
}

fn response(status: &str, output: &[Value]) -> Value {
    let usage = json!({
        "input_tokens": 9, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 12, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 21,
    });
    let usage = if status == "completed" { usage } else { Value::Null };
    json!({
        "id": "resp_test", "object": "response", "created_at": 1_760_000_000, "status": status, "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null,
        "model": "gpt-4o-mini", "output": output, "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null }, "service_tier": "default", "store": true,
        "temperature": 1.0, "text": { "format": { "type": "text" } }, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": null, "metadata": {},
    })
}

/// The events of a response with the output `done`, after its reasoning, if any.
fn response_events(reasoning: Option<&Value>, done: &Value) -> Vec<String> {
    let id = done["id"].clone();
    let index = usize::from(reasoning.is_some());
    let mut added = done.clone();
    added["status"] = json!("in_progress");
    let part = json!({ "item_id": id, "output_index": index, "content_index": 0 });
    let mut events = vec![
        ("created", json!({ "response": response("in_progress", &[]) })),
        ("in_progress", json!({ "response": response("in_progress", &[]) })),
    ];
    if let Some(reasoning) = reasoning {
        let whole = json!({ "output_index": 0, "item": reasoning });
        events.extend([("output_item.added", whole.clone()), ("output_item.done", whole)]);
    }
    if done["type"] != "message" {
        let is_script = done["type"] == "custom_tool_call";
        let (member, delta_event, done_event) = if is_script {
            (
                "input",
                "custom_tool_call_input.delta",
                "custom_tool_call_input.done",
            )
        } else {
            (
                "arguments",
                "function_call_arguments.delta",
                "function_call_arguments.done",
            )
        };
        added[member] = json!("");
        let place = json!({ "item_id": id, "output_index": index });
        let whole = with(
            &with(&place, "name", done["name"].clone()),
            member,
            done[member].clone(),
        );
        events.extend([
            (
                "output_item.added",
                json!({ "output_index": index, "item": added }),
            ),
            (delta_event, with(&place, "delta", done[member].clone())),
            (done_event, whole),
        ]);
    } else {
        added["content"] = json!([]);
        let part_of = |text: &str| with(&part, "part", text_part(text));
        let whole = PIECES.concat();
        events.extend([
            (
                "output_item.added",
                json!({ "output_index": index, "item": added }),
            ),
            ("content_part.added", part_of("")),
        ]);
        events.extend(PIECES.map(|piece| {
            let delta = with(&with(&part, "delta", json!(piece)), "logprobs", json!([]));
            ("output_text.delta", delta)
        }));
        events.extend([
            (
                "output_text.done",
                with(&with(&part, "text", json!(whole)), "logprobs", json!([])),
            ),
            ("content_part.done", part_of(&whole)),
        ]);
    }
    let output: Vec<Value> = reasoning.into_iter().chain([done]).cloned().collect();
    events.extend([
        ("output_item.done", json!({ "output_index": index, "item": done })),
        ("completed", json!({ "response": response("completed", &output) })),
    ]);
    let named = events.into_iter().enumerate().map(|(number, (name, data))| {
        let name = format!("response.{name}");
        let data = with(
            &with(&data, "type", json!(name)),
            "sequence_number",
            json!(number),
        );
        format!("event: {name}\ndata: {data}\n\n")
    });
    named.collect()
}

/// The object with one member more.
fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

fn embedding(sent: &Value) -> Value {
    let vector = if sent["encoding_format"] == "base64" {
        json!(VECTOR_BASE64)
    } else {
        json!([0.5, -1.5])
    };
    json!({
        "object": "list", "data": [{ "object": "embedding", "index": 0, "embedding": vector }],
        "model": "text-embedding-3-small", "usage": { "prompt_tokens": 6, "total_tokens": 6 },
    })
}
