//! State that a request shares with its connection: the connection's entry in the connection limit, and the slot for a
//! streamed answer. Pingora gives an HTTP/2 request no access to its connection, so both are a task-local of the task
//! that serves the request.

use super::detached_stream::DetachedStream;
use crate::http2_requests::Http2Requests;
use crate::protected_request::ProtectedRequest;
use connections::limit::{Keeper, Requests};
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static SCOPE: RequestScope;
}

struct RequestScope {
    requests: Requests,
    /// The requests of its connection, over HTTP/2.
    http2: Option<Arc<Http2Requests>>,
    detached: Cell<Option<Box<DetachedStream>>>,
}

/// Serves a request of a connection. Also returns the streamed answer that the request [left](detach) to its
/// connection.
pub(super) async fn scope<F: Future>(
    requests: Requests,
    http2: Option<Arc<Http2Requests>>,
    serving: F,
) -> (F::Output, Option<Box<DetachedStream>>) {
    let scope = RequestScope {
        requests,
        http2,
        detached: Cell::default(),
    };
    let mut serving = pin!(SCOPE.scope(scope, serving));
    let served = serving.as_mut().await;
    let scope = TaskLocalFuture::take_value(serving);
    (served, scope.and_then(|scope| scope.detached.take()))
}

/// Returns the handle with which the current request keeps its connection from being closed for another one.
pub(super) fn protected_request() -> ProtectedRequest {
    let protected = |scope: &RequestScope| {
        let connection = Keeper::new(Some(scope.requests.clone()));
        ProtectedRequest::new(connection, scope.http2.clone())
    };
    SCOPE.try_with(protected).unwrap_or_default()
}

/// Leaves the rest of the current request to its connection. Returns whether there is one.
pub(super) fn detach(stream: Box<DetachedStream>) -> bool {
    SCOPE
        .try_with(move |scope| scope.detached.set(Some(stream)))
        .is_ok()
}
