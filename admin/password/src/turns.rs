//! Turns of those who ask for the same thing: only a few of them go on at once, the others wait for them and not in
//! everybody's queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is asked for, and how many ask.
type Asking = HashMap<String, (Arc<Semaphore>, usize)>;

/// Turns by name: an account, a client's address, an invitation.
#[derive(Debug)]
pub struct Turns {
    asking: Arc<Mutex<Asking>>,
    at_once: usize,
    asking_max: usize,
}

/// A place among those who ask for one thing, until it is dropped.
#[derive(Debug)]
pub struct Place {
    name: String,
    gate: Arc<Semaphore>,
    asking: Arc<Mutex<Asking>>,
}

/// Too many ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl Turns {
    /// `at_once` go on at once for each name, and `asking_max` with those who wait.
    pub fn new(at_once: usize, asking_max: usize) -> Self {
        Self {
            asking: Arc::default(),
            at_once,
            asking_max,
        }
    }

    /// Takes a place, without waiting.
    ///
    /// # Errors
    /// [`TooMany`]
    pub fn enter(&self, name: &str) -> Result<Place, TooMany> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = asking.get(name);
        if entry.is_some_and(|(_, count)| *count >= self.asking_max) {
            return Err(TooMany);
        }
        let new = || (Arc::new(Semaphore::new(self.at_once)), 0);
        let (gate, count) = asking.entry(name.to_owned()).or_insert_with(new);
        *count += 1;
        Ok(Place {
            name: name.to_owned(),
            gate: Arc::clone(gate),
            asking: Arc::clone(&self.asking),
        })
    }
}

impl Place {
    /// Waits for the turn, which lasts until the permit is dropped.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The gate is never closed.
        Arc::clone(&self.gate).acquire_owned().await.ok()
    }
}

impl Drop for Place {
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
        assert_eq!(turns.enter("a").unwrap_err(), TooMany);
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
