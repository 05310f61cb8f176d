//! Callers who leave, at every moment of a call, over HTTP/1.1 and HTTP/2: each approved call is settled, no hold
//! remains, nothing stays in flight (decision D36).

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, SOON, Setup, answer, body};
use harness::{Answer, RawClient, until};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A caller who has sent this much of a call.
async fn sent(fixture: &Fixture, bytes: usize) -> RawClient {
    let body = body().to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        fixture.key,
        body.len()
    );
    let mut raw = fixture.raw().await;
    let whole = [head.as_bytes(), body.as_bytes()].concat();
    assert!(raw.send(&whole[..bytes.min(whole.len())]).await);
    raw
}

/// All bytes of a call, for [`sent`].
const WHOLE: usize = usize::MAX;

#[tokio::test]
async fn a_caller_who_leaves_before_its_request_is_whole_is_not_served() {
    let fixture = Setup::default().start().await;
    for bytes in [0, 1, 30, 100, 200, 280] {
        drop(sent(&fixture, bytes).await);
        sent(&fixture, bytes).await.reset();
        let mut finished = sent(&fixture, bytes).await;
        finished.finish().await;
        drop(finished.reply(SOON).await);
    }
    fixture.settled_at(0).await;
    assert_eq!(fixture.upstream.arrived(), 0);
    fixture.approved_call().await;
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_decision_is_settled_all_the_same() {
    let fixture = Setup::default().wired().start().await;
    fixture.approved_call().await;
    fixture.wire().delay_replies(Duration::from_millis(200));
    for reset in [true, false] {
        let raw = sent(&fixture, WHOLE).await;
        until("a call in flight", async || {
            fixture.metric("tollgate_proxy_in_flight") == 1
        })
        .await;
        if reset {
            raw.reset();
        }
    }
    fixture.at_rest().await;
    fixture.wire().heal();
    let forwarded = fixture.upstream.requests().len() as u64;
    fixture.settled_at(forwarded * ACTUAL).await;
    assert_eq!(forwarded, 3, "the decision had been requested");
}

#[tokio::test]
async fn a_caller_who_leaves_while_the_provider_works_is_settled() {
    let fixture = Setup::default().start().await;
    let gate = fixture.gated();
    for round in 1..=6_usize {
        let mut raw = sent(&fixture, WHOLE).await;
        fixture.upstream.wait_for(round, SOON).await;
        let before = (round as u64 - 1) * ACTUAL;
        assert_eq!(
            (fixture.charged(), fixture.open_holds()),
            ([before + ESTIMATE; 3], 1)
        );
        match round % 3 {
            0 => raw.reset(),
            1 => drop(raw),
            _ => raw.finish().await,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.notify_one();
        fixture.settled_at(round as u64 * ACTUAL).await;
    }
    assert_eq!(fixture.upstream.arrived(), 6);
}

#[tokio::test]
async fn a_caller_who_leaves_while_its_answer_is_written_is_settled() {
    let fixture = Setup::default().start().await;
    let long = || {
        let text = "x".repeat(32 << 20);
        Answer::json(
            200,
            serde_json::json!({ "text": text, "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }),
        )
    };
    let prepared = long();
    fixture.upstream.set(move |_| prepared.clone());
    for round in 1..=3 {
        let mut raw = sent(&fixture, WHOLE).await;
        // The beginning of the answer has come, the rest does not fit into the sockets.
        assert!(!raw.read_to_end(Duration::from_secs(2)).await.is_empty());
        raw.reset();
        fixture.settled_at(round * ACTUAL).await;
    }
}

#[tokio::test]
async fn a_caller_who_does_not_read_is_let_go() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 1500)
        .start()
        .await;
    let text = "x".repeat(48 << 20);
    let long = Answer::json(
        200,
        serde_json::json!({ "text": text, "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }),
    );
    fixture.upstream.set(move |_| long.clone());
    let silent = sent(&fixture, WHOLE).await;
    fixture.upstream.wait_for(1, SOON).await;
    fixture.bot.settled_within(SOON).await;
    fixture.settled_at(ACTUAL).await;
    drop(silent);
}

fn http2() -> reqwest::Client {
    let builder = reqwest::Client::builder().http2_prior_knowledge().no_proxy();
    builder.tls_certs_only([]).build().expect("a client")
}

/// HTTP/2: a call that is dropped resets its stream; others on the connection go on.
#[tokio::test]
async fn a_reset_stream_is_settled() {
    let fixture = Setup::default().start().await;
    let gate = Arc::new(Notify::new());
    let waiting = gate.clone();
    fixture
        .upstream
        .set(move |request| match request.header("x-stainless-wait") {
            Some(_) => answer().wait_for(&waiting),
            None => answer(),
        });
    let caller = fixture.edge.caller(&fixture.key).with_client(http2());
    assert_eq!(caller.chat(body()).await.status, 200);
    for round in 1..=4_usize {
        let impatient = tokio::time::timeout(Duration::from_secs(60), async {
            let call = caller.chat_with(&[("x-stainless-wait", "1")], body());
            let arrived = fixture.upstream.wait_for(2 * round, SOON);
            tokio::select! {
                reply = call => panic!("{reply:?}"),
                () = arrived => {}
            }
        });
        impatient.await.unwrap();
        // The stream is reset now; the provider still works on it.
        let response = caller.chat(body()).await;
        assert_eq!(response.status, 200, "another stream of the connection");
        gate.notify_one();
        fixture.settled_at((2 * round as u64 + 1) * ACTUAL).await;
    }
    assert_eq!(fixture.upstream.arrived(), 9);
}

/// HTTP/2: the whole connection goes away with calls in flight and bodies half sent.
#[tokio::test]
async fn a_lost_connection_settles_all_of_its_streams() {
    let fixture = Setup::default().start().await;
    let gate = fixture.gated();
    let calls = (0..8).map(|_| {
        let caller = fixture.edge.caller(&fixture.key).with_client(http2());
        tokio::spawn(async move { caller.chat(body()).await })
    });
    let calls: Vec<_> = calls.collect();
    fixture.upstream.wait_for(8, SOON).await;
    for call in &calls {
        call.abort();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(fixture.open_holds(), 8, "the provider works on");
    for _ in 0..8 {
        gate.notify_one();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.settled_at(8 * ACTUAL).await;
    assert_eq!(fixture.upstream.arrived(), 8);
}

/// Callers who leave do not keep the edge from ending.
#[tokio::test]
async fn callers_who_left_do_not_hold_up_the_end() {
    let fixture = Setup::default().start().await;
    let gate = fixture.gated();
    for round in 1..=3 {
        sent(&fixture, WHOLE).await.reset();
        fixture.upstream.wait_for(round, SOON).await;
    }
    fixture.edge.term();
    for _ in 0..3 {
        gate.notify_one();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(fixture.edge.wait_exit(SOON), Some(0), "{}", fixture.edge.logs());
    assert_eq!(
        (fixture.charged(), fixture.open_holds()),
        ([3 * ACTUAL; 3], 0),
        "settled before the end"
    );
}
