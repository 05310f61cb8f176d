//! Memory of whole answers that wait for their callers. A caller can leave an answer unread for hours, as long as it
//! takes a part of it from time to time, and its call has ended by then. So an account whose answers take more than its
//! share makes no further calls until some are sent.

use crate::account_usage::AccountUsage;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Longest answer that is not counted, in bytes: as much as a connection holds while it is written to.
const UNCOUNTED_MAX: usize = 16 << 10;
/// Share of one account: one quarter.
const ACCOUNT_DIVISOR: usize = 4;

/// Memory of all unsent answers.
#[derive(Debug)]
pub struct UnsentAnswers {
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// An answer that is counted until it is sent, or its caller disconnects.
struct CountedAnswer {
    body: Bytes,
    account: Arc<AccountUsage>,
    all: Arc<UnsentAnswers>,
}

impl AsRef<[u8]> for CountedAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for CountedAnswer {
    fn drop(&mut self) {
        self.account.unsent.fetch_sub(self.body.len(), Ordering::Relaxed);
        self.all.bytes.fetch_sub(self.body.len(), Ordering::Relaxed);
    }
}

impl UnsentAnswers {
    /// Creates the count. From `bytes_max` bytes on, accounts with unsent answers make no further calls.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            bytes_max,
        }
    }

    /// Returns whether the account may make another call.
    pub fn admits(&self, account: &AccountUsage) -> bool {
        let own = account.unsent.load(Ordering::Relaxed);
        let is_within = own < self.bytes_max / ACCOUNT_DIVISOR && self.bytes() < self.bytes_max;
        own == 0 || is_within
    }

    /// Counts an answer of the account until it is dropped.
    pub fn count(self: &Arc<Self>, account: Arc<AccountUsage>, body: Bytes) -> Bytes {
        if body.len() <= UNCOUNTED_MAX {
            return body;
        }
        account.unsent.fetch_add(body.len(), Ordering::Relaxed);
        self.bytes.fetch_add(body.len(), Ordering::Relaxed);
        let all = Arc::clone(self);
        Bytes::from_owner(CountedAnswer { body, account, all })
    }

    /// Returns the bytes of all unsent answers.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 8 * UNCOUNTED_MAX;

    fn body(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    #[test]
    fn an_account_with_its_share_of_unsent_answers_waits_and_others_do_not() {
        let answers = Arc::new(UnsentAnswers::new(MAX));
        let [one, other] = <[Arc<AccountUsage>; 2]>::default();
        let small = answers.count(Arc::clone(&one), body(UNCOUNTED_MAX));
        assert_eq!(answers.bytes(), 0, "not counted");
        let share = MAX / ACCOUNT_DIVISOR;
        let below = answers.count(Arc::clone(&one), body(share - 1));
        assert!(answers.admits(&one), "one byte is left");
        drop(below);
        let mut whole = answers.count(Arc::clone(&one), body(share));
        assert!(!answers.admits(&one));
        assert!(answers.admits(&other));
        let first_piece = whole.split_to(100);
        drop(whole);
        assert!(!answers.admits(&one), "a piece is not sent yet");
        drop(first_piece);
        assert!(answers.admits(&one));
        assert_eq!(answers.bytes(), 0);
        drop(small);
    }

    /// Accounts without an unsent answer have no part in the memory of the others.
    #[test]
    fn when_all_memory_is_taken_those_without_unsent_answers_go_on() {
        let answers = Arc::new(UnsentAnswers::new(MAX));
        let [one, other, third] = <[Arc<AccountUsage>; 3]>::default();
        let _large = answers.count(Arc::clone(&one), body(MAX));
        let _small = answers.count(Arc::clone(&other), body(UNCOUNTED_MAX + 1));
        assert!(!answers.admits(&other), "within its share, of nothing");
        assert!(answers.admits(&third));
    }
}
