//! The chunks of a streamed chat completion.

use super::{EventScript, StreamEvent, StreamFault};
use crate::completion::{chat_id, finish_reason, tool_call};
use crate::plan::UsagePlacement;
use crate::request::ToolKind;
use crate::usage::with_member;
use clock::now_ms;
use serde_json::{Value, json};

/// The chunks have no state.
pub(super) struct ChatEvents;

impl super::EndpointEvents for ChatEvents {
    fn head(&mut self, script: &EventScript) -> Vec<StreamEvent> {
        let mut events: Vec<StreamEvent> = (0..script.request.choices)
            .map(|choice| chunk(script, &[of_choice(choice, &role(script, choice), None)], 0))
            .collect();
        if script.plan.place == UsagePlacement::First {
            events.extend(usage_alone(script));
        }
        events
    }

    fn delta(&mut self, script: &EventScript, choice: u64, text: String) -> StreamEvent {
        let bytes = text.len();
        let delta = match script.request.tool().map(|tool| tool.kind) {
            Some(ToolKind::Function) => {
                json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] })
            }
            Some(ToolKind::Custom) => json!({ "tool_calls": [{ "index": 0, "custom": { "input": text } }] }),
            None => json!({ "content": text }),
        };
        chunk(script, &[of_choice(choice, &delta, None)], bytes)
    }

    fn tail(&mut self, script: &EventScript) -> Vec<StreamEvent> {
        let reason = finish_reason(&script.request, script.text.is_cut());
        let mut events: Vec<StreamEvent> = (0..script.request.choices)
            .map(|choice| chunk(script, &[of_choice(choice, &json!({}), Some(reason))], 0))
            .collect();
        let place = script.plan.place;
        let times = match place {
            UsagePlacement::Last | UsagePlacement::AfterDone => usize::from(script.request.include_usage),
            UsagePlacement::Twice => 2,
            UsagePlacement::First | UsagePlacement::Each => 0,
        };
        let usage = (0..times).filter_map(|_| usage_alone(script));
        let done = script.plan.done.then(|| StreamEvent {
            data: "[DONE]".to_owned(),
            ..StreamEvent::default()
        });
        if place == UsagePlacement::AfterDone {
            events.extend(done);
            events.extend(usage);
        } else {
            events.extend(usage);
            events.extend(done);
        }
        events
    }

    fn failure(&mut self, _script: &EventScript, _fault: StreamFault) -> Vec<StreamEvent> {
        let message = "The server had an error while processing your request. Sorry about that!";
        let error =
            json!({ "error": { "message": message, "type": "server_error", "param": null, "code": null } });
        vec![StreamEvent {
            data: error.to_string(),
            ..StreamEvent::default()
        }]
    }
}

/// Builds the first delta of a choice, which begins the message, or the call of a tool in it.
fn role(script: &EventScript, choice: u64) -> Value {
    let Some(tool) = script.request.tool() else {
        return json!({ "role": "assistant", "content": "", "refusal": null });
    };
    let mut call = tool_call(script.number, choice, tool, "");
    call["index"] = json!(0);
    json!({ "role": "assistant", "content": null, "tool_calls": [call], "refusal": null })
}

fn of_choice(index: u64, delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": finish_reason })
}

/// Builds the body of a chunk, without usage.
fn body_of(script: &EventScript, choices: &[Value]) -> Value {
    json!({
        "id": chat_id(script.number),
        "object": "chat.completion.chunk",
        "created": now_ms() / 1000,
        "model": script.request.model,
        "service_tier": script.request.tier_served(),
        "system_fingerprint": "fp_sandbox",
        "choices": choices,
    })
}

/// Builds a chunk. If usage is requested, chunks before the last have `null`, as the provider sends it.
fn chunk(script: &EventScript, choices: &[Value], text_bytes: usize) -> StreamEvent {
    let mut body = body_of(script, choices);
    let usage = script
        .usage()
        .filter(|_| script.plan.place == UsagePlacement::Each);
    let data = match &usage {
        Some(usage) => with_member(&body, "usage", usage),
        None => {
            if script.request.include_usage {
                body["usage"] = Value::Null;
            }
            body.to_string()
        }
    };
    StreamEvent {
        name: None,
        data,
        text_bytes,
        usage,
    }
}

/// Builds the chunk with the usage and no choice.
fn usage_alone(script: &EventScript) -> Option<StreamEvent> {
    let usage = script.usage()?;
    Some(StreamEvent {
        name: None,
        data: with_member(&body_of(script, &[]), "usage", &usage),
        text_bytes: 0,
        usage: Some(usage),
    })
}
