//! The result of a handler: a JSON reply, a file (whole, or line by line), or a problem.

use crate::large_reads::LargeRead;
use crate::memory::Reserved;
use crate::problem::{Code, Problem};
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use utoipa::ToSchema;

/// The result of a handler.
pub type Answer = Result<Reply, Problem>;

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: Body,
    content_type: &'static str,
    file_name: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The memory that it takes until it is sent, in bytes.
    memory: usize,
    /// Kept until it is sent.
    kept: (Option<LargeRead>, Option<Reserved>),
}

/// The longest answer whose memory is not counted, in bytes: it is in the sum of docs/guides/sizing.md with its
/// connection.
const UNCOUNTED_MAX: usize = 32 << 10;
/// Bytes of an answer that are given to its connection at once.
const PIECE: usize = 32 << 10;
/// The memory that a file takes which is generated while it is sent: the records of one step, and their lines.
const STREAM_MEMORY: usize = 4 << 20;

/// An answer that has only `success`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Done)]
pub struct Success {
    success: bool,
}

/// Declares an answer with one record: `success`, and the record under its name.
#[macro_export]
macro_rules! answer {
    ($vis:vis $name:ident$(<$life:lifetime>)?, $field:ident: $view:ty) => {
        #[derive(::serde::Serialize, ::utoipa::ToSchema)]
        #[schema(as = $name)]
        $vis struct $name$(<$life>)? {
            success: bool,
            $field: $view,
        }

        impl$(<$life>)? $name$(<$life>)? {
            const fn new($field: $view) -> Self {
                Self { success: true, $field }
            }
        }
    };
}

/// Content type of every answer except some files.
const JSON: &str = "application/json";
/// The type of lines of JSON.
const JSON_LINES: &str = "application/x-ndjson";

impl Reply {
    fn new(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Self {
        let memory = body.len();
        Self::from_body(status, content_type, Body::from(body), memory)
    }

    const fn from_body(status: StatusCode, content_type: &'static str, body: Body, memory: usize) -> Self {
        Self {
            status,
            body,
            content_type,
            file_name: None,
            headers: Vec::new(),
            memory,
            kept: (None, None),
        }
    }

    /// Builds 200 with this body.
    ///
    /// # Errors
    /// 500 if the body cannot be written as JSON.
    pub fn ok(body: &impl Serialize) -> Answer {
        Self::with_status(StatusCode::OK, body)
    }

    /// Builds 201 with this body.
    ///
    /// # Errors
    /// 500 if the body cannot be written as JSON.
    pub fn created(body: &impl Serialize) -> Answer {
        Self::with_status(StatusCode::CREATED, body)
    }

    /// Builds 200 without data.
    ///
    /// # Errors
    /// 500 if the body cannot be written as JSON.
    pub fn done() -> Answer {
        Self::ok(&Success { success: true })
    }

    /// Builds 200 with a file to be saved. The name is one of ours: letters, digits, `_` and `.`.
    pub fn file(name: &str, content_type: &'static str, body: Vec<u8>) -> Answer {
        Ok(Self {
            file_name: Some(name.to_owned()),
            ..Self::new(StatusCode::OK, content_type, body)
        })
    }

    /// Builds 200 with a file of any length, which is generated in the turn `read` while it is sent. An error of the
    /// stream closes the connection, so that a part is never taken for the whole. The name is one of ours, as in
    /// [`Reply::file`].
    pub fn stream<E>(
        read: LargeRead,
        name: &str,
        content_type: &'static str,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Answer
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(Self {
            file_name: Some(name.to_owned()),
            kept: (Some(read.sending()), None),
            ..Self::from_body(
                StatusCode::OK,
                content_type,
                Body::from_stream(body),
                STREAM_MEMORY,
            )
        })
    }

    /// Waits for the first part of a body, so that one whose beginning fails is an error, and no file that is cut off.
    ///
    /// # Errors
    /// That of the first part.
    pub async fn begun<E: Send + 'static>(
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Result<impl Stream<Item = Result<Bytes, E>> + Send + 'static, E> {
        let mut body = Box::pin(body);
        let first = body.next().await.transpose()?;
        Ok(stream::iter(first.map(Ok)).chain(body))
    }

    /// Builds 200 with short lines of JSON that are generated while they are sent.
    pub fn lines<E>(body: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Answer
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(Self::from_body(
            StatusCode::OK,
            JSON_LINES,
            Body::from_stream(body),
            0,
        ))
    }

    /// Adds a header. A value that is invalid in a header is ignored.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).ok();
        self.headers
            .extend(value.map(|value| (HeaderName::from_static(name), value)));
        self
    }

    /// Sets the memory that a streamed file takes until it is sent, in bytes.
    #[must_use]
    pub const fn taking(mut self, memory: usize) -> Self {
        self.memory = memory;
        self
    }

    /// Reserves the memory of a long answer until it is sent, or dropped because its caller has left.
    ///
    /// # Errors
    /// 429 or 503 without memory.
    pub(super) fn counted(mut self, mut reserved: Reserved) -> Answer {
        if self.memory > UNCOUNTED_MAX {
            reserved.grow(self.memory)?;
            self.kept.1 = Some(reserved);
        }
        Ok(self)
    }

    /// Builds an answer with this body and another status.
    ///
    /// # Errors
    /// 500 if the body cannot be written as JSON.
    pub fn with_status(status: StatusCode, body: &impl Serialize) -> Answer {
        let body = serde_json::to_vec(body).map_err(|error| {
            tracing::error!(%error, "an answer that is no JSON");
            Code::Internal
        })?;
        Ok(Self::new(status, JSON, body))
    }

    /// Builds the HTTP response. Answers can contain secrets, so no intermediary may cache them.
    pub(super) fn into_response(self) -> Response<Body> {
        let length = self.body.size_hint().exact();
        let body = match self.kept {
            (None, None) => self.body,
            kept => in_pieces(self.body, kept),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.extend(length.map(|length| (header::CONTENT_LENGTH, HeaderValue::from(length))));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        let disposition = self
            .file_name
            .map(|name| format!("attachment; filename=\"{name}\""));
        if let Some(disposition) = disposition.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
        headers.extend(self.headers);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Returns the body as a stream of pieces, and drops `kept` when nearly all of it was sent. A connection would take a
/// body of one piece at once.
fn in_pieces(body: Body, kept: impl Send + 'static) -> Body {
    let begin = (body.into_data_stream(), Bytes::new(), kept);
    Body::from_stream(stream::try_unfold(
        begin,
        |(mut body, mut rest, kept)| async move {
            if rest.is_empty() {
                let Some(next) = body.try_next().await? else {
                    return Ok(None);
                };
                rest = next;
            }
            let piece = rest.split_to(rest.len().min(PIECE));
            Ok::<_, axum::Error>(Some((piece, (body, rest, kept))))
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SharedMemory;

    #[tokio::test]
    async fn an_answer_is_counted_until_it_is_sent() {
        let memory = SharedMemory::for_answers();
        let reserved = || Reserved::none(&memory, "acct_1", "usr_1");
        let reply = |length| {
            Reply::file("a", JSON, vec![b'a'; length])
                .unwrap()
                .counted(reserved())
        };
        let short = reply(UNCOUNTED_MAX).unwrap();
        assert_eq!(memory.taken(), 0);
        let length = 3 * PIECE + 1;
        let long = reply(length).unwrap().into_response();
        assert_eq!(memory.taken(), length);
        assert_eq!(long.headers()[header::CONTENT_LENGTH], "98305");
        let mut pieces = long.into_body().into_data_stream();
        let mut sent = 0;
        while sent < length {
            assert_eq!(memory.taken(), length, "{sent} of it are sent");
            sent += pieces.next().await.unwrap().unwrap().len();
        }
        assert!(pieces.next().await.is_none());
        assert_eq!((sent, memory.taken()), (length, 0));
        let left = reply(length).unwrap().into_response();
        drop((short, left));
        assert_eq!(memory.taken(), 0, "its caller has left");
    }
}
