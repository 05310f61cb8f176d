//! Detects the version of HTTP on a connection without TLS by its first bytes. Pingora would wait for as many bytes as
//! the HTTP/2 preface has, but a complete HTTP/1 request can be shorter.

use pingora::protocols::l4::stream::Stream as Tcp;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout_at};

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns whether the connection begins with [`PREFACE`]. Reads until a byte differs, or until `deadline`, and puts
/// the bytes back. `None` if the caller sent nothing.
pub(super) async fn is_sent(connection: &mut Tcp, deadline: Instant) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
    let mut length = 0;
    let reading = async {
        while length < PREFACE.len() && first[..length] == PREFACE[..length] {
            match connection.read(&mut first[length..]).await {
                Ok(0) | Err(_) => break,
                Ok(read) => length += read,
            }
        }
    };
    // A read is safe to cancel. The received part of a late head is answered as HTTP/1.
    drop(timeout_at(deadline, reading).await);
    connection.rewind(&first[..length]);
    (length > 0).then_some(first == *PREFACE)
}
