//! Parses large bodies beside the threads that serve callers. A body of 30 MiB in an odd shape takes hundreds of
//! milliseconds, and all other calls of its thread would wait that long.

use super::rejection::Rejection;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Longest body that is parsed on the thread that serves its caller, in bytes: handing it to another thread costs about
/// as much as parsing some KiB.
const PARSED_IN_PLACE_MAX: usize = 256 * 1024;

/// Returns whether a body of this length is parsed beside the threads that serve callers.
pub const fn is_large(length: usize) -> bool {
    length > PARSED_IN_PLACE_MAX
}

/// Limits how many large bodies are parsed at the same time, so that they leave processors to the other calls.
#[derive(Debug)]
pub struct ParseLimit(Arc<Semaphore>);

impl ParseLimit {
    /// Allows one large body for each two threads that serve callers, and at least one.
    pub fn new(threads: usize) -> Self {
        Self(Arc::new(Semaphore::new((threads / 2).max(1))))
    }

    /// Executes `parse`, which parses a large body, on a thread of its own when it is its turn. How many wait is bounded
    /// by the memory for bodies (`proxy.max_buffered_bytes`).
    ///
    /// # Errors
    /// 503 if `parse` panics.
    pub async fn execute<T: Send + 'static>(
        &self,
        parse: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejection> {
        let Ok(turn) = Arc::clone(&self.0).acquire_owned().await else {
            return Err(Rejection::unavailable());
        };
        let parsing = tokio::task::spawn_blocking(move || {
            let parsed = parse();
            drop(turn);
            parsed
        });
        parsing.await.map_err(|error| {
            tracing::error!(%error, "parsing a body failed");
            Rejection::unavailable()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_body_up_to_the_bound_is_not_large() {
        assert!(!is_large(PARSED_IN_PLACE_MAX) && is_large(PARSED_IN_PLACE_MAX + 1));
    }

    #[tokio::test]
    async fn other_tasks_of_the_thread_run_while_a_large_body_is_parsed() {
        let has_run = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&has_run);
        let other = tokio::spawn(async move { has_run.store(true, Ordering::SeqCst) });
        let parse = move || {
            let end = Instant::now() + Duration::from_secs(30);
            while !noticed.load(Ordering::SeqCst) && Instant::now() < end {
                thread::yield_now();
            }
            noticed.load(Ordering::SeqCst)
        };
        assert!(ParseLimit::new(1).execute(parse).await.unwrap());
        other.await.unwrap();
    }

    #[tokio::test]
    async fn half_as_many_large_bodies_as_threads_are_parsed_at_once() {
        for (threads, at_once) in [(1, 1), (2, 1), (4, 2), (5, 2)] {
            let limit = Arc::new(ParseLimit::new(threads));
            let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let parse = || {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let end = Instant::now() + Duration::from_secs(30);
                    while most.load(Ordering::SeqCst) < at_once && Instant::now() < end {
                        thread::yield_now();
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                }
            };
            let large = futures::future::join_all((0..6).map(|_| limit.execute(parse())));
            assert!(large.await.iter().all(Result::is_ok));
            assert_eq!(most.load(Ordering::SeqCst), at_once, "{threads} threads");
        }
    }

    #[tokio::test]
    async fn a_panic_is_503_and_leaves_the_turn_to_the_next() {
        let limit = ParseLimit::new(1);
        let failed = limit.execute(|| panic!("a bug")).await;
        assert!(matches!(failed, Err(Rejection::Denied(_))), "{failed:?}");
        assert!(limit.execute(|| ()).await.is_ok());
    }
}
