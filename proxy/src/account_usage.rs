//! Use of shared resources by one account: memory of request bodies, which `buffer_budget` bounds, and of answers, work
//! on large bodies, and calls to the provider.

use crate::large_bodies::AccountQueue;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Use of shared resources by one account.
#[derive(Debug, Default)]
pub struct AccountUsage {
    /// Bytes of the small part of the buffer budget.
    pub small: AtomicUsize,
    /// Bytes of its common part.
    pub large: AtomicUsize,
    /// Notified when the account returns large memory.
    pub freed: Notify,
    /// Large requests that wait to be parsed.
    pub large_requests: AccountQueue,
    /// Large answers that wait to be read.
    pub large_answers: AccountQueue,
    /// Bytes of its whole answers that are not sent to their callers yet.
    pub unsent: AtomicUsize,
    /// Calls in progress to the provider.
    calls: AtomicUsize,
    /// Requests over HTTP/2 that are not answered yet.
    requests: AtomicUsize,
}

/// Counts one request over HTTP/2 of an account until it is dropped.
#[derive(Debug)]
pub struct RequestPermit(Arc<AccountUsage>);

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts one call of an account to the provider until it is dropped.
#[derive(Debug)]
pub struct CallPermit(Arc<AccountUsage>);

impl CallPermit {
    /// Counts the call no longer. Returns the usage of its account.
    pub fn end(self) -> Arc<AccountUsage> {
        Arc::clone(&self.0)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AccountUsage {
    /// Counts one more call; `None` if `max` calls of the account are in progress.
    pub fn try_begin_call(self: &Arc<Self>, max: usize) -> Option<CallPermit> {
        add_within(&self.calls, 1, max).then(|| CallPermit(Arc::clone(self)))
    }

    /// Counts one more request over HTTP/2; `None` if `max` of the account are not answered yet.
    pub fn try_begin_request(self: &Arc<Self>, max: usize) -> Option<RequestPermit> {
        add_within(&self.requests, 1, max).then(|| RequestPermit(Arc::clone(self)))
    }
}

/// Minimum of entries to add to a full [`AccountUsages`].
const ROOM_MIN: usize = 64;

/// The usages of accounts. An account has one as long as anything refers to it, such as a cached key or a call: with
/// a second one, the account would have its shares twice.
#[derive(Debug, Default)]
pub struct AccountUsages(Mutex<HashMap<String, Weak<AccountUsage>>>);

impl AccountUsages {
    /// Returns the usage of an account, or a new one if nothing refers to one.
    pub fn get(&self, account: &str) -> Arc<AccountUsage> {
        let mut all = self.0.lock();
        if let Some(usage) = all.get(account).and_then(Weak::upgrade) {
            return usage;
        }
        if all.len() == all.capacity() {
            all.retain(|_, usage| usage.strong_count() > 0);
            // As much room as is used, so that the next search for abandoned entries is far away.
            let room = all.len().max(ROOM_MIN);
            all.reserve(room);
        }
        let usage = Arc::default();
        all.insert(account.to_owned(), Arc::downgrade(&usage));
        usage
    }
}

/// Adds `more` unless the sum would exceed `max`. Returns whether it was added. The sum never passes `max`, also for a
/// moment: otherwise an addition that is refused could make another one fail.
pub fn add_within(taken: &AtomicUsize, more: usize, max: usize) -> bool {
    let sum = |taken: usize| taken.checked_add(more).filter(|&sum| sum <= max);
    taken
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, sum)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn abandoned_usages_are_forgotten_and_those_in_use_are_not() {
        let usages = AccountUsages::default();
        let in_use = usages.get("acct");
        for other in 0..100_000 {
            usages.get(&format!("acct_{other}"));
        }
        assert!(Arc::ptr_eq(&in_use, &usages.get("acct")));
        assert!(usages.0.lock().capacity() < 1_000);
    }

    #[test]
    fn the_calls_of_an_account_are_bounded() {
        let [one, other] = <[Arc<AccountUsage>; 2]>::default();
        let mut calls: Vec<_> = (0..3).map(|_| one.try_begin_call(3).unwrap()).collect();
        assert!(one.try_begin_call(3).is_none());
        assert!(other.try_begin_call(3).is_some());
        calls.pop();
        assert!(one.try_begin_call(3).is_some(), "one has ended");
        drop(calls);
        assert_eq!(one.calls.load(Ordering::SeqCst), 0);
        let request = one.try_begin_request(1).unwrap();
        assert!(one.try_begin_request(1).is_none() && other.try_begin_request(1).is_some());
        drop(request);
        assert!(one.try_begin_request(1).is_some());
    }

    #[test]
    fn an_addition_that_is_refused_makes_no_other_fail() {
        let taken = AtomicUsize::new(1);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    assert!(!add_within(&taken, 10, 10));
                }
            });
            for _ in 0..100_000 {
                assert!(add_within(&taken, 9, 10), "there is room");
                taken.fetch_sub(9, Ordering::SeqCst);
            }
            stop.store(true, Ordering::SeqCst);
        });
        assert!(!add_within(&taken, usize::MAX, usize::MAX));
        assert_eq!(taken.load(Ordering::SeqCst), 1);
    }
}
