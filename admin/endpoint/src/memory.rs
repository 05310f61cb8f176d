//! Memory of request bodies, and of answers, within limits for all accounts together.
//!
//! All of an account have a share of the memory, and all of one caller have a share of that. No account takes more than
//! it leaves free, so that several accounts together never take all.

use crate::problem::{Code, Problem};
use axum::http::header::RETRY_AFTER;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Longest request body, in bytes.
pub const BODY_MAX: usize = 1 << 20;
/// Divisor for an account's share of the memory for all.
const ACCOUNT_SHARE: usize = 4;
/// Divisor for a caller's share of the account's; at least one body or answer of maximum length fits.
const CALLER_SHARE: usize = 4;
/// Memory of all counted answers together, in bytes.
pub const ANSWERS_MAX: usize = 64 << 20;
/// The most that one answer can take, in bytes: an account's share.
pub const ANSWER_MAX: usize = ANSWERS_MAX / ACCOUNT_SHARE;

/// Memory of all request bodies together, or of all answers.
#[derive(Debug)]
pub struct SharedMemory {
    max: usize,
    /// The most that one body or answer can take.
    one_max: usize,
    /// Sentences about a used-up share of a caller, of an account, and of all.
    used_up: [&'static str; 3],
    taken: Mutex<ReservedBytes>,
}

#[derive(Debug, Default)]
struct ReservedBytes {
    total: usize,
    by_account: HashMap<Arc<str>, usize>,
    by_caller: HashMap<Arc<str>, usize>,
}

/// The memory of one body or answer. Dropping it returns the memory.
#[derive(Debug)]
pub(crate) struct Reserved {
    memory: Arc<SharedMemory>,
    account: Arc<str>,
    caller: Arc<str>,
    bytes: usize,
}

impl SharedMemory {
    /// Creates room for `max` bytes of request bodies (`admin.max_buffered_bytes`).
    pub fn for_bodies(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            one_max: BODY_MAX,
            used_up: [
                "You send more request bodies at once than there is memory for.",
                "The account sends more request bodies at once than there is memory for.",
                "Too many request bodies are being received. Try again shortly.",
            ],
            taken: Mutex::default(),
        })
    }

    /// Creates room for [`ANSWERS_MAX`] bytes of answers.
    pub fn for_answers() -> Arc<Self> {
        Arc::new(Self {
            max: ANSWERS_MAX,
            one_max: ANSWER_MAX,
            used_up: [
                "You read more large answers at once than there is memory for.",
                "The account reads more large answers at once than there is memory for.",
                "Too many large answers are being sent. Try again shortly.",
            ],
            taken: Mutex::default(),
        })
    }

    /// Returns the limit, in bytes.
    pub const fn max(&self) -> usize {
        self.max
    }

    /// Returns the memory in use, in bytes.
    pub fn taken(&self) -> usize {
        self.taken.lock().total
    }

    /// Returns the shares of one account, and of one caller of it, in bytes.
    fn shares(&self) -> (usize, usize) {
        let account = self.max / ACCOUNT_SHARE;
        (account, (account / CALLER_SHARE).max(self.one_max))
    }
}

impl Reserved {
    /// Creates an empty reservation for this account and caller, identified by the id of a key or a user.
    pub(crate) fn none(memory: &Arc<SharedMemory>, account: &str, caller: &str) -> Self {
        Self {
            memory: Arc::clone(memory),
            account: account.into(),
            caller: caller.into(),
            bytes: 0,
        }
    }

    /// Reserves `more` bytes.
    ///
    /// # Errors
    /// 429 if the share of the caller or of the account is used up, 503 if all memory is.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Problem> {
        let max = self.memory.max;
        let mut taken = self.memory.taken.lock();
        let of = |taken: &HashMap<Arc<str>, usize>, id: &Arc<str>| taken.get(id).copied().unwrap_or(0);
        let (account_max, caller_max) = self.memory.shares();
        let [of_caller, of_account, of_all] = self.memory.used_up;
        let message = if of(&taken.by_caller, &self.caller) + more > caller_max {
            Some(of_caller)
        } else if of(&taken.by_account, &self.account) + more > account_max {
            Some(of_account)
        } else {
            None
        };
        if let Some(message) = message {
            return Err(Problem::new(Code::ApiKeyRateLimited, message).header(RETRY_AFTER, "1"));
        }
        let own = of(&taken.by_account, &self.account);
        if !leaves_enough(own, more, max - taken.total) {
            return Err(Problem::new(Code::ServiceUnavailable, of_all).header(RETRY_AFTER, "1"));
        }
        taken.total += more;
        *taken.by_account.entry(Arc::clone(&self.account)).or_insert(0) += more;
        *taken.by_caller.entry(Arc::clone(&self.caller)).or_insert(0) += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut taken = self.memory.taken.lock();
        taken.total -= self.bytes;
        give_back(&mut taken.by_account, &self.account, self.bytes);
        give_back(&mut taken.by_caller, &self.caller, self.bytes);
    }
}

/// Returns whether an account with `own` bytes leaves as much as it has if it takes `more` of the `free` ones.
const fn leaves_enough(own: usize, more: usize, free: usize) -> bool {
    own + more <= free.saturating_sub(more)
}

fn give_back(taken: &mut HashMap<Arc<str>, usize>, id: &Arc<str>, bytes: usize) {
    if let Entry::Occupied(mut of) = taken.entry(Arc::clone(id)) {
        *of.get_mut() -= bytes;
        if *of.get() == 0 {
            of.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 4000;

    #[test]
    fn an_account_takes_its_share_and_leaves_the_rest() {
        let memory = SharedMemory::for_bodies(MAX);
        let mut first = Reserved::none(&memory, "acct_1", "key_1");
        first.grow(600).unwrap();
        let mut second = Reserved::none(&memory, "acct_1", "key_2");
        second.grow(400).unwrap();
        assert_eq!(second.grow(1).unwrap_err().code(), Code::ApiKeyRateLimited);
        let mut other = Reserved::none(&memory, "acct_2", "key_3");
        other.grow(1000).unwrap();
        drop(first);
        second.grow(600).unwrap();
        assert_eq!(memory.taken(), 2000);
    }

    #[test]
    fn a_caller_leaves_most_of_the_accounts_share_to_others() {
        let memory = SharedMemory::for_bodies(32 * BODY_MAX);
        let mut viewer: Vec<_> = (0..3)
            .map(|_| Reserved::none(&memory, "acct_1", "usr_1"))
            .collect();
        viewer[0].grow(BODY_MAX).unwrap();
        viewer[1].grow(BODY_MAX).unwrap();
        assert_eq!(viewer[2].grow(1).unwrap_err().code(), Code::ApiKeyRateLimited);
        let mut keys: Vec<_> = (0..6)
            .map(|n| Reserved::none(&memory, "acct_1", &format!("key_{n}")))
            .collect();
        for key in &mut keys {
            key.grow(BODY_MAX).unwrap();
        }
        drop(viewer.remove(0));
        viewer[1].grow(BODY_MAX).unwrap();
        // If all memory is nearly used, one body of a caller still fits.
        let (account, caller) = SharedMemory::for_bodies(4 * BODY_MAX).shares();
        assert_eq!((account, caller), (BODY_MAX, BODY_MAX));
    }

    #[test]
    fn all_bodies_together_take_no_more_than_there_is() {
        let memory = SharedMemory::for_bodies(MAX);
        let mut all: Vec<_> = (0..5)
            .map(|n| Reserved::none(&memory, &format!("acct_{n}"), &format!("key_{n}")))
            .collect();
        for reserved in &mut all[..3] {
            reserved.grow(1000).unwrap();
        }
        all[3].grow(500).unwrap();
        assert_eq!(all[3].grow(1).unwrap_err().code(), Code::ServiceUnavailable);
        all[4].grow(250).unwrap();
        assert_eq!(all[4].grow(1).unwrap_err().code(), Code::ServiceUnavailable);
        all.remove(0);
        all[3].grow(375).unwrap();
        drop(all);
        assert_eq!(memory.taken(), 0);
        let taken = memory.taken.lock();
        assert!(taken.by_account.is_empty() && taken.by_caller.is_empty());
    }

    #[test]
    fn an_account_leaves_as_much_as_it_has() {
        for (own, more, free, may) in [
            (0, 1, 2, true),
            (0, 1, 1, false),
            (3, 4, 11, true),
            (3, 4, 10, false),
            (0, 5, 4, false),
        ] {
            assert_eq!(leaves_enough(own, more, free), may, "{own} {more} {free}");
        }
    }

    #[test]
    fn accounts_together_leave_memory_to_the_next() {
        let memory = SharedMemory::for_answers();
        let greedy: Vec<_> = (0..100)
            .map(|n| {
                let mut reserved = Reserved::none(&memory, &format!("acct_{n}"), &format!("usr_{n}"));
                while reserved.grow(16 << 10).is_ok() {}
                reserved
            })
            .collect();
        assert!(memory.taken() > ANSWERS_MAX / 2);
        let mut last = Reserved::none(&memory, "acct_last", "usr_last");
        last.grow(1024).unwrap();
        drop(greedy);
        last.grow(ANSWER_MAX - 1024).unwrap();
    }

    #[test]
    fn one_answer_can_take_an_accounts_share() {
        let memory = SharedMemory::for_answers();
        let mut first = Reserved::none(&memory, "acct_1", "usr_1");
        first.grow(ANSWER_MAX).unwrap();
        let mut second = Reserved::none(&memory, "acct_1", "usr_2");
        let problem = second.grow(1).unwrap_err();
        assert_eq!(problem.code(), Code::ApiKeyRateLimited);
        assert!(
            problem.message().contains("large answers"),
            "{}",
            problem.message()
        );
        drop(first);
        second.grow(ANSWER_MAX).unwrap();
        assert_eq!(memory.max(), ANSWERS_MAX);
    }
}
