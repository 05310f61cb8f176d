//! The document of a report, for scripts.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// A JSON object whose members keep the text of their values. A [`Value`] would hold an amount as a floating-point
/// number, which has not all its digits (decision D4).
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct JsonObject(BTreeMap<String, Box<RawValue>>);

/// Makes a [`JsonObject`]: `document! { "amount": amount, "currency": "USD" }`.
macro_rules! document {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::document::JsonObject::default()$(.with($name, &$value))*
    };
}
pub(super) use document;

impl JsonObject {
    /// Adds a member. One that cannot be serialized is null; no type of a report is like that.
    pub(super) fn with(mut self, name: &str, value: &impl Serialize) -> Self {
        let text = to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned());
        self.0.insert(name.to_owned(), text);
        self
    }
}

/// Takes the members of an object, which has no amounts.
impl From<Value> for JsonObject {
    fn from(value: Value) -> Self {
        let Value::Object(members) = value else {
            return Self::default().with("value", &value);
        };
        let members = members.iter();
        members.fold(Self::default(), |document, (name, value)| {
            document.with(name, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::{Nanos, NanosSum};
    use serde_json::json;

    #[test]
    fn an_amount_has_every_digit() {
        let amount = Nanos::from_stored(9_000_000_123_456_789);
        let mut sum = NanosSum::default();
        (0..3).for_each(|_| sum += amount);
        let document = document! { "sum": sum, "amount": amount, "ids": ["a"], "none": None::<u8> };
        assert_eq!(
            serde_json::to_string(&document.with("parts", &[&document! { "amount": amount }])).unwrap(),
            r#"{"amount":9000000.123456789,"ids":["a"],"none":null,"parts":[{"amount":9000000.123456789}],"sum":27000000.370370367}"#
        );
    }

    #[test]
    fn an_object_keeps_its_members() {
        let document = JsonObject::from(json!({ "b": [1, { "c": null }], "a": "x" }));
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(text, r#"{"a":"x","b":[1,{"c":null}]}"#);
    }
}
