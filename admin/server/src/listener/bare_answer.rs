//! Adds a request id and a body (decision D5) to the answers that hyper itself writes, and to [`of_malformed`].
//!
//! hyper answers a head that is not HTTP (400), a URL that is too long (414) and a head that is too long (431) before
//! any of our code sees a request, with an empty body; [`OF_HTTP_2`] and [`OF_LATE_HEAD`] are as bare. It has no hook
//! for these answers, so they are recognized when they are written: a single write with an error status, no body, and
//! no `X-Request-Id`, which all of our answers have. None of our bodies can look like one, since JSON has no raw line
//! breaks.

use super::layer::{Layer, Layered, Pieces};
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Response, StatusCode};
use endpoint::{Code, new_request_id, stranger_line_due};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest answer that hyper itself writes; its answers have about 110 bytes.
const BARE_BYTES_MAX: usize = 256;
/// Answer to the preface of HTTP/2, to which hyper sends none.
pub(super) const OF_HTTP_2: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
/// Answer to a head that began and did not arrive in time, to which hyper sends none.
pub(super) const OF_LATE_HEAD: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n";
/// After such an answer, up to this many further bytes of the client are read and discarded, for this long: closing a
/// connection with unread bytes resets it, and the client may never see the answer.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Builds the answer to a malformed request that hyper accepts, as bare as hyper's own answers.
pub(super) fn of_malformed() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// A stream that replaces the bare answers of hyper as they are written.
#[derive(Debug)]
pub(super) struct OwnErrors<S> {
    stream: S,
    /// Address of the connection.
    peer: IpAddr,
    /// The bytes that replace hyper's answer, and how many of them are written.
    instead: Option<(Vec<u8>, usize)>,
    /// Set once an answer was replaced: the end of lingering, and how many bytes may still be discarded.
    linger: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> OwnErrors<S> {
    pub(super) const fn over(stream: S, peer: IpAddr) -> Layered<Self> {
        Layered(Self {
            stream,
            peer,
            instead: None,
            linger: None,
        })
    }
}

impl<S: AsyncWrite + Unpin> OwnErrors<S> {
    /// Writes our answer in place of `bytes`; `None` when they are no answer of hyper's own.
    fn poll_instead(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.instead.is_none() {
            self.instead = replacement(bytes, self.peer).map(|answer| (answer, 0));
        }
        let (answer, written) = self.instead.as_mut()?;
        while *written < answer.len() {
            match Pin::new(&mut self.stream).poll_write(context, &answer[*written..]) {
                Poll::Ready(Ok(0)) => return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into()))),
                Poll::Ready(Ok(more)) => *written += more,
                other => return Some(other),
            }
        }
        self.instead = None;
        self.linger = Some((Box::pin(sleep(LINGER_MAX)), LINGER_BYTES_MAX));
        Some(Poll::Ready(Ok(bytes.len())))
    }
}

/// Returns our answer to `peer` in place of `written`, if that is one of hyper's own.
fn replacement(written: &[u8], peer: IpAddr) -> Option<Vec<u8>> {
    let is_refusal = [&b"HTTP/1.1 4"[..], b"HTTP/1.0 4"].contains(&written.get(..10)?);
    if written.len() > BARE_BYTES_MAX || !is_refusal {
        return None;
    }
    let head = std::str::from_utf8(written).ok()?.strip_suffix("\r\n\r\n")?;
    let lower = head.to_ascii_lowercase();
    if !lower.contains("content-length: 0") || lower.contains("x-request-id") {
        return None;
    }
    let status_line = head.lines().next()?;
    let (code, message) = match status_line.split(' ').nth(1)? {
        "408" => (
            Code::RequestTimeout,
            "The head of the request did not arrive in time.",
        ),
        "414" => (Code::Validation, "The address of the request is too long."),
        "431" => (Code::Validation, "The head of the request is too long."),
        _ => (Code::Validation, "The request is not valid HTTP."),
    };
    let body = format!(r#"{{"error":"{message}","code":"{}"}}"#, code.as_str());
    let id = new_request_id();
    let id = id.to_str().unwrap_or_default();
    if let Some(left_out) = stranger_line_due(Some(peer)) {
        tracing::info!(
            status = status_line,
            request_id = id,
            client.address = %peer,
            left_out = (left_out > 0).then_some(left_out),
            "malformed request"
        );
    }
    let answer = format!(
        "{status_line}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nx-request-id: {id}\r\n\r\n{body}",
        body.len()
    );
    Some(answer.into_bytes())
}

impl<S: AsyncRead + AsyncWrite + Unpin> Layer for OwnErrors<S> {
    type Below = S;

    fn below(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.stream)
    }

    fn is_below_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// An answer of hyper itself is a single piece.
    fn write(&mut self, context: &mut Context<'_>, pieces: Pieces<'_>) -> Poll<io::Result<usize>> {
        let instead = pieces.only().and_then(|only| self.poll_instead(context, only));
        instead.unwrap_or_else(|| pieces.write(Pin::new(&mut self.stream), context))
    }

    fn shut_down(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        let Some((end, left)) = &mut self.linger else {
            return Poll::Ready(Ok(()));
        };
        let mut some = [0; 4096];
        while *left > 0 && end.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::new(&mut some);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    *left = left.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    const BARE: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
        date: Tue, 24 Nov 2026 18:00:00 GMT\r\n\r\n";

    /// Returns the received bytes if `text` is sent through a pipe of `room` bytes.
    async fn sent(text: &str, room: usize) -> String {
        let (ours, mut theirs) = duplex(room);
        let mut ours = OwnErrors::over(ours, std::net::Ipv4Addr::LOCALHOST.into());
        let text = text.to_owned();
        let writer = tokio::spawn(async move { ours.write_all(text.as_bytes()).await.unwrap() });
        let mut all = String::new();
        theirs.read_to_string(&mut all).await.unwrap();
        writer.await.unwrap();
        all
    }

    #[tokio::test]
    async fn an_answer_of_the_library_gets_an_id_and_a_body_in_any_number_of_writes() {
        for room in [1, 7, 4096] {
            let answer = sent(BARE, room).await;
            assert!(
                answer.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"),
                "{answer}"
            );
            assert!(answer.contains("\r\nx-request-id: req_"), "{answer}");
            let body = r#"{"error":"The head of the request is too long.","code":"VALIDATION"}"#;
            assert!(
                answer.contains(&format!("\r\ncontent-length: {}\r\n", body.len())),
                "{answer}"
            );
            assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
        }
    }

    /// Answers to a malformed request of HTTP/1.0, and to the preface of HTTP/2.
    #[tokio::test]
    async fn so_does_an_answer_of_any_version_and_the_one_to_http_2() {
        let to_http_2 = std::str::from_utf8(OF_HTTP_2).unwrap();
        for text in [to_http_2.to_owned(), to_http_2.replace("1.1", "1.0")] {
            let answer = sent(&text, 4096).await;
            assert!(answer.starts_with(&text[..24]), "{answer}");
            assert!(answer.contains("\r\nx-request-id: req_"), "{answer}");
            let body = r#"{"error":"The request is not valid HTTP.","code":"VALIDATION"}"#;
            assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
        }
    }

    #[tokio::test]
    async fn answers_of_ours_pass_as_they_are() {
        let with_id = BARE.replace("connection: close", "x-request-id: req_1");
        let with_body = BARE.replace("content-length: 0", "content-length: 2");
        let fine = BARE.replace("431", "200");
        for text in [with_id, with_body + "{}", fine] {
            assert_eq!(sent(&text, 4096).await, text);
        }
    }
}
