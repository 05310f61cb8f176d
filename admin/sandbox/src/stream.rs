//! The body of a streamed answer: events are written when they are due, in pieces of any size.

use super::DELAY_MAX;
use super::calls::{AnswerEnd, Recorder, SentPiece};
use super::events::{Events, StreamEvent, StreamItem};
use super::plan::{StreamFault, StreamPlan};
use super::reply::BoxedReply;
use super::request::SandboxRequest;
use super::stats::CallInFlight;
use axum::body::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, HeaderValue};
use std::collections::VecDeque;
use std::io::{self, Write as _};

/// The content type of events.
const EVENTS: &str = "text/event-stream; charset=utf-8";

/// Builds the answer with these events as its body.
pub(super) fn reply(
    request: SandboxRequest,
    number: u64,
    plan: StreamPlan,
    mut recorder: Recorder,
    in_flight: CallInFlight,
) -> BoxedReply {
    let status = plan.status.and_then(|status| StatusCode::from_u16(status).ok());
    let is_gzip = plan.gzip;
    let mut plan = plan;
    if status.is_some() {
        // The error is the only event.
        plan.fault = Some((0, StreamFault::Error));
    }
    let status = status.unwrap_or(StatusCode::OK);
    recorder.status(status.as_u16());
    let writer = Writer {
        encoder: is_gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())),
        events: Events::new(request, number, plan.clone()),
        plan,
        pieces: VecDeque::new(),
        fault: None,
        is_first: true,
        is_over: false,
        recorder,
        _in_flight: in_flight,
    };
    let body = Body::from_stream(stream::unfold(writer, async |mut writer| {
        Some((writer.next().await?, writer))
    }));
    let reply =
        BoxedReply::new(status, EVENTS, body).with(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    match is_gzip {
        true => reply.with(CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        false => reply,
    }
}

/// Writes events.
struct Writer {
    events: Events,
    plan: StreamPlan,
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Pieces to be sent before the next event, with their contents.
    pieces: VecDeque<(Bytes, SentPiece)>,
    /// Item to be handled once these are sent.
    fault: Option<StreamItem>,
    is_first: bool,
    is_over: bool,
    recorder: Recorder,
    _in_flight: CallInFlight,
}

impl Writer {
    /// Returns the next piece; `None` at the end.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some((piece, sent)) = self.pieces.pop_front() {
                // Lets the previous pieces be sent, so that this one is a separate write.
                tokio::task::yield_now().await;
                self.recorder.sent(sent);
                return Some(Ok(piece));
            }
            match self.fault.take() {
                Some(StreamItem::Cut) => {
                    tokio::task::yield_now().await;
                    self.recorder.end(AnswerEnd::Cut);
                    self.is_over = true;
                    return Some(Err(io::Error::from(io::ErrorKind::ConnectionReset)));
                }
                Some(_) => {
                    self.recorder.stalled();
                    tokio::time::sleep(DELAY_MAX).await;
                    self.is_over = true;
                }
                None => {}
            }
            if self.is_over {
                self.recorder.end(AnswerEnd::Whole);
                return None;
            }
            self.write().await;
        }
    }

    /// Waits for the next events, and cuts them into pieces.
    async fn write(&mut self) {
        let wait = if self.is_first {
            self.plan.first
        } else {
            self.plan.delay
        };
        self.is_first = false;
        let (mut text, mut sent) = (String::new(), SentPiece::default());
        for _ in 0..self.plan.batch {
            match self.events.next() {
                Some(StreamItem::Event(event)) => {
                    self.render(&event, &mut text);
                    sent.events += 1;
                    sent.text_bytes += event.text_bytes;
                    sent.usage = event.usage.or(sent.usage);
                }
                Some(fault) => {
                    self.fault = Some(fault);
                    break;
                }
                None => {
                    self.is_over = true;
                    break;
                }
            }
        }
        if sent.events > 0 && !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let bytes = self.encoded(text);
        self.cut(bytes, sent);
    }

    fn render(&self, event: &StreamEvent, text: &mut String) {
        let end = self.plan.line_end.text();
        if self.plan.comments {
            text.extend([": a comment", end, end]);
        }
        match event.name {
            Some(name) => text.extend(["event: ", name, end]),
            None if self.plan.names => text.extend(["event: message", end]),
            None => {}
        }
        text.extend(["data: ", &event.data, end, end]);
    }

    /// Returns the bytes to send: the text itself, or its compressed form so far.
    fn encoded(&mut self, text: String) -> Vec<u8> {
        let Some(encoder) = &mut self.encoder else {
            return text.into_bytes();
        };
        // Writing to memory does not fail.
        let _written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.flush());
        if self.is_over {
            let _finished = encoder.try_finish();
        }
        std::mem::take(encoder.get_mut())
    }

    /// Splits the bytes into pieces. Their content counts with the last one.
    fn cut(&mut self, bytes: Vec<u8>, sent: SentPiece) {
        let bytes = Bytes::from(bytes);
        let size = self.plan.piece.unwrap_or(bytes.len()).max(1);
        let mut at = 0;
        while bytes.len() - at > size {
            let piece = bytes.slice(at..at + size);
            at += size;
            let alone = SentPiece {
                bytes: size,
                ..SentPiece::default()
            };
            self.pieces.push_back((piece, alone));
        }
        let last = bytes.slice(at..);
        if !last.is_empty() {
            let sent = SentPiece {
                bytes: last.len(),
                ..sent
            };
            self.pieces.push_back((last, sent));
        }
    }
}
