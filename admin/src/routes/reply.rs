//! What a handler gives: a JSON reply, a file, or a problem.

use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

/// What a handler returns.
pub type Answer = Result<Reply, Problem>;

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    body: Vec<u8>,
    content_type: &'static str,
    file_name: Option<String>,
}

/// The type of every answer but some files.
const JSON: &str = "application/json";

impl Reply {
    /// 200 with this body.
    ///
    /// # Errors
    /// 500 when the body cannot be written as JSON.
    pub fn ok(body: &impl Serialize) -> Answer {
        Self::with_status(StatusCode::OK, body)
    }

    /// 201 with this body.
    ///
    /// # Errors
    /// 500 when the body cannot be written as JSON.
    pub fn created(body: &impl Serialize) -> Answer {
        Self::with_status(StatusCode::CREATED, body)
    }

    /// 200 with nothing to tell.
    ///
    /// # Errors
    /// Never.
    pub fn done() -> Answer {
        Ok(Self {
            status: StatusCode::OK,
            body: br#"{"success":true}"#.to_vec(),
            content_type: JSON,
            file_name: None,
        })
    }

    /// 200 with a file to be saved. The name is one of ours: letters, digits, `_` and `.`.
    ///
    /// # Errors
    /// Never.
    pub fn file(name: &str, content_type: &'static str, body: Vec<u8>) -> Answer {
        Ok(Self {
            status: StatusCode::OK,
            body,
            content_type,
            file_name: Some(name.to_owned()),
        })
    }

    /// This body with another status.
    ///
    /// # Errors
    /// 500 when the body cannot be written as JSON.
    pub fn with_status(status: StatusCode, body: &impl Serialize) -> Answer {
        let body = serde_json::to_vec(body).map_err(|error| {
            tracing::error!(%error, "an answer that is no JSON");
            Code::Internal
        })?;
        Ok(Self {
            status,
            body,
            content_type: JSON,
            file_name: None,
        })
    }

    /// The HTTP response. Answers can hold secrets and are never to be kept by anything between.
    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        let disposition = self
            .file_name
            .map(|name| format!("attachment; filename=\"{name}\""));
        if let Some(disposition) = disposition.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
