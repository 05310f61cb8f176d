//! Limits how many requests about the same name (an account, a client's address, an invitation) go on at once. The
//! others wait in a bounded queue of that name, and not in everybody's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limiter of each name, and how many requests hold a turn or wait for one.
type Asking = HashMap<String, (Arc<Semaphore>, usize)>;

/// The limiters, by name.
#[derive(Debug)]
pub struct Turns {
    asking: Arc<Mutex<Asking>>,
    at_once: usize,
    asking_max: usize,
}

/// A turn, or the wait for it, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    name: String,
    gate: Arc<Semaphore>,
    asking: Arc<Mutex<Asking>>,
}

/// Too many requests about this name wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

impl Turns {
    /// `at_once` go on at once for each name, and `asking_max` with those who wait.
    pub fn new(at_once: usize, asking_max: usize) -> Self {
        Self {
            asking: Arc::default(),
            at_once,
            asking_max,
        }
    }

    /// Enters the queue of a name, without waiting.
    ///
    /// # Errors
    /// [`QueueFull`]
    pub fn enter(&self, name: &str) -> Result<Turn, QueueFull> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = asking.get(name);
        if entry.is_some_and(|(_, count)| *count >= self.asking_max) {
            return Err(QueueFull);
        }
        let new = || (Arc::new(Semaphore::new(self.at_once)), 0);
        let (gate, count) = asking.entry(name.to_owned()).or_insert_with(new);
        *count += 1;
        Ok(Turn {
            name: name.to_owned(),
            gate: Arc::clone(gate),
            asking: Arc::clone(&self.asking),
        })
    }
}

impl Turn {
    /// Waits for the turn, which lasts until the permit is dropped.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The gate is never closed.
        Arc::clone(&self.gate).acquire_owned().await.ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = asking.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                asking.remove(&self.name);
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
        let turn = first.turn().await;
        let mut waiting = Box::pin(second.turn());
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(other.turn().await.is_some());
        drop(turn);
        assert!(futures::poll!(&mut waiting).is_ready());
        drop(waiting);
        drop((first, second, other));
        assert!(turns.asking.lock().unwrap().is_empty(), "nothing is remembered");
        assert!(turns.enter("a").is_ok());
    }
}
