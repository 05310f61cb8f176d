//! Callers who leave or stall over HTTP/2, with frames that no well-behaved client library sends.

use crate::fixture::{ACTUAL, Fixture, SOON, Setup, answer, body};
use harness::{Answer, RawClient, Script, until};
use serde_json::{Value, json};
use std::time::Duration;

const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
/// `SETTINGS_INITIAL_WINDOW_SIZE`
const INITIAL_WINDOW: u16 = 4;
/// The error code `CANCEL`.
pub const CANCEL: u32 = 8;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields without compression.
pub fn fields(list: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for text in list.iter().flat_map(|(name, value)| [(0_u8, *name), (1, *value)]) {
        let (is_value, text) = text;
        if is_value == 0 {
            block.push(0);
        }
        block.push(
            u8::try_from(text.len())
                .ok()
                .filter(|length| *length < 127)
                .expect("a short text"),
        );
        block.extend(text.as_bytes());
    }
    block
}

/// A connection whose streams may send `window` bytes of their answers at first.
pub async fn connected(fixture: &Fixture, window: u32) -> RawClient {
    let mut raw = fixture.raw().await;
    let settings = [&INITIAL_WINDOW.to_be_bytes()[..], &window.to_be_bytes()].concat();
    let start = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &settings),
    ]
    .concat();
    assert!(raw.send(start).await);
    raw
}

/// The head of a call on a stream.
pub fn head(fixture: &Fixture, stream: u32) -> Vec<u8> {
    let bearer = format!("Bearer {}", fixture.key);
    let block = fields(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v1/chat/completions"),
        (":authority", "edge"),
        ("authorization", &bearer),
        ("content-type", "application/json"),
    ]);
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// The whole call on a stream.
pub fn call(fixture: &Fixture, stream: u32) -> Vec<u8> {
    call_with(fixture, stream, &body())
}

fn call_with(fixture: &Fixture, stream: u32, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    [
        head(fixture, stream),
        frame(DATA, END_STREAM, stream, body.as_bytes()),
    ]
    .concat()
}

pub async fn in_flight(fixture: &Fixture, count: u64) {
    until("the calls in flight", async || {
        fixture.metric("tollgate_proxy_in_flight") == count
    })
    .await;
}

#[tokio::test]
async fn streams_that_break_off_in_their_body_are_not_served() {
    let fixture = Setup::default().start().await;
    let half = body().to_string()[..40].to_owned();
    let mut raw = connected(&fixture, 65_535).await;
    for stream in [1, 3, 5] {
        assert!(raw.send(head(&fixture, stream)).await);
        assert!(raw.send(frame(DATA, 0, stream, half.as_bytes())).await);
    }
    in_flight(&fixture, 3).await;
    assert!(raw.send(frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes())).await);
    in_flight(&fixture, 2).await;
    raw.reset();
    fixture.settled_at(0).await;
    assert_eq!(fixture.upstream.arrived(), 0);
    fixture.approved_call().await;
}

#[tokio::test]
async fn a_stream_that_drips_ends_at_its_deadline() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 1000)
        .start()
        .await;
    let mut raw = connected(&fixture, 65_535).await;
    assert!(raw.send(head(&fixture, 1)).await);
    for _ in 0..5 {
        assert!(raw.send(frame(DATA, 0, 1, b"{")).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fixture.settled_at(0).await;
    assert_eq!((fixture.upstream.arrived(), fixture.rate()), (0, 1));
}

/// The caller never has room for its answers: its calls are settled, and the connection ends after some time.
#[tokio::test]
async fn a_caller_without_room_for_its_answer_is_let_go() {
    let fixture = Setup::default()
        .env("PROXY__CLIENT_TIMEOUT_MS", 1500)
        .start()
        .await;
    let mut raw = connected(&fixture, 0).await;
    for stream in [1, 3, 5, 7] {
        assert!(raw.send(call(&fixture, stream)).await);
    }
    fixture.upstream.wait_for(4, SOON).await;
    fixture.bot.settled_within(SOON).await;
    fixture.settled_at(4 * ACTUAL).await;
    drop(raw);
}

/// Streams that are opened and cancelled at once, by the hundred ("rapid reset"): calls that were approved are settled,
/// the edge lives on. Their answers are whole, or streams.
#[tokio::test]
async fn streams_reset_by_the_hundred_leave_nothing_behind() {
    for is_streamed in [false, true] {
        let fixture = Setup::default().env("PROXY__STREAMING", true).start().await;
        let mut sent = body();
        sent["stream"] = is_streamed.into();
        if is_streamed {
            let usage = json!({ "prompt_tokens": 9, "completion_tokens": 12 });
            let answer = Answer::stream(Script::chat(&["Hello."], &usage));
            fixture.upstream.set(move |_| answer.clone());
        }
        let mut raw = connected(&fixture, 65_535).await;
        for number in 0..500_u32 {
            let stream = 2 * number + 1;
            let both = [
                call_with(&fixture, stream, &sent),
                frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()),
            ]
            .concat();
            if !raw.send(both).await {
                break;
            }
        }
        drop(raw.read_to_end(Duration::from_secs(1)).await);
        fixture.at_rest().await;
        let forwarded = fixture.upstream.arrived() as u64;
        fixture.settled_at(forwarded * ACTUAL).await;
        fixture.upstream.set(|_| answer());
        fixture.approved_call().await;
    }
}
