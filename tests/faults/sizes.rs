//! Bodies that are long, slow, half-sent or many (decisions D34, D63).

use crate::fixture::{Fixture, SOON, Setup, answer};
use harness::{RawClient, RawReply, until};
use std::time::{Duration, Instant};

/// The default limit.
const LIMIT: usize = 32 << 20;
/// A body of any size within the limit is read, forwarded and answered in this time, on a slow machine.
const LARGE: Duration = Duration::from_secs(60);

/// A call of exactly this many bytes, whose content does not repeat.
pub fn body_of(length: usize) -> Vec<u8> {
    let (start, end) = (
        br#"{"model":"gpt-4o-mini","max_tokens":1,"messages":[{"role":"user","content":""#,
        br#""}]}"#,
    );
    let mut seed = 0x2545_F491_u32;
    let text = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from(seed >> 28).unwrap()
    });
    let mut body = start.to_vec();
    body.extend(text.take(length - start.len() - end.len()));
    body.extend(end);
    body
}

/// The head of a call whose body has this framing.
pub fn head(fixture: &Fixture, framing: &str) -> String {
    let key = &fixture.key;
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
}

/// Sends a body in chunks. Returns false if the edge accepts no more.
async fn send_chunks(raw: &mut RawClient, body: &[u8]) -> bool {
    for chunk in body.chunks(1 << 20) {
        let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
        if !raw.send(framed).await {
            return false;
        }
    }
    raw.send("0\r\n\r\n").await
}

fn refused(reply: Option<RawReply>, status: u16, code: &str) -> RawReply {
    let reply = reply.expect("an answer");
    assert_eq!(reply.status, status, "{reply:?}");
    assert!(
        reply.text().contains(&format!("\"code\":\"{code}\"")),
        "{reply:?}"
    );
    reply
}

#[tokio::test]
async fn thirty_two_mebibytes_are_forwarded_byte_for_byte() {
    let fixture = Setup::default().start().await;
    let body = body_of(LIMIT);
    let mut raw = fixture.raw().await;
    assert!(raw.send_chat(&fixture.key, "", &body).await);
    assert_eq!(raw.reply(LARGE).await.expect("an answer").status, 200);
    assert!(
        raw.send(head(&fixture, "Transfer-Encoding: chunked")).await && send_chunks(&mut raw, &body).await
    );
    assert_eq!(raw.reply(LARGE).await.expect("an answer").status, 200);
    let received = fixture.upstream.requests();
    assert_eq!(received.len(), 2);
    assert!(
        received.iter().all(|request| request.body == body),
        "byte for byte"
    );
    let length = LIMIT.to_string();
    assert!(
        received
            .iter()
            .all(|request| request.header("content-length") == Some(&length))
    );
    assert!(
        received
            .iter()
            .all(|request| request.header("transfer-encoding").is_none())
    );
}

#[tokio::test]
async fn one_byte_more_is_too_large() {
    let fixture = Setup::default().start().await;
    let declared = format!("Content-Length: {}", LIMIT + 1);

    let mut silent = fixture.raw().await;
    assert!(silent.send(head(&fixture, &declared)).await);
    refused(silent.reply(SOON).await, 413, "payload_too_large");

    let mut polite = fixture.raw().await;
    assert!(
        polite
            .send(head(&fixture, &format!("{declared}\r\nExpect: 100-continue")))
            .await
    );
    let reply = refused(polite.reply(SOON).await, 413, "payload_too_large");
    assert_eq!(
        reply.header("connection"),
        Some("close"),
        "what follows cannot be a request"
    );

    let body = body_of(LIMIT + 1);
    let mut declaring = fixture.raw().await;
    let _ = declaring.send(head(&fixture, &declared)).await && declaring.send(&body).await;
    refused(declaring.reply(LARGE).await, 413, "payload_too_large");

    let mut chunked = fixture.raw().await;
    assert!(chunked.send(head(&fixture, "Transfer-Encoding: chunked")).await);
    let _ = send_chunks(&mut chunked, &body).await;
    refused(chunked.reply(LARGE).await, 413, "payload_too_large");

    let mut endless = fixture.raw().await;
    assert!(
        endless
            .send(head(&fixture, "Content-Length: 18446744073709551615"))
            .await
    );
    let reply = endless.reply(SOON).await.expect("an answer");
    assert!(matches!(reply.status, 400 | 413), "{reply:?}");
    assert_eq!(fixture.upstream.arrived(), 0);
    fixture.settled_at(0).await;
}

#[tokio::test]
async fn an_interrupted_body_reaches_no_provider() {
    let fixture = Setup::default().start().await;
    let whole = body_of(4000);
    for framing in ["Content-Length: 4000", "Transfer-Encoding: chunked"] {
        let half = match framing.starts_with('C') {
            true => whole[..2000].to_vec(),
            false => [b"fa0\r\n", &whole[..2000]].concat(),
        };
        let mut leaving = fixture.raw().await;
        assert!(leaving.send(head(&fixture, framing)).await && leaving.send(&half).await);
        leaving.reset();
        let mut finishing = fixture.raw().await;
        assert!(finishing.send(head(&fixture, framing)).await && finishing.send(&half).await);
        finishing.finish().await;
        refused(finishing.reply(SOON).await, 408, "request_timeout");
    }
    fixture.settled_at(0).await;
    assert_eq!(fixture.upstream.arrived(), 0);
    assert_eq!(fixture.rate(), 4, "every request of a known key counts");
    fixture.approved_call().await;
}

#[tokio::test]
async fn a_body_that_drips_ends_at_its_deadline() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 1500)
        .start()
        .await;
    let mut raw = fixture.raw().await;
    assert!(raw.send(head(&fixture, "Content-Length: 4000")).await);
    let started = Instant::now();
    let body = body_of(4000);
    let drip = async {
        for byte in body.chunks(1) {
            if !raw.send(byte).await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            if let Some(reply) = raw.reply(Duration::from_millis(1)).await {
                return reply;
            }
        }
        raw.reply(SOON).await.expect("an answer")
    };
    let reply = refused(Some(drip.await), 408, "request_timeout");
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(
        started.elapsed() >= Duration::from_millis(1400),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(fixture.upstream.arrived(), 0);
    fixture.settled_at(0).await;
    assert_eq!(fixture.rate(), 1);
}

#[tokio::test]
async fn many_slow_bodies_do_not_block_others() {
    let fixture = Setup::default().start().await;
    fixture.upstream.set(|_| answer());
    let mut slow = Vec::new();
    for _ in 0..64 {
        let mut raw = fixture.raw().await;
        assert!(
            raw.send(head(&fixture, &format!("Content-Length: {LIMIT}")))
                .await
                && raw.send("{").await
        );
        slow.push(raw);
    }
    until("64 slow callers", async || {
        fixture.metric("tollgate_proxy_in_flight") == 64
    })
    .await;
    let called = tokio::time::timeout(Duration::from_secs(10), fixture.approved_call()).await;
    assert!(called.is_ok(), "a caller waits for others who send nothing");
    drop(slow);
    fixture.at_rest().await;
}

/// An edge with room for this many bytes of bodies, none of which may be longer than `longest`.
pub async fn with_room(most: usize, longest: usize) -> Fixture {
    let setup = Setup::default()
        .env("PROXY__MAX_BUFFERED_BYTES", most)
        .env("PROXY__MAX_BODY_BYTES", longest);
    setup.start().await
}

/// Room for two bodies of 1 MiB of an account, one of them in the reserve: the third waits until one of them is done,
/// and a small call does not.
#[tokio::test]
async fn bodies_share_a_bounded_memory() {
    let fixture = with_room(8 << 20, 1 << 20).await;
    let body = body_of(1 << 20);
    let length = format!("Content-Length: {}", body.len());
    let mut callers = Vec::new();
    for missing in [1, 1, 0] {
        let mut raw = fixture.raw().await;
        assert!(raw.send(head(&fixture, &length)).await);
        assert!(raw.send(&body[..body.len() - missing]).await);
        until("a caller in flight", async || {
            fixture.metric("tollgate_proxy_in_flight") == callers.len() as u64 + 1
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        callers.push(raw);
    }
    assert!(
        callers[2].reply(Duration::from_millis(500)).await.is_none(),
        "no room"
    );
    fixture.approved_call().await;
    assert_eq!(fixture.upstream.requests().len(), 1, "only the small call");
    for (at, missing) in [(0, 1), (2, 0), (1, 1)] {
        assert!(callers[at].send(&body[body.len() - missing..]).await);
        assert_eq!(callers[at].reply(LARGE).await.expect("an answer").status, 200);
    }
    assert_eq!(fixture.upstream.requests().len(), 4);
}

/// Room for one body of an account, and three whose calls take long: a body that was sent takes no room while the
/// provider works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_sent_takes_no_memory() {
    let longest = 1 << 20;
    let fixture = with_room(2 * longest, longest).await;
    let gate = fixture.gated();
    let body = body_of(longest);
    let mut callers = Vec::new();
    for calls in 1..=3 {
        callers.push(fixture.waiting_call(&body, calls).await);
    }
    assert_eq!(fixture.upstream.arrived(), 3);
    assert_eq!(fixture.metric("tollgate_proxy_body_memory_bytes"), 0);
    gate.notify_waiters();
    for mut raw in callers {
        assert_eq!(raw.reply(LARGE).await.expect("an answer").status, 200);
    }
}

/// Room for one body of an account, and two that arrive at the same time: neither waits for memory that the other
/// holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_bodies_do_not_wait_for_each_other() {
    let longest = 4 << 20;
    let fixture = with_room(2 * longest, longest).await;
    let body = body_of(longest);
    let length = format!("Content-Length: {longest}");
    let (mut first, mut second) = (fixture.raw().await, fixture.raw().await);
    for raw in [&mut first, &mut second] {
        assert!(raw.send(head(&fixture, &length)).await);
    }
    let started = Instant::now();
    let call = async |raw: &mut RawClient| {
        for piece in body.chunks(128 << 10) {
            assert!(raw.send(piece).await);
            // Slowly enough for the pieces of both to alternate.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        raw.reply(LARGE).await.expect("an answer").status
    };
    let statuses = futures::future::join(call(&mut first), call(&mut second)).await;
    assert_eq!(statuses, (200, 200));
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(fixture.metric("tollgate_proxy_body_memory_bytes"), 0);
}
