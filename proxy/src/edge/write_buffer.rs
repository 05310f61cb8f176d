//! Collects the writes to a caller's connection until they are flushed: head and body of a usual answer are sent in one
//! system call instead of two. A buffer of Pingora's would keep its memory while the connection is idle and between two
//! events of a stream, so this one has memory only while bytes wait in it.

use bytes::{Buf as _, BytesMut};
use pingora::protocols::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite as _;

/// Maximum number of bytes that wait. Longer writes are not collected.
pub const WAITING_MAX: usize = 16 << 10;
/// Bytes that the memory is allocated for: a head and a short answer.
const USUAL_BYTES: usize = 2 << 10;

/// Bytes that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct WriteBuffer(BytesMut);

impl WriteBuffer {
    /// Collects `pieces`, or sends them if they are too long. Returns how many of their bytes were taken.
    pub(super) fn poll_write(
        &mut self,
        connection: &mut Stream,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.0.len() + length > WAITING_MAX {
            ready!(self.poll_send(connection, context))?;
        }
        if length >= WAITING_MAX {
            return Pin::new(connection).poll_write_vectored(context, pieces);
        }
        if self.0.is_empty() {
            self.0 = BytesMut::with_capacity(length.max(USUAL_BYTES));
        }
        for piece in pieces {
            self.0.extend_from_slice(piece);
        }
        Poll::Ready(Ok(length))
    }

    /// Sends all that waits, and flushes the connection.
    pub(super) fn poll_flush(
        &mut self,
        connection: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_send(connection, context))?;
        Pin::new(connection).poll_flush(context)
    }

    fn poll_send(&mut self, connection: &mut Stream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.0.is_empty() {
            match ready!(Pin::new(&mut *connection).poll_write(context, &self.0))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.0.advance(sent),
            }
        }
        self.0 = BytesMut::new();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt as _, duplex};

    /// Room of the connection, in bytes.
    const ROOM: usize = 64 << 10;

    #[tokio::test]
    async fn writes_wait_for_the_flush_and_leave_no_memory() {
        let (near, mut caller) = duplex(ROOM);
        let (mut connection, mut buffer): (Stream, _) = (Box::new(near), WriteBuffer::default());
        let mut received = [0; 64];
        for _ in 0..2 {
            for pieces in [["he", "ad"], ["", "body"]] {
                let pieces = pieces.map(|piece| IoSlice::new(piece.as_bytes()));
                let taken = poll_fn(|context| buffer.poll_write(&mut connection, context, &pieces)).await;
                assert_eq!(taken.unwrap(), 4);
            }
            assert!(buffer.0.capacity() >= USUAL_BYTES);
            let flushed = poll_fn(|context| buffer.poll_flush(&mut connection, context)).await;
            flushed.unwrap();
            assert_eq!(caller.read(&mut received).await.unwrap(), 8, "all in one piece");
            assert_eq!(&received[..8], b"headbody");
            assert_eq!(buffer.0.capacity(), 0);
        }
    }

    #[tokio::test]
    async fn long_writes_are_sent_behind_those_that_wait() {
        let (near, mut caller) = duplex(ROOM);
        let (mut connection, mut buffer): (Stream, _) = (Box::new(near), WriteBuffer::default());
        let long = [b'b'; WAITING_MAX];
        for bytes in [&b"a"[..], &long, &long[1..], b"cd"] {
            let pieces = [IoSlice::new(bytes)];
            let taken = poll_fn(|context| buffer.poll_write(&mut connection, context, &pieces)).await;
            assert_eq!(taken.unwrap(), bytes.len());
        }
        assert_eq!(buffer.0, b"cd"[..], "those before had to make room");
        let mut received = vec![0; 2 * WAITING_MAX];
        caller.read_exact(&mut received).await.unwrap();
        assert_eq!(received, [&b"a"[..], &long, &long[1..]].concat());
    }

    #[tokio::test]
    async fn bytes_that_a_slow_caller_does_not_read_wait() {
        let (near, mut caller) = duplex(3);
        let (mut connection, mut buffer): (Stream, _) = (Box::new(near), WriteBuffer::default());
        let pieces = [IoSlice::new(b"answer")];
        let taken = poll_fn(|context| buffer.poll_write(&mut connection, context, &pieces)).await;
        assert_eq!(taken.unwrap(), 6);
        let polled = poll_fn(|context| Poll::Ready(buffer.poll_flush(&mut connection, context))).await;
        assert!(polled.is_pending());
        assert_eq!(buffer.0, b"wer"[..]);
        let mut received = [0; 3];
        caller.read_exact(&mut received).await.unwrap();
        let flushed = poll_fn(|context| buffer.poll_flush(&mut connection, context)).await;
        flushed.unwrap();
        caller.read_exact(&mut received).await.unwrap();
        assert_eq!(&received, b"wer");
    }
}
