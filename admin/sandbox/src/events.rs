//! The events of a streamed answer, generated one by one: a stream of any length takes the memory of one event.

mod chat;
mod responses;

use super::completion;
use super::plan::{EVENT_BYTES, StreamFault, StreamPlan};
use super::request::{SandboxRequest, tokens};
use domain::measured::Endpoint;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct StreamEvent {
    /// Its `event:` line, if the provider sends one.
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
    /// Bytes of the answer's text in it.
    pub(super) text_bytes: usize,
    /// Its usage, as text.
    pub(super) usage: Option<String>,
}

/// The next item of a stream.
#[derive(Debug)]
pub(super) enum StreamItem {
    Event(StreamEvent),
    /// The connection breaks off.
    Cut,
    /// Nothing more is sent.
    Stall,
}

/// The text of one choice, in deltas.
#[derive(Debug)]
enum ChoiceText {
    /// A number of deltas of equal length.
    Counted { deltas: u64, bytes: usize, is_cut: bool },
    /// The words of the usual text.
    Words { words: Vec<String>, is_cut: bool },
}

impl ChoiceText {
    fn new(request: &SandboxRequest, plan: &StreamPlan) -> Self {
        let Some(deltas) = plan.events else {
            let (text, is_cut) = completion::text(request);
            let words = text.split_inclusive(' ').map(str::to_owned).collect();
            return Self::Words { words, is_cut };
        };
        let bytes = plan.event_bytes;
        let most = request.max_tokens.map_or(u64::MAX, |most| {
            most.saturating_mul(4) / u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
        });
        Self::Counted {
            deltas: deltas.min(most),
            bytes,
            is_cut: deltas > most,
        }
    }

    fn deltas(&self) -> u64 {
        match self {
            Self::Counted { deltas, .. } => *deltas,
            Self::Words { words, .. } => u64::try_from(words.len()).unwrap_or(u64::MAX),
        }
    }

    const fn is_cut(&self) -> bool {
        match self {
            Self::Counted { is_cut, .. } | Self::Words { is_cut, .. } => *is_cut,
        }
    }

    /// Returns the delta of this number.
    fn delta(&self, number: u64) -> String {
        match self {
            // Four bytes with a two-byte character, so that boundaries can fall inside it.
            Self::Counted {
                bytes: EVENT_BYTES, ..
            } => "né ".to_owned(),
            Self::Counted { bytes, .. } => "x".repeat(*bytes),
            Self::Words { words, .. } => {
                let word = usize::try_from(number).ok().and_then(|number| words.get(number));
                word.cloned().unwrap_or_default()
            }
        }
    }

    fn whole(&self) -> String {
        (0..self.deltas()).map(|number| self.delta(number)).collect()
    }
}

/// Input of the events of every endpoint.
#[derive(Debug)]
struct EventScript {
    request: SandboxRequest,
    number: u64,
    plan: StreamPlan,
    text: ChoiceText,
    /// Bytes of text sent so far, in all choices.
    sent: usize,
}

impl EventScript {
    /// Returns the usage as text, with the tokens so far.
    fn usage(&self) -> Option<String> {
        let each = self.sent / usize::try_from(self.request.choices).unwrap_or(1).max(1);
        let completion = tokens(each).saturating_mul(self.request.choices);
        let prompt = self.request.prompt_tokens;
        self.plan.usage.text(self.request.endpoint, prompt, completion)
    }
}

/// The events of an endpoint, in three parts.
trait EndpointEvents: Send {
    /// Returns the events before the text.
    fn head(&mut self, script: &EventScript) -> Vec<StreamEvent>;
    /// Returns the events of one delta of one choice.
    fn delta(&mut self, script: &EventScript, choice: u64, text: String) -> StreamEvent;
    /// Returns the events after the text.
    fn tail(&mut self, script: &EventScript) -> Vec<StreamEvent>;
    /// Returns the events that replace the rest after a fault.
    fn failure(&mut self, script: &EventScript, fault: StreamFault) -> Vec<StreamEvent>;
}

/// Position in the sequence of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPosition {
    Head,
    /// At this delta of this choice.
    Text(u64, u64),
    Over,
}

/// The events of an answer, and its faults.
pub(super) struct Events {
    script: EventScript,
    shape: Box<dyn EndpointEvents>,
    position: StreamPosition,
    ready: VecDeque<StreamEvent>,
    /// Number of events returned so far.
    given: u64,
}

impl Events {
    pub(super) fn new(request: SandboxRequest, number: u64, plan: StreamPlan) -> Self {
        let shape: Box<dyn EndpointEvents> = match request.endpoint {
            Endpoint::Responses => Box::new(responses::ResponsesEvents::default()),
            Endpoint::Chat | Endpoint::Embeddings => Box::new(chat::ChatEvents),
        };
        let text = ChoiceText::new(&request, &plan);
        Self {
            script: EventScript {
                request,
                number,
                plan,
                text,
                sent: 0,
            },
            shape,
            position: StreamPosition::Head,
            ready: VecDeque::new(),
            given: 0,
        }
    }

    /// Generates the next events; does nothing once all are generated.
    fn advance(&mut self) {
        match self.position {
            StreamPosition::Head => {
                self.ready.extend(self.shape.head(&self.script));
                self.position = StreamPosition::Text(0, 0);
            }
            StreamPosition::Text(delta, _) if delta >= self.script.text.deltas() => {
                self.ready.extend(self.shape.tail(&self.script));
                self.position = StreamPosition::Over;
            }
            StreamPosition::Text(delta, choice) => {
                let text = self.script.text.delta(delta);
                self.script.sent += text.len();
                self.ready.push_back(self.shape.delta(&self.script, choice, text));
                self.position = match choice + 1 < self.script.request.choices {
                    true => StreamPosition::Text(delta, choice + 1),
                    false => StreamPosition::Text(delta + 1, 0),
                };
            }
            StreamPosition::Over => {}
        }
    }

    /// Returns the fault that is due now.
    fn due(&mut self) -> Option<StreamFault> {
        let (after, fault) = self.script.plan.fault?;
        if self.given < after {
            return None;
        }
        self.script.plan.fault = None;
        self.position = StreamPosition::Over;
        self.ready.clear();
        if matches!(fault, StreamFault::Error | StreamFault::Failed) {
            self.ready.extend(self.shape.failure(&self.script, fault));
        }
        Some(fault)
    }
}

impl Iterator for Events {
    type Item = StreamItem;

    fn next(&mut self) -> Option<StreamItem> {
        match self.due() {
            Some(StreamFault::Cut) => return Some(StreamItem::Cut),
            Some(StreamFault::Stall) => return Some(StreamItem::Stall),
            Some(StreamFault::End | StreamFault::Error | StreamFault::Failed) | None => {}
        }
        while self.ready.is_empty() && self.position != StreamPosition::Over {
            self.advance();
        }
        self.given += 1;
        self.ready.pop_front().map(StreamItem::Event)
    }
}

#[cfg(test)]
mod tests;
