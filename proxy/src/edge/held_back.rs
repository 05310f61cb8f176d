//! Keeps the bytes behind the head of a chunked request, and behind its body, until HTTP asks for them. Pingora reads
//! on past the end of a head and of a body, so that the bytes behind could not be told from those before.

use super::chunks::{Chunks, MalformedAt};
use bytes::{Buf as _, Bytes};
use memchr::{memchr, memchr2_iter};
use pingora::protocols::Stream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead as _, ReadBuf};

/// The only transfer coding.
const CHUNKED: &[u8] = b"chunked";
/// Offset of the letter in it that is rare in heads.
const RARE: usize = 4;

/// Position of a head in its lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum InHead {
    /// Before the first line. Empty lines there are skipped (RFC 9112 §2.2).
    #[default]
    Before,
    InLine,
    BehindLf,
    BehindLfCr,
}

/// Received bytes that HTTP has not read yet, and the position in the framing of those that it has read.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    bytes: Bytes,
    in_head: InHead,
    /// The chunked body that is being read.
    chunks: Option<Chunks>,
    /// The body is malformed. HTTP reads CRs from there on, which no reader of chunks accepts, and refuses the request
    /// as one that it found malformed itself.
    is_malformed: bool,
}

impl HeldBack {
    /// Returns whether bytes wait.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Reads what waits, or else from the connection.
    pub(super) fn poll_read(
        &mut self,
        inner: &mut Stream,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_malformed {
            buffer.put_slice(b"\r");
            return Poll::Ready(Ok(()));
        }
        if self.bytes.is_empty() {
            return Pin::new(inner).poll_read(context, buffer);
        }
        let length = self.bytes.len().min(buffer.remaining());
        buffer.put_slice(&self.bytes[..length]);
        self.bytes.advance(length);
        Poll::Ready(Ok(()))
    }

    /// Marks the beginning of a head.
    pub(super) fn head_begins(&mut self) {
        (self.in_head, self.chunks, self.is_malformed) = (InHead::Before, None, false);
    }

    /// Holds back what is behind the end of a head in the bytes that were read since `before`, if the head is chunked
    /// or if its beginning is not among them.
    pub(super) fn cut_head(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let is_whole = self.in_head == InHead::Before;
        let read = &buffer.filled()[before..];
        if let Some(end) = self.end_of_head(read)
            && end < read.len()
            && (!is_whole || names_chunked(&read[..end]))
        {
            self.hold(buffer, before + end);
        }
    }

    /// Returns where the head may end in the next bytes of it: behind an empty line. HTTP may see another one before.
    fn end_of_head(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        if self.in_head == InHead::Before {
            at = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
            self.in_head = InHead::InLine;
        }
        while let Some(byte) = bytes.get(at) {
            at += 1;
            self.in_head = match (self.in_head, byte) {
                (InHead::BehindLf | InHead::BehindLfCr, b'\n') => {
                    self.in_head = InHead::InLine;
                    return Some(at);
                }
                (_, b'\n') => InHead::BehindLf,
                (InHead::BehindLf, b'\r') => InHead::BehindLfCr,
                _ => {
                    at += memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                    InHead::InLine
                }
            };
        }
        None
    }

    /// Marks the beginning of a chunked body.
    pub(super) fn body_begins(&mut self) {
        self.chunks = Some(Chunks::new());
    }

    /// Returns whether a chunked body is being read.
    pub(super) const fn is_in_body(&self) -> bool {
        self.chunks.is_some()
    }

    /// Checks the bytes of a chunked body that were read since `before`, and holds back what is behind it. Returns
    /// whether it has ended.
    pub(super) fn cut_body(&mut self, buffer: &mut ReadBuf<'_>, before: usize) -> bool {
        let read = &mut buffer.filled_mut()[before..];
        let Some(chunks) = self.chunks.as_mut().filter(|_| !self.is_malformed) else {
            return false;
        };
        match chunks.read(read) {
            Ok(Some(end)) => {
                self.chunks = None;
                self.hold(buffer, before + end);
                true
            }
            Err(MalformedAt(at)) => {
                self.is_malformed = true;
                read[at..].fill(b'\r');
                false
            }
            Ok(None) => false,
        }
    }

    /// Takes the bytes of the buffer from `end` on, and puts them before those that wait.
    fn hold(&mut self, buffer: &mut ReadBuf<'_>, end: usize) {
        let behind = &buffer.filled()[end..];
        if !behind.is_empty() {
            self.bytes = [behind, &self.bytes].concat().into();
            buffer.set_filled(end);
        }
    }
}

/// Returns whether a head may have the transfer coding `chunked`.
fn names_chunked(head: &[u8]) -> bool {
    memchr2_iter(b'k', b'K', head)
        .filter_map(|at| head.get(at.checked_sub(RARE)?..)?.get(..CHUNKED.len()))
        .any(|word| word.eq_ignore_ascii_case(CHUNKED))
}
