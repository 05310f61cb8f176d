//! Permits of one pool for all names. A name takes another one only while it holds fewer than are left: so few names
//! never take all, however greedy they are, and the last of them go to names that hold none. When all are taken, the
//! next one that is given back goes to the name without one that has waited longest.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Returns whether a name that holds `own` permits may take another one while `free` are left.
pub const fn may_take(own: usize, free: usize) -> bool {
    own < free
}

/// A pool. Clones are the same pool.
#[derive(Debug)]
pub struct Shares<K = String>(Arc<Mutex<Pool<K>>>);

#[derive(Debug)]
struct Pool<K> {
    free: usize,
    /// The most that one name may hold.
    of_name_max: usize,
    /// Number of waits so far.
    waits: u64,
    names: HashMap<K, NameState>,
}

/// Permits and waits of a name, which is forgotten with the last of both.
#[derive(Debug, Default)]
struct NameState {
    held: usize,
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub struct Share<K: Clone + Eq + Hash = String> {
    wait: u64,
    name: K,
    shares: Shares<K>,
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash> Shares<K> {
    /// Creates a pool of `max` permits, of which one name gets `of_name_max` at most.
    pub fn new(max: usize, of_name_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Pool {
            free: max,
            of_name_max,
            waits: 0,
            names: HashMap::new(),
        })))
    }

    /// Returns the number of names that hold permits or wait.
    pub fn names(&self) -> usize {
        self.0.lock().names.len()
    }

    /// Returns whether somebody else has this pool, a permit of it, or waits for one.
    pub fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Waits for a permit.
    pub async fn take(&self, name: impl Into<K>) -> Option<Share<K>> {
        let name = name.into();
        let (sender, given) = oneshot::channel();
        let wait = {
            let mut pool = self.0.lock();
            pool.waits += 1;
            let wait = pool.waits;
            let queue = pool.names.entry(name.clone()).or_default();
            queue.waiting.push_back((wait, sender));
            wait
        };
        // From here on it leaves the queue, or gives its permit back, when it is dropped.
        let share = Share {
            wait,
            name,
            shares: self.clone(),
        };
        self.0.lock().give();
        given.await.ok().map(|()| share)
    }
}

impl<K: Clone + Eq + Hash> Pool<K> {
    /// Gives permits to those who wait, as long as there is one for somebody.
    fn give(&mut self) {
        while let Some(name) = self.next() {
            let Some((_, sender)) = self.names.get_mut(&name).and_then(|name| {
                name.held += 1;
                name.waiting.pop_front()
            }) else {
                return;
            };
            self.free -= 1;
            // If nobody receives it, the wait is about to be dropped, and gives the permit back.
            let _ = sender.send(());
        }
    }

    /// Returns the name, among those that may take a permit, of the longest wait.
    fn next(&self) -> Option<K> {
        let may = |name: &NameState| may_take(name.held, self.free) && name.held < self.of_name_max;
        let names = self.names.iter().filter(|(_, name)| may(name));
        let waiting = names.filter_map(|(key, name)| Some((name.waiting.front()?.0, key)));
        waiting.min_by_key(|(wait, _)| *wait).map(|(_, key)| key.clone())
    }

    /// Ends a wait, or takes its permit back.
    fn end(&mut self, wait: u64, key: &K) {
        let Some(name) = self.names.get_mut(key) else {
            return;
        };
        match name.waiting.iter().position(|(other, _)| *other == wait) {
            Some(at) => drop(name.waiting.remove(at)),
            None => {
                name.held -= 1;
                self.free += 1;
            }
        }
        if name.held == 0 && name.waiting.is_empty() {
            self.names.remove(key);
        }
        self.give();
    }
}

impl<K: Clone + Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        self.shares.0.lock().end(self.wait, &self.name);
    }
}

#[cfg(test)]
mod tests;
