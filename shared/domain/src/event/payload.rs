//! The fields of an event, selected from its entry's data: only listed fields are sent.

use super::{Event, EventName};
use crate::entry::Entry;
use serde_json::{Map, Value};

/// The fields so far.
pub(super) struct Payload<'a> {
    entry: &'a Entry,
    data: Map<String, Value>,
}

impl<'a> Payload<'a> {
    /// Creates the fields that every event has.
    pub(super) fn new(entry: &'a Entry) -> Self {
        let mut data = Map::new();
        data.insert("agentId".to_owned(), entry.agent.clone().into());
        data.insert("auditSeq".to_owned(), entry.seq.into());
        Self { entry, data }
    }

    /// Copies a field of the entry; `null` if the entry does not have it.
    pub(super) fn copy(self, name: &str) -> Self {
        self.renamed(name, name)
    }

    /// Copies the entry's field `theirs` as `name`.
    pub(super) fn renamed(self, name: &str, theirs: &str) -> Self {
        let value = self.entry.data.get(theirs).cloned();
        self.value(name, value)
    }

    /// Copies an amount, both as a number of USD and exactly.
    pub(super) fn amount(self, usd: &str, nanos: &str) -> Self {
        self.copy(usd).copy(nanos)
    }

    /// Copies a number that the script wrote as a word.
    pub(super) fn count(self, name: &str) -> Self {
        self.count_as(name, name)
    }

    /// Like [`count`](Self::count), under another name.
    pub(super) fn count_as(self, name: &str, theirs: &str) -> Self {
        let word = self.entry.data.get(theirs).and_then(Value::as_str);
        let number: Option<u64> = word.and_then(|word| word.parse().ok());
        self.value(name, number)
    }

    /// Adds a field that is not in the entry.
    pub(super) fn value(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.to_owned(), whole(value.into()));
        self
    }

    pub(super) fn event(self, name: EventName) -> Event {
        Event {
            name,
            agent: self.entry.agent.clone(),
            data: self.data,
        }
    }
}

/// Returns a number without a fraction in its shortest form, as hashing writes it. So an entry causes the same event
/// whether it is read from its line or from its sealed form.
fn whole(value: Value) -> Value {
    match value.as_f64().map(|number| number.to_string().parse::<u64>()) {
        Some(Ok(number)) => number.into(),
        _ => value,
    }
}

impl Entry {
    /// Returns whether a field of the data equals this text.
    pub(super) fn says(&self, name: &str, text: &str) -> bool {
        self.data.get(name).and_then(Value::as_str) == Some(text)
    }
}
