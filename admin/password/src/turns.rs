//! Per-name concurrency limit with a bounded queue.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limiter of each name, and the number of requests that hold a permit or wait for one.
type Queues = HashMap<String, (Arc<Semaphore>, usize)>;

/// The limiters, by name: an account, a client's address, an invitation.
#[derive(Debug)]
pub struct Turns {
    queues: Arc<Mutex<Queues>>,
    at_once: usize,
    queue_max: usize,
}

/// A place in the queue of a name, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    name: String,
    gate: Arc<Semaphore>,
    queues: Arc<Mutex<Queues>>,
}

/// Too many requests about this name wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl Turns {
    /// Creates limiters of `at_once` concurrent requests for each name, and of `queue_max` with those that wait.
    pub fn new(at_once: usize, queue_max: usize) -> Self {
        Self {
            queues: Arc::default(),
            at_once,
            queue_max,
        }
    }

    /// Enters the queue of a name, without waiting.
    ///
    /// # Errors
    /// [`QueueFull`]
    pub fn enter(&self, name: &str) -> Result<Turn, QueueFull> {
        let mut queues = self.queues.lock();
        let entry = queues.get(name);
        if entry.is_some_and(|(_, count)| *count >= self.queue_max) {
            return Err(QueueFull);
        }
        let new = || (Arc::new(Semaphore::new(self.at_once)), 0);
        let (gate, count) = queues.entry(name.to_owned()).or_insert_with(new);
        *count += 1;
        Ok(Turn {
            name: name.to_owned(),
            gate: Arc::clone(gate),
            queues: Arc::clone(&self.queues),
        })
    }
}

impl Turn {
    /// Waits for a permit, which lasts until it is dropped.
    pub async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // The gate is never closed.
        Arc::clone(&self.gate).acquire_owned().await.ok()
    }
}

impl Drop for Turn {
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
    async fn each_name_has_its_own_turns_and_places() {
        let turns = Turns::new(1, 2);
        let (first, second) = (turns.enter("a").unwrap(), turns.enter("a").unwrap());
        assert_eq!(turns.enter("a").unwrap_err(), QueueFull);
        let other = turns.enter("b").unwrap();
        let turn = first.acquire().await;
        let mut waiting = Box::pin(second.acquire());
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(other.acquire().await.is_some());
        drop(turn);
        assert!(futures::poll!(&mut waiting).is_ready());
        drop(waiting);
        drop((first, second, other));
        assert!(turns.queues.lock().is_empty(), "nothing is remembered");
        assert!(turns.enter("a").is_ok());
    }
}
