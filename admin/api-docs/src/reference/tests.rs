//! Tests that the pages contain all of the documents, and that everything in them is escaped.

use super::*;
use std::collections::HashSet;

fn pages() -> [(Document, String); 2] {
    let management = Document {
        json: management(),
        address: "/openapi.json",
        variable: "$A",
        key: "$K",
        has_codes: true,
    };
    let edge = Document {
        json: Json::parse(EDGE).unwrap(),
        address: "/openapi-proxy.json",
        variable: "$E",
        key: "$V",
        has_codes: false,
    };
    [management, edge].map(|document| {
        let page = page::page(&document, "/reference", ["/i.svg", "/s.css"]);
        (document, page)
    })
}

/// Each value of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let mark = format!(" {attribute}=\"");
    let after = page.split(mark.as_str()).skip(1);
    after.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn every_operation_and_schema_has_its_place_and_every_link_leads_to_one() {
    for (document, page) in pages() {
        let ids = values(&page, "id");
        let places: HashSet<&str> = ids.iter().copied().collect();
        assert_eq!(places.len(), ids.len(), "no place has the name of another");
        for href in values(&page, "href") {
            if let Some(place) = href.strip_prefix('#') {
                assert!(places.contains(place), "#{place} leads nowhere");
            } else {
                assert!(href.starts_with('/'), "{href} leaves this server");
            }
        }
        for (path, methods) in document.json.get("paths").unwrap().fields() {
            for (_, operation) in methods.fields() {
                let id = operation.get("operationId").and_then(Json::text).unwrap();
                assert!(places.contains(html::anchor(id).as_str()), "{path} {id}");
            }
        }
    }
}

#[test]
fn nothing_runs_and_nothing_comes_from_elsewhere() {
    for (_, page) in pages() {
        for word in [
            "<script",
            "javascript:",
            " style=",
            " onclick",
            "<iframe",
            "<img",
            "<form",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(values(&page, "src").is_empty());
    }
}

#[test]
fn text_of_a_document_is_never_markup() {
    let evil = "<script>alert(1)</script>\" onclick=\"x";
    let (document, _) = pages().into_iter().next().unwrap();
    let text = document.json.pretty();
    // Replaces every description and summary.
    let mut json = Json::parse(&text).unwrap();
    spoil(&mut json, evil);
    let page = page::page(&Document { json, ..document }, "/reference", ["/i.svg", "/s.css"]);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains("<script") && !page.contains("\" onclick=\""));
}

fn spoil(json: &mut Json, evil: &str) {
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::Text(text)
                        if ["description", "summary", "pattern", "title"].contains(&name.as_str()) =>
                    {
                        text.push_str(evil);
                    }
                    value => spoil(value, evil),
                }
            }
        }
        Json::List(items) => items.iter_mut().for_each(|item| spoil(item, evil)),
        _ => {}
    }
}
