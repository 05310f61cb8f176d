//! Per-name concurrency limit with a bounded queue. Only names with requests are remembered.

mod shares;

pub use shares::{Share, Shares, may_take};

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limiter of each name, and the number of requests that hold a permit or wait for one.
type Queues<K> = HashMap<K, (Arc<Semaphore>, usize)>;

/// The limiters, by name: an account, a client's address, an invitation.
#[derive(Debug)]
pub struct KeyedLimiter<K = String> {
    queues: Arc<Mutex<Queues<K>>>,
    at_once: usize,
    queue_max: usize,
}

/// A place in the queue of a name, until it is dropped.
#[derive(Debug)]
pub struct Queued<K: Eq + Hash = String> {
    name: K,
    semaphore: Arc<Semaphore>,
    queues: Arc<Mutex<Queues<K>>>,
}

/// Too many requests about this name wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl<K: Clone + Eq + Hash> KeyedLimiter<K> {
    /// Creates limiters of `at_once` concurrent requests for each name, and of `queue_max` with those that wait.
    pub fn new(at_once: usize, queue_max: usize) -> Self {
        Self {
            queues: Arc::default(),
            at_once,
            queue_max,
        }
    }

    /// Returns the number of names that have requests.
    pub fn names(&self) -> usize {
        self.queues.lock().len()
    }

    /// Enters the queue of a name, without waiting.
    ///
    /// # Errors
    /// [`QueueFull`]
    pub fn enter(&self, name: impl Into<K>) -> Result<Queued<K>, QueueFull> {
        let name = name.into();
        let mut queues = self.queues.lock();
        let entry = queues.get(&name);
        if entry.is_some_and(|(_, count)| *count >= self.queue_max) {
            return Err(QueueFull);
        }
        let new = || (Arc::new(Semaphore::new(self.at_once)), 0);
        let (semaphore, count) = queues.entry(name.clone()).or_insert_with(new);
        *count += 1;
        Ok(Queued {
            name,
            semaphore: Arc::clone(semaphore),
            queues: Arc::clone(&self.queues),
        })
    }
}

impl<K: Eq + Hash> Queued<K> {
    /// Waits for a permit, which lasts until it is dropped.
    pub async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.semaphore).acquire_owned().await.ok()
    }

    /// Takes a permit if one is free.
    pub fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.semaphore).try_acquire_owned().ok()
    }
}

impl<K: Eq + Hash> Drop for Queued<K> {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        if let Some((_, count)) = queues.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                queues.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_name_has_its_own_permits_and_places() {
        let limiter: KeyedLimiter = KeyedLimiter::new(1, 2);
        let (first, second) = (limiter.enter("a").unwrap(), limiter.enter("a").unwrap());
        assert_eq!(limiter.enter("a").unwrap_err(), QueueFull);
        let other = limiter.enter("b").unwrap();
        let permit = first.acquire().await;
        let mut waiting = Box::pin(second.acquire());
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(first.try_acquire().is_none());
        assert!(other.acquire().await.is_some());
        drop(permit);
        assert!(futures::poll!(&mut waiting).is_ready());
        drop(waiting);
        drop((first, second, other));
        assert_eq!(limiter.names(), 0, "nothing is remembered");
        assert!(limiter.enter("a").is_ok());
    }
}
