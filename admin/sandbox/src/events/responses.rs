//! The events of a streamed response, with the provider's names.

use super::{EventScript, StreamEvent, StreamFault};
use crate::completion::{ResponseStatus, item, item_id, response, text_part};
use crate::plan::UsagePlacement;
use crate::request::ToolKind;
use crate::usage::with_member;
use serde_json::{Value, json};

/// Sequence number of the next event.
#[derive(Default)]
pub(super) struct ResponsesEvents {
    sequence: u64,
}

impl super::EndpointEvents for ResponsesEvents {
    fn head(&mut self, script: &EventScript) -> Vec<StreamEvent> {
        let started = item(&script.request, script.number, "", ResponseStatus::InProgress);
        let mut events = vec![
            self.of_response(script, "response.created", ResponseStatus::InProgress),
            self.of_response(script, "response.in_progress", ResponseStatus::InProgress),
            self.event(
                "response.output_item.added",
                json!({ "output_index": 0, "item": started }),
            ),
        ];
        if script.request.tool().is_none() {
            let part = with(of_item(script), "part", text_part(""));
            events.push(self.event("response.content_part.added", part));
        }
        events
    }

    fn delta(&mut self, script: &EventScript, _choice: u64, text: String) -> StreamEvent {
        let text_bytes = text.len();
        let delta = with(of_item(script), "delta", text.into());
        let delta = with(delta, "obfuscation", "".into());
        let event = match script.request.tool().map(|tool| tool.kind) {
            None => self.event("response.output_text.delta", with(delta, "logprobs", json!([]))),
            Some(ToolKind::Function) => self.event("response.function_call_arguments.delta", delta),
            Some(ToolKind::Custom) => self.event("response.custom_tool_call_input.delta", delta),
        };
        StreamEvent { text_bytes, ..event }
    }

    fn tail(&mut self, script: &EventScript) -> Vec<StreamEvent> {
        let status = ResponseStatus::from_cut(script.text.is_cut());
        let text = script.text.whole();
        let item = item(&script.request, script.number, &text, status);
        let mut events = self.of_whole_text(script, text);
        events.push(self.event(
            "response.output_item.done",
            json!({ "output_index": 0, "item": item }),
        ));
        if script.plan.done {
            let name = match status {
                ResponseStatus::Incomplete => "response.incomplete",
                _ => "response.completed",
            };
            let times = if script.plan.place == UsagePlacement::Twice {
                2
            } else {
                1
            };
            events.extend((0..times).map(|_| self.of_response(script, name, status)));
        }
        events
    }

    fn failure(&mut self, script: &EventScript, fault: StreamFault) -> Vec<StreamEvent> {
        if fault == StreamFault::Failed {
            return vec![self.of_response(script, "response.failed", ResponseStatus::Failed)];
        }
        let error =
            json!({ "code": "server_error", "message": "The sandbox was asked to fail.", "param": null });
        vec![self.event("error", error)]
    }
}

impl ResponsesEvents {
    /// Builds the events that repeat the whole text, or the whole input of the called tool.
    fn of_whole_text(&mut self, script: &EventScript, text: String) -> Vec<StreamEvent> {
        let about = of_item(script);
        let Some(tool) = script.request.tool() else {
            let part = text_part(&text);
            return vec![
                self.event(
                    "response.output_text.done",
                    with(about.clone(), "text", text.into()),
                ),
                self.event("response.content_part.done", with(about, "part", part)),
            ];
        };
        let (name, input) = match tool.kind {
            ToolKind::Function => ("response.function_call_arguments.done", "arguments"),
            ToolKind::Custom => ("response.custom_tool_call_input.done", "input"),
        };
        vec![self.event(name, with(about, input, text.into()))]
    }

    /// Builds an event with these members, its type and its number.
    fn event(&mut self, name: &'static str, members: Value) -> StreamEvent {
        let numbered = with(members, "type", name.into());
        let numbered = with(numbered, "sequence_number", self.sequence.into());
        self.sequence += 1;
        StreamEvent {
            name: Some(name),
            data: numbered.to_string(),
            ..StreamEvent::default()
        }
    }

    /// Builds an event about the whole response; once that is complete, it has the usage.
    fn of_response(
        &mut self,
        script: &EventScript,
        name: &'static str,
        status: ResponseStatus,
    ) -> StreamEvent {
        let text = match status {
            ResponseStatus::Completed | ResponseStatus::Incomplete => script.text.whole(),
            ResponseStatus::InProgress | ResponseStatus::Failed => String::new(),
        };
        let is_over = status != ResponseStatus::InProgress;
        let usage = script
            .usage()
            .filter(|_| is_over || matches!(script.plan.place, UsagePlacement::First | UsagePlacement::Each));
        let body = response(&script.request, script.number, &text, status);
        let body = with_member(&body, "usage", usage.as_deref().unwrap_or("null"));
        let head = json!({ "type": name, "sequence_number": self.sequence });
        self.sequence += 1;
        StreamEvent {
            name: Some(name),
            data: with_member(&head, "response", &body),
            text_bytes: 0,
            usage,
        }
    }
}

/// Returns the members that name the item of an event, and of a message its part.
fn of_item(script: &EventScript) -> Value {
    let of_item = json!({ "output_index": 0, "item_id": item_id(&script.request, script.number) });
    match script.request.tool() {
        None => with(of_item, "content_index", 0.into()),
        Some(_) => of_item,
    }
}

/// Returns the object with one more member.
fn with(mut object: Value, name: &str, member: Value) -> Value {
    object[name] = member;
    object
}
