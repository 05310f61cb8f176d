//! JSON without ambiguity: a duplicate key in an object is an error, since readers differ in which one they use.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A value whose objects have no duplicate keys.
pub(super) struct Unique(Value);

/// Parses an object without duplicate keys.
///
/// # Errors
/// The fault, without the text itself.
pub(super) fn object(text: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(text) {
        Ok(Unique(Value::Object(object))) => Ok(object),
        Ok(Unique(_)) => Err("it is not a JSON object".to_owned()),
        Err(error) => Err(format!("it is not a JSON object: {error}")),
    }
}

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = items.next_element()? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Unique(value) = entries.next_value()?;
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("it has a duplicate key"));
            }
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_read_as_it_is() {
        let text = r#" {"a":[1,-2,0.5,"x\u0000",null,true,{"b":{}}],"c":18446744073709551615} "#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(object(text.as_bytes()).map(Value::Object), Ok(value));
    }

    #[test]
    fn a_duplicate_key_is_an_error_at_any_depth() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"b":2,"a":1}}"#,
            r#"{"x":[[{"a":1,"a":2}]]}"#,
        ] {
            let error = object(text.as_bytes()).unwrap_err();
            assert!(error.contains("duplicate key"), "{text}: {error}");
        }
        assert!(object(br#"{"x":{"a":1},"y":{"a":1}}"#).is_ok());
    }

    #[test]
    fn anything_but_an_object_is_an_error() {
        for text in [
            "",
            "[]",
            "1",
            "{",
            "{}x",
            "{\"a\":1e400}",
            "{'a':1}",
            "{\"a\":\"\u{1}\"}",
        ] {
            assert!(object(text.as_bytes()).is_err(), "{text}");
        }
        assert!(object(b"{\"a\":\"\xff\"}").is_err());
        let deep = format!("{}{}", "{\"a\":".repeat(500), "}".repeat(500));
        assert!(
            object(deep.as_bytes()).is_err(),
            "deep nesting does not overflow the stack"
        );
        assert_eq!(object(b"{}"), Ok(json!({}).as_object().unwrap().clone()));
    }
}
