//! The dashboard's files as served by the management listener, with headers that isolate the page.
//!
//! The files are in `admin/dashboard/web`. Other pages of the server are sent with [`send`]. This crate does not use
//! the store: the data of a page comes from the API.

mod assets;

pub use self::assets::Asset;

use self::assets::Assets;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ETAG,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::routing::get;
use endpoint::{Code, Problem, ResponseContext};
use serde::Serialize;

/// Content security policy: the page may load from and connect to this server only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// On every answer of this module.
const GUARDS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];
/// Start of a session's cookie.
const SESSION_COOKIE: &str = "tollgate_session=";
/// For assets, whose URLs change with their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Revalidated on each request, and answered with 304 while it is unchanged.
const ASK_AGAIN: &str = "no-cache";

/// Returns the routes of the dashboard. They need no authentication, since the data of the page comes from the API.
pub fn router() -> Router {
    Router::new()
        .route("/", get(|headers: HeaderMap| async move { page(&headers) }))
        .route("/assets/{version}/{*path}", get(asset))
        .route(
            "/dashboard.json",
            get(|headers: HeaderMap| async move { start(&headers) }),
        )
        .route("/plan", get(plan))
}

/// State of a page before sign-in. Anyone can read it; only users can read data of the installation (`GET
/// /installation`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StartState {
    /// True if the browser sent a session cookie. The page itself cannot see it; without one it does not request the
    /// signed-in user, so that no refused request appears in the browser's console.
    has_session: bool,
}

fn start(request_headers: &HeaderMap) -> Response<Body> {
    let cookies = request_headers.get_all(COOKIE).iter();
    let mut cookies = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(';'));
    let start = StartState {
        has_session: cookies.any(|cookie| cookie.trim_start().starts_with(SESSION_COOKIE)),
    };
    let mut response = match serde_json::to_string(&start) {
        Ok(body) => Response::new(Body::from(body)),
        Err(_) => return Problem::from(Code::Internal).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    guard(&mut response);
    response
}

fn page(headers: &HeaderMap) -> Response<Body> {
    show(&Assets::get().page, headers, ASK_AGAIN)
}

async fn asset(Path((version, path)): Path<(String, String)>, headers: HeaderMap) -> Response<Body> {
    let assets = Assets::get();
    match assets.files.get(path.as_str()) {
        Some(asset) if version == assets.version => show(asset, &headers, FOR_EVER),
        _ => {
            let mut response = Problem::from(Code::NotFound).into_response();
            guard(&mut response);
            response
        }
    }
}

/// Redirects upgrade links of answers (`upgradeUrl`) to the page after the hash, with the query.
async fn plan(RawQuery(query): RawQuery) -> Response<Body> {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(location) = HeaderValue::try_from(format!("/#/plan{query}")) else {
        return Problem::validation("The query has characters that an address cannot have.").into_response();
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, location);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    guard(&mut response);
    response
}

/// Sends a file in the form for this request: not at all if the client has it, and compressed if the client accepts
/// that.
fn show(asset: &Asset, request_headers: &HeaderMap, cache: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(ETAG, asset.etag.clone());
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if has_it(request_headers, &asset.etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
        let body = match &asset.gzip {
            Some(gzip) if takes_gzip(request_headers) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                gzip.clone()
            }
            _ => asset.plain.clone(),
        };
        *response.body_mut() = Body::from(body);
    }
    guard(&mut response);
    response
}

/// Sends a file of another page of this server, which the log calls `label`. It is revalidated on each request.
pub fn send(asset: &Asset, request_headers: &HeaderMap, label: &'static str) -> Response<Body> {
    let mut response = show(asset, request_headers, ASK_AGAIN);
    response.extensions_mut().insert(ResponseContext::new(label));
    response
}

/// Returns the address of a file of the dashboard.
pub fn address(path: &str) -> String {
    format!("/assets/{}/{path}", Assets::get().version)
}

fn has_it(request_headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let known = request_headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = known
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','));
    tags.any(|tag| tag.trim() == "*" || tag.trim().as_bytes() == etag.as_bytes())
}

fn takes_gzip(request_headers: &HeaderMap) -> bool {
    let codings = request_headers.get_all(ACCEPT_ENCODING).iter();
    let mut codings = codings
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight
            .trim()
            .strip_prefix("q=")
            .is_some_and(|q| q.trim_matches(['0', '.']).is_empty());
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn guard(response: &mut Response<Body>) {
    for (name, value) in GUARDS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
        .extensions_mut()
        .insert(ResponseContext::new("dashboard"));
}

#[cfg(test)]
mod tests;
