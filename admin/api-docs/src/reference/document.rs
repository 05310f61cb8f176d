//! An OpenAPI document and its operations, as the pages read them.

use openapi::Json;

/// A document and how the page speaks of it.
pub(super) struct Document {
    pub(super) json: Json,
    /// Where the document itself is.
    pub(super) address: &'static str,
    /// What stands for the server in commands.
    pub(super) variable: &'static str,
    /// What stands for the key.
    pub(super) key: &'static str,
    /// Whether errors are those of the management API.
    pub(super) has_codes: bool,
}

impl Document {
    /// What a reference names; anything else is itself.
    pub(super) fn resolve<'a>(&'a self, json: &'a Json) -> &'a Json {
        let Some(place) = json
            .get("$ref")
            .and_then(Json::text)
            .and_then(|place| place.strip_prefix("#/"))
        else {
            return json;
        };
        let found = place.split('/').try_fold(&self.json, |json, step| json.get(step));
        found.unwrap_or(json)
    }
}

/// An operation of the document.
pub(super) struct Operation<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) json: &'a Json,
}

impl Operation<'_> {
    pub(super) fn text(&self, name: &str) -> &str {
        self.json.get(name).and_then(Json::text).unwrap_or_default()
    }
}

/// The JSON of a body.
pub(super) fn media(holder: &Json) -> Option<&Json> {
    holder.get("content")?.get("application/json")
}
