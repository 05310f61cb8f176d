//! The reference: both OpenAPI documents, and HTML pages of them. The server renders the pages once, so that they need
//! no script and no other host.

mod curl;
mod document;
mod html;
mod operation;
mod page;
mod schema;

use self::document::Document;
use crate::openapi::{EDGE, MANAGEMENT, management};
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use bytes::Bytes;
use dashboard::{Asset, address, send};
use openapi::Json;
use std::sync::LazyLock;

/// Label of requests for these pages, in log and metrics.
const LABEL: &str = "reference";
/// The style of the pages, among the dashboard's files.
const STYLE: &str = "css/reference.css";
/// Their icon, likewise.
const ICON: &str = "favicon.svg";

static MANAGEMENT_JSON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("openapi.json", Bytes::from_static(MANAGEMENT.as_bytes())));
static EDGE_JSON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("openapi.json", Bytes::from_static(EDGE.as_bytes())));
static MANAGEMENT_PAGE: LazyLock<Asset> = LazyLock::new(|| {
    let document = Document {
        json: management(),
        address: "/openapi.json",
        variable: "$TOLLGATE_URL",
        key: "$TOLLGATE_API_KEY",
        has_codes: true,
    };
    rendered(&document, "/reference")
});
static EDGE_PAGE: LazyLock<Asset> = LazyLock::new(|| {
    let document = Document {
        json: Json::parse(EDGE).unwrap_or_default(),
        address: "/openapi-proxy.json",
        variable: "$TOLLGATE_EDGE_URL",
        key: "$TOLLGATE_VIRTUAL_KEY",
        has_codes: false,
    };
    rendered(&document, "/reference/proxy")
});

fn rendered(document: &Document, here: &str) -> Asset {
    Asset::new(
        "index.html",
        Bytes::from(page::page(document, here, [&address(ICON), &address(STYLE)])),
    )
}

/// Returns the routes. They need no authentication.
pub fn router() -> Router {
    Router::new()
        .route(
            "/openapi.json",
            get(|headers: HeaderMap| async move { send(&MANAGEMENT_JSON, &headers, LABEL) }),
        )
        .route(
            "/openapi-proxy.json",
            get(|headers: HeaderMap| async move { send(&EDGE_JSON, &headers, LABEL) }),
        )
        .route(
            "/reference",
            get(|headers: HeaderMap| async move { send(&MANAGEMENT_PAGE, &headers, LABEL) }),
        )
        .route(
            "/reference/proxy",
            get(|headers: HeaderMap| async move { send(&EDGE_PAGE, &headers, LABEL) }),
        )
}

#[cfg(test)]
mod tests;
