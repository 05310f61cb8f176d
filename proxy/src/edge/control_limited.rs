//! Limit on the frames of an HTTP/2 connection that belong to no request: SETTINGS, PING, PRIORITY, WINDOW_UPDATE,
//! RST_STREAM and unknown ones. The library reads, and answers, as many of them as a caller sends, and others wait
//! meanwhile. Enforced on the connection below HTTP; beyond the limit the connection ends.

use super::delegate::{delegate_connection, delegate_writing};
use super::frames::{CONTINUATION, DATA, Frames, HEADERS};
use pingora::protocols::Stream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// Frames that a connection may send at once.
const BURST: u64 = 1000;
/// Frames that it may send in a second without any answer.
const PER_SECOND: u64 = 20;
/// Written bytes that allow one frame more: a caller who receives much sends WINDOW_UPDATE and PING frames for it. The
/// edge's answer to a PING has 17 bytes and to SETTINGS 9, so that the answers of the edge allow fewer bytes than
/// caused them.
const BYTES_A_FRAME: u64 = 32;

/// Types of frames that belong to a request, which have bounds of their own.
const OF_REQUESTS: [u8; 3] = [DATA, HEADERS, CONTINUATION];

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

    fn written(&mut self, polled: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = polled {
            self.allowance.written(*bytes);
        }
    }

    const fn flushed(&self, _polled: &Poll<io::Result<()>>) {}
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
        let (mut bytes, mut count) = (&buffer.filled()[before..], 0);
        while let Some(head) = this.frames.next_head(&mut bytes) {
            count += u64::from(!OF_REQUESTS.contains(&head.kind));
        }
        if !this.allowance.take(count) {
            tracing::debug!("a caller's HTTP/2 connection ends: too many frames that belong to no request");
            return Poll::Ready(Err(io::Error::other("too many control frames")));
        }
        Poll::Ready(Ok(()))
    }
}

delegate_connection!(ControlLimited);
delegate_writing!(ControlLimited);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
