//! Parts that both documents have: their head, parameters, headers, and ways to authenticate.

use crate::{Components, Json, example, object};

/// Returns the head of a document, with the version of this build.
pub fn info(title: &str, summary: &str, about: &str) -> Json {
    object([
        ("title", title.into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("summary", summary.into()),
        ("description", about.into()),
        (
            "license",
            object([("name", "Apache-2.0".into()), ("identifier", "Apache-2.0".into())]),
        ),
    ])
}

/// Returns the list of servers: the one that serves the document.
pub fn servers(about: &str) -> Json {
    Json::List(vec![object([("url", "/".into()), ("description", about.into())])])
}

/// Returns a group of operations.
pub fn tag(name: &str, about: &str) -> Json {
    object([("name", name.into()), ("description", about.into())])
}

/// Returns a parameter in this `place`: `path`, `query` or `header`.
pub fn parameter(place: &str, (name, is_required): (&str, bool), about: &str, schema: Json) -> Json {
    object([
        ("name", name.into()),
        ("in", place.into()),
        ("required", is_required.into()),
        ("description", about.into()),
        ("schema", schema),
    ])
}

/// Returns a header of an answer.
pub fn header(about: &str, schema: Json) -> Json {
    object([("description", about.into()), ("schema", schema)])
}

/// Returns a reference to a header of the document.
pub fn header_reference(name: &str) -> Json {
    object([("$ref", format!("#/components/headers/{name}").into())])
}

/// Returns JSON content with this schema, and an example if one can be derived.
pub fn json_content(components: &Components, schema: Json) -> Json {
    object([("application/json", media(components, schema))])
}

/// Returns content with this schema, and an example if one can be derived.
pub fn media(components: &Components, schema: Json) -> Json {
    let example = example::from_schema(components, &schema).ok();
    let media = object([("schema", schema)]);
    match example {
        Some(example) => media.with("example", example),
        None => media,
    }
}

/// Returns the requirement of one way to authenticate.
pub fn requirement(scheme: &str) -> Json {
    object([(scheme, Json::List(Vec::new()))])
}

/// Returns the way to authenticate by `Authorization: Bearer`.
pub fn bearer(about: &str) -> Json {
    object([
        ("type", "http".into()),
        ("scheme", "bearer".into()),
        ("description", about.into()),
    ])
}

/// Returns the way to authenticate by a secret of this name in a `place`: `header` or `cookie`.
pub fn secret(place: &str, name: &str, about: &str) -> Json {
    object([
        ("type", "apiKey".into()),
        ("in", place.into()),
        ("name", name.into()),
        ("description", about.into()),
    ])
}
