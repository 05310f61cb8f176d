//! Work on large bodies of requests and answers, beside the threads that serve callers: parsing 30 MiB of an odd shape,
//! or decoding a small answer to 64 MiB, takes hundreds of milliseconds, and all other calls of the thread would wait.
//!
//! Accounts take turns: of each, [`ACCOUNT_WAITING`] bodies wait in the common queue, and the others in a queue of the
//! account. So a body waits for those of other accounts at most as often as there are such accounts, however many each
//! of them sends. An account that is alone gets all turns.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// Longest body that is read on the thread that serves its caller, in bytes: handing it to another thread costs about
/// as much as reading some KiB.
const READ_IN_PLACE_MAX: usize = 256 * 1024;

/// Returns whether a body of this length is read beside the threads that serve callers.
pub const fn is_large(length: usize) -> bool {
    length > READ_IN_PLACE_MAX
}

/// Maximum number of bodies of one account, and of one kind (requests or answers), in the common queue.
const ACCOUNT_WAITING: usize = 1;

/// The large bodies of one account, and of one kind, that are not in the common queue yet.
#[derive(Debug)]
pub struct AccountQueue(Semaphore);

impl Default for AccountQueue {
    fn default() -> Self {
        Self(Semaphore::new(ACCOUNT_WAITING))
    }
}

/// Limits how many large bodies are worked on at the same time, so that they leave processors to the other calls.
#[derive(Debug)]
pub struct LargeBodies(Arc<Semaphore>);

impl LargeBodies {
    /// Allows one large body for each two threads that serve callers, and at least one.
    pub fn new(threads: usize) -> Self {
        Self(Arc::new(Semaphore::new((threads / 2).max(1))))
    }

    /// Executes `work` of an account on a thread of its own when it is its turn. How many wait is bounded by the memory
    /// for bodies (`proxy.max_buffered_bytes`), and by the calls under way. Returns `None` if it panics.
    pub async fn execute<T: Send + 'static>(
        &self,
        account: &AccountQueue,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let waiting = account.0.acquire().await.ok()?;
        let turn = Arc::clone(&self.0).acquire_owned().await.ok()?;
        drop(waiting);
        let working = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        let done = working.await;
        done.inspect_err(|error| tracing::error!(%error, "work on a large body failed"))
            .ok()
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
        assert!(!is_large(READ_IN_PLACE_MAX) && is_large(READ_IN_PLACE_MAX + 1));
    }

    #[tokio::test]
    async fn other_tasks_of_the_thread_run_meanwhile() {
        let has_run = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&has_run);
        let other = tokio::spawn(async move { has_run.store(true, Ordering::SeqCst) });
        let work = move || {
            let end = Instant::now() + Duration::from_secs(30);
            while !noticed.load(Ordering::SeqCst) && Instant::now() < end {
                thread::yield_now();
            }
            noticed.load(Ordering::SeqCst)
        };
        assert!(
            LargeBodies::new(1)
                .execute(&AccountQueue::default(), work)
                .await
                .unwrap()
        );
        other.await.unwrap();
    }

    #[tokio::test]
    async fn half_as_many_as_threads_are_worked_on_at_once() {
        for (threads, at_once) in [(1, 1), (2, 1), (4, 2), (5, 2)] {
            let limit = Arc::new(LargeBodies::new(threads));
            let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let work = || {
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
            let account = AccountQueue::default();
            let large = futures::future::join_all((0..6).map(|_| limit.execute(&account, work())));
            assert!(large.await.iter().all(Option::is_some));
            assert_eq!(most.load(Ordering::SeqCst), at_once, "{threads} threads");
        }
    }

    #[tokio::test]
    async fn a_panic_leaves_the_turn_to_the_next() {
        let (limit, account) = (LargeBodies::new(1), AccountQueue::default());
        assert_eq!(limit.execute(&account, || panic!("a bug")).await, None::<()>);
        assert_eq!(limit.execute(&account, || ()).await, Some(()));
    }

    /// Polls all once, in order, so that each waits in its queue; then completes them. Returns the order of the work.
    async fn order_of(limit: &LargeBodies, bodies: &[(char, &AccountQueue)]) -> String {
        let order = Arc::new(parking_lot::Mutex::new(String::new()));
        let held = Arc::clone(&limit.0).acquire_owned().await.unwrap();
        let executed = bodies.iter().map(|(name, account)| {
            let (order, name) = (Arc::clone(&order), *name);
            Box::pin(limit.execute(account, move || order.lock().push(name)))
        });
        let mut executed: Vec<_> = executed.collect();
        for body in &mut executed {
            assert!(futures::poll!(body).is_pending());
        }
        drop(held);
        futures::future::join_all(executed).await;
        order.lock().split_off(0)
    }

    #[tokio::test]
    async fn a_body_waits_for_one_of_each_other_account_however_many_it_sends() {
        let limit = LargeBodies::new(1);
        let [first, second, other] = <[AccountQueue; 3]>::default();
        let many = [('a', &first), ('b', &second)].map(|body| [body; 8]);
        let bodies = [&many[0][..], &many[1][..], &[('c', &other)]].concat();
        let order = order_of(&limit, &bodies).await;
        assert_eq!(order.find('c'), Some(2 * ACCOUNT_WAITING), "{order}");
        assert_eq!(order.len(), 17);
    }

    #[tokio::test]
    async fn a_body_whose_caller_left_leaves_its_place_to_the_next() {
        let (limit, account) = (LargeBodies::new(1), AccountQueue::default());
        let held = Arc::clone(&limit.0).acquire_owned().await.unwrap();
        let mut first = Box::pin(limit.execute(&account, || ()));
        let mut second = Box::pin(limit.execute(&account, || ()));
        assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
        drop(first);
        drop(held);
        assert_eq!(second.await, Some(()));
    }
}
