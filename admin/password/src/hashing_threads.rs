//! Threads that compute hashes, with a lower priority than those that answer requests: a flood of sign-ins delays
//! sign-ins, and hardly anybody else.
//!
//! They are threads of their own since a thread can lower its priority and not raise it again. Each keeps the memory
//! of its hashes, which the system's allocator would otherwise keep for each thread that ever computed one.

use super::Memory;
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

/// Niceness of the threads over that of the process. The kernel gives a thread with 10 about a ninth of the time of one
/// with 0 while both want the core.
const NICENESS: i32 = 10;

type Job = Box<dyn FnOnce(&mut Memory) + Send>;

/// A fixed number of threads. They end when this is dropped and the jobs before are done.
#[derive(Debug)]
pub(crate) struct HashingThreads {
    jobs: mpsc::Sender<Job>,
}

impl HashingThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub(crate) fn start(count: NonZeroUsize) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..count.get() {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new()
                .name("password".to_owned())
                .spawn(move || run(&queue))?;
        }
        Ok(Self { jobs })
    }

    /// Computes on one of the threads. `None` if the computation panicked.
    ///
    /// The caller bounds the number of jobs that wait.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Memory) -> T + Send + 'static,
    ) -> Option<T> {
        let (result, computed) = tokio::sync::oneshot::channel();
        let job: Job = Box::new(move |memory| {
            // The caller may have left.
            let _ = result.send(work(memory));
        });
        self.jobs.send(job).ok()?;
        computed.await.ok()
    }
}

/// Computes one job after the other, until there is nobody left who could send one.
fn run(queue: &Mutex<mpsc::Receiver<Job>>) {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::warn!(%error, "passwords are hashed with the priority of requests");
    }
    let mut memory = Memory::default();
    loop {
        // The lock is held while waiting: the others wait for it instead.
        let Ok(job) = queue.lock().recv() else { return };
        if catch_unwind(AssertUnwindSafe(|| job(&mut memory))).is_err() {
            memory = Memory::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    fn start(count: usize) -> HashingThreads {
        HashingThreads::start(NonZeroUsize::new(count).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_hash_is_computed_with_a_lower_priority_than_requests() {
        let own = getpriority_process(None).unwrap();
        let of_thread = start(1).compute(|_| getpriority_process(None).unwrap()).await;
        assert_eq!(of_thread, Some((own + NICENESS).min(19)));
        assert_eq!(getpriority_process(None).unwrap(), own);
    }

    #[tokio::test]
    async fn a_job_that_panics_ends_no_thread() {
        let threads = start(1);
        assert_eq!(
            threads.compute(|_| assert!(std::hint::black_box(false))).await,
            None
        );
        assert_eq!(threads.compute(|_| 7).await, Some(7));
    }

    #[tokio::test]
    async fn as_many_jobs_run_at_once_as_there_are_threads_and_each_thread_keeps_its_memory() {
        let threads = start(2);
        // Neither ends before both have begun.
        let both = Arc::new(std::sync::Barrier::new(2));
        let meet = || {
            let both = Arc::clone(&both);
            threads.compute(move |memory| {
                let kept = memory.0.len();
                memory.0.resize(3, argon2::Block::default());
                both.wait();
                kept
            })
        };
        assert_eq!(tokio::join!(meet(), meet()), (Some(0), Some(0)));
        assert_eq!(tokio::join!(meet(), meet()), (Some(3), Some(3)));
    }
}
