//! The events of a streamed response, with the provider's names.

use super::{Event, Fault, Script};
use crate::completion::{Status, message, message_id, response, text_part};
use crate::plan::UsagePlacement;
use crate::usage::with_member;
use serde_json::{Value, json};

/// Sequence number of the next event.
#[derive(Default)]
pub(super) struct Shape {
    sequence: u64,
}

impl super::Shape for Shape {
    fn head(&mut self, script: &Script) -> Vec<Event> {
        let started = message(script.number, "", Status::InProgress);
        let part = text_part("");
        let of_item = json!({ "output_index": 0, "content_index": 0, "item_id": message_id(script.number) });
        vec![
            self.of_response(script, "response.created", Status::InProgress),
            self.of_response(script, "response.in_progress", Status::InProgress),
            self.event(
                "response.output_item.added",
                json!({ "output_index": 0, "item": started }),
            ),
            self.event("response.content_part.added", with(of_item, "part", part)),
        ]
    }

    fn delta(&mut self, script: &Script, _choice: u64, text: String) -> Event {
        let text_bytes = text.len();
        let of_item = json!({ "output_index": 0, "content_index": 0, "item_id": message_id(script.number),
            "logprobs": [], "obfuscation": "" });
        Event {
            text_bytes,
            ..self.event("response.output_text.delta", with(of_item, "delta", text.into()))
        }
    }

    fn tail(&mut self, script: &Script) -> Vec<Event> {
        let status = Status::from_cut(script.text.is_cut());
        let text = script.text.whole();
        let of_item =
            || json!({ "output_index": 0, "content_index": 0, "item_id": message_id(script.number) });
        let item = message(script.number, &text, status);
        let part = text_part(&text);
        let mut events = vec![
            self.event("response.output_text.done", with(of_item(), "text", text.into())),
            self.event("response.content_part.done", with(of_item(), "part", part)),
            self.event(
                "response.output_item.done",
                json!({ "output_index": 0, "item": item }),
            ),
        ];
        if script.plan.done {
            let name = match status {
                Status::Incomplete => "response.incomplete",
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

    fn failure(&mut self, script: &Script, fault: Fault) -> Vec<Event> {
        if fault == Fault::Failed {
            return vec![self.of_response(script, "response.failed", Status::Failed)];
        }
        let error =
            json!({ "code": "server_error", "message": "The sandbox was asked to fail.", "param": null });
        vec![self.event("error", error)]
    }
}

impl Shape {
    /// Builds an event with these members, its type and its number.
    fn event(&mut self, name: &'static str, members: Value) -> Event {
        let numbered = with(members, "type", name.into());
        let numbered = with(numbered, "sequence_number", self.sequence.into());
        self.sequence += 1;
        Event {
            name: Some(name),
            data: numbered.to_string(),
            ..Event::default()
        }
    }

    /// Builds an event about the whole response; once that is complete, it has the usage.
    fn of_response(&mut self, script: &Script, name: &'static str, status: Status) -> Event {
        let text = match status {
            Status::Completed | Status::Incomplete => script.text.whole(),
            Status::InProgress | Status::Failed => String::new(),
        };
        let is_over = status != Status::InProgress;
        let usage = script
            .usage()
            .filter(|_| is_over || matches!(script.plan.place, UsagePlacement::First | UsagePlacement::Each));
        let body = response(&script.request, script.number, &text, status);
        let body = with_member(&body, "usage", usage.as_deref().unwrap_or("null"));
        let head = json!({ "type": name, "sequence_number": self.sequence });
        self.sequence += 1;
        Event {
            name: Some(name),
            data: with_member(&head, "response", &body),
            text_bytes: 0,
            usage,
        }
    }
}

/// Returns the object with one more member.
fn with(mut object: Value, name: &str, member: Value) -> Value {
    object[name] = member;
    object
}
