//! Generates one operation of the document from its row of the route table and its documentation.

use super::{errors, headers, words};
use endpoint::doc::field::{self, Field};
use endpoint::doc::{AnswerContent, AnswerDoc, BodyDoc, Doc, Section};
use endpoint::{Access, Route};
use openapi::components::NOT_IN_EXAMPLES;
use openapi::components::{or_null, reference};
use openapi::parts::{self, header_reference, json_content};
use openapi::{Components, Json, object};

/// Returns the paths under which it is documented. Paths under `/api/v1` are also served under `/v1`, which the
/// document says once.
pub(super) fn paths(route: &Route) -> impl Iterator<Item = String> {
    let documented = route.prefixes().filter(|prefix| *prefix != "/v1");
    documented.map(|prefix| format!("{prefix}{}", route.path))
}

pub(super) fn describe(components: &mut Components, route: &Route, section: &Section, doc: &Doc) -> Json {
    let mut operation = object([
        ("tags", vec![section.tag].into()),
        ("operationId", doc.id.into()),
        ("summary", doc.summary.into()),
        ("description", words::about(route, doc.description).into()),
    ]);
    for (name, value) in words::extensions(route) {
        operation.set(name, value);
    }
    operation.set("parameters", parameters(route, section, doc));
    if let Some(body) = &doc.request_body {
        operation.set("requestBody", request(components, body));
    }
    operation.set("responses", responses(components, route, doc));
    operation.set("security", words::security(route));
    operation
}

fn parameters(route: &Route, section: &Section, doc: &Doc) -> Json {
    let mut parameters = Vec::new();
    let names = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    for name in names {
        let known = doc
            .params
            .iter()
            .chain(&section.params)
            .find(|field| field.name == name);
        parameters.extend(known.map(|field| parameter("path", field)));
    }
    parameters.extend(doc.query.iter().map(|field| parameter("query", field)));
    parameters.extend(doc.headers.iter().map(|field| parameter("header", field)));
    if doc.is_idempotent {
        parameters.push(headers::parameter("IdempotencyKey"));
    }
    if !matches!(route.access, Access::Public) {
        parameters.push(headers::parameter("Mode"));
    }
    parameters.push(headers::parameter("RequestId"));
    Json::List(parameters)
}

fn parameter(place: &str, field: &Field) -> Json {
    let schema = field.schema.clone();
    parts::parameter(place, (field.name, field.is_required), field.description, schema)
}

/// Builds the schema of a body. Unless it is open, it has no other fields.
fn body(body: &BodyDoc) -> Json {
    let mut schema = fields_schema(&body.fields);
    if body.requires_a_field {
        schema.set("minProperties", 1_u64);
    }
    schema.with("additionalProperties", body.allows_other_fields)
}

/// Builds the schema of an object with these fields.
pub(super) fn fields_schema(fields: &[Field]) -> Json {
    let properties = fields
        .iter()
        .map(|field| (field.name.to_owned(), field.described()));
    let required = fields.iter().filter(|field| field.is_required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut schema = object([
        ("type", "object".into()),
        ("properties", Json::Object(properties.collect())),
    ]);
    if !required.is_empty() {
        schema.set("required", required);
    }
    schema
}

fn request(components: &mut Components, request_body: &BodyDoc) -> Json {
    let is_required = request_body.fields.iter().any(|field| field.is_required);
    let schema = components.named(request_body.name, body(request_body));
    let content = json_content(components, schema);
    object([("required", is_required.into()), ("content", content)])
}

fn responses(components: &mut Components, route: &Route, doc: &Doc) -> Json {
    let mut responses: Vec<(u16, Json)> = Vec::new();
    let errors = errors::collect(route, doc);
    for given in &doc.responses {
        let content = content(
            components,
            given,
            errors.iter().find(|error| error.status == given.status),
        );
        let file = matches!(given.shape, AnswerContent::Document(_) | AnswerContent::File(..));
        let mut headers = headers::of_all(route.rate);
        if file {
            headers.set("Content-Disposition", header_reference("ContentDisposition"));
        }
        for field in &given.headers {
            headers.set(field.name, headers::of_field(field));
        }
        // A status can have several content types, such as JSON and CSV.
        match responses.iter_mut().find(|(status, _)| *status == given.status) {
            Some((_, known)) => {
                let mut all = known.take_or_empty("content");
                for (kind, media) in content.fields() {
                    all.set(kind, media.clone());
                }
                known.set("content", all);
            }
            None => responses.push((
                given.status,
                object([
                    ("description", given.description.into()),
                    ("headers", headers),
                    ("content", content),
                ]),
            )),
        }
    }
    for error in &errors {
        if !responses.iter().any(|(status, _)| *status == error.status) {
            responses.push((error.status, error.response(route)));
        }
    }
    responses.sort_by_key(|(status, _)| *status);
    Json::Object(
        responses
            .into_iter()
            .map(|(status, response)| (status.to_string(), response))
            .collect(),
    )
}

/// Builds the content of an answer. If the same status also has errors of [`Code`], the content is one of both.
fn content(components: &mut Components, given: &AnswerDoc, error: Option<&errors::Errors>) -> Json {
    let schema = match &given.shape {
        AnswerContent::Json(schema) | AnswerContent::Document(schema) => schema(components),
        AnswerContent::Page(plural, schema) => {
            let record = schema(components);
            page(components, plural, &record, &given.fields)
        }
        AnswerContent::File(kind, example) | AnswerContent::Lines(kind, example) => {
            let schema = object([("type", "string".into())]);
            return object([(
                *kind,
                object([("schema", schema), ("example", example.as_ref().into())]),
            )]);
        }
    };
    let schema = match error {
        None => schema,
        Some(error) => object([("anyOf", Json::List(vec![schema, error.schema()]))]),
    };
    match &given.example {
        None => json_content(components, schema),
        Some(example) => {
            let media = object([("schema", schema), ("example", example.clone())]);
            object([("application/json", media)])
        }
    }
}

/// Builds the header with the cursor of the next page.
fn next_cursor() -> Json {
    let description = "Give it as `cursor` for the next page; null at the end of the list.";
    or_null(field::string())
        .with("description", description)
        .example(Json::Null)
}

/// Returns the form of all lists (decision D5).
fn page(components: &mut Components, plural: &str, record: &Json, more: &[Field]) -> Json {
    let name = record
        .get("$ref")
        .and_then(Json::text)
        .and_then(|place| place.rsplit('/').next());
    let name = format!("{}Page", name.unwrap_or_default());
    let whole = |description: &str, example: u64| {
        let number = object([("type", "integer".into()), ("minimum", 0_u64.into())]);
        number
            .with("description", description)
            .example(Json::Number(example.into()))
    };
    let list = object([("type", "array".into()), ("items", record.clone())]);
    let properties = [
        (
            "success",
            object([("type", "boolean".into()), ("const", true.into())]),
        ),
        (plural, list),
        ("total", whole("How many there are in all.", 1)),
        ("limit", whole("Most records on a page.", 50)),
        (
            "offset",
            whole(
                "Records that were left out at the beginning; 0 when `cursor` said where the page starts.",
                0,
            ),
        ),
        ("nextCursor", next_cursor()),
    ];
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let mut properties = object(properties);
    for field in more {
        properties.set(field.name, field.described().with(NOT_IN_EXAMPLES, true));
    }
    let schema = object([
        ("type", "object".into()),
        ("required", names.into()),
        ("properties", properties),
    ]);
    components.named(&name, schema);
    reference(&name)
}
