//! The body of an answer. While it is sent to a known caller, the connection keeps its slot.

use axum::body::Body;
use bytes::Bytes;
use connections::limit::UnderWay;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The body, and the guard that keeps the connection's slot until it is sent.
pub(super) struct AnswerBody {
    body: Body,
    _under_way: Option<Arc<UnderWay>>,
}

impl AnswerBody {
    pub(super) const fn new(body: Body, under_way: Option<Arc<UnderWay>>) -> Self {
        Self {
            body,
            _under_way: under_way,
        }
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
