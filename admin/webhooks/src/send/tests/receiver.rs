//! A receiver on this machine with configurable behaviour.

use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// Behaviour of a receiver on each connection.
#[derive(Debug, Clone)]
pub(super) enum How {
    /// Reads the request, answers this and closes.
    Answer(Vec<u8>),
    /// Reads the request, answers this and stays open.
    AnswerAndStay(Vec<u8>),
    /// Answers this after the head of the request and reads no further.
    AnswerEarly(Vec<u8>),
    /// Reads the request, writes the first part, then the second one byte by byte with pauses, forever.
    Drip(&'static str, u8),
    /// Reads the request, writes the first part, then the second one endlessly and as fast as possible.
    Flood(&'static str, Vec<u8>),
    /// Reads the request and says nothing.
    Hang,
    /// Writes this before it has read anything, then reads to the end.
    Greet(&'static [u8]),
    /// Reads nothing and says nothing.
    Ignore,
    /// Closes at once.
    Close,
}

pub(super) struct Receiver {
    pub(super) addr: SocketAddr,
    received: Arc<Received>,
    task: AbortHandle,
}

#[derive(Default)]
struct Received {
    hits: AtomicUsize,
    requests: Mutex<Vec<String>>,
    /// A connection that was closed by the other side.
    cut: Notify,
}

impl Receiver {
    pub(super) async fn start(how: How) -> Self {
        Self::listen("127.0.0.1:0", how, None).await
    }

    pub(super) async fn listen(address: &str, how: How, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let received = Arc::new(Received::default());
        let serving = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.hits.fetch_add(1, Ordering::SeqCst);
                let (how, received, tls) = (how.clone(), Arc::clone(&serving), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => received.serve(stream, how).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                received.serve(stream, how).await;
                            }
                        }
                    }
                });
            }
        });
        let task = task.abort_handle();
        Self { addr, received, task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Connections that were made.
    pub(super) fn hits(&self) -> usize {
        self.received.hits.load(Ordering::SeqCst)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.received.requests.lock().clone()
    }

    /// Waits until a connection of an endless receiver has been closed by the other side.
    pub(super) async fn cut(&self) {
        self.received.cut.notified().await;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Received {
    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin, how: How) {
        match how {
            How::Close => return,
            How::Ignore => return std::future::pending().await,
            How::Greet(greeting) => {
                // A sender that received an error may have disconnected; the text can be read nevertheless.
                let _sent = stream.write_all(greeting).await;
                let heard = read_until(&mut stream, |_| false).await;
                self.requests.lock().push(heard);
                return self.cut.notify_one();
            }
            How::AnswerEarly(answer) => {
                read_until(&mut stream, |text| text.contains("\r\n\r\n")).await;
                stream.write_all(&answer).await.unwrap();
                return std::future::pending().await;
            }
            _ => {}
        }
        let request = read_until(&mut stream, is_whole).await;
        self.requests.lock().push(request);
        match how {
            How::Answer(answer) => {
                // If the receiver closes first, it may not have read everything; the sender reports the result.
                let _sent = stream.write_all(&answer).await;
                let _closed = stream.shutdown().await;
            }
            How::AnswerAndStay(answer) => {
                stream.write_all(&answer).await.unwrap();
                std::future::pending().await
            }
            How::Drip(first, byte) => {
                let pause = Duration::from_millis(50);
                let mut sent = stream.write_all(first.as_bytes()).await;
                while sent.is_ok() {
                    tokio::time::sleep(pause).await;
                    sent = stream.write_all(&[byte]).await;
                }
                self.cut.notify_one();
            }
            How::Flood(first, part) => {
                let mut sent = stream.write_all(first.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(&part).await;
                }
                self.cut.notify_one();
            }
            _ => std::future::pending().await,
        }
    }
}

async fn read_until(stream: &mut (impl AsyncRead + Unpin), done: impl Fn(&str) -> bool) -> String {
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if done(&text) {
            return text;
        }
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return text,
            Ok(length) => read.extend_from_slice(&part[..length]),
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse().unwrap())
}
