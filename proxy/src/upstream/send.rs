//! Sends the request to the provider, over an idle connection or a new one.

use super::client::Upstream;
use super::failure::NoAnswer;
use super::header_lines::AuthorizedHeaders;
use super::idle::Connected;
use super::open::{OpenExchange, Transfer};
use super::target::UpstreamTarget;
use bytes::{Buf, Bytes};
use futures::future::join;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use std::future::poll_fn;
use std::io::Cursor;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest body, in bytes, that is copied into one buffer with its head.
const JOINED_BODY_MAX: usize = 64 * 1024;
/// Bytes of an early answer that are read before the rest of the request and of the answer proceed concurrently.
const EARLY_ANSWER_BYTES: usize = 512;
/// Buffer between a connection that is read and written concurrently and the reader of its answer, in bytes.
const DUPLEX_BYTES: usize = 16 * 1024;

impl Upstream {
    /// Connects and sends the request. The exchange is boxed, since it moves from step to step.
    pub(super) async fn send(
        &self,
        path: &str,
        headers: &AuthorizedHeaders,
        mut body: Bytes,
        held: impl Send + 'static,
    ) -> Result<Box<OpenExchange>, NoAnswer> {
        let peer = self.target.peer().ok_or_else(|| self.target.unresolved())?;
        let idle = self.idle.take(&peer);
        self.connected[usize::from(idle.is_some())].fetch_add(1, Ordering::Relaxed);
        let Connected { mut stream, permit } = match idle {
            Some(connected) => connected,
            None => {
                let permit = self.budget.try_take();
                let permit = permit.ok_or(NoAnswer::NotSent)?;
                // Boxed: it needs eight times the space of everything else here, and most calls find an idle
                // connection.
                let stream = Box::pin(self.connect(&peer)).await?;
                Connected { stream, permit }
            }
        };
        let is_long = body.len() > JOINED_BODY_MAX;
        // A body of usual size is sent together with its head, in one system call instead of two.
        let joined = match is_long {
            true => Bytes::new(),
            false => std::mem::take(&mut body),
        };
        let mut unsent = Cursor::new(encode(path, headers.as_bytes(), &joined)).chain(body);
        drop(joined);
        let early = send_until_answered(&mut stream, &mut unsent).await;
        let (stream, transfer) = match early {
            None => (stream, None),
            Some(early) => {
                let (near, transfer) = transfer(stream, (unsent, held), early, self.deadlines.whole);
                (Box::new(near) as Stream, Some(transfer))
            }
        };
        Ok(Box::new(OpenExchange {
            session: HttpSession::new_with_options(stream, &*peer),
            peer,
            permit,
            idle: Arc::clone(&self.idle),
            destination: Arc::clone(&self.target.destination),
            transfer,
            is_long,
        }))
    }

    /// Makes one attempt. If it fails, the next call uses another address of the provider.
    async fn connect(&self, peer: &HttpPeer) -> Result<Stream, NoAnswer> {
        let mut attempt = ConnectAttempt {
            target: &self.target,
            peer,
            is_at_fault: true,
        };
        let connected = self.connector.new_stream(peer).await;
        let connected = connected.map_err(|error| self.target.destination.not_connected(&error));
        attempt.is_at_fault = matches!(connected, Err(NoAnswer::Failed(_)));
        connected
    }
}

/// An attempt to connect. A deadline drops it.
struct ConnectAttempt<'a> {
    target: &'a UpstreamTarget,
    peer: &'a HttpPeer,
    /// True if the address is left: no connection was made, and this machine does not lack anything.
    is_at_fault: bool,
}

impl Drop for ConnectAttempt<'_> {
    fn drop(&mut self) {
        if self.is_at_fault {
            self.target.leave(self.peer);
        }
    }
}

/// Sends `unsent` until the provider answers or closes the connection. Then returns the bytes of the answer so far.
async fn send_until_answered(stream: &mut Stream, unsent: &mut impl Buf) -> Option<Vec<u8>> {
    poll_fn(|context| {
        let sent = loop {
            let written = match unsent.has_remaining() {
                true => Pin::new(&mut *stream).poll_write(context, unsent.chunk()),
                false => Pin::new(&mut *stream).poll_flush(context).map_ok(|()| 0),
            };
            match written {
                Poll::Ready(Ok(0)) => break !unsent.has_remaining(),
                Poll::Ready(Ok(written)) => unsent.advance(written),
                Poll::Ready(Err(_)) => break false,
                Poll::Pending => {
                    let mut room = [0; EARLY_ANSWER_BYTES];
                    let mut early = ReadBuf::new(&mut room);
                    return Pin::new(&mut *stream)
                        .poll_read(context, &mut early)
                        .map(|_| Some(early.filled().to_vec()));
                }
            }
        };
        Poll::Ready(match sent {
            true => None,
            false => Some(Vec::new()),
        })
    })
    .await
}

/// Separates reading from writing on a connection whose provider answered, or closed, before it had the whole request.
/// Returns the end that the answer is read from, and the task that continues to send the request, since the answer may
/// be an interim one or a stream. `early` is the beginning of the answer. Bytes that are not sent `within` this time
/// (the deadline of an exchange without a stream) are dropped together with `held`, their memory: a stream may continue
/// for much longer.
fn transfer(
    stream: Stream,
    (mut unsent, held): (impl Buf + Send + 'static, impl Send + 'static),
    early: Vec<u8>,
    within: Duration,
) -> (DuplexStream, Transfer) {
    let (near, mut far) = tokio::io::duplex(DUPLEX_BYTES);
    let (mut task, has_broken) = (JoinSet::new(), Arc::new(AtomicBool::default()));
    let [broken, broken_too] = [&has_broken; 2].map(Arc::clone);
    task.spawn(async move {
        let (mut from, mut to) = tokio::io::split(stream);
        let sending = async move {
            let sent = async {
                to.write_all_buf(&mut unsent).await?;
                to.flush().await
            };
            // The OS reports a reset once: to the writer, if bytes are still to be sent. The reader then finds a plain
            // end.
            if let Ok(Err(_reset)) = timeout(within, pin!(sent)).await {
                broken_too.store(true, Ordering::Release);
            }
            drop((unsent, held));
            to
        };
        let receiving = async move {
            if far.write_all(&early).await.is_ok() && tokio::io::copy(&mut from, &mut far).await.is_err() {
                broken.store(true, Ordering::Release);
            }
            drop(far);
            from
        };
        let _open = join(sending, receiving).await;
    });
    let transfer = Transfer {
        _task: task,
        has_broken,
    };
    (near, transfer)
}

/// Encodes the head of the request and the part of its body that is sent with it.
fn encode(path: &str, headers: &[u8], body: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 6] = [
        b"POST ",
        path.as_bytes(),
        b" HTTP/1.1\r\n",
        headers,
        b"\r\n",
        body,
    ];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::upstream_of;
    use crate::upstream::failure::{BreakOff, UpstreamFailure};
    use crate::upstream::sent_body::SentBody;
    use http::HeaderMap;
    use secrecy::SecretString;
    use settings::upstreams::Auth;
    use std::net::SocketAddr;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_request_is_sent_whole_unless_the_provider_interrupts() {
        let (here, mut provider) = tokio::io::duplex(1 << 10);
        let mut stream: Stream = Box::new(here);
        let mut unsent = Bytes::from_static(b"POST / HTTP/1.1");
        assert_eq!(send_until_answered(&mut stream, &mut unsent).await, None);
        assert!(!unsent.has_remaining());
        let mut taken = [0; 15];
        provider.read_exact(&mut taken).await.unwrap();
        assert_eq!(&taken, b"POST / HTTP/1.1");
        // The provider sends something while its receive buffer is full, then closes the connection.
        let mut unsent = Bytes::from(vec![b'x'; 4 << 10]);
        provider.write_all(b"HTTP/1.1 413").await.unwrap();
        let sent = send_until_answered(&mut stream, &mut unsent).await;
        assert_eq!(sent.as_deref(), Some(&b"HTTP/1.1 413"[..]));
        assert_eq!(unsent.remaining(), 3 << 10);
        drop(provider);
        let sent = send_until_answered(&mut stream, &mut unsent).await;
        assert_eq!(sent, Some(Vec::new()));
    }

    /// A provider that streams, and never reads the rest of the request.
    #[tokio::test(start_paused = true)]
    async fn bytes_not_sent_in_time_are_dropped_while_the_stream_continues() {
        let (here, mut provider) = tokio::io::duplex(1 << 10);
        let held = Arc::new(());
        let unsent = (Bytes::from(vec![b'x'; 4 << 10]), Arc::clone(&held));
        let within = Duration::from_secs(100);
        let (mut near, _transfer) = transfer(Box::new(here), unsent, b"HTTP/1.1 200".to_vec(), within);
        let mut read = [0; 12];
        near.read_exact(&mut read).await.unwrap();
        tokio::time::sleep(within - Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&held), 2);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(Arc::strong_count(&held), 1);
        provider.write_all(b"still there").await.unwrap();
        near.read_exact(&mut read[..11]).await.unwrap();
        assert_eq!(&read[..11], b"still there");
    }

    /// An upstream whose name has a closed and an open address, the closed one first; and the open one.
    async fn upstream_with_a_closed_address() -> (Arc<Upstream>, TcpListener) {
        let open = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = open.local_addr().unwrap();
        let settings = format!(
            "[upstream]\nbase_url = \"http://provider.example:{}/v1\"",
            address.port()
        );
        let upstream = upstream_of(&settings);
        let closed = SocketAddr::from(([127, 0, 0, 1], address.port()));
        upstream.target.choose([closed, address].into_iter());
        (upstream, open)
    }

    async fn send(upstream: &Upstream) -> Result<Box<OpenExchange>, NoAnswer> {
        let headers = upstream.headers(&HeaderMap::new(), SentBody::from_length(0), None);
        let headers = headers.authorize(Auth::Bearer, &SecretString::from("sk-1"));
        upstream.send("/v1", &headers.unwrap(), Bytes::new(), ()).await
    }

    #[tokio::test]
    async fn the_call_after_a_failure_to_connect_uses_another_address() {
        let (upstream, open) = upstream_with_a_closed_address().await;
        let failed = send(&upstream).await;
        assert!(
            matches!(
                failed,
                Err(NoAnswer::Failed(UpstreamFailure::Unreachable(BreakOff::Connect)))
            ),
            "one attempt in each call"
        );
        let sent = send(&upstream).await;
        assert!(sent.is_ok(), "the other address works");
        open.accept().await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_that_is_not_made_in_time_is_unreachable() {
        // The system completes the connection; nobody continues with TLS.
        let silent = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = silent.local_addr().unwrap();
        let settings = format!(
            "[upstream]\nbase_url = \"https://provider.example:{}/v1\"",
            address.port()
        );
        let mut upstream = upstream_of(&settings);
        assert_eq!(upstream.target.connect_timeout, Duration::from_secs(10));
        let target = &mut Arc::get_mut(&mut upstream).unwrap().target;
        target.connect_timeout = Duration::from_millis(50);
        let other = SocketAddr::from(([127, 0, 0, 3], address.port()));
        target.choose([address, other].into_iter());
        let failed = timeout(Duration::from_secs(5), send(&upstream)).await;
        assert!(
            matches!(
                failed,
                Ok(Err(NoAnswer::Failed(UpstreamFailure::Unreachable(
                    BreakOff::Connect
                ))))
            ),
            "within the deadline of a connection"
        );
        let peer = upstream.target.peer().unwrap();
        assert_eq!(
            peer._address.as_inet(),
            Some(&other),
            "the next call uses another"
        );
    }

    #[test]
    fn a_request_is_encoded_as_http_1_1() {
        let text = encode("/v1/x", b"host: a\r\nx-b: c d\r\n", b"{}");
        assert_eq!(text, b"POST /v1/x HTTP/1.1\r\nhost: a\r\nx-b: c d\r\n\r\n{}");
        assert_eq!(text.capacity(), text.len(), "in one allocation");
    }
}
