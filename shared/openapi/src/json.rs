//! JSON whose objects preserve the order of their fields, since people also read the documents.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object with its fields in order.
    Object(Vec<(String, Json)>),
}

/// Returns an object with these fields.
pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

impl Json {
    /// Converts a value. A value that cannot be written as JSON becomes `null`.
    pub fn from_serialize(value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(Self::Null)
    }

    /// Parses JSON.
    ///
    /// # Errors
    /// The parser's error.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the field of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.fields()
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value)
    }

    /// Returns the field of an object, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(fields) => fields
                .iter_mut()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the fields of an object; an empty slice for any other value.
    pub fn fields(&self) -> &[(String, Self)] {
        match self {
            Self::Object(fields) => fields,
            _ => &[],
        }
    }

    /// Returns the items of an array; an empty slice for any other value.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the text of a string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Sets a field of an object, in its place or at the end.
    pub fn set(&mut self, name: &str, value: impl Into<Self>) {
        let value = value.into();
        if let Some(field) = self.get_mut(name) {
            *field = value;
        } else if let Self::Object(fields) = self {
            fields.push((name.to_owned(), value));
        }
    }

    /// Removes a field of an object and returns it.
    pub fn take(&mut self, name: &str) -> Option<Self> {
        match self {
            Self::Object(fields) => {
                let at = fields.iter().position(|(field, _)| field == name)?;
                Some(fields.remove(at).1)
            }
            _ => None,
        }
    }

    /// Removes a field of an object and returns it; an empty object if it is absent.
    pub fn take_or_empty(&mut self, name: &str) -> Self {
        self.get_mut(name)
            .map_or(Self::Object(Vec::new()), std::mem::take)
    }

    /// Returns the object with one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Self>) -> Self {
        self.set(name, value);
        self
    }

    /// Returns the schema with an example.
    #[must_use]
    pub fn example(self, example: impl Into<Self>) -> Self {
        self.with("examples", Self::List(vec![example.into()]))
    }

    /// Formats with indentation and a final newline, the form of stored documents.
    pub fn pretty(&self) -> String {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        text + "\n"
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Json {
    fn from(number: usize) -> Self {
        Self::Number(number.into())
    }
}

impl<T: Into<Self>> From<Vec<T>> for Json {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => items.serialize(serializer),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(serde_json::Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_stays() {
        let text = r#"{"z":[1,-2,0.5,null],"a":{"y":true,"b":"é"}}"#;
        let mut json = Json::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        json.set("z", "first");
        json.set("m", vec!["last"]);
        assert_eq!(
            serde_json::to_string(&json).unwrap(),
            r#"{"z":"first","a":{"y":true,"b":"é"},"m":["last"]}"#
        );
        assert_eq!(json.take("a").unwrap().get("b").unwrap().text(), Some("é"));
        assert_eq!(
            json.pretty(),
            "{\n  \"z\": \"first\",\n  \"m\": [\n    \"last\"\n  ]\n}\n"
        );
    }
}
