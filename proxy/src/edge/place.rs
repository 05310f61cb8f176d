//! The place of a request's connection among all connections. Pingora gives a request of HTTP/2 nothing of its connection, so
//! the place goes along with the task that serves the request.

use connections::limit::{Keeper, Requests};

tokio::task_local! {
    static REQUESTS: Requests;
}

/// Serves a request of the connection whose requests these are.
pub(super) async fn with<F: Future>(requests: Requests, serving: F) -> F::Output {
    REQUESTS.scope(requests, serving).await
}

/// What keeps the place of the request that this task serves.
pub(super) fn keeper() -> Keeper {
    Keeper::new(REQUESTS.try_with(Clone::clone).ok())
}
