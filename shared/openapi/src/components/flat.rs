//! Structs with `#[serde(flatten)]` fields: one object with all fields, since closed objects cannot be combined with
//! `allOf`. All fields of an optional flattened struct are optional.

use super::PLACE;
use crate::json::Json;
use std::collections::BTreeMap;

/// Returns the schema name of a part of an `allOf`, and whether the part is required.
fn named(part: &Json) -> Option<(&str, bool)> {
    if let Some(place) = part.get("$ref").and_then(Json::text) {
        return Some((place.strip_prefix(PLACE)?, true));
    }
    let choices = part.get("oneOf").map(Json::items).unwrap_or_default();
    let place = choices.iter().find_map(|choice| choice.get("$ref")?.text());
    Some((place?.strip_prefix(PLACE)?, false))
}

/// Returns the names of the schemas that are flattened into a schema.
pub(super) fn parts(schema: &Json) -> Vec<&str> {
    let parts = schema.get("allOf").map(Json::items).unwrap_or_default();
    parts.iter().filter_map(named).map(|(name, _)| name).collect()
}

/// Returns the schema as one object: its own fields, then the flattened ones.
pub(super) fn merged(schema: &Json, known: &BTreeMap<String, Json>) -> Json {
    let Some(all) = schema.get("allOf").map(Json::items) else {
        return schema.clone();
    };
    let Some(own) = all.iter().find(|part| part.get("properties").is_some()) else {
        return schema.clone();
    };
    let mut whole = own.clone();
    if let Some(says) = schema.get("description") {
        whole.set("description", says.clone());
    }
    for (name, always) in all.iter().filter_map(named) {
        let Some(part) = known.get(name) else {
            continue;
        };
        extend(&mut whole, "properties", part);
        if always {
            extend(&mut whole, "required", part);
        }
    }
    whole
}

/// Adds the entries of `part` under `name` to those of `whole`.
fn extend(whole: &mut Json, name: &str, part: &Json) {
    match (whole.get_mut(name), part.get(name)) {
        (Some(Json::Object(fields)), Some(Json::Object(more))) => fields.extend(more.clone()),
        (Some(Json::List(items)), Some(Json::List(more))) => items.extend(more.iter().cloned()),
        _ => {}
    }
}
