//! The result of a handler: a JSON reply, a file (whole, or line by line), or a problem.

use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use futures::Stream;
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
}

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
    const fn new(status: StatusCode, content_type: &'static str, body: Body) -> Self {
        Self {
            status,
            body,
            content_type,
            file_name: None,
            headers: Vec::new(),
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
            ..Self::new(StatusCode::OK, content_type, Body::from(body))
        })
    }

    /// Builds 200 with a file of any length, which is generated while it is sent. An error of the stream closes the
    /// connection, so that a part is never taken for the whole. The name is one of ours, as in [`Reply::file`].
    pub fn stream<E>(
        name: &str,
        content_type: &'static str,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Answer
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(Self {
            file_name: Some(name.to_owned()),
            ..Self::new(StatusCode::OK, content_type, Body::from_stream(body))
        })
    }

    /// Builds 200 with lines of JSON that are generated while they are sent.
    pub fn lines<E>(body: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Answer
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        Ok(Self::new(StatusCode::OK, JSON_LINES, Body::from_stream(body)))
    }

    /// Adds a header. A value that is invalid in a header is ignored.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).ok();
        self.headers
            .extend(value.map(|value| (HeaderName::from_static(name), value)));
        self
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
        Ok(Self::new(status, JSON, Body::from(body)))
    }

    /// Builds the HTTP response. Answers can contain secrets, so no intermediary may cache them.
    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
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
