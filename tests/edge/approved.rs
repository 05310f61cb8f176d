//! Approved calls: what the provider is sent, and what the caller gets of its answer (specification §4.4 "Approved
//! response", decisions D34, D35, D51, D64).

use super::shape::approved;
use super::stage::{PROVIDER_KEY, SOON, Stage, ask, open_cap};
use harness::{Answer, RawClient, RawReply, Recorded, Reply};
use serde_json::json;
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

fn only(stage: &Stage) -> Recorded {
    let mut requests = stage.upstream.requests();
    assert_eq!(
        (requests.len(), stage.upstream.arrived()),
        (1, 1),
        "exactly one upstream request"
    );
    requests.remove(0)
}

#[tokio::test]
async fn the_provider_gets_the_exact_bytes_and_nothing_of_the_caller_s_secrets() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
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
    let mut raw = RawClient::connect(stage.edge.addr()).await;
    raw.send_chat(&actor.key, &extra, body.as_bytes()).await;
    let reply = raw.reply(SOON).await.expect("an answer");
    assert_eq!(reply.status, 200, "{reply:?}");

    let sent = only(&stage);
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
        ("host", &stage.upstream.addr().to_string()),
        ("idempotency-key", "k-1"),
        ("openai-organization", "org-1"),
        ("user-agent", "OpenAI/Python 2.0"),
        ("x-custom", "a"),
        ("x-custom", "b"),
        ("x-stainless-lang", "python"),
    ];
    let expected: Vec<_> = expected
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    assert_eq!(sorted(sent.head.lines().skip(1)), expected);
    assert!(!sent.head.contains("vk_live_"), "{}", sent.head);
}

#[tokio::test]
async fn bodies_of_all_sizes_arrive_whole_and_once() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    // Around Pingora's 64 KiB, and far beyond it.
    for (count, length) in [100, 65_535, 65_536, 65_537, 200_000, 1 << 20, 8 << 20]
        .into_iter()
        .enumerate()
    {
        let text = "0123456789abcdef".repeat(length / 16 + 1);
        let mut body = ask(100);
        body["messages"][0]["content"] = text[..length].into();
        let body = body.to_string();
        let reply = actor
            .caller
            .send("POST", "/v1/chat/completions", &[], body.clone())
            .await;
        assert_eq!(reply.status, 200, "{length}: {}", reply.text());
        let requests = stage.upstream.requests();
        assert_eq!(requests.len(), count + 1);
        assert!(
            requests[count].body == body.as_bytes(),
            "{length} bytes arrive unchanged"
        );
    }
    // The same without a declared length.
    let body = format!("{}{}", ask(100), " ".repeat(70_000));
    let mut raw = RawClient::connect(stage.edge.addr()).await;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        actor.key
    );
    raw.send(head).await;
    for piece in body.as_bytes().chunks(1000) {
        raw.send([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
            .await;
    }
    raw.send("0\r\n\r\n").await;
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    let last = stage.upstream.requests().pop().expect("a request");
    assert!(last.body == body.as_bytes(), "a chunked body arrives unchanged");
    assert_eq!(
        last.header("content-length"),
        Some(body.len().to_string().as_str())
    );
    assert_eq!(last.header("transfer-encoding"), None);
}

#[tokio::test]
async fn the_caller_gets_the_provider_s_answer_less_cookies_and_connection_headers() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let body = "{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2},  \"x\": 1e2 }\n";
    stage.upstream.set(move |_| {
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
    let mut raw = RawClient::connect(stage.edge.addr()).await;
    raw.send_chat(
        &actor.key,
        "X-Service-Run-Id: run-7\r\n",
        ask(100).to_string().as_bytes(),
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

/// However the provider frames its answer, the caller gets the same bytes and the ledger the same cost.
#[tokio::test]
async fn answers_in_every_framing_are_passed_on_whole() {
    let stage = Stage::new().await;
    let plain = Answer::chat(9, 12);
    let long =
        json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 12 }, "pad": "x".repeat(3_000_000) });
    let cases: Vec<(&str, Answer)> = vec![
        ("with a length", plain.clone()),
        ("in chunks", plain.clone().chunked(7)),
        ("until the connection closes", plain.clone().until_close()),
        ("with closing announced", plain.clone().close()),
        ("after interim answers", plain.clone().interim(103).interim(100)),
        (
            "byte by byte",
            plain.clone().trickle(40, Duration::from_millis(1)),
        ),
        ("compressed", plain.clone().gzip()),
        ("compressed in chunks", plain.gzip().chunked(11)),
        ("very long", Answer::json(200, long.clone())),
        ("very long in chunks", Answer::json(200, long).chunked(65_536)),
        (
            "created",
            Answer::json(
                201,
                json!({ "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }),
            ),
        ),
    ];
    for (what, answer) in cases {
        let actor = stage.actor("enterprise", open_cap()).await;
        let direct = {
            let answer = answer.clone();
            harness::Upstream::start(move |_| answer.clone())
        };
        let straight = harness::Caller::new(&format!("http://{}", direct.addr()), "")
            .chat(ask(100))
            .await;
        stage.upstream.set(move |_| answer.clone());
        let before = stage.upstream.arrived();
        let reply: Reply = actor.caller.chat(ask(100)).await;
        assert_eq!(reply.status, straight.status, "{what}");
        assert!(reply.body == straight.body, "{what}: the body is the provider's");
        for name in ["content-type", "content-encoding"] {
            assert_eq!(reply.header(name), straight.header(name), "{what}");
        }
        approved(&reply);
        assert_eq!(
            reply.header("x-service-actual-usd"),
            Some("0.000000012"),
            "{what}"
        );
        assert_eq!(actor.agent.counters().await.day_nanos, 12, "{what}");
        assert_eq!(stage.upstream.arrived(), before + 1, "{what}");
    }
}

/// A provider that sends more than one answer must not answer the next caller's question.
#[tokio::test]
async fn a_second_answer_is_never_given_to_the_next_call() {
    let stage = Stage::new().await;
    let (one, two) = (
        stage.actor("enterprise", open_cap()).await,
        stage.actor("enterprise", open_cap()).await,
    );
    let own = |body: &serde_json::Value| json!({ "for": body["messages"][0]["content"] });
    stage
        .upstream
        .set(move |request| Answer::json(200, own(&request.json())).twice());
    for round in 0..10 {
        for (name, actor) in [("one", &one), ("two", &two)] {
            let mut body = ask(100);
            let content = format!("{name} {round}");
            body["messages"][0]["content"] = content.as_str().into();
            let reply = actor.caller.chat(body).await;
            if reply.status == 200 {
                assert_eq!(reply.json()["for"], content, "an answer belongs to its question");
            } else {
                assert_eq!(reply.status, 502, "{reply:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_id_is_echoed_when_well_formed_and_made_otherwise() {
    let stage = Stage::new().await;
    let actor = stage.actor("enterprise", open_cap()).await;
    let of = |reply: &Reply| reply.header("x-request-id").expect("an id").to_owned();
    let echoed = actor
        .caller
        .chat_with(&[("x-request-id", "my-id_1.2:3")], ask(100))
        .await;
    assert_eq!(of(&echoed), "my-id_1.2:3");
    let (long, too_long) = ("r".repeat(200), "r".repeat(201));
    assert_eq!(
        of(&actor.caller.chat_with(&[("x-request-id", &long)], ask(100)).await),
        long
    );
    let mut made = std::collections::HashSet::new();
    for bad in ["", "a b", "a/b", "<script>", &too_long] {
        for path in ["/v1/chat/completions", "/v1/health", "/nowhere"] {
            let reply = actor
                .caller
                .send("POST", path, &[("x-request-id", bad)], ask(100).to_string())
                .await;
            assert!(
                of(&reply).starts_with("req_") && made.insert(of(&reply)),
                "{bad:?}: {reply:?}"
            );
        }
    }
}
