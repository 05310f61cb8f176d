//! JSON whose objects preserve the order of their fields, since people also read the documents.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The fields of an object, in order.
pub type JsonFields = IndexMap<String, Json>;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Json {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer or a decimal.
    Number(serde_json::Number),
    /// Written with JSON's escapes.
    Text(String),
    /// An array, in order.
    List(Vec<Json>),
    /// An object with its fields in order.
    Object(JsonFields),
}

/// Returns an object with these fields.
pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
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
        match self {
            Self::Object(fields) => fields.get(name),
            _ => None,
        }
    }

    /// Returns the field of an object, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(fields) => fields.get_mut(name),
            _ => None,
        }
    }

    /// Returns the fields of an object; none for any other value.
    pub fn fields(&self) -> &JsonFields {
        static NONE: LazyLock<JsonFields> = LazyLock::new(JsonFields::new);
        match self {
            Self::Object(fields) => fields,
            _ => &NONE,
        }
    }

    /// Returns the fields of the object in a field; none if there is no such object.
    pub fn fields_of(&self, name: &str) -> &JsonFields {
        self.get(name).unwrap_or(&Self::Null).fields()
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
        if let Self::Object(fields) = self {
            fields.insert(name.to_owned(), value.into());
        }
    }

    /// Removes a field of an object and returns it.
    pub fn take(&mut self, name: &str) -> Option<Self> {
        match self {
            Self::Object(fields) => fields.shift_remove(name),
            _ => None,
        }
    }

    /// Removes a field of an object and returns it; an empty object if it is absent.
    pub fn take_or_empty(&mut self, name: &str) -> Self {
        self.get_mut(name).map_or(object([]), std::mem::take)
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

impl FromIterator<(String, Json)> for Json {
    fn from_iter<T: IntoIterator<Item = (String, Self)>>(fields: T) -> Self {
        Self::Object(fields.into_iter().collect())
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
