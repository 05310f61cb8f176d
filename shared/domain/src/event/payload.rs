//! The fields of an event, selected from its entry's data: a field that is not named is not sent.

use super::{Event, EventName};
use crate::entry::Entry;
use serde_json::{Map, Value};

/// The fields so far.
pub(super) struct Payload<'a> {
    entry: &'a Entry,
    data: Map<String, Value>,
}

impl<'a> Payload<'a> {
    /// Every event begins with these.
    pub(super) fn new(entry: &'a Entry) -> Self {
        let mut data = Map::new();
        data.insert("agentId".to_owned(), entry.agent.clone().into());
        data.insert("auditSeq".to_owned(), entry.seq.into());
        Self { entry, data }
    }

    /// The field of this name as the entry has it, `null` when it has none.
    pub(super) fn copy(self, name: &str) -> Self {
        self.renamed(name, name)
    }

    /// The entry's field `theirs`.
    pub(super) fn renamed(self, name: &str, theirs: &str) -> Self {
        let value = self.entry.data.get(theirs).cloned();
        self.value(name, value)
    }

    /// An amount: a number of USD, and exactly.
    pub(super) fn amount(self, usd: &str, nanos: &str) -> Self {
        self.copy(usd).copy(nanos)
    }

    /// A number that the script wrote as a word.
    pub(super) fn count(self, name: &str) -> Self {
        self.count_as(name, name)
    }

    /// The same under another name.
    pub(super) fn count_as(self, name: &str, theirs: &str) -> Self {
        let word = self.entry.data.get(theirs).and_then(Value::as_str);
        let number: Option<u64> = word.and_then(|word| word.parse().ok());
        self.value(name, number)
    }

    /// A field of its own.
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

/// A number without a fraction in its shortest form, as hashing writes it: so an entry makes the same event, whether it
/// comes from its line or from its sealed form.
fn whole(value: Value) -> Value {
    match value.as_f64().map(|number| number.to_string().parse::<u64>()) {
        Some(Ok(number)) => number.into(),
        _ => value,
    }
}

impl Entry {
    /// Whether a field of the data is this text.
    pub(super) fn says(&self, name: &str, text: &str) -> bool {
        self.data.get(name).and_then(Value::as_str) == Some(text)
    }
}
