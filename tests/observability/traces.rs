//! Spans of calls and management requests at a collector, and the trace that a caller began at the provider.

use crate::fixture::{Fixture, SOON, body, scrape};
use crate::protobuf::Message;
use harness::{Answer, Upstream, eventually, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// A span as the collector received it.
#[derive(Debug, Clone)]
struct Span {
    service: String,
    trace: String,
    id: String,
    parent: String,
    name: String,
    kind: u64,
    start: u64,
    end: u64,
    attributes: BTreeMap<String, String>,
    failed: bool,
}

fn attributes(list: &[Message]) -> BTreeMap<String, String> {
    let value = |pair: &Message| {
        let value = &pair.messages(2)[0];
        match value.bytes(1) {
            Some(_) => value.text(1),
            None => value.number(3).to_string(),
        }
    };
    list.iter().map(|pair| (pair.text(1), value(pair))).collect()
}

/// All spans that reached the collector.
fn spans(collector: &Upstream) -> Vec<Span> {
    let mut found = Vec::new();
    for request in collector.requests() {
        assert_eq!(request.path, "/otel/v1/traces");
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        assert_eq!(request.header("x-stainless-team"), Some("seven"));
        for group in Message::parse(&request.body).messages(1) {
            let service = attributes(&group.messages(1)[0].messages(1))["service.name"].clone();
            for span in group.messages(2)[0].messages(2) {
                let hex = |number| hex::encode(span.bytes(number).unwrap_or_default());
                let status = span.messages(15);
                found.push(Span {
                    service: service.clone(),
                    trace: hex(1),
                    id: hex(2),
                    parent: hex(4),
                    name: span.text(5),
                    kind: span.number(6),
                    start: span.number(7),
                    end: span.number(8),
                    attributes: attributes(&span.messages(9)),
                    failed: status.first().is_some_and(|status| status.number(3) == 2),
                });
            }
        }
    }
    found
}

fn collector() -> (Upstream, String) {
    let collector = Upstream::start(|_| Answer::json(200, json!({})));
    let url = format!("http://{}/otel", collector.addr());
    (collector, url)
}

async fn fixture_with(url: &str, ratio: &'static str) -> Fixture {
    let settings = [
        ("TOLLGATE_TELEMETRY__OTLP_ENDPOINT", url),
        ("TOLLGATE_TELEMETRY__OTLP_HEADERS", "x-stainless-team=seven"),
        ("TOLLGATE_TELEMETRY__SAMPLE_RATIO", ratio),
    ];
    Fixture::with(
        |options| {
            settings
                .iter()
                .fold(options, |options, (name, value)| options.env(name, *value))
        },
        |options| {
            settings
                .iter()
                .fold(options, |options, (name, value)| options.env(name, *value))
        },
    )
    .await
}

async fn collected(collector: &Upstream, count: usize) -> Vec<Span> {
    eventually("the spans", SOON, async || {
        let spans = spans(collector);
        (spans.len() >= count).then_some(spans)
    })
    .await
}

#[tokio::test]
async fn the_spans_of_a_call_reach_the_collector_and_the_trace_goes_on_to_the_provider() {
    let (collector, url) = collector();
    let fixture = fixture_with(&url, "0.0").await;
    let actor = fixture.rich().await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", traceparent.as_str()), ("tracestate", "vendor=x")];
    let reply = actor.caller.chat_with(&headers, body()).await;
    assert_eq!(reply.status, 200);
    let response = actor.caller.chat(body()).await;
    assert_eq!(response.status, 200, "a trace of its own, which is not sampled");
    let spans = collected(&collector, 7).await;
    assert_eq!(spans.len(), 7, "{spans:?}");
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "call", "resolve", "receive", "read", "decide", "upstream", "settle"
        ]
    );
    let call = &spans[0];
    assert_eq!((call.parent.as_str(), call.kind, call.failed), (PARENT, 2, false));
    let id = reply.header("x-service-allow-id").unwrap();
    assert_eq!(call.attributes["tollgate.decision"], "approved");
    assert_eq!(call.attributes["tollgate.decision.id"], id);
    assert_eq!(call.attributes["tollgate.account.id"], actor.agent.account.id);
    assert_eq!(call.attributes["upstream.status"], "200");
    let mut last = call.start;
    for span in &spans {
        assert_eq!(
            (span.service.as_str(), span.trace.as_str()),
            ("tollgate-proxy", TRACE)
        );
        assert!(
            span.start <= span.end && span.start >= call.start && span.end <= call.end,
            "{span:?}"
        );
    }
    for span in &spans[1..] {
        assert_eq!(span.parent, call.id, "{span:?}");
        assert!(span.start >= last, "stages follow each other: {spans:?}");
        last = span.end;
    }
    let upstream = &spans[5];
    assert_eq!(upstream.kind, 3);
    let sent = &fixture.upstream.requests()[0];
    assert_eq!(
        sent.header_all("traceparent"),
        [format!("00-{TRACE}-{}-01", upstream.id)]
    );
    assert_eq!(sent.header("tracestate"), Some("vendor=x"));
    assert_eq!(fixture.upstream.requests()[1].header("traceparent"), None);
    let line = fixture
        .edge
        .logs()
        .lines()
        .find(|line| line.contains(id))
        .map(str::to_owned);
    let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
    assert_eq!(line["trace.id"], TRACE);
}

#[tokio::test]
async fn denials_and_management_requests_are_traced_too() {
    let (collector, url) = collector();
    let fixture = fixture_with(&url, "1.0").await;
    let poor = fixture.poor().await;
    let reply = poor.caller.chat(body()).await;
    assert_eq!(reply.status, 402);
    assert_eq!(fixture.admin.caller("").get("/v1/agents").await.status, 401);
    let spans = collected(&collector, 6).await;
    let denied = spans.iter().find(|span| span.name == "call").unwrap();
    assert_eq!(denied.attributes["tollgate.reason"], "daily_limit");
    assert!(!spans.iter().any(|span| span.name == "upstream"), "{spans:?}");
    let request = spans
        .iter()
        .find(|span| span.service == "tollgate-admin")
        .unwrap();
    assert_eq!((request.name.as_str(), request.parent.as_str()), ("request", ""));
    assert_eq!(request.attributes["http.route"], "/agents");
    assert_eq!(request.attributes["http.response.status_code"], "401");
    let exported = |scrape: crate::scrape::Scrape, prefix: &str| {
        scrape.sum(&format!("{prefix}_spans_exported_total"), &[])
    };
    until("the counts", async || {
        let [edge, admin] = fixture.scrapes();
        exported(edge, "tollgate_proxy") > 4.5 && exported(admin, "tollgate_admin") > 0.5
    })
    .await;
}

#[tokio::test]
async fn a_collector_that_hangs_or_fails_costs_spans_only() {
    let (collector, url) = collector();
    collector.set(|_| Answer::hang());
    let fixture = fixture_with(&url, "1.0").await;
    let actor = fixture.rich().await;
    for _ in 0..20 {
        assert_eq!(actor.caller.chat(body()).await.status, 200);
    }
    collector.stop();
    assert_eq!(actor.caller.chat(body()).await.status, 200);
    until("the count of what was lost", async || {
        let labels = [("reason", "failed")];
        let lost = scrape(&fixture.edge).sum("tollgate_proxy_spans_dropped_total", &labels);
        lost > 7.0 * 20.5
    })
    .await;
    assert!(fixture.edge.logs().contains("spans do not reach the collector"));
}

#[tokio::test]
async fn without_a_collector_the_callers_headers_pass_as_they_came() {
    let fixture = Fixture::new().await;
    let actor = fixture.rich().await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", traceparent.as_str()), ("tracestate", "vendor=x")];
    assert_eq!(actor.caller.chat_with(&headers, body()).await.status, 200);
    assert_eq!(actor.caller.chat(body()).await.status, 200);
    let requests = fixture.upstream.requests();
    assert_eq!(requests[0].header("traceparent"), Some(traceparent.as_str()));
    assert_eq!(requests[0].header("tracestate"), Some("vendor=x"));
    assert_eq!(requests[1].header("traceparent"), None);
    assert!(
        fixture.edge.logs().contains(TRACE),
        "the line names the caller's trace"
    );
    let mut ids: Vec<String> = fixture
        .edge
        .logs()
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<Value>(line).ok()?["trace.id"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2, "the other call has a trace of its own");
}
