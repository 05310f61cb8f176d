//! Reads the body of a request within its bounds: bytes, time, and memory for all bodies together.
//!
//! A body that is read takes memory before its caller has shown that he may do anything with it, so a stranger's is
//! short, and all bodies of an account have a share of what there is.

use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest request body, in bytes.
pub const BODY_MAX: usize = 1 << 20;
/// Longest request body of a caller without a credential, in bytes.
pub const PUBLIC_BODY_MAX: usize = 8 << 10;
/// An account's bodies take at most the n-th part of the memory for all.
const ACCOUNT_SHARE: usize = 4;

/// The memory that request bodies may take together.
#[derive(Debug)]
pub struct BodyMemory {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_account: HashMap<Arc<str>, usize>,
}

/// The memory of one body; dropping it gives the memory back.
#[derive(Debug)]
pub(super) struct Reserved {
    memory: Arc<BodyMemory>,
    account: Arc<str>,
    bytes: usize,
}

impl BodyMemory {
    /// Room for `max` bytes (`admin.max_buffered_bytes`).
    #[must_use]
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            taken: Mutex::default(),
        })
    }

    /// What they may take, in bytes.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// What bodies have taken, in bytes.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved {
    /// Nothing yet, for a body of this account.
    pub(super) fn none(memory: &Arc<BodyMemory>, account: &str) -> Self {
        Self {
            memory: Arc::clone(memory),
            account: account.into(),
            bytes: 0,
        }
    }

    /// Takes `more` bytes.
    ///
    /// # Errors
    /// 429 when the account has its share, 503 when all memory for bodies is taken.
    fn grow(&mut self, more: usize) -> Result<(), Problem> {
        let max = self.memory.max;
        let mut taken = self.memory.lock();
        let of_account = taken.by_account.get(&self.account).copied().unwrap_or(0);
        if of_account + more > max / ACCOUNT_SHARE {
            let message = "The account sends more request bodies at once than there is memory for.";
            return Err(Problem::new(Code::ApiKeyRateLimited, message).header(RETRY_AFTER, "1"));
        }
        if taken.total + more > max {
            let message = "Too many request bodies are being received. Try again shortly.";
            return Err(Problem::new(Code::ServiceUnavailable, message).header(RETRY_AFTER, "1"));
        }
        taken.total += more;
        *taken.by_account.entry(Arc::clone(&self.account)).or_insert(0) += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut taken = self.memory.lock();
        taken.total -= self.bytes;
        if let Entry::Occupied(mut account) = taken.by_account.entry(Arc::clone(&self.account)) {
            *account.get_mut() -= self.bytes;
            if *account.get() == 0 {
                account.remove();
            }
        }
    }
}

/// Reads a body: of a known caller up to [`BODY_MAX`], on memory that is `reserved` for it until that is dropped; of
/// anybody else up to [`PUBLIC_BODY_MAX`].
///
/// # Errors
/// 413 beyond that, 408 after `timeout`, 429 or 503 without memory, 400 when it breaks off.
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
        let mut first = Reserved::none(&memory, "acct_1");
        first.grow(600).unwrap();
        let mut second = Reserved::none(&memory, "acct_1");
        second.grow(400).unwrap();
        assert_eq!(second.grow(1).unwrap_err().code(), Code::ApiKeyRateLimited);
        let mut other = Reserved::none(&memory, "acct_2");
        other.grow(1000).unwrap();
        drop(first);
        second.grow(600).unwrap();
        assert_eq!(memory.taken(), 2000);
    }

    #[test]
    fn all_bodies_together_take_no_more_than_there_is() {
        let memory = BodyMemory::new(MAX);
        let mut all: Vec<_> = (0..5)
            .map(|n| Reserved::none(&memory, &format!("acct_{n}")))
            .collect();
        for reserved in &mut all[..4] {
            reserved.grow(1000).unwrap();
        }
        assert_eq!(all[4].grow(1).unwrap_err().code(), Code::ServiceUnavailable);
        all.remove(0);
        all[3].grow(1000).unwrap();
        drop(all);
        assert_eq!(memory.taken(), 0);
        assert!(memory.lock().by_account.is_empty());
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
