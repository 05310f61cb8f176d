//! Tests of [`super`].

use super::*;
use settings::upstreams::Auth;
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
fn repeated_headers_and_any_bytes_are_forwarded_as_they_came() {
    let mut caller = HeaderMap::new();
    for value in [&b"a"[..], b"caf\xe9", b""] {
        caller.append("x-many", HeaderValue::from_bytes(value).unwrap());
    }
    let outbound = outbound(&["X-Many"], &caller, None);
    let lines = b"\r\nx-many: a\r\nx-many: caf\xe9\r\nx-many: \r\n";
    let found = outbound
        .as_bytes()
        .windows(lines.len())
        .filter(|window| *window == lines);
    assert_eq!(found.count(), 1, "{:?}", outbound.as_bytes());
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
        let accepts = lines(outbound.as_bytes())
            .iter()
            .any(|line| line.starts_with("accept:"));
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
    let lines = lines(outbound(&["content-type", "x-team"], &caller, None).as_bytes());
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
    let lines = lines(outbound(&list, &caller, Some(&continued)).as_bytes());
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
        let unchanged = lines(outbound(&list, &caller, None).as_bytes());
        assert!(
            unchanged.contains(&format!("traceparent: {parent}"))
                && unchanged.contains(&"tracestate: a=b".to_owned())
        );
        let continued = Trace::from_headers(&caller).continued(0xabc).unwrap();
        let outbound = lines(outbound(&list, &caller, Some(&continued)).as_bytes());
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
fn the_answer_loses_what_is_about_the_connection_and_the_host_or_for_proxies_only() {
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
        ("x-accel-redirect", "/private/keys"),
        ("x-accel-limit-rate", "1"),
        ("x-accel-buffering", "no"),
        ("x-sendfile", "/etc/passwd"),
        ("x-sendfile-temporary", "/etc/passwd"),
        ("x-reproxy-url", "http://10.0.0.1/"),
        ("x-litespeed-location", "/private/keys"),
        ("surrogate-control", "content=\"ESI/1.0\""),
        ("x-envoy-immediate-health-check-fail", "true"),
        ("x-envoy-upstream-service-time", "12"),
        ("x-request-id", "req_up"),
        ("x-ratelimit-remaining-requests", "9"),
        ("x-service-decision", "approved"),
    ]);
    clean_response(&mut headers);
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let kept = [
        "x-accel-buffering",
        "x-envoy-upstream-service-time",
        "x-ratelimit-remaining-requests",
        "x-request-id",
    ];
    assert_eq!(names, kept);
}
