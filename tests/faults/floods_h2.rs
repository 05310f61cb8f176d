//! Floods of frames over HTTP/2: the connection that sends them ends, and others are served.

use crate::fixture::{ACTUAL, Fixture, Setup};
use crate::hang_ups_h2::{
    CANCEL, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, call, connected, fields, frame, head, in_flight,
};
use crate::memory::resident_kib;
use harness::{Answer, RawClient};
use std::time::Duration;

const CONTINUATION: u8 = 9;
const PING: u8 = 6;

/// Sends pieces until the edge ends the connection.
async fn is_cut_off(raw: &mut RawClient, piece: impl Fn(u32) -> Vec<u8>, most: u32) -> bool {
    for at in 0..most {
        if !raw.send(piece(at)).await {
            return true;
        }
    }
    // The edge may still have to read the last frames, and takes long for thousands on a busy machine.
    raw.read_to_end(Duration::from_secs(60)).await;
    let ping = frame(PING, 0, 0, &[0; 8]);
    let is_open = raw.send(&ping).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    !is_open || !raw.send(&ping).await
}

async fn others_are_served(fixture: &Fixture) {
    fixture.approved_call().await;
}

/// Requests that are reset as soon as they are sent.
#[tokio::test]
async fn rapid_reset_ends_its_connection() {
    let fixture = Setup::default().start().await;
    let mut raw = connected(&fixture, 65_535).await;
    let resets = |at: u32| {
        let streams = (0..100).map(|number| 1 + 2 * (at * 100 + number));
        let reset = |stream| {
            [
                head(&fixture, stream),
                frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()),
            ]
            .concat()
        };
        streams.flat_map(reset).collect()
    };
    assert!(
        is_cut_off(&mut raw, resets, 100).await,
        "10,000 requests were reset"
    );
    others_are_served(&fixture).await;
    fixture.at_rest().await;
}

/// A head that goes on for ever, in frames of few bytes and of none.
#[tokio::test]
async fn endless_continuation_ends_its_connection() {
    let fixture = Setup::default().start().await;
    for piece in [Vec::new(), fields(&[("x-a", "b")]), vec![0; 16_000]] {
        let mut raw = connected(&fixture, 65_535).await;
        assert!(
            raw.send(frame(HEADERS, 0, 1, &fields(&[(":method", "GET")])))
                .await
        );
        let more = |_| frame(CONTINUATION, 0, 1, &piece).repeat(100);
        assert!(
            is_cut_off(&mut raw, more, 100).await,
            "10,000 frames of {} bytes",
            piece.len()
        );
        others_are_served(&fixture).await;
    }
}

/// Malformed requests: the edge answers or resets each, and a connection may send only a number of them.
#[tokio::test]
async fn malformed_requests_end_their_connection() {
    let fixture = Setup::default().start().await;
    let mut raw = connected(&fixture, 65_535).await;
    let block = fields(&[
        (":method", "GET"),
        (":path", "/"),
        (":scheme", "http"),
        ("connection", "close"),
    ]);
    let bad = |at: u32| frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * at, &block);
    assert!(
        is_cut_off(&mut raw, bad, 20_000).await,
        "20,000 malformed requests"
    );
    others_are_served(&fixture).await;
}

/// Frames that belong to no request, of each kind that the library reads without a bound.
#[tokio::test]
async fn control_frames_end_their_connection() {
    const PRIORITY: u8 = 2;
    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    const UNKNOWN: u8 = 99;
    let fixture = Setup::default().start().await;
    let frames = [
        frame(SETTINGS, 0, 0, &[]),
        frame(PING, 0, 0, &[0; 8]),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]),
        frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()),
        frame(UNKNOWN, 0, 0, &[]),
    ];
    for frame in frames {
        let mut raw = connected(&fixture, 65_535).await;
        let more = |_| frame.repeat(100);
        assert!(
            is_cut_off(&mut raw, more, 100).await,
            "10,000 frames of type {}",
            frame[3]
        );
        others_are_served(&fixture).await;
    }
    fixture.at_rest().await;
}

/// Requests of invented keys, with many headers.
fn of_invented_keys(first_stream: u32, count: u32, connection: u32) -> Vec<u8> {
    let requests = (0..count).flat_map(|number| {
        let bearer = format!("Bearer vk_live_{:064x}", connection * count + number);
        let mut list = vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/v1/models"),
            (":authority", "edge"),
            ("authorization", &bearer),
        ];
        list.extend([("a", ""); 300]);
        frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            first_stream + 2 * number,
            &fields(&list),
        )
    });
    requests.collect()
}

/// A hundred requests of invented keys on each connection, whose answers are never read: the edge reads one of each
/// connection, and a few of each that has had a request of a known key.
#[tokio::test]
async fn requests_of_unknown_keys_take_no_more_memory_than_their_connections() {
    const CONNECTIONS: u32 = 40;
    const REQUESTS: u32 = 100;
    const UNKNOWN_MAX: u32 = 4;
    const EACH_MAX_KIB: u64 = 256;
    for is_known in [false, true] {
        let fixture = Setup::default().start().await;
        fixture.approved_call().await;
        let before = resident_kib(fixture.edge.pid());
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            open.push(connected(&fixture, 0).await);
        }
        if is_known {
            for raw in &mut open {
                assert!(raw.send(head(&fixture, 1)).await);
            }
            in_flight(&fixture, CONNECTIONS.into()).await;
            for raw in &mut open {
                assert!(raw.send(frame(RST_STREAM, 0, 1, &CANCEL.to_be_bytes())).await);
            }
            in_flight(&fixture, 0).await;
        }
        for (connection, raw) in (0..).zip(&mut open) {
            assert!(raw.send(of_invented_keys(3, REQUESTS, connection)).await);
        }
        let read = CONNECTIONS * if is_known { UNKNOWN_MAX } else { 1 };
        in_flight(&fixture, read.into()).await;
        fixture.approved_call().await;
        let grown = resident_kib(fixture.edge.pid()).saturating_sub(before);
        assert!(
            grown <= u64::from(CONNECTIONS) * EACH_MAX_KIB,
            "the edge grew by {grown} KiB"
        );
        in_flight(&fixture, read.into()).await;
    }
}

/// The key of the first request is enough for all others, which arrive together with it.
#[tokio::test]
async fn a_new_connection_has_many_requests_of_a_known_key() {
    const REQUESTS: u32 = 60;
    let fixture = Setup::default().start().await;
    fixture
        .upstream
        .set(|_| Answer::chat(9, 12).delay(Duration::from_secs(2)));
    let mut raw = connected(&fixture, 65_535).await;
    let calls = (0..REQUESTS).flat_map(|number| call(&fixture, 1 + 2 * number));
    assert!(raw.send(calls.collect::<Vec<u8>>()).await);
    in_flight(&fixture, REQUESTS.into()).await;
    fixture.settled_at(u64::from(REQUESTS) * ACTUAL).await;
}
