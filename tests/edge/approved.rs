//! Approved calls: the request to the provider and the answer to the caller (specification §4.4 "Approved response",
//! decisions D34, D35, D51, D64).

use super::fixture::{Fixture, PROVIDER_KEY, SOON, estimated_body, open_cap};
use harness::{Answer, RawClient, RawReply, Recorded, Reply};
use std::time::Duration;

/// Headers of a request or answer as sorted pairs, names in lower case.
fn sorted<'a>(head: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let lines = head.filter_map(|line| line.split_once(':'));
    let mut pairs: Vec<_> = lines
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    pairs.sort();
    pairs
}

fn only(fixture: &Fixture) -> Recorded {
    let mut requests = fixture.upstream.requests();
    assert_eq!(
        (requests.len(), fixture.upstream.arrived()),
        (1, 1),
        "exactly one upstream request"
    );
    requests.remove(0)
}

#[tokio::test]
async fn the_provider_gets_the_exact_bytes_and_nothing_of_the_caller_s_secrets() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    // Odd spacing, escapes, an unpaired-looking but valid surrogate pair, a number that a re-encoder would change.
    let body = "{ \"model\" :\"nano\",\n\t\"messages\":[{\"content\":\"h\\u00e9\\ud83d\\ude00 \u{fc}\\/\",\"role\":\"user\"}],\
                \"temperature\":0.10000, \"max_tokens\":100,\"unknown_to_us\":{\"b\":1e2,\"a\":[]} }\r\n  ";
    let extra = format!(
        "x-api-key: {}\r\nCookie: session=1\r\nX-Service-Run-Id: r-1\r\nX-Service-Debug: 1\r\nX-Forwarded-For: 10.1.1.1\r\n\
         X-Forwarded-Proto: https\r\nForwarded: for=10.1.1.1\r\nX-Real-IP: 10.1.1.1\r\nAccept-Encoding: gzip, br\r\n\
         Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\nProxy-Authorization: Basic eA==\r\n\
         Proxy-Connection: keep-alive\r\nApi-Key: other\r\nUser-Agent: OpenAI/Python 2.0\r\nOpenAI-Organization: org-1\r\n\
         X-Stainless-Lang: python\r\nAccept: application/json\r\nX-Custom: a\r\nX-Custom: b\r\nIdempotency-Key: k-1\r\n",
        actor.key
    );
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    raw.send_chat(&actor.key, &extra, body.as_bytes()).await;
    let reply = raw.reply(SOON).await.expect("an answer");
    assert_eq!(reply.status, 200, "{reply:?}");

    let sent = only(&fixture);
    assert_eq!(
        (sent.method.as_str(), sent.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        String::from_utf8_lossy(&sent.body),
        body,
        "the caller's exact bytes"
    );
    let expected = [
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("authorization", &format!("Bearer {PROVIDER_KEY}")),
        ("content-length", &body.len().to_string()),
        ("content-type", "application/json"),
        ("host", &fixture.upstream.addr().to_string()),
        ("idempotency-key", "k-1"),
        ("user-agent", "OpenAI/Python 2.0"),
        ("x-stainless-lang", "python"),
    ];
    let expected: Vec<_> = expected
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    assert_eq!(sorted(sent.head.lines().skip(1)), expected);
    assert!(!sent.head.contains("vk_live_"), "{}", sent.head);
}

/// Decision D73: headers of the caller beyond the list do not pass, and the operator can add to the list.
#[tokio::test]
async fn the_provider_gets_the_listed_headers_only() {
    let headers = "OpenAI-Organization: org-1\r\nOpenAI-Project: proj-1\r\nOpenAI-Beta: assistants=v2\r\nX-Custom: a\r\n\
        X-Custom: b\r\nX-Client-Request-Id: c-1\r\nX-Tenant: t\r\nX-Stainless-Lang: python\r\nOrigin: http://a\r\nVia: 1.1 a\r\n\
        traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\ntracestate: a=b\r\nCF-Connecting-IP: 10.1.1.1\r\n";
    let ours = [
        "accept-encoding",
        "authorization",
        "content-length",
        "content-type",
        "host",
    ];
    let usual = [
        "openai-beta",
        "traceparent",
        "tracestate",
        "x-client-request-id",
        "x-stainless-lang",
    ];
    let more = ["openai-organization", "openai-project", "x-custom", "x-custom"];
    for (list, expected) in [
        (None, &usual[..]),
        (
            Some("Content-Type, OpenAI-Organization, openai-project, X-Custom"),
            &more,
        ),
    ] {
        let fixture = Fixture::with(|options| match list {
            None => options,
            Some(list) => options.env("TOLLGATE_UPSTREAM__FORWARD_HEADERS", list),
        })
        .await;
        let actor = fixture.actor("enterprise", open_cap()).await;
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        raw.send_chat(&actor.key, headers, estimated_body(100).to_string().as_bytes())
            .await;
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
        let sent = sorted(only(&fixture).head.lines().skip(1));
        let names = sent.iter().map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.filter(|name| !ours.contains(name)).collect();
        assert_eq!(names, expected, "{list:?}");
    }
}

#[tokio::test]
async fn the_caller_gets_the_provider_s_answer_less_cookies_and_connection_headers() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = "{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2},  \"x\": 1e2 }\n";
    fixture.upstream.set(move |_| {
        [
            ("Content-Type", "application/json; charset=utf-8"),
            ("X-Request-Id", "req_of_the_provider"),
            ("x-ratelimit-remaining-requests", "59"),
            ("openai-processing-ms", "7"),
            ("X-Double", "a"),
            ("X-Double", "b"),
            ("Set-Cookie", "a=b"),
            ("Set-Cookie", "c=d"),
            ("Connection", "keep-alive, X-Hop"),
            ("X-Hop", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Authenticate", "Basic"),
            ("X-Service-Decision", "denied"),
            ("X-Service-Reason", "forged"),
            ("X-Service-Actual-Usd", "999"),
            ("x-should-retry", "true"),
        ]
        .iter()
        .fold(Answer::bytes(200, body), |answer, (name, value)| {
            answer.header(name, value)
        })
    });
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    raw.send_chat(
        &actor.key,
        "X-Service-Run-Id: run-7\r\n",
        estimated_body(100).to_string().as_bytes(),
    )
    .await;
    let reply: RawReply = raw.reply(SOON).await.expect("an answer");
    assert_eq!(reply.text(), body);
    // Pingora sets `Date`, `Connection` and `Content-Length` for the caller's connection.
    let date = reply.header("date").expect("a date").to_owned();
    let overhead = reply
        .header("x-service-overhead-ms")
        .expect("our time")
        .to_owned();
    let allow_id = reply
        .header("x-service-allow-id")
        .expect("a decision id")
        .to_owned();
    let expected = [
        ("connection", "keep-alive"),
        ("content-length", &body.len().to_string()),
        ("content-type", "application/json; charset=utf-8"),
        ("date", &date),
        ("openai-processing-ms", "7"),
        ("x-double", "a"),
        ("x-double", "b"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-request-id", "req_of_the_provider"),
        ("x-service-actual-usd", "0.000000002"),
        ("x-service-allow-id", &allow_id),
        ("x-service-decision", "approved"),
        ("x-service-estimated-usd", "0.0000001"),
        ("x-service-overhead-ms", &overhead),
        ("x-service-run-id", "run-7"),
        ("x-should-retry", "true"),
    ];
    let expected: Vec<_> = expected
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    assert_eq!(sorted(reply.head.lines().skip(1)), expected);
}

#[tokio::test]
async fn a_request_id_is_echoed_when_well_formed_and_made_otherwise() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let of = |reply: &Reply| reply.header("x-request-id").expect("an id").to_owned();
    let echoed = actor
        .caller
        .chat_with(&[("x-request-id", "my-id_1.2:3")], estimated_body(100))
        .await;
    assert_eq!(of(&echoed), "my-id_1.2:3");
    let (long, too_long) = ("r".repeat(200), "r".repeat(201));
    assert_eq!(
        of(&actor
            .caller
            .chat_with(&[("x-request-id", &long)], estimated_body(100))
            .await),
        long
    );
    let mut made = std::collections::HashSet::new();
    for bad in ["", "a b", "a/b", "<script>", &too_long] {
        for path in ["/v1/chat/completions", "/v1/health", "/nowhere"] {
            let reply = actor
                .caller
                .send(
                    "POST",
                    path,
                    &[("x-request-id", bad)],
                    estimated_body(100).to_string(),
                )
                .await;
            assert!(
                of(&reply).starts_with("req_") && made.insert(of(&reply)),
                "{bad:?}: {reply:?}"
            );
        }
    }
}

/// `X-Service-Overhead-Ms` is the time spent here, the provider's excluded (decision D48).
#[tokio::test]
async fn the_overhead_does_not_count_the_provider_s_time() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    fixture
        .upstream
        .set(|_| Answer::chat(9, 12).delay(Duration::from_millis(3000)));
    let started = std::time::Instant::now();
    let reply = actor.caller.chat(estimated_body(100)).await;
    assert!(started.elapsed() >= Duration::from_millis(3000));
    let overhead = reply.header("x-service-overhead-ms").expect("our time");
    let whole: u64 = overhead
        .split('.')
        .next()
        .expect("digits")
        .parse()
        .expect("milliseconds");
    assert!(whole < 2000, "{overhead} ms of 3 s and a little");
}
