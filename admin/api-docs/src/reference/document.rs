//! An OpenAPI document and its operations, as input of the pages.

use openapi::Json;

/// A document, with the texts of its page.
pub(super) struct Document {
    pub(super) json: Json,
    /// Address of the document itself.
    pub(super) address: &'static str,
    /// Variable for the server in commands.
    pub(super) variable: &'static str,
    /// Variable for the key in commands.
    pub(super) key: &'static str,
    /// True for the management API, whose errors have codes of their own.
    pub(super) has_codes: bool,
}

impl Document {
    /// Resolves a reference; any other value is returned unchanged.
    pub(super) fn dereference<'a>(&'a self, json: &'a Json) -> &'a Json {
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

pub(super) struct DocumentedOperation<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) json: &'a Json,
}

impl DocumentedOperation<'_> {
    pub(super) fn text(&self, name: &str) -> &str {
        self.json.get(name).and_then(Json::text).unwrap_or_default()
    }
}

/// Returns the JSON of a body.
pub(super) fn media(holder: &Json) -> Option<&Json> {
    holder.get("content")?.get("application/json")
}
