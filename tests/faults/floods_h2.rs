//! Floods of frames over HTTP/2: the connection that sends them ends, and others are served.

use crate::hang_ups_h2::{
    CANCEL, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, connected, fields, frame, head,
};
use crate::stage::{SOON, Setup, Stage};
use harness::RawClient;
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
    // The last frames may still be in transit.
    raw.read_to_end(SOON).await;
    let ping = frame(PING, 0, 0, &[0; 8]);
    let is_open = raw.send(&ping).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    !is_open || !raw.send(&ping).await
}

async fn others_are_served(stage: &Stage) {
    stage.approved_call().await;
}

/// Requests that are reset as soon as they are sent.
#[tokio::test]
async fn rapid_reset_ends_its_connection() {
    let stage = Setup::default().start().await;
    let mut raw = connected(&stage, 65_535).await;
    let resets = |at: u32| {
        let streams = (0..100).map(|number| 1 + 2 * (at * 100 + number));
        let reset = |stream| {
            [
                head(&stage, stream),
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
    others_are_served(&stage).await;
    stage.at_rest().await;
}

/// A head that goes on for ever, in frames of few bytes and of none.
#[tokio::test]
async fn endless_continuation_ends_its_connection() {
    let stage = Setup::default().start().await;
    for piece in [Vec::new(), fields(&[("x-a", "b")]), vec![0; 16_000]] {
        let mut raw = connected(&stage, 65_535).await;
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
        others_are_served(&stage).await;
    }
}

/// Malformed requests: the edge answers or resets each, and a connection may send only a number of them.
#[tokio::test]
async fn malformed_requests_end_their_connection() {
    let stage = Setup::default().start().await;
    let mut raw = connected(&stage, 65_535).await;
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
    others_are_served(&stage).await;
}

/// Frames that belong to no request, of each kind that the library reads without a bound.
#[tokio::test]
async fn control_frames_end_their_connection() {
    const PRIORITY: u8 = 2;
    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    const UNKNOWN: u8 = 99;
    let stage = Setup::default().start().await;
    let frames = [
        frame(SETTINGS, 0, 0, &[]),
        frame(PING, 0, 0, &[0; 8]),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1]),
        frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()),
        frame(UNKNOWN, 0, 0, &[]),
    ];
    for frame in frames {
        let mut raw = connected(&stage, 65_535).await;
        let more = |_| frame.repeat(100);
        assert!(
            is_cut_off(&mut raw, more, 100).await,
            "10,000 frames of type {}",
            frame[3]
        );
        others_are_served(&stage).await;
    }
    stage.at_rest().await;
}
