//! Which headers cross the gate, in both directions (decision D35).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
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

/// Headers of the provider's request that are ours: host, length, encoding, key; and the trace's, when it goes on.
const OWN: usize = 5;

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

/// The headers of the provider's request: the caller's that may cross the gate, and those that are ours to set. `None` when
/// they are too many: then nothing may be sent.
pub fn onward(caller: &HeaderMap, host: &HeaderValue, length: usize) -> Option<HeaderMap> {
    let nominated = nominated(caller);
    let mut onward = HeaderMap::with_capacity(caller.len() + OWN);
    for (name, value) in caller {
        if is_forwarded(name.as_str(), &nominated) {
            onward.try_append(name, value.clone()).ok()?;
        }
    }
    onward.try_insert(header::HOST, host.clone()).ok()?;
    onward.try_insert(header::CONTENT_LENGTH, length.into()).ok()?;
    let identity = HeaderValue::from_static("identity");
    onward.try_insert(header::ACCEPT_ENCODING, identity).ok()?;
    Some(onward)
}

/// Adds the provider key, kept out of logs. `None` when the stored key cannot be a header value.
pub fn authorize(onward: &mut HeaderMap, key: &SecretString) -> Option<()> {
    let mut value = HeaderValue::from_str(&["Bearer ", key.expose_secret()].concat()).ok()?;
    value.set_sensitive(true);
    onward.try_insert(header::AUTHORIZATION, value).ok()?;
    Some(())
}

/// Removes from the provider's answer what must not reach the caller.
pub fn clean_response(headers: &mut HeaderMap) {
    let nominated = nominated(headers);
    let unwanted = |name: &HeaderName| {
        let name = name.as_str();
        HOP_BY_HOP.contains(&name)
            || name == "set-cookie"
            || name.starts_with("x-service-")
            || nominated.iter().any(|nominated| nominated == name)
    };
    let gone: Vec<HeaderName> = headers.keys().filter(|name| unwanted(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
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
        let host = HeaderValue::from_static("provider:1");
        let mut onward = onward(&caller, &host, 12).unwrap();
        authorize(&mut onward, &"sk-real".into()).unwrap();
        let mut names: Vec<&str> = onward.keys().map(HeaderName::as_str).collect();
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
        assert_eq!(onward["authorization"], "Bearer sk-real");
        assert!(onward["authorization"].is_sensitive());
        assert_eq!(onward["accept-encoding"], "identity");
        assert_eq!(
            (&onward["host"], &onward["content-length"]),
            (&host, &HeaderValue::from(12))
        );
    }

    #[test]
    fn a_key_that_is_no_header_value_sends_nothing() {
        assert_eq!(authorize(&mut HeaderMap::new(), &"sk-a\nb: c".into()), None);
    }

    #[test]
    fn the_answer_loses_cookies_and_connection_headers_only() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("set-cookie", "a=b"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-request-id", "req_up"),
            ("x-ratelimit-remaining-requests", "9"),
            ("x-service-decision", "approved"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        clean_response(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["x-ratelimit-remaining-requests", "x-request-id"]);
    }
}
