//! A value that fits a simple JSON schema. Keywords that only some schemas have, such as `pattern`, are not followed.

use serde_json::{Map, Value, json};

/// Maximum nesting of a value.
const DEPTH_MAX: usize = 16;
/// Maximum number of values in one another.
const VALUES_MAX: usize = 1000;
/// Maximum number of items that `minItems`, and of characters that `minLength` requires.
const LENGTH_MAX: u64 = 100;

/// Builds a value for a schema. The same schema always has the same value.
pub(super) fn of_schema(schema: &Value) -> Value {
    let mut builder = Builder {
        root: schema,
        left: VALUES_MAX,
    };
    builder.value(schema, 0)
}

/// Builds the parts of a value.
struct Builder<'a> {
    /// The schema that references begin at.
    root: &'a Value,
    /// Number of values that can still be built.
    left: usize,
}

impl<'a> Builder<'a> {
    fn value(&mut self, schema: &'a Value, depth: usize) -> Value {
        if depth > DEPTH_MAX || self.left == 0 {
            return Value::Null;
        }
        self.left -= 1;
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(value) = schema.pointer("/enum/0") {
            return value.clone();
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let found = reference
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path));
            return found.map_or(Value::Null, |found| self.value(found, depth + 1));
        }
        for choice in ["/anyOf/0", "/oneOf/0", "/allOf/0"] {
            if let Some(first) = schema.pointer(choice) {
                return self.value(first, depth + 1);
            }
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => string(schema).into(),
            "integer" | "number" => number(schema),
            "boolean" => true.into(),
            _ => Value::Null,
        }
    }

    /// The required properties; all of them where none is said to be required.
    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut object = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        for (name, property) in properties.into_iter().flatten() {
            if required.is_none_or(|required| required.iter().any(|one| one == name)) {
                object.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        object.into()
    }

    /// As few items as allowed, but one where one is.
    fn array(&mut self, schema: &'a Value, depth: usize) -> Value {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let most = if depth < DEPTH_MAX { LENGTH_MAX } else { 0 };
        let count = bound("minItems").unwrap_or(1);
        let count = count.min(bound("maxItems").unwrap_or(most)).min(most);
        let item = schema.get("items").unwrap_or(&Value::Null);
        (0..count).map(|_| self.value(item, depth + 1)).collect()
    }
}

/// Returns the type of a schema: the first that is not `null` where there are several.
fn kind(schema: &Value) -> &str {
    let of = schema.get("type");
    let several = of.and_then(Value::as_array).into_iter().flatten();
    let mut names = of.into_iter().chain(several).filter_map(Value::as_str);
    let named = names.find(|name| *name != "null");
    named.unwrap_or(match schema.get("properties") {
        Some(_) => "object",
        None => "null",
    })
}

fn string(schema: &Value) -> String {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T00:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "00:00:00Z",
        Some("email") => "sandbox@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "sandbox",
    };
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let least = usize::try_from(bound("minLength").unwrap_or(0).min(LENGTH_MAX)).unwrap_or(0);
    let most = bound("maxLength").map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let filled = text.chars().chain(std::iter::repeat('x'));
    filled.take(text.chars().count().max(least).min(most)).collect()
}

/// A whole number within the bounds, if there is one.
fn number(schema: &Value) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least.saturating_add(1)));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most.saturating_sub(1)));
    let number = least
        .map_or(1, |least| least.max(1))
        .min(most.unwrap_or(i64::MAX));
    json!(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_their_schemas() {
        for (schema, value) in [
            (json!({ "type": "string", "minLength": 9 }), json!("sandboxxx")),
            (json!({ "type": "string", "maxLength": 3 }), json!("san")),
            (json!({ "type": ["null", "integer"], "minimum": 5 }), json!(5)),
            (json!({ "type": "number", "exclusiveMaximum": -2 }), json!(-3)),
            (json!({ "enum": ["b", "a"] }), json!("b")),
            (json!({ "const": { "x": 1 } }), json!({ "x": 1 })),
            (
                json!({ "anyOf": [{ "type": "boolean" }, { "type": "null" }] }),
                json!(true),
            ),
            (
                json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2 }),
                json!([1, 1]),
            ),
            (
                json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 0 }),
                json!([]),
            ),
            (json!({ "type": "object" }), json!({})),
            (json!(true), Value::Null),
        ] {
            assert_eq!(of_schema(&schema), value, "{schema}");
        }
        let schema = json!({
            "type": "object", "required": ["to", "at"], "additionalProperties": false,
            "properties": { "to": { "$ref": "#/$defs/place" }, "at": { "type": "string", "format": "date" },
                "note": { "type": "string" } },
            "$defs": { "place": { "type": "object", "properties": { "city": { "type": "string" } } } },
        });
        assert_eq!(
            of_schema(&schema),
            json!({ "to": { "city": "sandbox" }, "at": "2026-01-31" })
        );
    }

    #[test]
    fn values_are_bounded() {
        let own = json!({ "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" } } });
        assert!(of_schema(&own).to_string().len() < VALUES_MAX * 20);
        let long = json!({ "type": "array", "items": { "type": "string", "minLength": 1_000_000_000 },
            "minItems": 1_000_000_000 });
        let built = of_schema(&long);
        assert_eq!(built.as_array().unwrap().len(), 100);
        assert_eq!(built[0].as_str().unwrap().len(), 100);
    }
}
