//! Bodies of completions: whole, compressed, chunked, truncated, very large.

use super::reply::BoxedReply;
use axum::body::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, StreamExt};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use std::io::{self, Write};

const JSON: &str = "application/json";
/// Number of pieces of a chunked answer.
const CHUNKS: usize = 5;
/// Bytes of a huge answer that are in memory at once.
const PIECE: usize = 64 << 10;
/// Text of a completion before which the filler of a huge answer is inserted.
const MARK: &str = "\"content\":\"";

fn ok(body: Body) -> BoxedReply {
    BoxedReply::new(StatusCode::OK, JSON, body)
}

/// Builds an unencoded answer with its length.
pub(super) fn whole(json: String) -> BoxedReply {
    ok(Body::from(json))
}

/// Builds a compressed answer, even if it was not requested.
pub(super) fn gzip(json: &str) -> BoxedReply {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(json.as_bytes()).and_then(|()| encoder.finish());
    // Writing to memory does not fail.
    ok(Body::from(compressed.unwrap_or_default())).with(CONTENT_ENCODING, HeaderValue::from_static("gzip"))
}

fn pieces(json: &str) -> Vec<io::Result<Bytes>> {
    let size = json.len().div_ceil(CHUNKS).max(1);
    let pieces = json.as_bytes().chunks(size);
    pieces.map(|piece| Ok(Bytes::copy_from_slice(piece))).collect()
}

/// Builds a body of these pieces. The yield before each lets the previous ones be sent: a body that ends with an error
/// would otherwise be dropped before anything was sent.
fn one_by_one(pieces: Vec<io::Result<Bytes>>) -> Body {
    let stream = stream::iter(pieces).then(|piece| async {
        tokio::task::yield_now().await;
        piece
    });
    Body::from_stream(stream)
}

/// Builds a body of the first pieces, then an error that closes the connection in the middle.
fn broken_off(json: &str) -> Body {
    let mut pieces = pieces(json);
    pieces.truncate(CHUNKS / 2);
    pieces.push(Err(io::Error::from(io::ErrorKind::ConnectionReset)));
    one_by_one(pieces)
}

/// Builds an answer without a length, in several chunks.
pub(super) fn chunked(json: &str) -> BoxedReply {
    ok(one_by_one(pieces(json)))
}

/// Builds a chunked answer that breaks off.
pub(super) fn broken_chunks(json: &str) -> BoxedReply {
    ok(broken_off(json))
}

/// Builds an answer shorter than its Content-Length.
pub(super) fn too_short(json: &str) -> BoxedReply {
    ok(broken_off(json)).with(CONTENT_LENGTH, json.len())
}

/// Builds a completion of exactly `bytes` bytes (or its own length, if that is longer), with filler before its text.
pub(super) fn huge(json: &str, bytes: u64) -> BoxedReply {
    let at = json.find(MARK).map_or(0, |at| at + MARK.len());
    let (head, tail) = json.split_at(at);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(json.len());
    let filler = bytes - json.len();
    let piece = Bytes::from(vec![b'x'; PIECE]);
    let fill = (0..filler.div_ceil(PIECE)).map(move |nth| {
        let left = filler - nth * PIECE;
        Ok::<_, io::Error>(piece.slice(..left.min(PIECE)))
    });
    let head = stream::once(std::future::ready(Ok(Bytes::copy_from_slice(head.as_bytes()))));
    let tail = stream::once(std::future::ready(Ok(Bytes::copy_from_slice(tail.as_bytes()))));
    let body = head.chain(stream::iter(fill)).chain(tail);
    ok(Body::from_stream(body)).with(CONTENT_LENGTH, bytes)
}
