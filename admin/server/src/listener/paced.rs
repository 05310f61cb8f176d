//! A stream whose peer must read: a write without progress ends the connection.
//!
//! A peer that reads a byte now and then would reset a plain time-out forever, so time is earned by bytes: a blocked
//! write may take `allowance`, and each [`BYTES_PER_SECOND`] bytes written add one second to it.

use super::layer::{Layer, Layered, Pieces};
use prometheus::IntCounter;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

/// Minimum long-term rate at which an answer must be read.
const BYTES_PER_SECOND: u64 = 4096;

/// A stream whose blocked writes have a deadline that written bytes move.
#[derive(Debug)]
pub(super) struct Paced<S> {
    stream: S,
    /// Maximum time left.
    allowance: Duration,
    /// Remaining time that writes may be blocked.
    left: Duration,
    /// Since when a write has been blocked, and its deadline.
    blocked: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Counts the connections that end here.
    stalled: IntCounter,
}

impl<S> Paced<S> {
    /// Creates a stream that may block for `allowance` at first.
    pub(super) const fn over(stream: S, allowance: Duration, stalled: IntCounter) -> Layered<Self> {
        Layered(Self {
            stream,
            allowance,
            left: allowance,
            blocked: None,
            stalled,
        })
    }

    /// Notes that `bytes` were written, possibly after a pause.
    fn progressed(&mut self, bytes: usize) {
        if let Some((since, _)) = self.blocked.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
        let millis = (bytes as u64).saturating_mul(1000) / BYTES_PER_SECOND;
        self.left = self
            .left
            .saturating_add(Duration::from_millis(millis))
            .min(self.allowance);
    }

    /// Returns the result of a write: a blocked one waits as long as time is left.
    fn after(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.wait(context),
            Poll::Ready(Ok(bytes)) => {
                self.progressed(bytes);
                Poll::Ready(Ok(bytes))
            }
            failed => failed,
        }
    }

    /// Waits on, or fails when no time is left.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let left = self.left;
        let (_, end) = self.blocked.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        ready!(end.as_mut().poll(context));
        self.stalled.inc();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Layer for Paced<S> {
    type Below = S;

    fn below(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.stream)
    }

    fn is_below_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn write(&mut self, context: &mut Context<'_>, pieces: Pieces<'_>) -> Poll<io::Result<usize>> {
        let written = pieces.write(Pin::new(&mut self.stream), context);
        self.after(context, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    const ALLOWANCE: Duration = Duration::from_secs(30);
    /// Capacity of the pipe between the two ends.
    const PIPE: usize = 1024;

    fn paced() -> (Layered<Paced<DuplexStream>>, DuplexStream, IntCounter) {
        let stalled = IntCounter::new("stalled", "test").unwrap();
        let (ours, theirs) = duplex(PIPE);
        (Paced::over(ours, ALLOWANCE, stalled.clone()), theirs, stalled)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_cut_off() {
        let (mut ours, _theirs, stalled) = paced();
        let started = Instant::now();
        let error = ours.write_all(&[0; 10 * PIPE]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= ALLOWANCE, "{:?}", started.elapsed());
        assert_eq!(stalled.get(), 1);
    }

    /// A byte each second does not reset the clock: the allowance is used up nevertheless.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_a_byte_a_second_is_cut_off() {
        let (mut ours, mut theirs, stalled) = paced();
        let reader = tokio::spawn(async move {
            let mut byte = [0; 1];
            while theirs.read_exact(&mut byte).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let started = Instant::now();
        let error = ours.write_all(&[0; 1 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() < 2 * ALLOWANCE, "{:?}", started.elapsed());
        assert_eq!(stalled.get(), 1);
        drop(ours);
        reader.await.unwrap();
    }

    /// Twice the slowest rate, for ten times the allowance.
    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_goes_on_gets_all_of_it() {
        let (mut ours, mut theirs, stalled) = paced();
        let length = 2 * BYTES_PER_SECOND as usize * 300;
        let reader = tokio::spawn(async move {
            let mut all = 0;
            let mut some = vec![0; PIPE];
            while let Ok(read @ 1..) = theirs.read(&mut some).await {
                all += read;
                tokio::time::sleep(Duration::from_secs(1) / 8).await;
            }
            all
        });
        ours.write_all(&vec![0; length]).await.unwrap();
        drop(ours);
        assert_eq!((reader.await.unwrap(), stalled.get()), (length, 0));
    }

    /// Time without anything to write costs nothing.
    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_blocked_write_may_pause() {
        let (mut ours, mut theirs, stalled) = paced();
        let mut some = [0; PIPE];
        for _ in 0..3 {
            ours.write_all(&[0; PIPE]).await.unwrap();
            tokio::time::sleep(2 * ALLOWANCE).await;
            theirs.read_exact(&mut some).await.unwrap();
        }
        assert_eq!(stalled.get(), 0);
    }
}
