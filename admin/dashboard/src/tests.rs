//! Tests of how the files are served, and that the compiled-in files are those of the folder.

mod sources;

use super::assets::{Assets, FILES, PAGE};
use super::*;
use axum::extract::Request;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use std::collections::BTreeSet;
use std::io::Read as _;
use tower_service::Service as _;

/// Maximum size of everything that a page loads at first, uncompressed, in bytes.
const PAGE_MAX: usize = 200_000;

async fn ask(method: &str, path: &str, headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = router().call(request).await.unwrap();
    let (head, body) = response.into_parts();
    (
        head.status,
        head.headers,
        body.collect().await.unwrap().to_bytes(),
    )
}

/// The address of an asset of this build.
fn address(path: &str) -> String {
    format!("/assets/{}/{path}", Assets::get().version)
}

fn folder() -> BTreeSet<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let (mut found, mut left) = (BTreeSet::new(), vec![root.clone()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn compiled_in_files_are_those_of_the_folder() {
    let mut listed: BTreeSet<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(listed.len(), FILES.len(), "a file is listed twice");
    listed.insert("index.html".to_owned());
    assert_eq!(listed, folder());
}

#[test]
fn the_page_names_assets_that_exist_and_no_other_host() {
    let page = PAGE.replace("@VERSION@", "v");
    for link in page.split(['"']).filter(|text| text.starts_with("/assets/")) {
        let path = link.strip_prefix("/assets/v/").unwrap();
        assert!(Assets::get().files.contains_key(path), "{path}");
    }
    let own = FILES.iter().filter(|(path, _)| !path.starts_with("vendor/"));
    for (path, content) in own.chain([&("index.html", PAGE.as_bytes())]) {
        let text = std::str::from_utf8(content).unwrap();
        // The name of an XML namespace has the form of a URL, but is never fetched.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for mark in [
            "http://",
            "https://",
            "//cdn",
            "innerHTML",
            "dangerouslySet",
            "eval(",
            "new Function",
        ] {
            assert!(!text.contains(mark), "{path} has {mark}");
        }
    }
    for mark in ["<style", "style=", "onclick", "onload"] {
        assert!(!PAGE.contains(mark), "the page has {mark}");
    }
}

#[test]
fn modules_import_what_exists() {
    for (path, _) in FILES.iter().filter(|(path, _)| path.starts_with("js/")) {
        for target in imports(path, "from '").chain(imports(path, "import('")) {
            let exists = Assets::get().files.contains_key(target.as_str());
            assert!(exists, "{path} imports {target}");
        }
    }
}

/// Returns the modules that a file refers to after `word`, by path.
fn imports<'a>(path: &'a str, word: &'a str) -> impl Iterator<Item = String> + use<'a> {
    let text = std::str::from_utf8(content(path)).unwrap();
    let names = text.split(word).skip(1);
    names.filter_map(move |rest| Some(resolve(path, rest.split('\'').next()?)))
}

fn content(path: &str) -> &'static [u8] {
    let file = FILES.iter().find(|(known, _)| *known == path);
    file.unwrap_or_else(|| panic!("{path} is no asset")).1
}

/// Resolves a relative URL as a browser does.
fn resolve(from: &str, name: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn a_first_visit_weighs_little() {
    let pages = FILES.iter().map(|(path, _)| *path);
    for page in pages.filter(|path| path.starts_with("js/pages/")) {
        let linked = PAGE
            .split('"')
            .filter_map(|text| text.strip_prefix("/assets/@VERSION@/"));
        let mut left: Vec<String> = linked.map(str::to_owned).collect();
        left.push(page.to_owned());
        let mut loaded = BTreeSet::new();
        while let Some(path) = left.pop() {
            if loaded.insert(path.clone()) && path.starts_with("js/") {
                left.extend(imports(&path, "from '"));
            }
        }
        let weight: usize = loaded.iter().map(|path| content(path).len()).sum();
        let weight = weight + PAGE.len();
        assert!(
            weight < PAGE_MAX,
            "{page} weighs {weight} bytes with all it loads"
        );
    }
}

#[tokio::test]
async fn the_page_is_guarded_and_asked_for_again() {
    let (status, headers, body) = ask("GET", "/", &[]).await;
    assert_eq!(status, 200);
    assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(headers[CACHE_CONTROL], "no-cache");
    assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(headers[REFERRER_POLICY], "no-referrer");
    let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    assert!(!headers.contains_key("set-cookie"));
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.contains(&address("js/main.js")), "{text}");

    let etag = headers[ETAG].to_str().unwrap();
    let (status, again, body) = ask("GET", "/", &[(IF_NONE_MATCH, &format!("\"other\", {etag}"))]).await;
    assert_eq!((status.as_u16(), body.len()), (304, 0));
    assert_eq!(again[ETAG], headers[ETAG]);
    assert!(again.contains_key(CONTENT_SECURITY_POLICY));
    assert_eq!(ask("GET", "/", &[(IF_NONE_MATCH, "\"other\"")]).await.0, 200);
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_the_address_of_their_build() {
    let (status, headers, body) = ask("GET", &address("js/main.js"), &[]).await;
    assert_eq!(status, 200);
    assert_eq!(headers[CONTENT_TYPE], "text/javascript; charset=utf-8");
    assert_eq!(headers[CACHE_CONTROL], FOR_EVER);
    assert_eq!(headers[VARY], "accept-encoding");
    assert!(!headers.contains_key(CONTENT_ENCODING));
    assert_eq!(body, include_bytes!("../web/js/main.js").as_slice());

    let (_, headers, packed) = ask("GET", &address("js/main.js"), &[(ACCEPT_ENCODING, "br, gzip")]).await;
    assert_eq!(headers[CONTENT_ENCODING], "gzip");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_ref())
        .read_to_end(&mut text)
        .unwrap();
    assert_eq!(text, body);
    let (_, headers, _) = ask("GET", &address("js/main.js"), &[(ACCEPT_ENCODING, "gzip;q=0")]).await;
    assert!(!headers.contains_key(CONTENT_ENCODING));
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let (_, of_get, _) = ask("GET", &address("css/base.css"), &[]).await;
    let (status, of_head, body) = ask("HEAD", &address("css/base.css"), &[]).await;
    assert_eq!((status.as_u16(), body.len()), (200, 0));
    for name in [CONTENT_TYPE, ETAG, CACHE_CONTROL] {
        assert_eq!(of_get[&name], of_head[&name]);
    }
}

#[tokio::test]
async fn an_asset_of_another_build_is_not_found() {
    for path in [
        address("js/none.js"),
        address("../Cargo.toml"),
        address("index.html"),
        address("%2e%2e/Cargo.toml"),
        "/assets/0000/js/main.js".to_owned(),
    ] {
        let (status, headers, body) = ask("GET", &path, &[]).await;
        assert_eq!(status, 404, "{path}");
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        assert!(body.starts_with(b"{"), "{path}");
    }
}

#[tokio::test]
async fn the_plan_link_leads_behind_the_hash_with_its_query() {
    let (status, headers, _) = ask("GET", "/plan?from=free&x=%0d%0a", &[]).await;
    assert_eq!(status, 303);
    assert_eq!(headers[LOCATION], "/#/plan?from=free&x=%0d%0a");
    assert_eq!(ask("GET", "/plan", &[]).await.1[LOCATION], "/#/plan");
}

/// Anyone can request it, so it contains nothing about the installation.
#[tokio::test]
async fn strangers_learn_only_whether_they_sent_a_session() {
    let (status, headers, body) = ask("GET", "/dashboard.json", &[]).await;
    assert_eq!(status, 200);
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    assert_eq!(body, r#"{"hasSession":false}"#);
    for (cookies, has_session) in [
        ("a=b; tollgate_session=00", true),
        ("not_tollgate_session=00", false),
    ] {
        let (_, headers, body) = ask("GET", "/dashboard.json", &[(COOKIE, cookies)]).await;
        let place: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(place["hasSession"], has_session, "{cookies}");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
    }
}
