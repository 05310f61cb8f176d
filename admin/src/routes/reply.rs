//! What a handler gives: a JSON reply, or a problem.

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
}

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
        })
    }

    fn with_status(status: StatusCode, body: &impl Serialize) -> Answer {
        let body = serde_json::to_vec(body).map_err(|error| {
            tracing::error!(%error, "an answer that is no JSON");
            Code::Internal
        })?;
        Ok(Self { status, body })
    }

    /// The HTTP response. Answers can hold secrets and are never to be kept by anything between.
    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
