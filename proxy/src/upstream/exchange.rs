//! The exchange with the provider: one request and the complete answer, under one deadline, without retries.

use super::client::{Deadlines, Upstream};
use super::failure::{BreakOff, NoAnswer, UpstreamFailure, bad_answer};
use super::header_lines::AuthorizedHeaders;
use super::headers::head_length;
use super::open::OpenExchange;
use super::reading_turn::ReadingTurn;
use super::stream::AnswerStream;
use super::whole_answer::ReceivedAnswer;
use bytes::{Bytes, BytesMut};
use http::header::TRANSFER_ENCODING;
use http::{HeaderMap, StatusCode};
use pingora::protocols::http::v1::client::HttpSession;
use std::pin::pin;
use tokio::time::{Instant, timeout_at};

/// Maximum number of interim (1xx) answers that are skipped.
const INTERIM_MAX: usize = 8;
/// Longest names and values of an answer's headers together, in bytes. Node reads heads of at most 16 KiB, with those
/// that are added here; a client that cannot read the head sends the call again, and it is charged again.
const HEADERS_BYTES_MAX: usize = 14 << 10;

/// The provider's answer to a request for server-sent events.
pub enum ProviderAnswer {
    /// Any other answer, such as an error.
    Whole(ReceivedAnswer),
    /// The head was read.
    Stream(Box<AnswerStream>),
}

impl Upstream {
    /// Sends the request once and reads the answer. Drops `body` and `held`, its reserved memory, as soon as the
    /// request is sent: the provider may take long to answer.
    ///
    /// # Errors
    /// [`NoAnswer`], after at most one request.
    pub async fn exchange(
        &self,
        path: &str,
        headers: &AuthorizedHeaders,
        body: Bytes,
        held: impl Send + 'static,
    ) -> Result<ReceivedAnswer, NoAnswer> {
        let deadline = Instant::now() + self.deadlines.whole;
        let attempt = async {
            let mut open = self.send(path, headers, body, held).await?;
            let (status, headers) = read_head(&mut open).await?;
            Ok(self.read_rest(open, status, headers).await?)
        };
        timeout_at(deadline, pin!(attempt))
            .await
            .unwrap_or(Err(UpstreamFailure::Timeout.into()))
    }

    /// Like [`exchange`](Self::exchange), for a request for server-sent events. If the provider sends events, returns
    /// the answer as soon as its head is read.
    ///
    /// # Errors
    /// [`NoAnswer`], after at most one request.
    pub async fn exchange_stream(
        &self,
        path: &str,
        headers: &AuthorizedHeaders,
        body: Bytes,
        held: impl Send + 'static,
    ) -> Result<ProviderAnswer, NoAnswer> {
        let began = Instant::now();
        let begun = async {
            let mut open = self.send(path, headers, body, held).await?;
            let (status, headers) = read_head(&mut open).await?;
            Ok::<_, NoAnswer>((open, status, headers))
        };
        let Deadlines {
            whole, stream_head, ..
        } = self.deadlines;
        let begun = timeout_at(began + stream_head, pin!(begun)).await;
        let (open, status, headers) = begun.unwrap_or(Err(UpstreamFailure::LateHead.into()))?;
        if AnswerStream::is_stream(status, &headers) {
            let stream = AnswerStream::new(open, began, status, headers);
            return Ok(ProviderAnswer::Stream(Box::new(stream)));
        }
        // At least the deadline of the head: otherwise an answer with a late head would have no time left.
        let deadline = began + whole.max(stream_head);
        let rest = timeout_at(deadline, pin!(self.read_rest(open, status, headers))).await;
        Ok(ProviderAnswer::Whole(
            rest.unwrap_or(Err(UpstreamFailure::Timeout))?,
        ))
    }

    /// Reads the body of an answer whose head was read, and keeps the connection.
    async fn read_rest(
        &self,
        mut open: Box<OpenExchange>,
        status: StatusCode,
        headers: HeaderMap,
    ) -> Result<ReceivedAnswer, UpstreamFailure> {
        let body = self.read_body(&mut open.session, &headers).await?;
        if open.broke_off() {
            return Err(UpstreamFailure::Unreachable(BreakOff::Body));
        }
        open.keep().await;
        Ok(ReceivedAnswer {
            status,
            headers,
            body,
        })
    }

    /// Reads the whole body. A body that arrives in one piece is not copied.
    async fn read_body(
        &self,
        session: &mut HttpSession,
        headers: &HeaderMap,
    ) -> Result<Bytes, UpstreamFailure> {
        let mut first_piece = Bytes::new();
        let mut buffer = BytesMut::new();
        let (mut length, mut turn) = (0_usize, ReadingTurn::default());
        while let Some(piece) = session
            .read_body_bytes()
            .await
            .map_err(|error| self.target.destination.lost(BreakOff::Body, &error))?
        {
            length += piece.len();
            turn.count(piece.len()).await;
            if length > self.max_response_bytes {
                return Err(bad_answer("its answer is too long"));
            }
            if first_piece.is_empty() {
                first_piece = piece;
            } else {
                if buffer.is_empty() {
                    // Reserves the declared length at once, so that nothing is copied again, but at most the accepted
                    // length.
                    let declared = content_length(headers).unwrap_or(0).min(self.max_response_bytes);
                    buffer.reserve(declared.max(length));
                    buffer.extend_from_slice(&first_piece);
                }
                buffer.extend_from_slice(&piece);
            }
        }
        Ok(if buffer.is_empty() {
            first_piece
        } else {
            buffer.freeze()
        })
    }
}

/// Reads the final head, after interim ones.
async fn read_head(open: &mut OpenExchange) -> Result<(StatusCode, HeaderMap), UpstreamFailure> {
    let OpenExchange {
        session, destination, ..
    } = open;
    for _ in 0..=INTERIM_MAX {
        session
            .read_response()
            .await
            .map_err(|error| destination.lost(BreakOff::Head, &error))?;
        let head = session.resp_header().ok_or(bad_answer("it sent no head"))?;
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(bad_answer("it switched protocols"));
        }
        if !head.status.is_informational() {
            // Pingora decodes `chunked` alone: with another coding the body would still be encoded.
            let codings = head.headers.get_all(TRANSFER_ENCODING).iter();
            if codings
                .into_iter()
                .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"chunked"))
            {
                return Err(bad_answer("its body has an unknown transfer coding"));
            }
            if head_length(&head.headers) > HEADERS_BYTES_MAX {
                return Err(bad_answer("its head is too long"));
            }
            return Ok((head.status, with_room(&head.headers)));
        }
    }
    Err(bad_answer("it sent too many interim answers"))
}

/// Copies the headers of an answer, with room for those added on the way to the caller: a map that grows is rebuilt.
fn with_room(received: &HeaderMap) -> HeaderMap {
    const ADDED: usize = 8;
    let mut headers = received.clone();
    headers.reserve(ADDED);
    headers
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(http::header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::upstream;
    use tokio::io::AsyncWriteExt as _;

    /// All of the answer is there, so nothing but its reader makes the other tasks of its thread wait.
    #[tokio::test]
    async fn other_calls_get_their_turn_while_an_answer_of_short_chunks_is_read() {
        const LENGTH: usize = 10_000;
        let answer = [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            &"1\r\nx\r\n".repeat(LENGTH),
            "0\r\n\r\n",
        ]
        .concat();
        let (here, mut provider) = tokio::io::duplex(answer.len());
        provider.write_all(answer.as_bytes()).await.unwrap();
        let mut session = HttpSession::new(Box::new(here));
        session.read_response().await.unwrap();
        let (upstream, headers) = (upstream(), HeaderMap::new());
        let mut reading = pin!(upstream.read_body(&mut session, &headers));
        let mut turns = 0;
        let body = loop {
            match futures::poll!(&mut reading) {
                std::task::Poll::Ready(body) => break body.unwrap(),
                std::task::Poll::Pending => turns += 1,
            }
        };
        assert_eq!(body.len(), LENGTH);
        assert!(turns > 20, "{turns}");
    }
}
