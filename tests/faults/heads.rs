//! Heads of requests have at most 64 KiB, over HTTP/2 16 KiB, in any pieces.

use crate::fixture::{Fixture, SOON, Setup, body};
use crate::memory::resident_kib;
use harness::RawClient;
use std::time::Duration;

/// The longest head, in bytes.
const HEAD_MAX: usize = 64 << 10;
/// The longest one over HTTP/2, with 32 bytes for each header.
const H2_HEAD_MAX: usize = 16 << 10;
/// Long enough for the edge to have read what was sent.
const A_MOMENT: Duration = Duration::from_millis(50);

/// The head of a call, with `length` bytes including its blank line.
fn head_of(fixture: &Fixture, length: usize) -> Vec<u8> {
    let start = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n",
        fixture.key,
        body().to_string().len()
    );
    let mut head = start.into_bytes();
    let mut at = 0;
    while head.len() + 2 < length {
        let left = length - head.len() - 2;
        // Lines of 8 KiB, the last ones shorter to fill the rest.
        let line = if left > 9000 {
            8192
        } else if left > 8200 {
            4096
        } else {
            left
        };
        let name = format!("X-{at}: ");
        head.extend(name.as_bytes());
        head.extend(std::iter::repeat_n(b'a', line - name.len() - 2));
        head.extend(b"\r\n");
        at += 1;
    }
    head.extend(b"\r\n");
    assert_eq!(head.len(), length);
    head
}

/// Sends bytes in pieces, until the edge accepts no more.
async fn drip(raw: &mut RawClient, bytes: &[u8]) {
    for piece in bytes.chunks(3000) {
        if !raw.send(piece).await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_head_of_64_kib_passes_and_one_byte_more_is_a_431() {
    let fixture = Setup::default().start().await;
    let call = body().to_string();
    for is_first in [true, false] {
        for (length, status) in [(HEAD_MAX, 200), (HEAD_MAX + 1, 431), (HEAD_MAX + 30_000, 431)] {
            for drips in [false, true] {
                let mut raw = fixture.raw().await;
                if !is_first {
                    assert!(raw.send_chat(&fixture.key, "", call.as_bytes()).await);
                    assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
                }
                let head = head_of(&fixture, length);
                match drips {
                    true => drip(&mut raw, &head).await,
                    false => _ = raw.send(&head).await,
                }
                let _ = raw.send(&call).await;
                let reply = raw.reply(SOON).await.expect("an answer");
                let what = format!("{length} bytes, in pieces: {drips}, first: {is_first}");
                assert_eq!(reply.status, status, "{what}: {}", reply.head);
                if status == 431 {
                    let code = "\"code\":\"request_header_fields_too_large\"";
                    assert!(reply.text().contains(code), "{what}: {reply:?}");
                    assert!(reply.header("x-request-id").is_some(), "{what}");
                    assert_eq!(reply.header("connection"), Some("close"), "{what}");
                }
            }
        }
    }
    assert!(fixture.metric("tollgate_proxy_refused_total{code=\"request_header_fields_too_large\"}") >= 8);
}

/// A head that was received in part with the previous request, whatever frames that request.
#[tokio::test]
async fn a_pipelined_head_has_64_kib_at_most() {
    let fixture = Setup::default().start().await;
    let call = body().to_string();
    let length = format!("Content-Length: {}\r\n\r\n{call}", call.len());
    let chunks = format!(
        "Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{call}\r\n0\r\n\r\n",
        call.len()
    );
    for framed in [&length, &chunks] {
        for (length, status) in [(HEAD_MAX, 200), (HEAD_MAX + 1, 431), (HEAD_MAX + 30_000, 431)] {
            for apart in [false, true] {
                let mut raw = fixture.raw().await;
                let (head, framed) = framed.split_once("\r\n\r\n").expect("a head and a body");
                let first = format!(
                    "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {}\r\n\
                     Content-Type: application/json\r\n{head}\r\n\r\n",
                    fixture.key
                );
                let next = [framed.as_bytes(), &head_of(&fixture, length), call.as_bytes()].concat();
                if apart {
                    assert!(raw.send(&first).await);
                    tokio::time::sleep(A_MOMENT).await;
                    let _ = raw.send(next).await;
                } else {
                    let _ = raw.send([first.as_bytes(), &next].concat()).await;
                }
                let what = format!("{head}, then {length} bytes, apart: {apart}");
                let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{what}"));
                assert_eq!(reply.status, 200, "{what}: {}", reply.head);
                let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{what}"));
                assert_eq!(reply.status, status, "{what}: {}", reply.head);
            }
        }
    }
}

#[tokio::test]
async fn a_head_has_256_lines_at_most() {
    const LINES_MAX: usize = 256;
    let fixture = Setup::default().start().await;
    for (lines, status) in [(LINES_MAX, 200), (LINES_MAX + 1, 400)] {
        let mut raw = fixture.raw().await;
        let more = "X-A: b\r\n".repeat(lines - 1);
        let head = format!("GET /v1/health HTTP/1.1\r\nHost: edge\r\n{more}\r\n");
        assert!(raw.send(head).await);
        let reply = raw.reply(SOON).await.expect("an answer");
        assert_eq!(reply.status, status, "{lines}: {reply:?}");
    }
}

/// A long body that arrives together with its head is no long head.
#[tokio::test]
async fn a_body_does_not_count_as_head() {
    let fixture = Setup::default().start().await;
    let body = crate::sizes::body_of(1 << 20);
    let head = String::from_utf8(head_of(&fixture, 60 << 10)).expect("text");
    let length = format!("Content-Length: {}", body.len());
    let head = head.replacen(
        &format!("Content-Length: {}", crate::fixture::body().to_string().len()),
        &length,
        1,
    );
    let mut raw = fixture.raw().await;
    for _ in 0..2 {
        assert!(raw.send([head.as_bytes(), &body].concat()).await);
        assert_eq!(raw.reply(SOON).await.expect("an answer").status, 200);
    }
}

/// Heads that never end: each holds no more than a head may have, however much is sent.
#[tokio::test]
async fn endless_heads_hold_little_memory() {
    const CALLERS: usize = 64;
    const HELD_MAX_KIB: u64 = 192;
    let fixture = Setup::default().start().await;
    fixture.approved_call().await;
    let before = resident_kib(fixture.edge.pid());
    let head = head_of(&fixture, (1 << 20) - 1);
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let mut raw = fixture.raw().await;
        let _ = raw.send(&head[..head.len() - 2]).await;
        callers.push(raw);
    }
    for raw in &mut callers {
        let reply = raw.reply(SOON).await.map(|reply| reply.status);
        assert!(matches!(reply, None | Some(431)), "{reply:?}");
    }
    let taken = resident_kib(fixture.edge.pid()).saturating_sub(before);
    assert!(
        taken <= CALLERS as u64 * HELD_MAX_KIB,
        "{taken} KiB for {CALLERS} heads"
    );
    fixture.approved_call().await;
}

#[tokio::test]
async fn over_http_2_as_well() {
    let fixture = Setup::default().start().await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .build();
    let caller = fixture
        .edge
        .caller(&fixture.key)
        .with_client(client.expect("a client"));
    let long = "a".repeat(H2_HEAD_MAX);
    let reply = caller.chat_with(&[("x-long", &long)], body()).await;
    assert_eq!(reply.status, 431, "{reply:?}");
    let fits = "a".repeat(H2_HEAD_MAX - 1024);
    let reply = caller.chat_with(&[("x-long", &fits)], body()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
}
