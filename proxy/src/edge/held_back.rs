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
                    at += memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures::task::noop_waker_ref;
    use std::io::Cursor;

    const CHUNKED_HEAD: &str = "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n";
    const PLAIN_HEAD: &str = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n";

    /// Room behind bytes that HTTP had read before, with what one read adds.
    fn buffer(room: &mut [u8]) -> ReadBuf<'_> {
        let mut buffer = ReadBuf::new(room);
        buffer.put_slice(b"before");
        buffer
    }

    /// Returns what HTTP reads of a head that arrives in these pieces, and what waits behind it.
    fn cut_head(pieces: &[&str]) -> (String, String) {
        let mut held = HeldBack::default();
        held.head_begins();
        let mut read = String::new();
        for piece in pieces {
            let mut room = [0; 200];
            let mut buffer = buffer(&mut room);
            let before = buffer.filled().len();
            buffer.put_slice(piece.as_bytes());
            held.cut_head(&mut buffer, before);
            assert_eq!(&buffer.filled()[..before], b"before");
            read += std::str::from_utf8(&buffer.filled()[before..]).unwrap();
        }
        let waits = String::from_utf8(held.bytes.to_vec()).unwrap();
        assert_eq!(held.is_empty(), waits.is_empty());
        (read, waits)
    }

    fn cut(read: &str, waits: &str) -> (String, String) {
        (read.to_owned(), waits.to_owned())
    }

    #[test]
    fn what_is_behind_a_chunked_head_waits() {
        for (head, behind) in [
            (CHUNKED_HEAD, "2\r\nab\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
            (CHUNKED_HEAD, "\n"),
            (CHUNKED_HEAD, ""),
            ("\r\n\nPOST / HTTP/1.1\nte: CHUNKED\n\n", "2\r\n"),
            ("POST / HTTP/1.1\r\nte:\rx chunked\n\r\n", "\r\n\r\n"),
            ("POST / HTTP/1.1\nte: chunked\n\rx\n\n", "\n\n"),
        ] {
            let whole = [head, behind].concat();
            assert_eq!(cut_head(&[&whole]), cut(head, behind), "{whole:?}");
            for at in 1..head.len() {
                let (begin, end) = whole.split_at(at);
                assert_eq!(cut_head(&[begin, end]), cut(head, behind), "{begin:?} {end:?}");
            }
        }
    }

    #[test]
    fn what_is_behind_another_head_waits_only_if_the_head_was_not_seen_whole() {
        let whole = [PLAIN_HEAD, "abcGET"].concat();
        assert_eq!(cut_head(&[&whole]), cut(&whole, ""));
        for at in 1..PLAIN_HEAD.len() {
            let (begin, end) = whole.split_at(at);
            assert_eq!(cut_head(&[begin, end]), cut(PLAIN_HEAD, "abcGET"), "{begin:?}");
        }
        // Empty lines before the first line are not a beginning.
        assert_eq!(cut_head(&["\r\n", &whole]), cut(&["\r\n", &whole].concat(), ""));
    }

    #[test]
    fn a_head_after_another_one_is_read_from_its_beginning() {
        let mut held = HeldBack::default();
        for head in [CHUNKED_HEAD, PLAIN_HEAD, CHUNKED_HEAD] {
            held.head_begins();
            let mut room = [0; 200];
            let mut buffer = ReadBuf::new(&mut room);
            buffer.put_slice(head.as_bytes());
            buffer.put_slice(b"x");
            held.cut_head(&mut buffer, 0);
            let waits = std::mem::take(&mut held.bytes);
            assert_eq!(waits, if head == CHUNKED_HEAD { "x" } else { "" }, "{head:?}");
        }
    }

    #[test]
    fn chunked_is_found_in_any_case_and_place() {
        for (head, found) in [
            ("Transfer-Encoding: chunked", true),
            ("chunked", true),
            ("cHUNKED, gzip", true),
            ("k chunkk chunked", true),
            ("", false),
            ("k", false),
            ("kkkk", false),
            ("unked", false),
            ("chunke", false),
            ("chunkes chunk ed", false),
        ] {
            assert_eq!(names_chunked(head.as_bytes()), found, "{head:?}");
        }
    }

    /// Reads all bytes of a connection in reads of `piece` bytes, as a chunked body until it ends. Returns what HTTP
    /// reads of the body and, in one more read, behind it.
    fn read_body(sent: &str, piece: usize, reads: usize) -> (String, String) {
        let mut connection: Stream = Box::new(Cursor::new(sent.as_bytes().to_vec()));
        let mut context = Context::from_waker(noop_waker_ref());
        let mut held = HeldBack::default();
        let mut read = |held: &mut HeldBack, piece: usize| {
            let mut room = vec![0; "before".len() + piece];
            let mut buffer = buffer(&mut room);
            let before = buffer.filled().len();
            assert!(matches!(
                held.poll_read(&mut connection, &mut context, &mut buffer),
                Poll::Ready(Ok(()))
            ));
            let ended = held.is_in_body() && held.cut_body(&mut buffer, before);
            let read = std::str::from_utf8(&buffer.filled()[before..]).unwrap();
            (read.to_owned(), ended)
        };
        assert!(!held.is_in_body());
        held.body_begins();
        let mut body = String::new();
        for _ in 0..reads {
            assert!(held.is_in_body());
            let (some, ended) = read(&mut held, piece);
            body += &some;
            if ended {
                break;
            }
        }
        let (behind, _) = read(&mut held, 200);
        (body, behind)
    }

    #[test]
    fn what_is_behind_a_chunked_body_waits_until_it_is_asked_for() {
        let (body, behind) = ("2\r\nab\r\n0\r\n\r\n", "GET / HTTP/1.1\r\n\r\n");
        let sent = [body, behind].concat();
        for piece in 1..=sent.len() {
            let (read, next) = read_body(&sent, piece, 100);
            assert_eq!(read, body, "{piece}");
            // Behind a body that ended with a read, HTTP reads from the connection again.
            assert!(!next.is_empty() && behind.starts_with(&next), "{piece}: {next:?}");
        }
    }

    #[test]
    fn http_reads_nothing_of_a_malformed_body_but_line_ends() {
        let sent = "2;\nx\r\nab\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        for piece in [1, 3, 100] {
            let reads = 2_usize.max(4 / piece);
            let (read, behind) = read_body(sent, piece, reads);
            let rest = read.strip_prefix("2;").unwrap();
            assert!(rest.bytes().all(|byte| byte == b'\r'), "{piece}: {read:?}");
            assert_eq!(behind, "\r", "{piece}");
        }
    }

    #[test]
    fn bytes_that_wait_are_read_in_order_and_before_the_connection() {
        let mut connection: Stream = Box::new(Cursor::new(b"connection".to_vec()));
        let mut context = Context::from_waker(noop_waker_ref());
        let mut held = HeldBack {
            bytes: Bytes::from_static(b"abcdef"),
            ..HeldBack::default()
        };
        let mut room = [0; 4];
        let mut buffer = ReadBuf::new(&mut room);
        let _ = held.poll_read(&mut connection, &mut context, &mut buffer);
        assert_eq!(buffer.filled(), b"abcd");
        held.hold(&mut buffer, 1);
        assert_eq!((buffer.filled(), &held.bytes[..]), (&b"a"[..], &b"bcdef"[..]));
        held.hold(&mut buffer, 1);
        assert_eq!(held.bytes, "bcdef");
        let mut room = [0; 100];
        let mut buffer = ReadBuf::new(&mut room);
        for expected in ["bcdef", "bcdefconnection"] {
            let _ = held.poll_read(&mut connection, &mut context, &mut buffer);
            assert_eq!(buffer.filled(), expected.as_bytes());
        }
    }
}
