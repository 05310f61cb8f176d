//! Requests that are not HTTP, could be read in two ways, or never come to an end.

use super::fixture::{Fixture, SOON, estimated_body, open_cap};
use harness::RawClient;
use std::time::Duration;

/// Long enough to see that nothing comes.
const A_WHILE: Duration = Duration::from_millis(300);

/// The chunks count where a length is declared as well, and the connection ends there: nothing is smuggled behind it.
#[tokio::test]
async fn chunks_beside_a_length_end_their_connection() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = estimated_body(100).to_string();
    let call = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: edge\r\n\r\n",
        actor.key,
        body.len()
    );
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    raw.send(call).await;
    let reply = raw.reply(SOON).await.expect("an answer");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (200, Some("close")),
        "{reply:?}"
    );
    assert!(raw.closed(SOON).await, "what follows is not answered");
    let sent = fixture.upstream.requests().pop().expect("a request");
    assert_eq!(
        (sent.body == body.as_bytes(), sent.header("transfer-encoding")),
        (true, None)
    );
    assert_eq!(fixture.upstream.arrived(), 1);
    assert_eq!(actor.agent.counters().await.day_nanos, 12);
}

/// The edge decodes no transfer coding but `chunked`, so it would misread a body in another one.
#[tokio::test]
async fn transfer_codings_but_chunked_are_refused() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let body = estimated_body(100).to_string();
    let send = async |coding: &str| {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{coding}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            actor.key,
            body.len()
        );
        assert!(raw.send(request).await);
        let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{coding}"));
        (reply, raw)
    };
    for coding in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip,chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: , chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: \r\n",
    ] {
        let (reply, mut raw) = send(coding).await;
        assert_eq!(reply.status, 400, "{coding}: {reply:?}");
        assert!(
            reply.text().contains("\"code\":\"bad_request\""),
            "{coding}: {reply:?}"
        );
        assert_eq!(reply.header("connection"), Some("close"), "{coding}");
        assert!(raw.closed(SOON).await, "{coding}");
    }
    assert_eq!(fixture.upstream.arrived(), 0);
    for coding in ["Transfer-Encoding: chunked\r\n", "transfer-encoding:CHUNKED \r\n"] {
        assert_eq!(send(coding).await.0.status, 200, "{coding}");
    }
}

/// No request is shorter than three bytes, and many are shorter than the 24 of HTTP/2's preface.
#[tokio::test]
async fn short_requests_are_answered_at_once() {
    let fixture = Fixture::new().await;
    for (request, status, code) in [
        ("OPTIONS / HTTP/1.0\r\n\r\n", 404, "not_found"),
        ("GET / HTTP/1.0\r\n\r\n", 404, "not_found"),
        ("PUT / HTTP/1.0\r\n\r\n", 404, "not_found"),
        ("PRI / HTTP/1.0\r\n\r\n", 404, "not_found"),
        ("hello\r\n\r\n", 400, "bad_request"),
        ("PRI *\r\n\r\n", 400, "bad_request"),
        ("\0\0\r\n", 400, "bad_request"),
    ] {
        for in_pieces in [false, true] {
            let mut raw = RawClient::connect(fixture.edge.addr()).await;
            match in_pieces {
                false => assert!(raw.send(request).await),
                true => {
                    for byte in request.as_bytes() {
                        raw.send([*byte]).await;
                        tokio::task::yield_now().await;
                    }
                }
            }
            let reply = raw
                .reply(SOON)
                .await
                .unwrap_or_else(|| panic!("{request:?} {in_pieces}"));
            assert_eq!(reply.status, status, "{request:?} {in_pieces}: {reply:?}");
            let code = format!("\"code\":\"{code}\"");
            assert!(reply.text().contains(&code), "{request:?}: {reply:?}");
            assert!(reply.header("x-request-id").is_some(), "{request:?}: {reply:?}");
        }
    }
}

/// HTTP/2 is recognised by all of its preface, however it arrives.
#[tokio::test]
async fn the_preface_of_http_2_is_recognised_in_pieces() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let fixture = Fixture::new().await;
    for pieces in [
        &["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"][..],
        &["P", "RI * HTTP/2.0\r\n\r\nSM\r\n\r", "\n"],
    ] {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        for piece in pieces {
            assert!(raw.send(piece).await);
            tokio::time::sleep(A_WHILE / 10).await;
        }
        assert!(raw.send(SETTINGS).await);
        let answer = raw.read_to_end(A_WHILE).await;
        assert_eq!(answer.get(3), Some(&SETTINGS[3]), "{answer:?}");
    }
}

/// A head that is late is answered once it has begun, however short it is. A silent connection is closed.
#[tokio::test]
async fn late_heads_are_answered_and_silent_connections_closed() {
    let fixture = Fixture::with(|options| options.env("TOLLGATE_PROXY__CLIENT_TIMEOUT_MS", "300")).await;
    for said in [
        "G",
        "P",
        "PRI * ",
        "GET /v1/he",
        "GET /v1/health HTTP/1.1\r\nHost:",
    ] {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        raw.send(said).await;
        let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{said:?}"));
        assert_eq!(reply.status, 408, "{said:?}: {reply:?}");
        assert!(
            reply.text().contains("\"code\":\"request_timeout\""),
            "{said:?}: {reply:?}"
        );
        assert!(raw.closed(SOON).await, "after {said:?}");
    }
    // The beginning of HTTP/2 is no head of HTTP/1.
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    raw.send("PRI * HTTP/2").await;
    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 400);
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    assert!(raw.closed(SOON).await);
}

/// HTTP/1.1 names its host exactly once (RFC 9112 §3.2); HTTP/1.0 need not.
#[tokio::test]
async fn a_request_names_one_host() {
    let fixture = Fixture::new().await;
    for (version, host, status) in [
        ("1.1", "", 400),
        ("1.1", "Host: a\r\nHost: a\r\n", 400),
        ("1.1", "Host: a\r\nHost: b\r\n", 400),
        ("1.1", "Host: a b\r\n", 400),
        ("1.1", "Host: a/b\r\n", 400),
        ("1.1", "Host: a@b\r\n", 400),
        ("1.1", "Host: a:b\r\n", 400),
        ("1.0", "Host: a b\r\n", 400),
        ("1.1", "Host:\r\n", 200),
        ("1.1", "Host: edge.example:8080\r\n", 200),
        ("1.1", "Host: [::1]:8080\r\n", 200),
        ("1.0", "", 200),
        ("1.0", "Host: a\r\n", 200),
    ] {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        let request = format!("GET /v1/health HTTP/{version}\r\n{host}\r\n");
        assert!(raw.send(request).await);
        let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{host:?}"));
        assert_eq!(reply.status, status, "{version} {host:?}: {reply:?}");
        assert!(reply.header("x-request-id").is_some(), "{host:?}: {reply:?}");
        if status == 400 {
            assert!(
                reply.text().contains("\"code\":\"bad_request\""),
                "{host:?}: {reply:?}"
            );
            assert_eq!(reply.header("connection"), Some("close"), "{host:?}");
            assert!(raw.closed(SOON).await, "{host:?}");
        }
    }
}

/// A client library repeats a 408, and broken chunks are as broken the next time.
#[tokio::test]
async fn broken_chunks_are_malformed_and_a_body_that_ends_early_is_late() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let send = async |chunks: &str, ends: bool| {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}",
            actor.key
        );
        assert!(raw.send(request).await);
        if ends {
            raw.finish().await;
        }
        let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{chunks:?}"));
        assert_eq!(reply.header("connection"), Some("close"), "{chunks:?}: {reply:?}");
        assert!(raw.closed(SOON).await, "{chunks:?}");
        reply
    };
    for broken in [
        "zz\r\n{}\r\n0\r\n\r\n",
        "-1\r\n{}\r\n0\r\n\r\n",
        "2\n{}\n0\n\n",
        "2\r\n{} and more\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}\r\n0\r\nX: y\n\n\r\n",
    ] {
        let reply = send(broken, false).await;
        assert_eq!(reply.status, 400, "{broken:?}: {reply:?}");
        assert!(
            reply.text().contains("\"code\":\"bad_request\""),
            "{broken:?}: {reply:?}"
        );
    }
    for early in ["", "2\r\n{", "2\r\n{}\r\n", "2\r\n{}\r\n0\r\n"] {
        let reply = send(early, true).await;
        assert_eq!(reply.status, 408, "{early:?}: {reply:?}");
    }
    assert_eq!(fixture.upstream.arrived(), 0);
    assert_eq!(actor.agent.counters().await.day_nanos, 0);
}
