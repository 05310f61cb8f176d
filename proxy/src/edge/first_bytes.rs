//! The wait for the next request of an HTTP/1 connection.

use super::write::KEEP_ALIVE;
use bytes::BytesMut;
use pingora::protocols::Stream;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::time::timeout;

/// Bytes of a request that are read before it has a future and a session: as many as Pingora reads first.
const FIRST_BYTES_MAX: usize = 4 << 10;

/// Waits for the first bytes of a request, of which nothing was received yet. Pingora would wait for them with the
/// future and the read buffer of a request, 18 KB; and a request keeps this buffer, which is no longer than needed.
/// `None` if the connection ends, or is idle for too long.
pub(super) async fn first_bytes(connection: &mut Stream) -> Option<BytesMut> {
    let reading = poll_fn(|context| {
        let mut storage = [const { MaybeUninit::uninit() }; FIRST_BYTES_MAX];
        let mut buffer = ReadBuf::uninit(&mut storage);
        let read = ready!(Pin::new(&mut *connection).poll_read(context, &mut buffer));
        Poll::Ready(read.map(|()| BytesMut::from(buffer.filled())))
    });
    let read = timeout(KEEP_ALIVE, reading).await.ok()?.ok()?;
    (!read.is_empty()).then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, duplex};

    #[tokio::test(start_paused = true)]
    async fn the_first_bytes_take_no_more_memory_than_they_need() {
        let (mut caller, connection) = duplex(2 * FIRST_BYTES_MAX);
        let mut connection: Stream = Box::new(connection);
        caller.write_all(b"GET /").await.unwrap();
        let received = first_bytes(&mut connection).await.unwrap();
        assert_eq!((&received[..], received.capacity()), (&b"GET /"[..], 5));
        caller.write_all(&[b'a'; FIRST_BYTES_MAX + 1]).await.unwrap();
        let received = first_bytes(&mut connection).await.unwrap();
        assert_eq!(received.len(), FIRST_BYTES_MAX);
        let received = first_bytes(&mut connection).await.unwrap();
        assert_eq!(received, b"a"[..]);
        assert_eq!(first_bytes(&mut connection).await, None, "idle for too long");
        drop(caller);
        assert_eq!(first_bytes(&mut connection).await, None, "closed");
    }

    /// The state of a connection that is idle, without its socket.
    #[tokio::test]
    async fn an_idle_connection_stays_small() {
        const BYTES_MAX: usize = 512;
        let mut connection: Stream = Box::new(duplex(1).0);
        let waiting = first_bytes(&mut connection);
        assert!(size_of_val(&waiting) <= BYTES_MAX, "{}", size_of_val(&waiting));
    }
}
