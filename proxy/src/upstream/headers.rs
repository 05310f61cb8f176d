//! Which headers cross the gate, in both directions (decision D35).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use pingora_http::{RequestHeader, ResponseHeader};
use secrecy::{ExposeSecret, SecretString};

/// Headers of one connection, not of the message.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What never leaves with a request: credentials, and what Tollgate sets itself.
const NOT_FORWARDED: [&str; 11] = [
    "authorization",
    "x-api-key",
    "api-key",
    "cookie",
    "host",
    "content-length",
    "expect",
    "accept-encoding",
    "forwarded",
    "x-real-ip",
    "http2-settings",
];

/// Families of headers that speak to or about proxies.
const NOT_FORWARDED_PREFIXES: [&str; 2] = ["x-service-", "x-forwarded-"];

/// The names listed in `Connection` are of one connection as well.
fn nominated(headers: &HeaderMap) -> Vec<String> {
    let values = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect()
}

fn is_forwarded(name: &str, nominated: &[String]) -> bool {
    !HOP_BY_HOP.contains(&name)
        && !NOT_FORWARDED.contains(&name)
        && !NOT_FORWARDED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        && !nominated.iter().any(|nominated| nominated == name)
}

/// The head of the provider's request with the caller's headers that may cross the gate. `None` when a header is
/// refused: then nothing may be sent.
pub fn filled(
    mut request: RequestHeader,
    caller: &HeaderMap,
    host: &str,
    length: usize,
) -> Option<RequestHeader> {
    let nominated = nominated(caller);
    for (name, value) in caller {
        if is_forwarded(name.as_str(), &nominated) {
            request.append_header(name.clone(), value.clone()).ok()?;
        }
    }
    request.insert_header(header::HOST, host).ok()?;
    request
        .insert_header(header::CONTENT_LENGTH, length.to_string())
        .ok()?;
    let identity = HeaderValue::from_static("identity");
    request.insert_header(header::ACCEPT_ENCODING, identity).ok()?;
    Some(request)
}

/// Adds the provider key, kept out of logs. `None` when the stored key cannot be a header value.
pub fn authorize(request: &mut RequestHeader, key: &SecretString) -> Option<()> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).ok()?;
    value.set_sensitive(true);
    request.insert_header(header::AUTHORIZATION, value).ok()
}

/// Removes from the provider's answer what must not reach the caller.
pub fn clean_response(head: &mut ResponseHeader) {
    let nominated = nominated(&head.headers);
    let unwanted = |name: &HeaderName| {
        let name = name.as_str();
        HOP_BY_HOP.contains(&name)
            || name == "set-cookie"
            || name.starts_with("x-service-")
            || nominated.iter().any(|nominated| nominated == name)
    };
    let gone: Vec<HeaderName> = head
        .headers
        .keys()
        .filter(|name| unwanted(name))
        .cloned()
        .collect();
    for name in gone {
        head.remove_header(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_proxy_headers_stay_behind() {
        let mut caller = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer vk_live_x"),
            ("x-api-key", "vk_live_x"),
            ("cookie", "a=b"),
            ("te", "trailers"),
            ("connection", "close, X-Secret-Hop"),
            ("x-secret-hop", "1"),
            ("x-service-run-id", "r"),
            ("x-forwarded-for", "10.0.0.1"),
            ("accept-encoding", "br"),
            ("host", "edge"),
            ("content-length", "9"),
            ("openai-organization", "org"),
            ("x-stainless-retry-count", "1"),
            ("content-type", "application/json"),
        ] {
            caller.append(name, value.parse().unwrap());
        }
        let request = RequestHeader::build_no_case("POST", b"/v1/chat/completions", None).unwrap();
        let mut request = filled(request, &caller, "provider:1", 12).unwrap();
        authorize(&mut request, &"sk-real".into()).unwrap();
        let mut names: Vec<&str> = request.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "accept-encoding",
                "authorization",
                "content-length",
                "content-type",
                "host",
                "openai-organization",
                "x-stainless-retry-count",
            ]
        );
        assert_eq!(request.headers["authorization"], "Bearer sk-real");
        assert!(request.headers["authorization"].is_sensitive());
        assert_eq!(request.headers["accept-encoding"], "identity");
    }

    #[test]
    fn a_key_that_is_no_header_value_sends_nothing() {
        let mut request = RequestHeader::build_no_case("POST", b"/", None).unwrap();
        assert_eq!(
            authorize(
                &mut request,
                &"sk-a
b: c"
                    .into()
            ),
            None
        );
    }

    #[test]
    fn the_answer_loses_cookies_and_connection_headers_only() {
        let mut head = ResponseHeader::build_no_case(200, None).unwrap();
        for (name, value) in [
            ("set-cookie", "a=b"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-request-id", "req_up"),
            ("x-ratelimit-remaining-requests", "9"),
            ("x-service-decision", "approved"),
        ] {
            head.append_header(name, value).unwrap();
        }
        clean_response(&mut head);
        let mut names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["x-ratelimit-remaining-requests", "x-request-id"]);
    }
}
