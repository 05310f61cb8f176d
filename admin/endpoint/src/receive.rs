//! Reads the body of a request within limits of bytes, time, and memory for all bodies together.
//!
//! A body takes memory before its caller has proven any permission. So the body of an unknown caller must be short, all
//! bodies of an account have a share of the memory, and all bodies of one caller have a share of that.

use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

/// Longest request body, in bytes.
pub const BODY_MAX: usize = 1 << 20;
/// Longest request body of a caller without a credential, in bytes.
pub const PUBLIC_BODY_MAX: usize = 8 << 10;
/// Divisor for the share of an account's bodies in the memory for all.
const ACCOUNT_SHARE: usize = 4;
/// Divisor for the share of a caller's bodies in the account's share; at least one body of maximum length fits.
const CALLER_SHARE: usize = 4;

/// Memory of all request bodies together.
#[derive(Debug)]
pub struct BodyMemory {
    max: usize,
    taken: Mutex<ReservedBytes>,
}

#[derive(Debug, Default)]
struct ReservedBytes {
    total: usize,
    by_account: HashMap<Arc<str>, usize>,
    by_caller: HashMap<Arc<str>, usize>,
}

/// The memory of one body. Dropping it returns the memory.
#[derive(Debug)]
pub(super) struct Reserved {
    memory: Arc<BodyMemory>,
    account: Arc<str>,
    caller: Arc<str>,
    bytes: usize,
}

impl BodyMemory {
    /// Creates room for `max` bytes (`admin.max_buffered_bytes`).
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// Returns the maximum memory of bodies, in bytes.
    pub const fn max(&self) -> usize {
        self.max
    }

    /// Returns the memory that bodies use, in bytes.
    pub fn taken(&self) -> usize {
        self.taken.lock().total
    }

    /// Returns the maximum memory of the bodies of one account, and of one caller of it, in bytes.
    const fn shares(&self) -> (usize, usize) {
        let account = self.max / ACCOUNT_SHARE;
        let caller = account / CALLER_SHARE;
        (account, if caller < BODY_MAX { BODY_MAX } else { caller })
    }
}

impl Reserved {
    /// Creates an empty reservation for a body of this account by this caller, identified by the id of a key or a user.
    pub(super) fn none(memory: &Arc<BodyMemory>, account: &str, caller: &str) -> Self {
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
    /// 429 if the share of the caller or of the account is used up, 503 if all memory for bodies is.
    fn grow(&mut self, more: usize) -> Result<(), Problem> {
        let max = self.memory.max;
        let mut taken = self.memory.taken.lock();
        let of = |taken: &HashMap<Arc<str>, usize>, id: &Arc<str>| taken.get(id).copied().unwrap_or(0);
        let (account_max, caller_max) = self.memory.shares();
        let message = if of(&taken.by_caller, &self.caller) + more > caller_max {
            Some("You send more request bodies at once than there is memory for.")
        } else if of(&taken.by_account, &self.account) + more > account_max {
            Some("The account sends more request bodies at once than there is memory for.")
        } else {
            None
        };
        if let Some(message) = message {
            return Err(Problem::new(Code::ApiKeyRateLimited, message).header(RETRY_AFTER, "1"));
        }
        if taken.total + more > max {
            let message = "Too many request bodies are being received. Try again shortly.";
            return Err(Problem::new(Code::ServiceUnavailable, message).header(RETRY_AFTER, "1"));
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

fn give_back(taken: &mut HashMap<Arc<str>, usize>, id: &Arc<str>, bytes: usize) {
    if let Entry::Occupied(mut of) = taken.entry(Arc::clone(id)) {
        *of.get_mut() -= bytes;
        if *of.get() == 0 {
            of.remove();
        }
    }
}

/// Reads a body: for a known caller up to [`BODY_MAX`], in memory that stays `reserved` for it until that is dropped;
/// for any other caller up to [`PUBLIC_BODY_MAX`].
///
/// # Errors
/// 413 if it is longer, 408 after `timeout`, 429 or 503 without memory, 400 if it is incomplete.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    timeout: Duration,
    mut reserved: Option<&mut Reserved>,
) -> Result<Bytes, Problem> {
    let max = match reserved {
        Some(_) => BODY_MAX,
        None => PUBLIC_BODY_MAX,
    };
    let declared = headers.get(CONTENT_LENGTH);
    let declared: Option<usize> = declared
        .and_then(|text| text.to_str().ok())
        .and_then(|text| text.parse().ok());
    if declared.is_some_and(|length| length > max) {
        return Err(too_large(max));
    }
    let collect = async {
        let mut chunks = body.into_data_stream();
        let mut all = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk =
                chunk.map_err(|_| Problem::validation("The request body could not be read to its end."))?;
            if all.len() + chunk.len() > max {
                return Err(too_large(max));
            }
            if let Some(reserved) = reserved.as_deref_mut() {
                reserved.grow(chunk.len())?;
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    };
    match tokio::time::timeout(timeout, collect).await {
        Ok(body) => body,
        Err(_elapsed) => Err(Code::RequestTimeout.into()),
    }
}

fn too_large(max: usize) -> Problem {
    let message = format!("The request body is longer than {max} bytes.");
    Problem::new(Code::PayloadTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 4000;

    #[test]
    fn an_account_takes_its_share_and_leaves_the_rest() {
        let memory = BodyMemory::new(MAX);
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
        let memory = BodyMemory::new(32 * BODY_MAX);
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
        let (account, caller) = BodyMemory::new(4 * BODY_MAX).shares();
        assert_eq!((account, caller), (BODY_MAX, BODY_MAX));
    }

    #[test]
    fn all_bodies_together_take_no_more_than_there_is() {
        let memory = BodyMemory::new(MAX);
        let mut all: Vec<_> = (0..5)
            .map(|n| Reserved::none(&memory, &format!("acct_{n}"), &format!("key_{n}")))
            .collect();
        for reserved in &mut all[..4] {
            reserved.grow(1000).unwrap();
        }
        assert_eq!(all[4].grow(1).unwrap_err().code(), Code::ServiceUnavailable);
        all.remove(0);
        all[3].grow(1000).unwrap();
        drop(all);
        assert_eq!(memory.taken(), 0);
        let taken = memory.taken.lock();
        assert!(taken.by_account.is_empty() && taken.by_caller.is_empty());
    }

    #[tokio::test]
    async fn a_stranger_may_send_a_short_body_only() {
        let timeout = Duration::from_secs(1);
        let sent = |bytes: usize| Body::from(vec![b' '; bytes]);
        let read = async |bytes| read(&HeaderMap::new(), sent(bytes), timeout, None).await;
        assert_eq!(read(PUBLIC_BODY_MAX).await.unwrap().len(), PUBLIC_BODY_MAX);
        assert_eq!(
            read(PUBLIC_BODY_MAX + 1).await.unwrap_err().code(),
            Code::PayloadTooLarge
        );
    }
}
