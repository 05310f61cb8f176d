//! The whole page: introduction, table of contents, and every operation, schema and error.

use super::document::{Document, DocumentedOperation};
use super::html::{anchor, escape, inline, prose, table};
use super::schema;
use endpoint::problem::Code;
use openapi::Json;
use openapi::components::public;
use openapi::json::JsonFields;

/// The pages that each page's header links to.
const PAGES: [(&str, &str); 2] = [("/reference", "Management API"), ("/reference/proxy", "Edge")];

impl Document {
    fn operations(&self) -> Vec<DocumentedOperation<'_>> {
        let paths = self.json.fields_of("paths");
        paths
            .iter()
            .flat_map(|(path, methods)| {
                methods
                    .fields()
                    .iter()
                    .map(move |(method, json)| DocumentedOperation { method, path, json })
            })
            .collect()
    }

    /// Returns the tags, each with its operations.
    fn sections(&self) -> Vec<(&str, &str, Vec<DocumentedOperation<'_>>)> {
        let tags = self.json.get("tags").map(Json::items).unwrap_or_default();
        let sections = tags.iter().map(|tag| {
            let text = |name: &str| tag.get(name).and_then(Json::text).unwrap_or_default();
            let mut operations = self.operations();
            let name = text("name");
            operations.retain(|operation| {
                let tags = operation.json.get("tags").map(Json::items).unwrap_or_default();
                tags.iter().any(|tag| tag.text() == Some(name))
            });
            (name, text("description"), operations)
        });
        sections.collect()
    }

    fn schemas(&self) -> &JsonFields {
        let components = self.json.get("components").unwrap_or(&Json::Null);
        components.fields_of("schemas")
    }
}

pub(super) fn page(document: &Document, here: &str, [icon, stylesheet]: [&str; 2]) -> String {
    let info = |name: &str| {
        document
            .json
            .get("info")
            .and_then(|info| info.get(name)?.text())
            .unwrap_or_default()
    };
    let title = escape(info("title"));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title><link rel=\"icon\" href=\"{}\" type=\"image/svg+xml\"><link rel=\"stylesheet\" href=\"{}\"></head><body>\
         <a class=\"skip\" href=\"#content\">Skip to the content</a>{}<div class=\"frame\">{}\
         <main id=\"content\"><h1>{title}</h1><p class=\"lead\">{}</p>{}{}{}{}{}</main></div></body></html>\n",
        escape(icon),
        escape(stylesheet),
        head(here),
        contents(document),
        inline(info("summary")),
        prose(info("description")),
        download(document),
        operations(document),
        codes(document),
        schemas(document),
    )
}

fn head(here: &str) -> String {
    let links = PAGES.map(|(address, name)| {
        let current = if address == here {
            " aria-current=\"page\""
        } else {
            ""
        };
        format!("<a href=\"{address}\"{current}>{name}</a>")
    });
    format!(
        "<header><a class=\"brand\" href=\"/\">Tollgate</a><nav aria-label=\"References\">{}</nav></header>",
        links.concat()
    )
}

fn download(document: &Document) -> String {
    let address = document.address;
    format!("<p>The same for programs: <a href=\"{address}\">{address}</a>, OpenAPI 3.1.</p>")
}

/// Renders the table of contents, which is collapsed on a narrow page.
fn contents(document: &Document) -> String {
    let mut list = String::new();
    for (tag, _, operations) in document.sections() {
        let items: Vec<String> = operations
            .iter()
            .map(|operation| {
                format!(
                    "<li><a href=\"#{}\">{}</a></li>",
                    operation.anchor(),
                    escape(operation.text("summary"))
                )
            })
            .collect();
        list.push_str(&format!(
            "<li><a class=\"tag\" href=\"#tag-{}\">{}</a><ul>{}</ul></li>",
            anchor(tag),
            escape(tag),
            items.concat()
        ));
    }
    let codes = if document.has_codes {
        "<li><a class=\"tag\" href=\"#errors\">Errors</a></li>"
    } else {
        ""
    };
    format!(
        "<nav class=\"contents\" aria-label=\"Contents\"><details open><summary>Contents</summary><ul>{list}{codes}\
         <li><a class=\"tag\" href=\"#schemas\">Schemas</a></li></ul></details></nav>"
    )
}

fn operations(document: &Document) -> String {
    let sections = document.sections().into_iter().map(|(tag, about, operations)| {
        let operations: String = operations
            .iter()
            .map(|operation| operation.section(document))
            .collect();
        let id = anchor(tag);
        format!(
            "<section id=\"tag-{id}\"><h2>{}</h2><p>{}</p>{operations}</section>",
            escape(tag),
            inline(about)
        )
    });
    sections.collect()
}

/// Returns every error of the management API.
fn codes(document: &Document) -> String {
    if !document.has_codes {
        return String::new();
    }
    let rows: Vec<Vec<String>> = Code::ALL
        .iter()
        .map(|code| {
            vec![
                format!("<code>{}</code>", code.as_str()),
                code.status().as_u16().to_string(),
                inline(&public(code.meaning())),
            ]
        })
        .collect();
    format!(
        "<section id=\"errors\"><h2>Errors</h2>{}</section>",
        table("Errors", &["Code", "Status", "When"], &rows)
    )
}

fn schemas(document: &Document) -> String {
    let schemas: String = document
        .schemas()
        .iter()
        .map(|(name, schema)| schema::section(name, schema))
        .collect();
    format!("<section id=\"schemas\"><h2>Schemas</h2>{schemas}</section>")
}
