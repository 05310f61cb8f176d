//! The ops listener: `/metrics`, `/livez`, `/readyz` (decision D57).

use crate::composition::Running;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Returns the service of the ops listener.
pub(crate) fn router(running: Arc<Running>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(running)
}

async fn metrics(State(running): State<Arc<Running>>) -> Response {
    let admission = &running.admission;
    admission
        .metrics
        .memory(&admission.body_memory, &admission.answer_memory);
    match running.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn ready(State(running): State<Arc<Running>>) -> Response {
    let unread = || {
        let reason = || "the blocked addresses were not read yet".to_owned();
        (!running.admission.blocked.is_read()).then(reason)
    };
    let leaving = running.leaving.load(Ordering::Acquire);
    let leaving = leaving.then(|| "this process is about to end".to_owned());
    match leaving
        .or_else(|| running.admission.health.reason())
        .or_else(unread)
    {
        None => match running.admission.health.warning() {
            None => "ok\n".into_response(),
            Some(warning) => format!("ok, but {warning}\n").into_response(),
        },
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}
