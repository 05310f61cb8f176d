//! Tests of [`super`].

use super::*;
use crate::fixture::{Fixture, SOON};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

const WITHIN: Duration = Duration::from_millis(400);

/// Returns a connection whose first head was read, and its caller.
fn used(fixture: &Fixture, buffer: usize) -> (HeadLimited, Arc<RequestHeads>, DuplexStream) {
    let (caller, connection) = duplex(buffer);
    let head = Arc::new(RequestHeads::expected_by(Instant::now()));
    head.begins(false);
    head.ends();
    head.begins(false);
    let metrics = Arc::clone(&fixture.metrics);
    let limited = HeadLimited::new(Box::new(connection), Arc::clone(&head), metrics, WITHIN);
    (limited, head, caller)
}

async fn received(caller: &mut DuplexStream) -> String {
    let mut buffer = [0; 4096];
    let read = caller.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[tokio::test]
async fn a_further_head_may_wait_but_not_drip() {
    let fixture = Fixture::new().await;
    let (mut connection, _head, mut caller) = used(&fixture, 4096);
    let mut buffer = [0; 64];
    assert!(
        timeout(3 * WITHIN, connection.read(&mut buffer)).await.is_err(),
        "Pingora ends it when it rests"
    );
    caller.write_all(b"P").await.unwrap();
    assert_eq!(connection.read(&mut buffer).await.unwrap(), 1);
    let refused = loop {
        match timeout(WITHIN / 4, connection.read(&mut buffer)).await {
            Ok(Ok(read)) => assert_eq!(read, 1),
            Ok(Err(error)) => break error,
            Err(_elapsed) => caller.write_all(b"O").await.unwrap(),
        }
    };
    assert_eq!(refused.to_string(), "the head was refused");
    let answer = received(&mut caller).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn each_head_has_a_deadline_of_its_own() {
    let fixture = Fixture::new().await;
    let (mut connection, head, mut caller) = used(&fixture, 4096);
    let mut buffer = [0; 64];
    for _ in 0..3 {
        caller.write_all(b"P").await.unwrap();
        assert_eq!(connection.read(&mut buffer).await.unwrap(), 1);
        let rest = timeout(WITHIN / 10, connection.read(&mut buffer)).await;
        assert!(rest.is_err(), "{rest:?}");
        head.ends();
        head.begins(false);
        tokio::time::sleep(WITHIN).await;
    }
}

#[tokio::test]
async fn pingoras_answer_to_a_malformed_head_is_replaced() {
    let fixture = Fixture::new().await;
    let (mut connection, head, mut caller) = used(&fixture, 4096);
    let bare = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    connection.write_all(bare).await.unwrap();
    connection.write_all(b"more").await.unwrap();
    AsyncWriteExt::shutdown(&mut connection).await.unwrap();
    let answer = received(&mut caller).await;
    assert!(answer.contains("\"code\":\"bad_request\""), "{answer}");
    assert!(answer.contains("\r\nx-request-id: req_"), "{answer}");
    assert_eq!(received(&mut caller).await, "", "one answer");
    drop((connection, head));
    let (mut connection, head, mut caller) = used(&fixture, 4096);
    head.ends();
    connection.write_all(bare).await.unwrap();
    connection.flush().await.unwrap();
    assert_eq!(
        received(&mut caller).await.as_bytes(),
        bare,
        "an answer to a request"
    );
}

/// Otherwise closing the connection resets it, and some callers lose the end of their answer.
#[tokio::test]
async fn unread_bytes_are_discarded_before_the_connection_ends() {
    let fixture = Fixture::new().await;
    let (mut connection, head, mut caller) = used(&fixture, 8);
    head.ends();
    caller.write_all(b"GET / HT").await.unwrap();
    AsyncWriteExt::shutdown(&mut connection).await.unwrap();
    let more = timeout(SOON, caller.write_all(b"TP/1.1\r\n")).await;
    more.expect("room for more").unwrap();
}

#[tokio::test]
async fn a_caller_who_does_not_read_the_refusal_is_disconnected() {
    let fixture = Fixture::new().await;
    let (mut connection, _head, mut caller) = used(&fixture, 8);
    caller.write_all(b"P").await.unwrap();
    let mut buffer = [0; 64];
    assert_eq!(connection.read(&mut buffer).await.unwrap(), 1);
    let ends = timeout(SOON, connection.read(&mut buffer)).await;
    assert!(ends.unwrap().is_err(), "late, and nothing is taken");
    let ends = timeout(SOON, AsyncWriteExt::shutdown(&mut connection)).await;
    assert_eq!(ends.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
}
