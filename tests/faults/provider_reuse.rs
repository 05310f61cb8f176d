//! Connections to the provider that are used again: no answer reaches another call, no call is sent twice.

use crate::fixture::{ACTUAL, ESTIMATE, Fixture, SOON, Setup, answer, body};
use crate::sizes::body_of;
use harness::{Answer, Reply};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The length of a request that the edge sends in more than one piece.
const LONG: usize = 100_000;

/// An answer that says which call it is for.
fn answer_for(who: &str) -> Answer {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12 });
    Answer::json(200, json!({ "for": who, "usage": usage }))
}

async fn call_as(fixture: &Fixture, who: &str) -> Reply {
    fixture
        .edge
        .caller(&fixture.key)
        .chat_with(&[("x-stainless-who", who)], body())
        .await
}

/// The provider answers each request twice; the second answer belongs to no request.
#[tokio::test]
async fn a_second_answer_reaches_no_caller() {
    let fixture = Setup::default().start().await;
    fixture
        .upstream
        .set(|request| answer_for(request.header("x-stainless-who").unwrap_or("?")).twice());
    for number in 0..20_u64 {
        let who = format!("call-{number}");
        let reply = call_as(&fixture, &who).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.json()["for"], who.as_str(), "another call's answer");
        // The next call comes at once, or after the extra bytes have arrived.
        tokio::time::sleep(Duration::from_millis(5 * (number % 3))).await;
    }
    fixture.settled_at(20 * ACTUAL).await;
    assert_eq!(fixture.upstream.arrived(), 20);
}

/// The extra bytes come a moment later, while the connection waits for its next call.
#[tokio::test]
async fn an_unrequested_answer_spoils_its_connection() {
    let fixture = Setup::default().start().await;
    fixture.upstream.set(|request| {
        let own = answer_for(request.header("x-stainless-who").unwrap_or("?"));
        let body =
            json!({ "for": "nobody", "usage": { "prompt_tokens": 1, "completion_tokens": 1 } }).to_string();
        let length = body.len();
        own.then_after(
            Duration::from_millis(30),
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"),
        )
    });
    for number in 0..10 {
        let who = format!("call-{number}");
        let reply = call_as(&fixture, &who).await;
        assert_eq!(
            (reply.status, &reply.json()["for"]),
            (200, &json!(who)),
            "{reply:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fixture.settled_at(10 * ACTUAL).await;
    assert_eq!(fixture.upstream.arrived(), 10);
}

/// The provider closes a connection that was kept, or resets it when it is used again.
#[tokio::test]
async fn a_kept_connection_that_died_sends_one_request_at_most() {
    let fixture = Setup::default().start().await;
    let served = AtomicUsize::new(0);
    fixture
        .upstream
        .set(move |request| match served.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => answer_for(request.header("x-stainless-who").unwrap_or("?")),
            1 => answer_for(request.header("x-stainless-who").unwrap_or("?")).close_silently(),
            _ => Answer::reset(),
        });
    let (mut answered, mut broken) = (0, 0);
    for number in 0..30_usize {
        let who = format!("call-{number}");
        let reply = call_as(&fixture, &who).await;
        match reply.status {
            200 => {
                assert_eq!(reply.json()["for"], who.as_str());
                answered += 1;
            }
            502 => broken += 1,
            other => panic!("{other}: {reply:?}"),
        }
        fixture.settled_at(answered * ACTUAL + broken * ESTIMATE).await;
        let times = fixture
            .upstream
            .requests()
            .iter()
            .filter(|request| request.header("x-stainless-who") == Some(&who))
            .count();
        assert!(times <= 1, "{who} was sent {times} times");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((answered, broken), (20, 10), "one of three was reset");
    assert_eq!(fixture.upstream.arrived(), 30);
    assert!(fixture.upstream.connections() < 30, "connections are used again");
}

/// A kind of answer, and how to make it.
type Doubtful = (&'static str, fn() -> Answer);

#[tokio::test]
async fn doubtful_connections_are_not_used_again() {
    let doubtful: [Doubtful; 5] = [
        ("asked to close", || answer_for("x").close()),
        ("until the close", || answer_for("x").until_close()),
        ("HTTP/1.0", || {
            let head = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}";
            Answer::raw(head).keep_open()
        }),
        ("broken chunks", || {
            Answer::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").keep_open()
        }),
        ("too many interim answers", || {
            (0..20).fold(answer(), |answer, _| answer.interim(103))
        }),
    ];
    for (what, make) in doubtful {
        let fixture = Setup::default().start().await;
        fixture.upstream.set(move |_| make());
        fixture.call().await;
        fixture.at_rest().await;
        let connections = fixture.upstream.connections();
        fixture.upstream.set(|_| answer());
        fixture.approved_call().await;
        assert_eq!(fixture.upstream.connections(), connections + 1, "{what}");
        assert_eq!(fixture.upstream.arrived(), 2, "{what}");
    }
}

/// A provider that refused a long request may not have read it (`provider_early`). Otherwise a connection is used again
/// whatever the length.
#[tokio::test]
async fn only_a_refused_long_request_ends_its_connection() {
    let fixture = Setup::default().start().await;
    let call = async |length: usize| {
        let caller = fixture.edge.caller(&fixture.key);
        let json = [("content-type", "application/json")];
        let sent = caller.send("POST", "/v1/chat/completions", &json, body_of(length));
        let status = sent.await.status;
        (status, fixture.upstream.connections())
    };
    for length in [100, LONG, LONG, 4 << 20, 100] {
        assert_eq!(call(length).await, (200, 1), "{length}");
    }
    fixture.upstream.set(|_| Answer::json(429, json!({})));
    for (length, connections) in [(100, 1), (LONG, 1), (100, 2), (LONG, 2), (100, 3)] {
        assert_eq!(call(length).await, (429, connections), "{length}");
    }
}

/// Many calls over few connections, with answers of all sizes and speeds: each caller gets its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_gets_its_own_answer() {
    let fixture = Setup::default().start().await;
    fixture.upstream.set(|request| {
        let who = request.header("x-stainless-who").unwrap_or("?").to_owned();
        let answer = answer_for(&who);
        match request.number % 5 {
            0 => answer.chunked(9),
            1 => answer.delay(Duration::from_millis(15)),
            2 => answer.twice(),
            3 => answer.gzip(),
            _ => answer.interim(103),
        }
    });
    let calls = (0..16).map(|task| {
        let fixture = &fixture;
        async move {
            for number in 0..25 {
                let who = format!("call-{task}-{number}");
                let reply = call_as(fixture, &who).await;
                assert_eq!(reply.status, 200, "{reply:?}");
                let zipped = reply.header("content-encoding") == Some("gzip");
                assert!(zipped || reply.json()["for"] == who.as_str(), "{who}: {reply:?}");
            }
        }
    });
    futures::future::join_all(calls).await;
    tokio::time::timeout(SOON, fixture.settled_at(400 * ACTUAL))
        .await
        .unwrap();
    assert_eq!(fixture.upstream.arrived(), 400, "one request for each approval");
}
