//! The ops listener (decision D57): `/metrics`, `/livez`, `/readyz`. It never reads the store.

use crate::gauges::Exposition;
use crate::readiness::Readiness;
use async_trait::async_trait;
use http::Response;
use pingora::apps::http_app::ServeHttp;
use pingora::protocols::http::ServerSession;
use std::sync::{Arc, OnceLock};

/// State of the ops listener.
pub struct OpsState {
    /// `/readyz`
    pub readiness: Readiness,
    /// `/metrics`
    pub exposition: Exposition,
}

/// The application of the ops listener.
#[derive(Clone)]
pub struct Ops {
    /// Set once the edge has started.
    pub state: Arc<OnceLock<OpsState>>,
}

#[async_trait]
impl ServeHttp for Ops {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let (status, content_type, body) = self.answer(session.req_header().uri.path());
        let mut response = Response::new(body);
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static(content_type),
        );
        let length = response.body().len();
        response
            .headers_mut()
            .insert(http::header::CONTENT_LENGTH, length.into());
        response
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Ops {
    fn answer(&self, path: &str) -> (u16, &'static str, Vec<u8>) {
        let state = self.state.get();
        match (path, state) {
            ("/livez", _) => (200, TEXT, b"ok\n".to_vec()),
            ("/readyz", Some(state)) => match state.readiness.reason() {
                None => (200, TEXT, b"ok\n".to_vec()),
                Some(reason) => (503, TEXT, format!("{reason}\n").into_bytes()),
            },
            ("/metrics", Some(state)) => (200, METRICS, state.exposition.text()),
            ("/readyz" | "/metrics", None) => (503, TEXT, b"starting\n".to_vec()),
            _ => (404, TEXT, b"not found\n".to_vec()),
        }
    }
}
