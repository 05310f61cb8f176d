//! Limit on the frames of an HTTP/2 connection that belong to no request: SETTINGS, PING, PRIORITY, WINDOW_UPDATE,
//! RST_STREAM and unknown ones. The library reads, and answers, as many of them as a caller sends, and others wait
//! meanwhile. Enforced on the connection below HTTP; beyond the limit the connection ends.

use super::delegate::delegate_connection;
use async_trait::async_trait;
use pingora::protocols::{Shutdown, Stream};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Frames that a connection may send at once.
const BURST: u64 = 1000;
/// Frames that it may send in a second without any answer.
const PER_SECOND: u64 = 20;
/// Written bytes that allow one frame more: a caller who receives much sends WINDOW_UPDATE and PING frames for it. The
/// edge's answer to a PING has 17 bytes and to SETTINGS 9, so that these allow less than what caused them.
const BYTES_A_FRAME: u64 = 32;

/// Length of the preface of HTTP/2, which precedes the first frame.
const PREFACE_BYTES: u64 = 24;
const FRAME_HEAD_BYTES: usize = 9;
/// Types of frames that belong to a request: DATA, HEADERS and CONTINUATION, which have bounds of their own.
const OF_REQUESTS: [u8; 3] = [0, 1, 9];

/// Counts the frames in the received bytes.
#[derive(Debug)]
struct Frames {
    /// Bytes of a payload, or of the preface, that are still to come.
    payload_left: u64,
    /// The head of the next frame, as far as it was received.
    head: [u8; FRAME_HEAD_BYTES],
    received: usize,
}

impl Frames {
    const fn new() -> Self {
        Self {
            payload_left: PREFACE_BYTES,
            head: [0; FRAME_HEAD_BYTES],
            received: 0,
        }
    }

    /// Reads the next bytes, and returns the number of frames in them that belong to no request.
    fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut count = 0;
        loop {
            let skipped =
                usize::try_from(self.payload_left).map_or(bytes.len(), |left| left.min(bytes.len()));
            self.payload_left -= skipped as u64;
            bytes = &bytes[skipped..];
            let taken = bytes.len().min(FRAME_HEAD_BYTES - self.received);
            if taken == 0 {
                return count;
            }
            self.head[self.received..self.received + taken].copy_from_slice(&bytes[..taken]);
            self.received += taken;
            bytes = &bytes[taken..];
            if self.received == FRAME_HEAD_BYTES {
                let [a, b, c, kind, ..] = self.head;
                self.payload_left = u32::from_be_bytes([0, a, b, c]).into();
                self.received = 0;
                count += u64::from(!OF_REQUESTS.contains(&kind));
            }
        }
    }
}

/// Frames that the connection may still send.
#[derive(Debug)]
struct Allowance {
    frames: u64,
    /// Written bytes that have allowed no frame yet.
    written: u64,
    /// Time until which seconds have allowed frames.
    since: Instant,
}

impl Allowance {
    fn new() -> Self {
        Self {
            frames: BURST,
            written: 0,
            since: Instant::now(),
        }
    }

    fn written(&mut self, bytes: usize) {
        self.written += bytes as u64;
        self.add(self.written / BYTES_A_FRAME);
        self.written %= BYTES_A_FRAME;
    }

    fn add(&mut self, frames: u64) {
        self.frames = (self.frames + frames).min(BURST);
    }

    /// Returns whether the connection may send so many frames more.
    fn take(&mut self, count: u64) -> bool {
        if self.frames < count {
            let now = Instant::now();
            let seconds = now.duration_since(self.since).as_secs();
            if seconds > 0 {
                self.since = now;
                self.add(seconds.saturating_mul(PER_SECOND));
            }
        }
        let left = self.frames.checked_sub(count);
        self.frames = left.unwrap_or_default();
        left.is_some()
    }
}

/// HTTP/2 connection that bounds the frames that belong to no request.
pub struct ControlLimited {
    inner: Stream,
    frames: Frames,
    allowance: Allowance,
}

impl std::fmt::Debug for ControlLimited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlLimited").finish_non_exhaustive()
    }
}

impl ControlLimited {
    pub fn new(inner: Stream) -> Self {
        Self {
            inner,
            frames: Frames::new(),
            allowance: Allowance::new(),
        }
    }
}

impl AsyncRead for ControlLimited {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        let count = this.frames.count(&buffer.filled()[before..]);
        if !this.allowance.take(count) {
            tracing::debug!("a caller's HTTP/2 connection ends: too many frames that belong to no request");
            return Poll::Ready(Err(io::Error::other("too many control frames")));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ControlLimited {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.inner).poll_write(context, bytes))?;
        this.allowance.written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.inner).poll_write_vectored(context, pieces))?;
        this.allowance.written(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for ControlLimited {
    async fn shutdown(&mut self) {
        self.inner.shutdown().await;
    }
}

delegate_connection!(ControlLimited);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).unwrap().to_be_bytes();
        let mut frame = [&length[1..], &[kind, 0, 0, 0, 0, 1]].concat();
        frame.resize(FRAME_HEAD_BYTES + payload, 7);
        frame
    }

    #[test]
    fn frames_are_counted_however_their_bytes_arrive() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS, HEADERS, DATA, PING, WINDOW_UPDATE, an unknown one, CONTINUATION, an empty SETTINGS.
        for (kind, payload) in [
            (4, 18),
            (1, 300),
            (0, 70_000),
            (6, 8),
            (8, 4),
            (99, 0),
            (9, 5),
            (4, 0),
        ] {
            bytes.extend(frame(kind, payload));
        }
        for piece in [1, 2, 9, 10, 1000, bytes.len()] {
            let mut frames = Frames::new();
            let count: u64 = bytes.chunks(piece).map(|piece| frames.count(piece)).sum();
            assert_eq!(count, 5, "in pieces of {piece}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_allowed_by_time_and_by_what_was_written() {
        let mut allowance = Allowance::new();
        assert!(allowance.take(BURST) && !allowance.take(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(allowance.take(2 * PER_SECOND) && !allowance.take(1));
        allowance.written(31);
        assert!(!allowance.take(1));
        allowance.written(33);
        assert!(allowance.take(2) && !allowance.take(1));
        // Answers to PING allow less than the PINGs take.
        let mut pings = 0;
        let mut allowance = Allowance::new();
        while allowance.take(1) {
            allowance.written(17);
            pings += 1;
        }
        assert!(pings < 3 * BURST, "{pings}");
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(!allowance.take(BURST + 1), "no more than a burst is saved up");
    }
}
