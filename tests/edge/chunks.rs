//! The framing of chunked requests: one that servers read differently could hide a request from a proxy in front.

use super::fixture::{Fixture, SOON, estimated_body, open_cap};
use harness::RawClient;

/// A request behind a body that some servers read as shorter than others do.
const HIDDEN: &str = "GET /v1/health HTTP/1.1\r\nHost: edge\r\n\r\n";

fn head(key: &str, framing: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\n{framing}\r\n\r\n"
    )
}

/// Some servers end a line of a chunk's size with a bare LF, some go on to the CRLF; some take a size without digits
/// for 0.
#[tokio::test]
async fn chunks_that_servers_read_differently_are_refused() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let call = estimated_body(100).to_string();
    let whole = format!("{:x}\r\n{call}\r\n", call.len());
    for ambiguous in [
        format!("{:x};\nab\r\n{call}\r\n0\r\n\r\n", call.len()),
        format!("{:x};a=\"\n\"\r\n{call}\r\n0\r\n\r\n", call.len()),
        format!("{:x};\0\r\n{call}\r\n0\r\n\r\n", call.len()),
        format!("{whole}0;\nab\r\n\r\n"),
        format!("{whole}\r\n\r\n"),
        format!("{whole};a\r\n\r\n"),
        format!("{whole} \r\n\r\n"),
        format!("{whole}0\r\nnot a field\r\n\r\n"),
        format!("{whole}0\r\nX: y\r\n folded\r\n\r\n"),
        format!("{whole}0\r\nX: \0\r\n\r\n"),
    ] {
        for apart in [false, true] {
            let mut raw = RawClient::connect(fixture.edge.addr()).await;
            let head = head(&actor.key, "Transfer-Encoding: chunked");
            if apart {
                assert!(raw.send(&head).await);
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                let _ = raw.send(format!("{ambiguous}{HIDDEN}")).await;
            } else {
                assert!(raw.send(format!("{head}{ambiguous}{HIDDEN}")).await);
            }
            let what = format!("{ambiguous:?}, apart: {apart}");
            let reply = raw.reply(SOON).await.unwrap_or_else(|| panic!("{what}"));
            assert_eq!(reply.status, 400, "{what}: {reply:?}");
            assert!(
                reply.text().contains("\"code\":\"bad_request\""),
                "{what}: {reply:?}"
            );
            assert_eq!(reply.header("connection"), Some("close"), "{what}");
            assert!(
                raw.closed(SOON).await,
                "{what}: what hides behind it is not answered"
            );
        }
    }
    assert_eq!(fixture.upstream.arrived(), 0);
    assert_eq!(actor.agent.counters().await.day_nanos, 0);
}

/// Extensions and trailers are allowed, and mean nothing. However the bytes arrive, the connection goes on.
#[tokio::test]
async fn well_formed_chunks_are_read_however_they_arrive() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let call = estimated_body(100).to_string();
    let (start, rest) = call.split_at(40);
    let body = format!(
        "{:X};a=\"b;\u{e9}\";c\r\n{start}\r\n000{:x} \t\r\n{rest}\r\n0;d\r\nX-Checksum: 1\t2\r\nEmpty:\r\n\r\n",
        start.len(),
        rest.len()
    );
    let request = head(&actor.key, "transfer-encoding:CHUNKED") + &body;
    for piece in [1, 7, 100, usize::MAX] {
        let mut raw = RawClient::connect(fixture.edge.addr()).await;
        let twice = format!("\r\n{request}{request}{HIDDEN}");
        for bytes in twice.as_bytes().chunks(piece) {
            assert!(raw.send(bytes).await);
        }
        for number in 0..3 {
            let reply = raw
                .reply(SOON)
                .await
                .unwrap_or_else(|| panic!("{piece} {number}"));
            assert_eq!(reply.status, 200, "{piece} {number}: {reply:?}");
            assert_eq!(reply.header("connection"), Some("keep-alive"), "{piece} {number}");
        }
    }
    for sent in fixture.upstream.requests() {
        assert!(sent.body == call.as_bytes(), "{sent:?}");
    }
    assert_eq!(fixture.upstream.arrived(), 8);
}

/// The edge cannot check chunks that came together with an earlier request, so nothing is served behind them.
#[tokio::test]
async fn chunks_behind_another_request_end_their_connection() {
    let fixture = Fixture::new().await;
    let actor = fixture.actor("enterprise", open_cap()).await;
    let call = estimated_body(100).to_string();
    let first = head(&actor.key, &format!("Content-Length: {}", call.len())) + &call;
    let second = head(&actor.key, "Transfer-Encoding: chunked");
    let chunks = format!("{:x}\r\n{call}\r\n0;\nab\r\n\r\n", call.len());
    let mut raw = RawClient::connect(fixture.edge.addr()).await;
    assert!(raw.send(format!("{first}{second}{chunks}{HIDDEN}")).await);
    let reply = raw.reply(SOON).await.expect("the first answer");
    assert_eq!(
        (reply.status, reply.header("connection")),
        (200, Some("keep-alive"))
    );
    let reply = raw.reply(SOON).await.expect("the second answer");
    assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
    assert!(raw.closed(SOON).await, "what hides behind it is not answered");
}
