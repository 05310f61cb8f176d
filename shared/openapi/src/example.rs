//! Derives an example of a schema from the examples of its parts, so that it always matches the schema.

use super::components::{Components, NOT_IN_EXAMPLES};
use super::json::{Json, JsonFields};

/// Maximum depth of references between schemas.
const DEPTH_MAX: usize = 16;

/// Returns an example value of the schema.
///
/// # Errors
/// The path of a part that has no derivable example: it needs an explicit `example`.
pub fn from_schema(components: &Components, schema: &Json) -> Result<Json, String> {
    part(components, schema, "", DEPTH_MAX)
}

fn part(components: &Components, schema: &Json, path: &str, depth: usize) -> Result<Json, String> {
    let missing = || Err(format!("{path} needs an example"));
    if depth == 0 {
        return missing();
    }
    if let Some(example) = stated(schema) {
        return Ok(example.clone());
    }
    let schema = components.dereference(schema);
    if let Some(example) = stated(schema) {
        return Ok(example.clone());
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        let choices = schema.get(choice).map(Json::items).unwrap_or_default();
        let real = choices.iter().find(|choice| kind(choice) != Some("null"));
        if let Some(first) = real {
            return part(components, first, path, depth - 1);
        }
    }
    match kind(schema) {
        Some("object") => {
            let properties = schema.fields_of("properties").iter();
            let fields: Result<JsonFields, String> = properties
                .filter(|(_, property)| property.get(NOT_IN_EXAMPLES).is_none())
                .map(|(name, property)| {
                    let example = part(components, property, &format!("{path}/{name}"), depth - 1)?;
                    Ok((name.clone(), example))
                })
                .collect();
            Ok(Json::Object(fields?))
        }
        Some("array") => match schema.get("items") {
            None => missing(),
            Some(items) => Ok(Json::List(vec![part(
                components,
                items,
                &format!("{path}/0"),
                depth - 1,
            )?])),
        },
        Some("boolean") => Ok(true.into()),
        Some("null") => Ok(Json::Null),
        _ => missing(),
    }
}

/// Returns the example in the schema itself: its own, its default, its only value or the first of its words.
fn stated(schema: &Json) -> Option<&Json> {
    let first = |word: &str| schema.get(word)?.items().first();
    first("examples")
        .or_else(|| schema.get("const"))
        .or_else(|| first("enum"))
        .or_else(|| schema.get("x-default"))
}

/// Returns the type, `null` aside.
fn kind(schema: &Json) -> Option<&str> {
    let kind = schema.get("type")?;
    let listed = kind
        .items()
        .iter()
        .filter_map(Json::text)
        .find(|kind| *kind != "null");
    kind.text().or(listed)
}
