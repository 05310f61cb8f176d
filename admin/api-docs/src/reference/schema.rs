//! Schemas as tables: each field with a description of its type; named types are links.

use super::html::{anchor, escape, inline, table};
use openapi::Json;

/// Levels of a type that are described.
const DEPTH_MAX: usize = 6;

/// Returns the type in words.
pub(super) fn kind(schema: &Json) -> String {
    described(schema, DEPTH_MAX)
}

fn described(schema: &Json, depth: usize) -> String {
    if depth == 0 {
        return "…".to_owned();
    }
    if let Some(name) = name(schema) {
        return format!("<a href=\"#schema-{}\">{}</a>", anchor(name), escape(name));
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema.get(choice) {
            let choices: Vec<String> = choices
                .items()
                .iter()
                .map(|choice| described(choice, depth - 1))
                .collect();
            return choices.join(" or ");
        }
    }
    if let Some(words) = schema.get("enum") {
        let words: Vec<String> = words.items().iter().map(value).collect();
        return words.join(" ");
    }
    if let Some(only) = schema.get("const") {
        return value(only);
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Json::Text(kind)) => vec![kind],
        Some(Json::List(kinds)) => kinds.iter().filter_map(Json::text).collect(),
        _ => vec!["any"],
    };
    let kinds: Vec<String> = kinds
        .iter()
        .map(|kind| match (*kind, schema.get("items")) {
            ("array", Some(items)) => format!("list of {}", described(items, depth - 1)),
            (kind, _) => escape(kind),
        })
        .collect();
    kinds.join(" or ") + &bounds(schema)
}

fn value(value: &Json) -> String {
    format!("<code>{}</code>", escape(&compact(value)))
}

/// Formats the value on one line; a text without its quotes.
pub(super) fn compact(value: &Json) -> String {
    match value {
        Json::Text(text) => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

/// Returns the bounds of a value, in words.
fn bounds(schema: &Json) -> String {
    let get = |name: &str| schema.get(name).map(compact);
    let mut bounds = Vec::new();
    // The sizes of machine integers are not bounds of the API.
    bounds.extend(get("format").filter(|format| !format.starts_with("int") && format != "double"));
    bounds.extend(range(get("minimum"), get("maximum"), ""));
    bounds.extend(get("exclusiveMinimum").map(|low| format!("above {low}")));
    bounds.extend(range(get("minLength"), get("maxLength"), " characters"));
    bounds.extend(range(get("minItems"), get("maxItems"), " items"));
    bounds.extend(get("x-default").map(|default| format!("default {default}")));
    match bounds.is_empty() {
        true => String::new(),
        false => format!(" <span class=\"bound\">{}</span>", escape(&bounds.join(", "))),
    }
}

/// Describes a range by its lowest and highest value.
fn range(low: Option<String>, high: Option<String>, unit: &str) -> Option<String> {
    match (low, high) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}{unit}")),
        (Some(low), None) => Some(format!("at least {low}{unit}")),
        (None, Some(high)) => Some(format!("at most {high}{unit}")),
        (None, None) => None,
    }
}

/// Returns the name of a schema that is defined elsewhere.
fn name(schema: &Json) -> Option<&str> {
    schema
        .get("$ref")
        .and_then(Json::text)
        .and_then(|place| place.rsplit('/').next())
}

/// Returns the fields of an object.
pub(super) fn fields(label: &str, schema: &Json) -> String {
    let required = schema.get("required").map(Json::items).unwrap_or_default();
    let rows: Vec<Vec<String>> = schema
        .fields_of("properties")
        .iter()
        .map(|(name, property)| {
            let is_required = required.iter().any(|required| required.text() == Some(name));
            let says = property
                .get("description")
                .and_then(Json::text)
                .unwrap_or_default();
            vec![
                format!("<code>{}</code>{}", escape(name), optional(is_required)),
                kind(property),
                inline(says),
            ]
        })
        .collect();
    table(label, &["Field", "Type", "Meaning"], &rows)
}

/// Returns the mark for optional fields.
pub(super) fn optional(is_required: bool) -> &'static str {
    match is_required {
        true => "",
        false => " <span class=\"optional\">optional</span>",
    }
}

pub(super) fn section(name: &str, schema: &Json) -> String {
    let says = schema.get("description").and_then(Json::text).unwrap_or_default();
    let fields = fields(name, schema);
    let kind = match fields.is_empty() {
        true => format!("<p>{}</p>", kind(schema)),
        false => fields,
    };
    let pattern = schema.get("pattern").and_then(Json::text);
    let pattern = pattern.map(|pattern| format!("<p>Form: <code>{}</code></p>", escape(pattern)));
    format!(
        "<section class=\"schema\" id=\"schema-{}\"><h3>{}</h3><p>{}</p>{kind}{}</section>",
        anchor(name),
        escape(name),
        inline(says),
        pattern.unwrap_or_default()
    )
}
