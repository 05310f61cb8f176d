//! The OpenAPI document of the management API, generated from the route table and the [`Doc`] of each function.

mod errors;
mod events;
mod headers;
mod operation;
mod words;

use crate::table::routes;
use endpoint::doc::{Doc, Section};
use endpoint::{Base, Route};
use openapi::parts;
use openapi::{Components, Json, VERSION, object};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The document as served at `/openapi.json`.
pub static MANAGEMENT: LazyLock<String> = LazyLock::new(|| management().pretty());
/// The document of the edge, served at `/openapi-proxy.json`. The edge's own code generates it, and a test compares
/// them.
pub const EDGE: &str = include_str!("../../../docs/reference/openapi/edge.json");

/// Returns the documentation of every operation, in the order of the resources.
fn sections() -> Vec<Section> {
    let mut sections = api::sections();
    sections.extend(people::sections());
    sections
}

/// Returns the name of an operation in its documentation: method and path, as in the table.
fn name(route: &Route) -> String {
    let base = match route.base {
        Base::Management => "",
        Base::User => "/user",
    };
    format!("{} {base}{}", route.method, route.path)
}

/// Returns the document.
pub fn management() -> Json {
    build().0
}

/// Builds the document, and returns it with the names of schemas that clash, which a test requires to be none.
fn build() -> (Json, Vec<String>) {
    let mut components = Components::default();
    let sections = sections();
    let mut docs: BTreeMap<&str, (&Section, &Doc)> = BTreeMap::new();
    for section in &sections {
        docs.extend(section.docs.iter().map(|doc| (doc.route, (section, doc))));
    }
    let mut operations = Vec::new();
    for route in routes() {
        // A test finds operations without documentation.
        if let Some((section, doc)) = docs.get(name(route).as_str()) {
            let operation = operation::describe(&mut components, route, section, doc);
            operations.push((route, operation));
        }
    }
    let responses = errors::share(&mut operations);
    let webhooks = events::webhooks(&mut components);
    let tags = sections
        .iter()
        .map(|section| parts::tag(section.tag, section.about));
    let clashes = components.clashes().to_vec();
    let document = object([
        ("openapi", VERSION.into()),
        ("info", words::info()),
        ("servers", parts::servers(words::SERVER)),
        ("tags", Json::List(tags.collect())),
        ("paths", paths(operations)),
        ("webhooks", webhooks),
        (
            "components",
            object([
                ("schemas", components.into_json()),
                ("responses", responses),
                ("parameters", headers::parameters()),
                ("headers", headers::components()),
                ("securitySchemes", words::security_schemes()),
            ]),
        ),
    ]);
    (document, clashes)
}

/// Groups the operations by path, in the order of the table.
fn paths(operations: Vec<(&Route, Json)>) -> Json {
    let mut paths = object([]);
    for (route, operation) in operations {
        for (at, path) in operation::paths(route).enumerate() {
            let mut operation = operation.clone();
            if at > 0 {
                // Each operation has a unique id, even if one handler serves two paths.
                let id = operation
                    .get("operationId")
                    .and_then(Json::text)
                    .unwrap_or_default();
                let id = format!("{id}OfUser");
                operation.set("operationId", id);
            }
            let mut item = paths.take_or_empty(&path);
            item.set(&route.method.as_str().to_ascii_lowercase(), operation);
            paths.set(&path, item);
        }
    }
    paths
}

#[cfg(test)]
mod tests;
