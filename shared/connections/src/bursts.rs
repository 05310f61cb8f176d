//! Bursts: requests of a connection that arrive together (pipelining, HTTP/2) and are answered at once, without waiting
//! for the store or the network. A hundred connections with 500 of them each would keep all other callers waiting for
//! seconds.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;
use tokio::task::yield_now;

/// Connections whose bursts are served at the same time. Each serves one request and goes to the end of the queue: at
/// most this many run between two steps of another connection's request.
const TURNS: usize = 4;

/// The turns of a listener's connections at serving bursts.
#[derive(Debug, Clone)]
pub struct Bursts(Arc<Semaphore>);

impl Default for Bursts {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TURNS)))
    }
}

impl Bursts {
    /// Returns the state of a new connection.
    #[must_use]
    pub fn connection(&self) -> Burst {
        Burst {
            turns: Arc::clone(&self.0),
            was_at_once: AtomicBool::default(),
        }
    }
}

/// A connection, whose requests are served one after the other or at the same time.
#[derive(Debug)]
pub struct Burst {
    turns: Arc<Semaphore>,
    /// True if the last request was answered at once.
    was_at_once: AtomicBool,
}

impl Burst {
    /// Serves a request. If the previous request completed without waiting, this one first acquires a permit, and
    /// releases it at its first await.
    pub async fn serve<F: Future>(&self, mut serving: Pin<&mut F>) -> F::Output {
        let mut turn = match self.was_at_once.load(Ordering::Relaxed) {
            true => {
                // Others get their turn also if no other connection has a burst.
                yield_now().await;
                self.turns.acquire().await.ok()
            }
            false => None,
        };
        let mut is_first_poll = true;
        poll_fn(|task| {
            let polled = serving.as_mut().poll(task);
            if std::mem::take(&mut is_first_poll) {
                self.was_at_once.store(polled.is_ready(), Ordering::Relaxed);
                drop(turn.take());
            }
            polled
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::ready;
    use std::pin::pin;
    use std::rc::Rc;
    use std::time::Duration;
    use tokio::task::{LocalSet, spawn_local};
    use tokio::time::timeout;

    const CONNECTIONS: usize = 100;
    const REQUESTS: usize = 500;

    /// Starts the requests of a connection: one after the other, or all at the same time as HTTP/2 does.
    fn connection(bursts: &Bursts, served: &Rc<Cell<usize>>, at_the_same_time: bool) {
        let (burst, served) = (Rc::new(bursts.connection()), Rc::clone(served));
        let serve = async |burst: &Burst, served: &Cell<usize>| {
            burst.serve(pin!(ready(()))).await;
            served.set(served.get() + 1);
        };
        if !at_the_same_time {
            drop(spawn_local(async move {
                for _ in 0..REQUESTS {
                    serve(&burst, &served).await;
                }
            }));
            return;
        }
        for _ in 0..REQUESTS {
            let (burst, served) = (Rc::clone(&burst), Rc::clone(&served));
            drop(spawn_local(async move { serve(&burst, &served).await }));
        }
    }

    #[tokio::test]
    async fn a_caller_waits_for_one_request_of_a_few_connections() {
        for at_the_same_time in [false, true] {
            let served = Rc::new(Cell::new(0));
            let bursts = Bursts::default();
            let local = LocalSet::new();
            local
                .run_until(async {
                    for _ in 0..CONNECTIONS {
                        connection(&bursts, &served, at_the_same_time);
                    }
                    let counted = Rc::clone(&served);
                    let other_caller = spawn_local(async move {
                        let mut most = 0;
                        // The first request of each connection is served before it waits for its turn.
                        yield_now().await;
                        while counted.get() < CONNECTIONS * REQUESTS {
                            let before = counted.get();
                            yield_now().await;
                            most = most.max(counted.get() - before);
                        }
                        most
                    });
                    let most = other_caller.await.unwrap();
                    assert!(most <= CONNECTIONS + 64, "{most} requests");
                })
                .await;
            assert_eq!(served.get(), CONNECTIONS * REQUESTS, "all are served");
        }
    }

    #[tokio::test]
    async fn a_request_that_waits_gives_its_turn_to_others() {
        let bursts = Bursts::default();
        let waiting: Vec<_> = (0..TURNS + 1).map(|_| bursts.connection()).collect();
        for burst in &waiting {
            burst.serve(pin!(ready(()))).await;
            let waits = pin!(std::future::pending::<()>());
            let served = timeout(Duration::from_millis(1), burst.serve(waits));
            assert!(served.await.is_err());
        }
        assert_eq!(bursts.0.available_permits(), TURNS);
    }
}
