//! The body of a request. hyper closes a connection whose body was not read to its end, and the next request on it
//! fails. So if the rest of the body is short and arrives soon, it is read and discarded when the answer is ready;
//! otherwise the answer has `Connection: close` (RFC 9112 §9.6).

use bytes::Bytes;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest rest of a body that is discarded, in bytes.
const REST_BYTES_MAX: usize = 8 << 10;
/// Maximum time that an answer waits for the rest.
const REST_WAIT: Duration = Duration::from_millis(250);

/// A body that is handed back if it is dropped before its end.
pub(super) struct IncomingBody {
    body: Option<Incoming>,
    rest: Option<oneshot::Sender<Incoming>>,
}

/// The unread part of a body.
pub(super) enum UnreadBody {
    /// There is no body.
    None,
    /// The caller waits for permission to send it (100-continue), and gets an answer instead.
    Unwanted,
    /// Received when the body is dropped, unless it was read to its end.
    Awaited(oneshot::Receiver<Incoming>),
}

impl IncomingBody {
    /// Takes the body of a request.
    pub(super) fn split(request: Request<Incoming>) -> (Request<Self>, UnreadBody) {
        if request.body().is_end_stream() {
            let without = |body| Self {
                body: Some(body),
                rest: None,
            };
            return (request.map(without), UnreadBody::None);
        }
        let (sender, receiver) = oneshot::channel();
        let rest = match request.headers().contains_key(EXPECT) {
            true => UnreadBody::Unwanted,
            false => UnreadBody::Awaited(receiver),
        };
        let with_rest = |body| Self {
            body: Some(body),
            rest: Some(sender),
        };
        (request.map(with_rest), rest)
    }
}

impl Drop for IncomingBody {
    fn drop(&mut self) {
        if let (Some(body), Some(rest)) = (self.body.take(), self.rest.take())
            && !body.is_end_stream()
        {
            drop(rest.send(body));
        }
    }
}

impl UnreadBody {
    /// Reads the rest and discards it. Returns whether the body is at its end.
    pub(super) async fn discard(self) -> bool {
        let receiver = match self {
            Self::None => return true,
            Self::Unwanted => return false,
            Self::Awaited(receiver) => receiver,
        };
        let discarded = async {
            let Ok(body) = receiver.await else {
                // It was read to its end.
                return true;
            };
            discard_frames(body).await
        };
        tokio::time::timeout(REST_WAIT, discarded).await.unwrap_or(false)
    }
}

async fn discard_frames(mut body: Incoming) -> bool {
    let mut left = REST_BYTES_MAX;
    if body.size_hint().lower() > left as u64 {
        return false;
    }
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(frame) = frame else {
            return false;
        };
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
    true
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if frame.is_none() {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let known = self.body.as_ref().map(Body::size_hint);
        known.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}
