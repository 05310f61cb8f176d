//! Work that several tasks repeat beside a test until the test ends it.

use harness::until;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::task::JoinHandle;

/// Concurrent workers.
const AT_ONCE: usize = 4;

/// State that the tasks and the test share.
#[derive(Clone, Default)]
pub struct SharedProgress {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
}

impl SharedProgress {
    /// Returns true until the work is to stop.
    pub fn on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    pub fn one_done(&self) {
        self.done.fetch_add(1, Ordering::SeqCst);
    }
}

/// Repeating tasks, each of which returns a `T`.
pub struct Ongoing<T> {
    going: SharedProgress,
    tasks: Vec<JoinHandle<T>>,
}

impl<T: Send + 'static> Ongoing<T> {
    /// Starts [`AT_ONCE`] tasks of `work`, each with its number.
    pub fn start<F>(work: impl Fn(usize, SharedProgress) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let going = SharedProgress::default();
        let tasks = (0..AT_ONCE).map(|at| tokio::spawn(work(at, going.clone())));
        Self {
            tasks: tasks.collect(),
            going,
        }
    }

    /// Number of changes made so far.
    fn done(&self) -> usize {
        self.going.done.load(Ordering::SeqCst)
    }

    /// Waits for `count` more changes.
    pub async fn more(&self, count: usize) {
        let enough = self.done() + count;
        until("more changes", async || self.done() >= enough).await;
    }

    /// Ends the work, and returns the number of changes and each task's result.
    pub async fn end(self) -> (usize, Vec<T>) {
        self.going.stop.store(true, Ordering::SeqCst);
        let mut left = Vec::new();
        for task in self.tasks {
            left.push(task.await.expect("a task that goes on"));
        }
        (self.going.done.load(Ordering::SeqCst), left)
    }
}
