//! Bursts: requests of a connection that arrive together (pipelining) and are answered at once, without waiting for the
//! store or the network. A thousand connections with 500 of them each would keep all other callers waiting for seconds.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Connections whose bursts are served at the same time. Each serves one request and goes to the end of the queue, so
/// that between two steps of another caller's request stand the requests of this many.
const TURNS: usize = 4;

/// The turns of an edge's connections at serving bursts.
#[derive(Debug, Clone)]
pub(super) struct Bursts(Arc<Semaphore>);

impl Bursts {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(TURNS)))
    }

    /// Serves the requests of a connection one after the other until one leaves nothing to go on with; `next` makes the
    /// next request of what is left. A request after one that was answered at once waits for its turn, and keeps it
    /// until it has to wait for something else.
    pub(super) async fn serve<R, L, F>(&self, first: R, serve: impl Fn(R) -> F, next: impl Fn(L) -> R)
    where
        F: Future<Output = Option<L>> + Unpin,
    {
        let (mut request, mut turn) = (first, None);
        loop {
            let mut serving = serve(request);
            let polled = poll_fn(|task| Poll::Ready(Pin::new(&mut serving).poll(task))).await;
            let is_at_once = polled.is_ready();
            drop(turn.take());
            let served = match polled {
                Poll::Ready(served) => served,
                Poll::Pending => serving.await,
            };
            let Some(left) = served else { return };
            if is_at_once {
                // Others get their turn also if no other connection has a burst.
                yield_now().await;
                turn = self.0.acquire().await.ok();
            }
            request = next(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use tokio::task::{LocalSet, spawn_local};

    /// Connections with bursts.
    const CONNECTIONS: usize = 100;
    /// Requests of a burst.
    const REQUESTS: usize = 500;

    #[tokio::test]
    async fn a_caller_waits_for_one_request_of_a_few_connections() {
        let served = Rc::new(Cell::new(0));
        let bursts = Bursts::new();
        let local = LocalSet::new();
        local
            .run_until(async {
                let connections: Vec<_> = (0..CONNECTIONS)
                    .map(|_| {
                        let (served, bursts) = (Rc::clone(&served), bursts.clone());
                        spawn_local(async move {
                            let serve = |left: usize| {
                                served.set(served.get() + 1);
                                std::future::ready((left > 1).then(|| left - 1))
                            };
                            bursts.serve(REQUESTS, serve, |left| left).await;
                        })
                    })
                    .collect();
                // Each connection has its first request served before it waits for its turn.
                yield_now().await;
                for _ in 0..10 {
                    let before = served.get();
                    yield_now().await;
                    let meanwhile = served.get() - before;
                    assert!(meanwhile <= CONNECTIONS + TURNS, "{meanwhile} requests");
                }
                for connection in connections {
                    connection.await.unwrap();
                }
            })
            .await;
        assert_eq!(served.get(), CONNECTIONS * REQUESTS, "all are served");
    }
}
