//! The schemas of a document, each once under its name. Schemas derived from structs are made exact: answers have only
//! the documented fields, and nullable fields are required.

mod flat;

use super::json::{Json, object};
use std::collections::BTreeMap;
use utoipa::{PartialSchema, ToSchema};

/// Location of schemas in a document.
const PLACE: &str = "#/components/schemas/";

/// Marks a property that examples leave out.
pub const NOT_IN_EXAMPLES: &str = "x-not-in-examples";
/// Marks a nullable field that may also be absent.
const LEFT_OUT: &str = "x-can-be-left-out";

/// The named schemas.
#[derive(Debug, Default)]
pub struct Components {
    schemas: BTreeMap<String, Json>,
    clashes: Vec<String>,
}

impl Components {
    /// Returns a reference to the schema of `T`, and adds that schema with everything that it refers to.
    pub fn schema<T: ToSchema>(&mut self) -> Json {
        let mut found = Vec::new();
        T::schemas(&mut found);
        found.push((T::name().into_owned(), <T as PartialSchema>::schema()));
        let found: BTreeMap<String, Json> = found
            .iter()
            .map(|(name, schema)| (name.clone(), exact(Json::from_serialize(schema))))
            .collect();
        let flattened: Vec<&str> = found.values().flat_map(flat::parts).collect();
        for (name, schema) in &found {
            if !flattened.contains(&name.as_str()) {
                self.add(name, flat::merged(schema, &found));
            }
        }
        reference(&T::name())
    }

    /// Returns a reference to this schema under this name.
    pub fn named(&mut self, name: &str, schema: Json) -> Json {
        self.add(name, schema);
        reference(name)
    }

    fn add(&mut self, name: &str, schema: Json) {
        match self.schemas.get(name) {
            Some(known) if *known != schema => self.clashes.push(name.to_owned()),
            Some(_) => {}
            None => drop(self.schemas.insert(name.to_owned(), schema)),
        }
    }

    /// Returns the schema that a reference names; any other schema is returned unchanged.
    pub(crate) fn dereference<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let name = schema.get("$ref").and_then(Json::text);
        let named = name.and_then(|name| self.schemas.get(name.strip_prefix(PLACE)?));
        named.unwrap_or(schema)
    }

    /// Returns the names with two different schemas. There must be none.
    pub fn clashes(&self) -> &[String] {
        &self.clashes
    }

    /// Returns all schemas by name.
    pub fn into_json(self) -> Json {
        Json::Object(
            self.schemas
                .into_iter()
                .map(|(name, schema)| (name, unmarked(schema)))
                .collect(),
        )
    }
}

/// Returns the schema without the marks that only the making of documents reads.
fn unmarked(schema: Json) -> Json {
    match schema {
        Json::List(items) => Json::List(items.into_iter().map(unmarked).collect()),
        Json::Object(fields) => {
            let kept = fields
                .into_iter()
                .filter(|(name, _)| ![LEFT_OUT, NOT_IN_EXAMPLES].contains(&name.as_str()));
            Json::Object(kept.map(|(name, value)| (name, unmarked(value))).collect())
        }
        other => other,
    }
}

/// Removes references to internal documents from a doc comment: ` (decision D5)`, ` (specification §4.1)`.
pub fn public(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    while let Some(at) = [" (decision", " (specification"]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min()
    {
        kept.push_str(&rest[..at]);
        rest = rest[at..].split_once(')').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// Returns a reference to the schema of this name.
pub fn reference(name: &str) -> Json {
    object([("$ref", format!("{PLACE}{name}").into())])
}

/// Returns the schema with `null` as an alternative.
pub fn or_null(mut schema: Json) -> Json {
    match schema.get("type").cloned() {
        Some(Json::Text(kind)) if schema.get("enum").is_none() => {
            schema.set("type", vec![kind.as_str(), "null"]);
            schema
        }
        _ => object([(
            "anyOf",
            Json::List(vec![schema, object([("type", "null".into())])]),
        )]),
    }
}

/// Returns whether `null` is allowed.
fn is_nullable(schema: &Json) -> bool {
    let is_null = |schema: &Json| schema.get("type").and_then(Json::text) == Some("null");
    let listed = schema.get("type").map(Json::items).unwrap_or_default();
    let choices = ["oneOf", "anyOf"].map(|word| schema.get(word).map(Json::items).unwrap_or_default());
    listed.iter().any(|kind| kind.text() == Some("null")) || choices.concat().iter().any(is_null)
}

/// The schema as the struct is written: every field is required that is written as `null` when it is empty. (The
/// derived one leaves those out of `required`; a field that can be left out altogether is never null.) It stays open,
/// since a later version may have more fields.
fn exact(schema: Json) -> Json {
    match schema {
        Json::List(items) => Json::List(items.into_iter().map(exact).collect()),
        Json::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| match (name.as_str(), value) {
                    ("example", value) => ("examples".to_owned(), Json::List(vec![value])),
                    ("description", Json::Text(text)) => (name, public(&text).into()),
                    ("examples" | "enum" | "x-default" | "const", value) => (name, value),
                    // Open objects do not exclude each other.
                    ("oneOf", Json::List(choices)) if choices.iter().all(is_object) => {
                        ("anyOf".to_owned(), exact(Json::List(choices)))
                    }
                    (_, value) => (name, exact(value)),
                });
            described(with_nulls_required(Json::Object(fields.collect())))
        }
        other => other,
    }
}

/// Moves the description of a nullable field out of its alternatives.
fn described(mut schema: Json) -> Json {
    let says = match schema.get_mut("oneOf") {
        Some(Json::List(choices)) => choices.iter_mut().find_map(|choice| match choice.get("$ref") {
            Some(_) => choice.take("description"),
            None => None,
        }),
        _ => None,
    };
    match says {
        Some(says) => schema.with("description", says),
        None => schema,
    }
}

fn is_object(schema: &Json) -> bool {
    schema.get("type").and_then(Json::text) == Some("object")
}

fn with_nulls_required(schema: Json) -> Json {
    let Some(Json::Object(properties)) = schema.get("properties") else {
        return schema;
    };
    let given = schema.get("required").map(Json::items).unwrap_or_default();
    let is_given = |name: &str| given.iter().any(|given| given.text() == Some(name));
    let required: Vec<&str> = properties
        .iter()
        .filter(|(name, property)| {
            is_given(name) || (is_nullable(property) && property.get(LEFT_OUT).is_none())
        })
        .map(|(name, _)| name.as_str())
        .collect();
    let required = Json::from(required);
    schema.with("required", required)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(ToSchema)]
    #[schema(as = Leaf, rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is used")]
    struct A<'a> {
        /// Always present.
        first_field: &'a str,
        or_null: Option<u64>,
        #[schema(value_type = Option<super::super::types::Usd>)]
        amount: Option<u64>,
        #[schema(required = false, example = 5)]
        left_out: u64,
    }

    #[test]
    fn schemas_are_exact() {
        let mut components = Components::default();
        let reference = components.schema::<A<'static>>();
        let schema = components.dereference(&reference);
        let json = serde_json::to_value(schema).unwrap();
        assert_eq!(
            json["required"],
            serde_json::json!(["firstField", "orNull", "amount"])
        );
        assert!(json.get("additionalProperties").is_none(), "{json}");
        assert_eq!(json["properties"]["leftOut"]["examples"], serde_json::json!([5]));
        assert!(components.clashes().is_empty());
        assert_eq!(
            public("One (decision D5). Two (specification §4.1, decision D6)."),
            "One. Two."
        );
        components.named("Leaf", object([("type", "string".into())]));
        assert_eq!(components.clashes(), ["Leaf"]);
    }
}
