//! Background tasks that outlive a panic. A panic in a task of its own would go unnoticed: the process would go on
//! without that task, with the last state that it left.

use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pause before a task that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Panics of background tasks since the start of the process.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs the task that `start` creates, until it ends by itself. If it panics, logs that (the panic hook has printed
/// why), and starts it again after a second, forever. `name` is for the log.
pub async fn keep_running<F: Future<Output = ()>>(name: &'static str, start: impl Fn() -> F) {
    // The task's state is dropped with it; state shared with others is behind locks without poison, or atomic.
    while AssertUnwindSafe(async { start().await })
        .catch_unwind()
        .await
        .is_err()
    {
        PANICS.fetch_add(1, Ordering::Relaxed);
        tracing::error!(task = name, "a background task panicked; it starts again");
        tokio::time::sleep(RESTART_PAUSE).await;
    }
}

/// Returns the number of panics so far.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_starts_again_until_it_ends() {
        let (starts, began) = (Cell::new(0), tokio::time::Instant::now());
        let before = panics();
        keep_running("test", || async {
            starts.set(starts.get() + 1);
            tokio::task::yield_now().await;
            assert!(starts.get() == 3, "this panic belongs to a test");
        })
        .await;
        assert_eq!(starts.get(), 3);
        assert_eq!(began.elapsed(), 2 * RESTART_PAUSE);
        assert_eq!(panics() - before, 2);
    }
}
