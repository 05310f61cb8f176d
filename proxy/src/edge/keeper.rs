//! The entry of a request's connection in the connection limit. Pingora gives an HTTP/2 request no access to its
//! connection, so the entry is a task-local of the task that serves the request.

use connections::limit::{Keeper, Requests};

tokio::task_local! {
    static REQUESTS: Requests;
}

/// Serves a request with the entry of its connection.
pub(super) async fn scope<F: Future>(requests: Requests, serving: F) -> F::Output {
    REQUESTS.scope(requests, serving).await
}

/// Returns the handle with which the current request keeps its connection from being closed for another one.
pub(super) fn current() -> Keeper {
    Keeper::new(REQUESTS.try_with(Clone::clone).ok())
}
