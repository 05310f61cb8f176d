//! Connections: their number, and bounds on the waiting and memory that a client can cause.

use crate::fixture::{Fixture, problem, success};
use harness::{RawClient, RawReply, eventually};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
/// `admin.client_timeout_ms` of the servers here.
const TIMEOUT_MS: &str = "1000";
/// Longest wait for an effect of that time-out.
const ENDED: Duration = Duration::from_secs(15);
/// Smallest memory for bodies, in bytes: an account's share of it is as long as the longest body.
const LEAST_MEMORY: usize = 4 << 20;

async fn fixture(settings: &[(&str, &str)]) -> Fixture {
    Fixture::start_with(|options| {
        settings.iter().fold(options, |options, (name, value)| {
            options.env(&format!("TOLLGATE_ADMIN__{name}"), *value)
        })
    })
    .await
}

/// The value of a metric of this server, as `tollgate_admin_<line>`.
fn metric(fixture: &Fixture, line: &str) -> Option<u64> {
    fixture.admin.metric(&format!("tollgate_admin_{line}"))
}

async fn reaches(fixture: &Fixture, line: &str, value: u64) {
    eventually(line, SOON, async || {
        (metric(fixture, line)? == value).then_some(())
    })
    .await;
}

/// A connection with a request of `key` under way: a byte of its body is missing.
async fn busy_connection(fixture: &Fixture, key: &str) -> RawClient {
    let mut client = RawClient::connect(fixture.admin.addr()).await;
    let before = metric(fixture, "body_memory_bytes").unwrap();
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{"
    );
    assert!(client.send(head).await);
    reaches(fixture, "body_memory_bytes", before + 1).await;
    client
}

async fn key(fixture: &Fixture) -> String {
    let (account, _) = fixture.account("enterprise").await;
    let live = domain::mode::Mode::Live;
    let key = account.issue(live, crate::fixture::FULL, &[], None).await;
    key.secret
}

/// Both limits: per address, and in total.
#[tokio::test]
async fn beyond_a_limit_a_connection_is_closed_at_once_where_all_others_are_at_work() {
    for (setting, limit) in [
        ("MAX_CONNECTIONS_PER_ADDRESS", "address"),
        ("MAX_CONNECTIONS", "all"),
    ] {
        let fixture = fixture(&[(setting, "3")]).await;
        let (addr, key) = (fixture.admin.addr(), key(&fixture).await);
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(busy_connection(&fixture, &key).await);
        }
        reaches(&fixture, r#"connections{listener="management"}"#, 3).await;
        assert!(RawClient::connect(addr).await.closed(SOON).await);
        let refused = format!(r#"connections_refused_total{{limit="{limit}",listener="management"}}"#);
        reaches(&fixture, &refused, 1).await;
        // The ops listener has places of its own.
        assert_eq!(fixture.admin.ops("/livez").unwrap().0, 200);
        // A place is free again as soon as one of them ends.
        drop(open.pop());
        reaches(&fixture, r#"connections{listener="management"}"#, 2).await;
        let mut next = RawClient::connect(addr).await;
        assert_eq!(get(&mut next, "/openapi.json").await.status, 200);
        for client in &mut open {
            assert!(client.send("}").await);
            let reply = client.reply(SOON).await.expect("an answer");
            assert_eq!(reply.status, 400, "{}", reply.head);
        }
    }
}

/// Strangers who take all places do not keep callers out.
#[tokio::test]
async fn idle_connections_make_room_and_unknown_callers_go_first() {
    let fixture = fixture(&[("MAX_CONNECTIONS", "4")]).await;
    let (addr, key) = (fixture.admin.addr(), key(&fixture).await);
    let mut working = busy_connection(&fixture, &key).await;
    let mut known = RawClient::connect(addr).await;
    let request = format!("GET /v1/agents HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n");
    assert!(known.send(&request).await);
    assert_eq!(known.reply(SOON).await.unwrap().status, 200);
    let mut served = RawClient::connect(addr).await;
    assert_eq!(get(&mut served, "/openapi.json").await.status, 200);
    let mut silent = RawClient::connect(addr).await;
    reaches(&fixture, r#"connections{listener="management"}"#, 4).await;
    let mut held = Vec::new();
    let closed = r#"connections_closed_for_others_total{listener="management"}"#;
    for (number, stranger) in [&mut served, &mut silent].into_iter().enumerate() {
        let mut next = busy_connection(&fixture, &key).await;
        assert!(stranger.closed(SOON).await);
        reaches(&fixture, closed, number as u64 + 1).await;
        assert!(next.send("}").await);
        assert_eq!(next.reply(SOON).await.unwrap().status, 400);
        reaches(&fixture, r#"connections{listener="management"}"#, 4).await;
        held.push(next);
    }
    assert!(known.send(&request).await, "a known caller who rested stays");
    assert_eq!(known.reply(SOON).await.unwrap().status, 200);
    assert!(working.send("}").await);
    assert_eq!(working.reply(SOON).await.unwrap().status, 400);
}

/// Connections whose answers are never read.
const SILENT: u64 = 100;

/// The server's resident memory, in bytes.
fn resident(fixture: &Fixture) -> u64 {
    fixture.admin.metric("process_resident_memory_bytes").unwrap()
}

/// An unread answer is not copied for each connection, and is freed with it.
#[tokio::test]
async fn a_client_that_does_not_read_its_answers_is_disconnected() {
    let fixture = fixture(&[("CLIENT_TIMEOUT_MS", TIMEOUT_MS)]).await;
    let before = resident(&fixture);
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        // More than the kernel's buffers take.
        let requests = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200);
        assert!(client.send(requests).await);
        silent.push(client);
    }
    let grown = resident(&fixture).saturating_sub(before);
    assert!(
        grown < SILENT * 200 * 1024,
        "{grown} bytes for {SILENT} connections"
    );
    reaches(
        &fixture,
        r#"connections_stalled_total{listener="management"}"#,
        SILENT,
    )
    .await;
    reaches(&fixture, r#"connections{listener="management"}"#, 0).await;
}

#[tokio::test]
async fn a_late_head_is_answered_with_408_and_a_pause_that_is_too_long_with_nothing() {
    let fixture = fixture(&[("CLIENT_TIMEOUT_MS", TIMEOUT_MS)]).await;
    let addr = fixture.admin.addr();
    let mut nothing = RawClient::connect(addr).await;
    let mut pausing = RawClient::connect(addr).await;
    assert_eq!(get(&mut pausing, "/reference").await.status, 200);
    for is_first in [true, false] {
        let mut client = RawClient::connect(addr).await;
        if !is_first {
            assert_eq!(get(&mut client, "/reference").await.status, 200);
        }
        assert!(client.send("GET /openapi.json HTTP/1.1\r\nHost: a\r\nX-").await);
        let reply = client.reply(ENDED).await.expect("an answer");
        assert_eq!(reply.status, 408, "{}", reply.head);
        let message = "The head of the request did not arrive in time.";
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body, json!({ "error": message, "code": "REQUEST_TIMEOUT" }));
        assert!(client.closed(SOON).await);
    }
    for client in [&mut nothing, &mut pausing] {
        assert!(client.closed(ENDED).await, "without an answer");
    }
    reaches(&fixture, r#"connections{listener="management"}"#, 0).await;
}

/// A body that stops and one that arrives byte by byte, of a known caller and of a stranger.
#[tokio::test]
async fn a_body_that_is_not_there_in_time_is_answered_with_408() {
    let fixture = fixture(&[("CLIENT_TIMEOUT_MS", TIMEOUT_MS)]).await;
    let authorization = format!("Authorization: Bearer {}\r\n", key(&fixture).await);
    for (path, authorization) in [("/v1/agents", &*authorization), ("/api/user/login", "")] {
        for drips in [false, true] {
            let mut client = RawClient::connect(fixture.admin.addr()).await;
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\n{authorization}Content-Type: application/json\r\nContent-Length: 4000\r\n\r\n{{"
            );
            assert!(client.send(head).await);
            let dripping = async {
                while drips && client.send(" ").await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    if let Some(reply) = client.reply(Duration::from_millis(1)).await {
                        return reply;
                    }
                }
                client.reply(SOON).await.expect("an answer")
            };
            let reply = dripping.await;
            assert_eq!(reply.status, 408, "{path}: {}", reply.head);
            let body: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(body["code"], json!("REQUEST_TIMEOUT"), "{body}");
            assert!(client.closed(SOON).await, "what follows cannot be a request");
        }
    }
    reaches(&fixture, "body_memory_bytes", 0).await;
}

#[tokio::test]
async fn a_head_may_have_64_kib_and_100_lines_and_the_answers_of_the_library_have_id_and_body() {
    let fixture = fixture(&[]).await;
    let long = |length: usize| {
        format!(
            "GET /reference HTTP/1.1\r\nHost: a\r\nX-Long: {}\r\n\r\n",
            "x".repeat(length)
        )
    };
    let lines = |more: usize| {
        let more = "X-A: b\r\n".repeat(more);
        format!("GET /reference HTTP/1.1\r\nHost: a\r\n{more}\r\n")
    };
    for (request, status, message) in [
        (long(60 << 10), 200, None),
        (lines(99), 200, None),
        (lines(100), 431, Some("The head of the request is too long.")),
        (long(200 << 10), 431, Some("The head of the request is too long.")),
        (
            "no HTTP at all\r\n\r\n".to_owned(),
            400,
            Some("The request is not valid HTTP."),
        ),
        (
            format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(66_000)),
            414,
            Some("The address of the request is too long."),
        ),
    ] {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        let sent = client.send(&request).await;
        let reply = client.reply(SOON).await;
        let reply = reply.unwrap_or_else(|| panic!("no answer; sent: {sent}, {status}"));
        assert_eq!(reply.status, status, "{}", reply.head);
        assert!(
            reply
                .header("x-request-id")
                .is_some_and(|id| id.starts_with("req_")),
            "{}",
            reply.head
        );
        if let Some(message) = message {
            let body: Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(body, json!({ "error": message, "code": "VALIDATION" }));
        }
    }
}

/// Requests that two servers could read differently, or that hyper accepts or closes without an answer, are malformed
/// HTTP.
#[tokio::test]
async fn malformed_requests_are_refused_before_the_router() {
    let fixture = fixture(&[]).await;
    let key = key(&fixture).await;
    let post = |lines: &str| {
        format!(
            "POST /v1/agents HTTP/1.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n{lines}\r\n\
             c\r\n{{\"name\":\"a\"}}\r\n0\r\n\r\n"
        )
    };
    let chunked = "Host: a\r\nTransfer-Encoding: chunked\r\n";
    let refused = [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        post("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n"),
        post("Host: a\r\nTransfer-Encoding: chunked, chunked\r\n"),
        post("Host: a\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        post(&format!("{chunked}Transfer-Encoding: chunked\r\n")),
        post("Transfer-Encoding: chunked\r\n"),
        post(&format!("{chunked}Host: b\r\n")),
        post(&chunked.replace("Host: a", "Host: a b/@")),
        "GET /v1/agents HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(),
    ];
    for request in &refused {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        assert!(client.send(request).await);
        let reply = client.reply(SOON).await.unwrap_or_else(|| panic!("{request}"));
        assert_eq!(reply.status, 400, "{request}: {}", reply.head);
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(
            body,
            json!({ "error": "The request is not valid HTTP.", "code": "VALIDATION" }),
            "{request}"
        );
        let id = reply.header("x-request-id").expect("an id");
        assert!(id.starts_with("req_"), "{request}: {id}");
        assert!(client.closed(SOON).await, "{request}");
    }
    let taken = [
        (post(chunked), 200),
        (post("Host: [::1]:8081\r\nTransfer-Encoding: CHUNKED \r\n"), 200),
        ("GET /reference HTTP/1.0\r\n\r\n".to_owned(), 200),
    ];
    for (request, status) in taken {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        assert!(client.send(&request).await);
        let reply = client.reply(SOON).await.unwrap_or_else(|| panic!("{request}"));
        assert_eq!(reply.status, status, "{request}: {reply:?}");
    }
}

/// Most clients write head and body separately. A refusal does not wait for the body, and does not affect the next
/// request on the connection.
#[tokio::test]
async fn an_answer_before_the_body_keeps_its_connection_or_says_that_it_closes_it() {
    let fixture = fixture(&[]).await;
    let (addr, key) = (fixture.admin.addr(), key(&fixture).await);
    let head = |request: &str, key: &str, lines: &str| {
        format!(
            "{request} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n{lines}\r\n"
        )
    };
    let refused = [
        ("POST /v1/agents", "", 401),
        ("POST /v1/agents", "tg_live_nobody", 401),
        ("POST /v1/nothing", &key, 404),
        ("PUT /v1/agents", &key, 405),
        ("DELETE /v1/agents/nobody", &key, 404),
        ("GET /v1/agents", &key, 200),
    ];
    for (request, key, status) in refused {
        let mut client = RawClient::connect(addr).await;
        for lines in ["Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n"] {
            assert!(client.send(head(request, key, lines)).await);
            tokio::time::sleep(Duration::from_millis(10)).await;
            let body = if lines.starts_with('C') {
                "{}"
            } else {
                "2\r\n{}\r\n0\r\n\r\n"
            };
            assert!(client.send(body).await);
            let reply = client.reply(SOON).await.unwrap();
            assert_eq!(
                (reply.status, reply.header("connection")),
                (status, None),
                "{request}"
            );
            assert_eq!(get(&mut client, "/openapi.json").await.status, 200, "{request}");
        }
        for lines in [
            "Content-Length: 2\r\n",
            "Content-Length: 1000000\r\n",
            "Content-Length: 2\r\nExpect: 100-continue\r\n",
        ] {
            let mut client = RawClient::connect(addr).await;
            assert!(client.send(head(request, key, lines)).await);
            let reply = client.reply(SOON).await.unwrap();
            let closes = (status, Some("close"));
            assert_eq!(
                (reply.status, reply.header("connection")),
                closes,
                "{request} {lines}"
            );
            assert!(client.closed(SOON).await);
        }
        let mut client = RawClient::connect(addr).await;
        let long = head(request, key, "Content-Length: 65536\r\n") + &" ".repeat(65_536);
        assert!(client.send(long).await);
        let reply = client.reply(SOON).await.unwrap();
        assert_eq!(
            (reply.status, reply.header("connection")),
            (status, Some("close")),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_stranger_sends_at_most_8_kib() {
    let fixture = fixture(&[]).await;
    let stranger = fixture.admin.caller("");
    let body = json!({ "email": "a@example.com", "password": "x".repeat(9000) });
    let response = stranger.post("/api/user/login", body).await;
    problem(&response, 413, "PAYLOAD_TOO_LARGE");
    // A chunked body, without a length.
    let mut client = RawClient::connect(fixture.admin.addr()).await;
    let head = "POST /api/user/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(client.send(head).await);
    let _ = client.send(format!("2400\r\n{}\r\n", " ".repeat(0x2400))).await;
    assert_eq!(client.reply(SOON).await.unwrap().status, 413);
}

/// Bodies of one account leave room for those of others.
#[tokio::test]
async fn an_accounts_bodies_take_a_quarter_of_the_memory_at_most() {
    let memory = LEAST_MEMORY.to_string();
    let fixture = fixture(&[("MAX_BUFFERED_BYTES", &memory), ("CLIENT_TIMEOUT_MS", "20000")]).await;
    let (account, greedy) = fixture.account("enterprise").await;
    let (_, other) = fixture.account("free").await;
    let live = domain::mode::Mode::Live;
    let key = account.issue(live, crate::fixture::FULL, &[], None).await;
    let length = LEAST_MEMORY / 4;
    let mut stalled = RawClient::connect(fixture.admin.addr()).await;
    let head = format!(
        "POST /v1/agents HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
        key.secret
    );
    assert!(stalled.send(head).await);
    assert!(stalled.send(vec![b' '; length - 1]).await);
    reaches(&fixture, "body_memory_bytes", length as u64 - 1).await;
    let refused = greedy.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&refused, 429, "API_KEY_RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), Some("1"));
    success(&other.post("/v1/agents", json!({ "name": "a" })).await, 200);
    drop(stalled);
    reaches(&fixture, "body_memory_bytes", 0).await;
    success(&greedy.post("/v1/agents", json!({ "name": "a" })).await, 200);
}

/// Bodies of one caller leave room for those of other callers of the account, such as one that freezes an agent.
#[tokio::test]
async fn a_callers_bodies_take_a_quarter_of_the_accounts_share_at_most() {
    let memory = (8 * LEAST_MEMORY).to_string();
    let fixture = fixture(&[("MAX_BUFFERED_BYTES", &memory), ("CLIENT_TIMEOUT_MS", "20000")]).await;
    let (account, other) = fixture.account("enterprise").await;
    let live = domain::mode::Mode::Live;
    let key = account.issue(live, crate::fixture::FULL, &[], None).await;
    let length = LEAST_MEMORY / 4;
    let mut stalled = Vec::new();
    for at in 1..=2 {
        let mut client = RawClient::connect(fixture.admin.addr()).await;
        let head = format!(
            "POST /v1/decisions/dry-run HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            key.secret
        );
        assert!(client.send(head).await);
        assert!(client.send(vec![b' '; length - 1]).await);
        reaches(&fixture, "body_memory_bytes", at * (length as u64 - 1)).await;
        stalled.push(client);
    }
    let greedy = fixture.admin.caller(&key.secret);
    let refused = greedy.post("/v1/agents", json!({ "name": "a" })).await;
    problem(&refused, 429, "API_KEY_RATE_LIMITED");
    success(&other.post("/v1/agents", json!({ "name": "a" })).await, 200);
    drop(stalled);
    reaches(&fixture, "body_memory_bytes", 0).await;
    success(&greedy.post("/v1/agents", json!({ "name": "b" })).await, 200);
}

async fn get(client: &mut RawClient, path: &str) -> RawReply {
    assert!(
        client
            .send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await
    );
    client.reply(SOON).await.expect("an answer")
}
