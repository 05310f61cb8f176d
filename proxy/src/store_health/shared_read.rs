//! A read of the store that requests without a key share. Without it, they could cause any number of reads, and be
//! answered in one go while other callers wait.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;
use tokio::task::yield_now;

/// Requests that arrive while a read runs wait for the next one, and share its result: at most one read runs at a time,
/// and each result is of a read that began after the request. They are released one after the other, and other tasks
/// run in between.
#[derive(Debug, Default)]
pub struct SharedRead {
    /// Number of the last read that began.
    begun: AtomicU64,
    /// Number and result of the last read that ended. Held while one runs.
    ended: Mutex<(u64, bool)>,
}

impl SharedRead {
    /// Returns the result of a read that began after this call: of `read`, or of one by another request.
    pub async fn get(&self, read: impl Future<Output = bool>) -> bool {
        let before = self.begun.load(Ordering::Acquire);
        let mut ended = self.ended.lock().await;
        if ended.0 <= before {
            let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            *ended = (number, read.await);
        } else {
            // Lets the runtime serve the requests that arrived meanwhile before the next one.
            yield_now().await;
        }
        ended.1
    }
}

#[cfg(test)]
mod tests {
    use super::{SharedRead, yield_now};
    use std::cell::Cell;
    use std::rc::Rc;
    use tokio::task::{LocalSet, spawn_local};

    /// Requests that wait at the same time.
    const WAITING: usize = 100;
    /// Requests that each of them makes one after the other.
    const REQUESTS: usize = 50;

    #[tokio::test]
    async fn requests_share_a_read_that_began_after_them_and_are_answered_one_after_the_other() {
        let shared = Rc::new(SharedRead::default());
        let (reads, answered) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let local = LocalSet::new();
        local
            .run_until(async {
                let waiting: Vec<_> = (0..WAITING)
                    .map(|_| {
                        let (shared, reads, answered) =
                            (Rc::clone(&shared), Rc::clone(&reads), Rc::clone(&answered));
                        spawn_local(async move {
                            for _ in 0..REQUESTS {
                                let before = reads.get();
                                shared
                                    .get(async {
                                        reads.set(reads.get() + 1);
                                        yield_now().await;
                                        true
                                    })
                                    .await;
                                assert!(reads.get() > before, "a read that began before the request");
                                answered.set(answered.get() + 1);
                            }
                        })
                    })
                    .collect();
                let counted = Rc::clone(&answered);
                let other_task = spawn_local(async move {
                    let mut most = 0;
                    while counted.get() < WAITING * REQUESTS {
                        let before = counted.get();
                        yield_now().await;
                        most = most.max(counted.get() - before);
                    }
                    most
                });
                let most = other_task.await.unwrap();
                assert!(most <= 3, "{most} answers between two steps of another task");
                for request in waiting {
                    request.await.unwrap();
                }
            })
            .await;
        // Each read answers all that waited when it began.
        assert!(reads.get() <= REQUESTS + 1, "{} reads", reads.get());
    }

    #[tokio::test]
    async fn a_read_that_was_dropped_is_not_shared() {
        let shared = SharedRead::default();
        assert!(shared.get(async { true }).await);
        let dropped = shared.get(std::future::pending());
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(1), dropped)
                .await
                .is_err()
        );
        assert!(
            !shared.get(async { false }).await,
            "the result of the read before"
        );
    }
}
