//! Headers between callers and the provider, in both directions (decisions D35 and D73).

use super::sent_body::SentBody;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use settings::upstreams::Auth;
use telemetry::trace::{ContinuedTrace, TRACEPARENT};

/// Hop-by-hop headers.
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

/// Name of the header in which Azure expects the key.
const API_KEY: HeaderName = HeaderName::from_static("api-key");

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

/// Headers of the provider's request as they are sent, except the provider key.
pub struct HeaderLines(Vec<u8>);

impl Default for HeaderLines {
    fn default() -> Self {
        /// Initial capacity, more than the headers of an SDK's request need.
        const BYTES: usize = 1024;
        Self(Vec::with_capacity(BYTES))
    }
}

impl HeaderLines {
    /// Adds a line, whose value consists of these parts. Neither names nor values contain line ends.
    pub(super) fn push<const N: usize>(&mut self, name: &HeaderName, value: [&[u8]; N]) {
        self.0.extend_from_slice(name.as_str().as_bytes());
        self.0.extend_from_slice(b": ");
        value.iter().for_each(|part| self.0.extend_from_slice(part));
        self.0.extend_from_slice(b"\r\n");
    }

    /// Adds the line of the provider key. `None` if the stored key is not a valid header value.
    pub fn authorize(mut self, auth: Auth, key: &SecretString) -> Option<AuthorizedHeaders> {
        let key = key.expose_secret().as_bytes();
        if !key.iter().all(may_be_in_value) {
            return None;
        }
        match auth {
            Auth::Bearer => self.push(&header::AUTHORIZATION, [b"Bearer ", key]),
            Auth::ApiKey => self.push(&API_KEY, [key]),
        }
        Some(AuthorizedHeaders(self.0))
    }
}

/// Returns whether the value of a header may have this byte, as [`HeaderValue`] judges it. It would copy the key.
const fn may_be_in_value(byte: &u8) -> bool {
    matches!(*byte, b'\t' | b' '..=b'~' | 0x80..)
}

/// Headers of the provider's request with the provider key. No request can be sent without them. No `Debug`, since one
/// line contains the key.
pub struct AuthorizedHeaders(Vec<u8>);

impl AuthorizedHeaders {
    /// Returns the lines, each with its line end.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
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
    use telemetry::trace::Trace;

    fn list(entries: &[&str]) -> Result<ForwardList, String> {
        ForwardList::parse(
            "upstream",
            &entries
                .iter()
                .map(|entry| (*entry).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    fn sent(headers: &[(&'static str, &str)]) -> HeaderMap {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.append(*name, value.parse().unwrap());
        }
        sent
    }

    /// Returns the lines in alphabetical order, without their line ends.
    fn lines(outbound: &[u8]) -> Vec<String> {
        let text = str::from_utf8(outbound).unwrap();
        let lines = text.strip_suffix("\r\n").unwrap_or_default().split("\r\n");
        let mut lines: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    fn outbound(entries: &[&str], caller: &HeaderMap, trace: Option<&ContinuedTrace>) -> HeaderLines {
        let host = HeaderValue::from_static("provider:1");
        let sent = SentBody {
            length: 12,
            streams: false,
        };
        list(entries).unwrap().outbound(caller, &host, sent, trace)
    }

    /// Names of the headers that are forwarded with this list.
    fn onward_names(entries: &[&str], caller: &HeaderMap) -> Vec<String> {
        let outbound = outbound(entries, caller, None);
        let outbound = outbound.authorize(Auth::Bearer, &"sk-real".into()).unwrap();
        let mut lines = lines(outbound.as_bytes());
        for own in [
            "accept-encoding: identity",
            "authorization: Bearer sk-real",
            "content-length: 12",
            "host: provider:1",
        ] {
            let at = lines.iter().position(|line| line == own);
            lines.remove(at.expect(own));
        }
        let names = lines.iter().filter_map(|line| line.split_once(": "));
        let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_key_is_sent_if_it_can_be_the_value_of_a_header() {
        for byte in 0..=u8::MAX {
            let accepted = HeaderValue::from_bytes(&[byte]).is_ok();
            assert_eq!(may_be_in_value(&byte), accepted, "{byte}");
        }
        for auth in [Auth::Bearer, Auth::ApiKey] {
            let authorized = |key: &str| HeaderLines::default().authorize(auth, &key.into()).is_some();
            assert!(authorized("sk-1 a~") && !authorized("sk-1\r\nx: y") && !authorized("sk\u{7f}"));
        }
    }

    #[test]
    fn repeated_headers_and_any_bytes_are_forwarded_as_they_came() {
        let mut caller = HeaderMap::new();
        for value in [&b"a"[..], b"caf\xe9", b""] {
            caller.append("x-many", HeaderValue::from_bytes(value).unwrap());
        }
        let outbound = outbound(&["X-Many"], &caller, None);
        let lines = b"\r\nx-many: a\r\nx-many: caf\xe9\r\nx-many: \r\n";
        let found = outbound.0.windows(lines.len()).filter(|window| *window == lines);
        assert_eq!(found.count(), 1, "{:?}", outbound.0);
    }

    /// Some providers choose the form of their answer by this header. A stream that nobody expects has no usage.
    #[test]
    fn only_a_stream_can_be_accepted_as_one() {
        let list = list(&["accept"]).unwrap();
        let host = HeaderValue::from_static("provider:1");
        for (value, streams, passes) in [
            ("text/event-stream", true, true),
            ("text/event-stream", false, false),
            ("application/json, Text/Event-Stream", false, false),
            ("application/json", false, true),
            ("*/*", false, true),
        ] {
            let body = SentBody { length: 12, streams };
            let outbound = list.outbound(&sent(&[("accept", value)]), &host, body, None);
            let accepts = lines(&outbound.0).iter().any(|line| line.starts_with("accept:"));
            assert_eq!(accepts, passes, "{value}");
        }
    }

    #[test]
    fn the_type_of_the_body_passes_whatever_the_caller_nominates() {
        let caller = sent(&[
            ("content-type", "application/json"),
            ("x-team", "red"),
            ("connection", "content-type, x-team"),
        ]);
        let lines = lines(&outbound(&["content-type", "x-team"], &caller, None).0);
        let named = |name: &str| lines.iter().any(|line| line.starts_with(name));
        assert!(
            named("content-type: application/json") && !named("x-team"),
            "{lines:?}"
        );
    }

    #[test]
    fn a_trace_takes_the_place_of_several_and_of_nominated_ones() {
        let caller = sent(&[
            ("traceparent", "one"),
            ("traceparent", "two"),
            ("tracestate", "a=b"),
            ("tracestate", "c=d"),
            ("connection", "traceparent"),
        ]);
        let continued = Trace::from_headers(&caller).continued(0xabc).unwrap();
        let list = ["traceparent", "tracestate"];
        let lines = lines(&outbound(&list, &caller, Some(&continued)).0);
        let trace: Vec<&String> = lines.iter().filter(|line| line.starts_with("trace")).collect();
        assert!(
            trace.len() == 1 && trace[0].contains("0000000000000abc"),
            "{trace:?}"
        );
    }

    #[test]
    fn a_trace_takes_the_place_of_the_callers() {
        for (parent, expected) in [
            (
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                &[
                    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-0000000000000abc-01",
                    "tracestate: a=b",
                ][..],
            ),
            ("none", &["traceparent: 00-"][..]),
        ] {
            let caller = sent(&[("traceparent", parent), ("tracestate", "a=b")]);
            let list = ["traceparent", "tracestate"];
            let unchanged = lines(&outbound(&list, &caller, None).0);
            assert!(
                unchanged.contains(&format!("traceparent: {parent}"))
                    && unchanged.contains(&"tracestate: a=b".to_owned())
            );
            let continued = Trace::from_headers(&caller).continued(0xabc).unwrap();
            let outbound = lines(&outbound(&list, &caller, Some(&continued)).0);
            let trace: Vec<&String> = outbound.iter().filter(|line| line.starts_with("trace")).collect();
            assert_eq!(trace.len(), expected.len(), "{trace:?}");
            for (line, expected) in trace.iter().zip(expected) {
                assert!(line.starts_with(expected), "{line}");
            }
        }
    }

    #[test]
    fn only_listed_headers_are_forwarded_and_never_credentials() {
        let caller = sent(&[
            ("authorization", "Bearer vk_live_x"),
            ("x-api-key", "vk_live_x"),
            ("cookie", "a=b"),
            ("te", "trailers"),
            ("connection", "close, X-Secret-Hop, X-Client-Hop"),
            ("x-secret-hop", "1"),
            ("x-client-hop", "1"),
            ("x-service-run-id", "r"),
            ("x-forwarded-for", "10.0.0.1"),
            ("accept-encoding", "br"),
            ("host", "edge"),
            ("content-length", "9"),
            ("openai-organization", "org"),
            ("x-stainless-retry-count", "1"),
            ("x-stainless", "1"),
            ("x-client-request-id", "c"),
            ("x-custom", "1"),
            ("content-type", "application/json"),
        ]);
        assert_eq!(
            onward_names(&["Content-Type", "X-Stainless-*", "X-Custom-*"], &caller),
            ["content-type", "x-stainless-retry-count"]
        );
        assert_eq!(
            onward_names(&["OpenAI-Organization", "X-Client-*"], &caller),
            ["content-type", "openai-organization", "x-client-request-id"]
        );
        // Headers that are never forwarded stay out, however short the prefix.
        assert_eq!(
            onward_names(&["x-*"], &caller),
            [
                "content-type",
                "x-client-request-id",
                "x-custom",
                "x-stainless",
                "x-stainless-retry-count"
            ]
        );
        assert_eq!(onward_names(&[], &caller), ["content-type"]);
    }

    #[test]
    fn an_invalid_entry_is_named() {
        for bad in [
            "*",
            "-*",
            "x*",
            "a b",
            "",
            "x-*-*",
            "Cookie",
            "x-service-*",
            "X-Forwarded-For",
            "TE",
            "x-api-key",
        ] {
            let error = list(&[bad]).unwrap_err();
            assert!(
                error.contains("upstream.forward_headers") && error.contains(bad),
                "{error}"
            );
        }
    }

    #[test]
    fn a_key_that_is_no_header_value_sends_nothing() {
        for auth in [Auth::Bearer, Auth::ApiKey] {
            let headers = HeaderLines::default().authorize(auth, &"sk-a\nb: c".into());
            assert!(headers.is_none());
        }
    }

    #[test]
    fn the_key_stands_in_the_header_of_its_upstream() {
        for (auth, expected) in [
            (Auth::Bearer, "authorization: Bearer k1\r\n"),
            (Auth::ApiKey, "api-key: k1\r\n"),
        ] {
            let headers = HeaderLines::default().authorize(auth, &"k1".into()).unwrap();
            assert_eq!(headers.as_bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn the_answer_loses_what_is_about_the_connection_and_the_host_only() {
        let mut headers = sent(&[
            ("set-cookie", "a=b"),
            ("alt-svc", "h2=\"other:443\""),
            ("clear-site-data", "\"*\""),
            ("location", "/v1/chat/completions"),
            ("refresh", "0;url=https://other"),
            ("strict-transport-security", "max-age=1"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-request-id", "req_up"),
            ("x-ratelimit-remaining-requests", "9"),
            ("x-service-decision", "approved"),
        ]);
        clean_response(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["x-ratelimit-remaining-requests", "x-request-id"]);
    }
}
