//! Callers who leave, at every moment of a call, over HTTP/1.1 and HTTP/2: each approved call is settled, no hold
//! remains, nothing stays in flight (decision D36).

use crate::fixture::{ACTUAL, ESTIMATE, SOON, Setup, Stage, answer, body};
use harness::{Answer, RawClient, until};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A caller who has sent this much of a call.
async fn sent(stage: &Stage, bytes: usize) -> RawClient {
    let body = body().to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: e\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        stage.key,
        body.len()
    );
    let mut raw = stage.raw().await;
    let whole = [head.as_bytes(), body.as_bytes()].concat();
    assert!(raw.send(&whole[..bytes.min(whole.len())]).await);
    raw
}

/// All bytes of a call, for [`sent`].
const WHOLE: usize = usize::MAX;

#[tokio::test]
async fn a_caller_who_leaves_before_its_request_is_whole_is_not_served() {
    let stage = Setup::default().start().await;
    for bytes in [0, 1, 30, 100, 200, 280] {
        drop(sent(&stage, bytes).await);
        sent(&stage, bytes).await.reset();
        let mut finished = sent(&stage, bytes).await;
        finished.finish().await;
        drop(finished.reply(SOON).await);
    }
    stage.settled_at(0).await;
    assert_eq!(stage.upstream.arrived(), 0);
    stage.approved_call().await;
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_decision_is_settled_all_the_same() {
    let stage = Setup::default().wired().start().await;
    stage.approved_call().await;
    stage.wire().delay_replies(Duration::from_millis(200));
    for reset in [true, false] {
        let raw = sent(&stage, WHOLE).await;
        until("a call in flight", async || {
            stage.metric("tollgate_proxy_in_flight") == 1
        })
        .await;
        if reset {
            raw.reset();
        }
    }
    stage.at_rest().await;
    stage.wire().heal();
    let forwarded = stage.upstream.requests().len() as u64;
    stage.settled_at(forwarded * ACTUAL).await;
    assert_eq!(forwarded, 3, "the decision had been requested");
}

#[tokio::test]
async fn a_caller_who_leaves_while_the_provider_works_is_settled() {
    let stage = Setup::default().start().await;
    let gate = stage.gated();
    for round in 1..=6_usize {
        let mut raw = sent(&stage, WHOLE).await;
        stage.upstream.wait_for(round, SOON).await;
        let before = (round as u64 - 1) * ACTUAL;
        assert_eq!((stage.charged(), stage.open_holds()), ([before + ESTIMATE; 3], 1));
        match round % 3 {
            0 => raw.reset(),
            1 => drop(raw),
            _ => raw.finish().await,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.notify_one();
        stage.settled_at(round as u64 * ACTUAL).await;
    }
    assert_eq!(stage.upstream.arrived(), 6);
}

#[tokio::test]
async fn a_caller_who_leaves_while_its_answer_is_written_is_settled() {
    let stage = Setup::default().start().await;
    let long = || {
        let text = "x".repeat(32 << 20);
        Answer::json(
            200,
            serde_json::json!({ "text": text, "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }),
        )
    };
    let prepared = long();
    stage.upstream.set(move |_| prepared.clone());
    for round in 1..=3 {
        let mut raw = sent(&stage, WHOLE).await;
        // The beginning of the answer has come, the rest does not fit into the sockets.
        assert!(!raw.read_to_end(Duration::from_secs(2)).await.is_empty());
        raw.reset();
        stage.settled_at(round * ACTUAL).await;
    }
}

#[tokio::test]
async fn a_caller_who_does_not_read_is_let_go() {
    let stage = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 1500)
        .start()
        .await;
    let text = "x".repeat(48 << 20);
    let long = Answer::json(
        200,
        serde_json::json!({ "text": text, "usage": { "prompt_tokens": 9, "completion_tokens": 12 } }),
    );
    stage.upstream.set(move |_| long.clone());
    let silent = sent(&stage, WHOLE).await;
    stage.upstream.wait_for(1, SOON).await;
    stage.bot.settled_within(SOON).await;
    stage.settled_at(ACTUAL).await;
    drop(silent);
}

fn http2() -> reqwest::Client {
    let builder = reqwest::Client::builder().http2_prior_knowledge().no_proxy();
    builder.tls_certs_only([]).build().expect("a client")
}

/// HTTP/2: a call that is dropped resets its stream; others on the connection go on.
#[tokio::test]
async fn a_reset_stream_is_settled() {
    let stage = Setup::default().start().await;
    let gate = Arc::new(Notify::new());
    let waiting = gate.clone();
    stage
        .upstream
        .set(move |request| match request.header("x-stainless-wait") {
            Some(_) => answer().wait_for(&waiting),
            None => answer(),
        });
    let caller = stage.edge.caller(&stage.key).with_client(http2());
    assert_eq!(caller.chat(body()).await.status, 200);
    for round in 1..=4_usize {
        let impatient = tokio::time::timeout(Duration::from_secs(60), async {
            let call = caller.chat_with(&[("x-stainless-wait", "1")], body());
            let arrived = stage.upstream.wait_for(2 * round, SOON);
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
        stage.settled_at((2 * round as u64 + 1) * ACTUAL).await;
    }
    assert_eq!(stage.upstream.arrived(), 9);
}

/// HTTP/2: the whole connection goes away with calls in flight and bodies half sent.
#[tokio::test]
async fn a_lost_connection_settles_all_of_its_streams() {
    let stage = Setup::default().start().await;
    let gate = stage.gated();
    let calls = (0..8).map(|_| {
        let caller = stage.edge.caller(&stage.key).with_client(http2());
        tokio::spawn(async move { caller.chat(body()).await })
    });
    let calls: Vec<_> = calls.collect();
    stage.upstream.wait_for(8, SOON).await;
    for call in &calls {
        call.abort();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.open_holds(), 8, "the provider works on");
    for _ in 0..8 {
        gate.notify_one();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.settled_at(8 * ACTUAL).await;
    assert_eq!(stage.upstream.arrived(), 8);
}

/// Callers who leave do not keep the edge from ending.
#[tokio::test]
async fn callers_who_left_do_not_hold_up_the_end() {
    let stage = Setup::default().start().await;
    let gate = stage.gated();
    for round in 1..=3 {
        sent(&stage, WHOLE).await.reset();
        stage.upstream.wait_for(round, SOON).await;
    }
    stage.edge.term();
    for _ in 0..3 {
        gate.notify_one();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(stage.edge.wait_exit(SOON), Some(0), "{}", stage.edge.logs());
    assert_eq!(
        (stage.charged(), stage.open_holds()),
        ([3 * ACTUAL; 3], 0),
        "settled before the end"
    );
}
