//! Headers between callers and the provider, in both directions (decisions D35 and D73).

use super::header_lines::HeaderLines;
use super::sent_body::SentBody;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use telemetry::trace::{ContinuedTrace, TRACEPARENT};

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

/// Request headers that are never forwarded, whatever the configured list contains: credentials, headers with which
/// proxies describe the caller, and headers that Tollgate itself sets.
const NEVER_FORWARDED: [&str; 11] = [
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

/// Prefixes of headers that proxies set or read.
const NEVER_FORWARDED_PREFIXES: [&str; 2] = ["x-service-", "x-forwarded-"];

/// Returns the headers that `Connection` also declares as hop-by-hop.
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

fn never_passes(name: &str) -> bool {
    HOP_BY_HOP.contains(&name)
        || NEVER_FORWARDED.contains(&name)
        || NEVER_FORWARDED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// The caller's request headers that are forwarded (`upstream.forward_headers`, decision D73).
#[derive(Debug)]
pub struct ForwardList {
    names: Vec<HeaderName>,
    /// Prefixes of entries such as `x-stainless-*`, with the hyphen, in lower case.
    prefixes: Vec<String>,
}

impl ForwardList {
    /// Parses the list of a section of the settings. `Content-Type` is always on it.
    ///
    /// # Errors
    /// One line that names the entry: it is not a header name, or names a header that is never forwarded.
    pub fn parse(section: &str, entries: &[String]) -> Result<Self, String> {
        let wrong = |entry: &str, what: &str| format!("`{section}.forward_headers`: `{entry}` {what}");
        // Without this header the provider does not know how to read the body.
        let (mut names, mut prefixes) = (vec![header::CONTENT_TYPE], Vec::new());
        for entry in entries {
            let prefix = entry.strip_suffix('*');
            if prefix.is_some_and(|prefix| prefix.len() < 2 || !prefix.ends_with('-')) {
                return Err(wrong(entry, "must be a name, or the beginning of names and `-*`"));
            }
            let name: HeaderName = prefix
                .unwrap_or(entry)
                .parse()
                .map_err(|_| wrong(entry, "is no header name"))?;
            if name.as_str().contains('*') {
                return Err(wrong(entry, "may have `*` at its end only"));
            }
            if never_passes(name.as_str()) {
                return Err(wrong(entry, "never reaches the provider"));
            }
            match prefix {
                Some(_) => prefixes.push(name.as_str().to_owned()),
                None => names.push(name),
            }
        }
        Ok(Self { names, prefixes })
    }

    fn passes(&self, name: &HeaderName) -> bool {
        // `parse` refuses names that are never forwarded.
        self.names.contains(name)
            || self
                .prefixes
                .iter()
                .any(|prefix| name.as_str().starts_with(prefix.as_str()))
                && !never_passes(name.as_str())
    }

    /// Returns the headers of the provider's request except the key: the caller's headers that are on the list, and
    /// Tollgate's own. `trace` replaces the caller's trace headers.
    pub fn outbound(
        &self,
        caller: &HeaderMap,
        host: &HeaderValue,
        sent: SentBody,
        trace: Option<&ContinuedTrace>,
    ) -> HeaderLines {
        let nominated = nominated(caller);
        // Without the type of the body its reader would have to guess it.
        let is_nominated = |name: &HeaderName| {
            name != header::CONTENT_TYPE && nominated.iter().any(|nominated| nominated == name.as_str())
        };
        let is_replaced = |name: &HeaderName| trace.is_some_and(|trace| trace.replaces(name));
        let mut outbound = HeaderLines::default();
        outbound.push(&header::HOST, [host.as_bytes()]);
        for (name, value) in caller {
            let is_wanted = !is_nominated(name) && !is_replaced(name) && !sent.is_contradicted(name, value);
            if self.passes(name) && is_wanted {
                outbound.push(name, [value.as_bytes()]);
            }
        }
        if let Some(trace) = trace {
            outbound.push(&TRACEPARENT, [trace.traceparent.as_bytes()]);
        }
        outbound.push(&header::ACCEPT_ENCODING, [b"identity"]);
        let mut digits = itoa::Buffer::new();
        outbound.push(&header::CONTENT_LENGTH, [digits.format(sent.length).as_bytes()]);
        outbound
    }
}

/// Response headers that apply to the provider's host and must not reach the caller, whose client would apply them to
/// the edge: send its next calls elsewhere, or insist on TLS. With `Location` the OpenAI SDKs repeat a call, and its
/// charge, at the edge some 60 times, or send it past the edge.
const ABOUT_THE_HOST: [&str; 6] = [
    "set-cookie",
    "alt-svc",
    "clear-site-data",
    "location",
    "refresh",
    "strict-transport-security",
];

/// Beginnings, behind `x-`, of response headers by which a server steers the proxies in front of it. They trust the
/// edge, not the provider: nginx and others send the caller one of their own pages or files in place of the answer, and
/// Envoy takes the edge out of service.
const FOR_PROXIES_IN_FRONT: [&str; 9] = [
    "accel-",
    "envoy-degraded",
    "envoy-immediate-health-check-fail",
    "envoy-overloaded",
    "envoy-ratelimited",
    "lighttpd-",
    "litespeed-",
    "reproxy-",
    "sendfile",
];
/// The exception, with which providers of streams ask not to be buffered.
const ACCEL_BUFFERING: &str = "accel-buffering";
/// Has proxies execute what the body includes.
const SURROGATE_CONTROL: &str = "surrogate-control";

/// Returns whether a response header steers proxies in front of the edge.
fn steers_proxies(name: &str) -> bool {
    match name.strip_prefix("x-") {
        Some(rest) => {
            let begins = |prefix: &&str| rest.starts_with(*prefix);
            rest != ACCEL_BUFFERING && FOR_PROXIES_IN_FRONT.iter().any(begins)
        }
        None => name == SURROGATE_CONTROL,
    }
}

/// Returns the length of the names and values of a head, in bytes.
pub fn head_length(headers: &HeaderMap) -> usize {
    let lines = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    lines.sum()
}

/// Removes headers that must not reach the caller from the provider's answer.
pub fn clean_response(headers: &mut HeaderMap) {
    let nominated = nominated(headers);
    let unwanted = |name: &HeaderName| {
        let name = name.as_str();
        HOP_BY_HOP.contains(&name)
            || ABOUT_THE_HOST.contains(&name)
            || steers_proxies(name)
            || name.starts_with("x-service-")
            || nominated.iter().any(|nominated| nominated == name)
    };
    let gone: Vec<HeaderName> = headers.keys().filter(|name| unwanted(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;
