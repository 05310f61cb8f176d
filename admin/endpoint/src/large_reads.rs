//! Limit on reads that go through many records: an account has a few under way on a server, and waits for more. Else
//! one viewer's reads would take the cores and the memory from every account.

use crate::problem::{Code, Problem};
use axum::http::header::RETRY_AFTER;
use keyed_limit::{KeyedLimiter, Queued, Share, Shares};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

/// Maximum number of concurrent large reads of an account, files that are being sent included.
const AT_ONCE: usize = 2;
/// Maximum number of those at work for all accounts, of which each [leaves more than it has](keyed_limit::may_take); a
/// file that is being sent is not counted, since its reader could be slow.
const AT_WORK: usize = 4;
/// Maximum number of large reads of an account with those that wait. Each holds a connection.
const WAITING_MAX: usize = 32;
/// Longest wait for a permit.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Value of `Retry-After`, in seconds.
const RETRY: &str = "5";

/// The large reads of a server.
#[derive(Debug)]
pub struct LargeReads {
    accounts: KeyedLimiter,
    at_work: Shares,
    /// Longest wait for a permit.
    wait: Duration,
}

/// Permission for a large read, until it is dropped.
#[derive(Debug)]
pub struct LargeRead {
    _of_account: (OwnedSemaphorePermit, Queued),
    _at_work: Option<Share>,
}

impl Default for LargeReads {
    fn default() -> Self {
        Self {
            accounts: KeyedLimiter::new(AT_ONCE, WAITING_MAX),
            at_work: Shares::new(AT_WORK, AT_ONCE),
            wait: WAIT_MAX,
        }
    }
}

impl LargeReads {
    /// Waits for a permit of the account.
    ///
    /// # Errors
    /// 409 if none of the account's is free, 503 if none of the server's is.
    pub async fn begin(&self, account: &str) -> Result<LargeRead, Problem> {
        let until = Instant::now() + self.wait;
        let queued = self.accounts.enter(account).map_err(|_full| account_busy())?;
        let permit = timeout_at(until, queued.acquire()).await.ok().flatten();
        let permit = permit.ok_or_else(account_busy)?;
        let at_work = timeout_at(until, self.at_work.take(account)).await;
        let at_work = at_work.ok().flatten().ok_or_else(|| {
            let message = "This server is busy with other large reads. Try again shortly.";
            Problem::new(Code::ServiceUnavailable, message).header(RETRY_AFTER, RETRY)
        })?;
        Ok(LargeRead {
            _of_account: (permit, queued),
            _at_work: Some(at_work),
        })
    }
}

impl LargeRead {
    /// Gives back the place that all accounts share: the rest of the answer takes as long as its reader does.
    pub(crate) fn sending(self) -> Self {
        Self {
            _at_work: None,
            ..self
        }
    }
}

fn account_busy() -> Problem {
    let message = format!(
        "{AT_ONCE} exports or usage reports of this account are under way already. Try again when one has ended."
    );
    Problem::new(Code::Conflict, message).header(RETRY_AFTER, RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large_reads(wait: Duration) -> LargeReads {
        LargeReads {
            wait,
            ..LargeReads::default()
        }
    }

    async fn refused(reads: &LargeReads, account: &str) -> Code {
        reads.begin(account).await.unwrap_err().code()
    }

    #[tokio::test]
    async fn an_account_leaves_reads_to_others() {
        let reads = large_reads(Duration::from_millis(20));
        let mut held = Vec::new();
        for account in ["acct_1", "acct_1", "acct_2", "acct_3"] {
            held.push(reads.begin(account).await.unwrap());
        }
        assert_eq!(refused(&reads, "acct_1").await, Code::Conflict);
        assert_eq!(refused(&reads, "acct_2").await, Code::ServiceUnavailable);
        assert_eq!(refused(&reads, "acct_4").await, Code::ServiceUnavailable);
        // A file that is being sent counts for its account alone.
        let sent = held.remove(0).sending();
        drop(reads.begin("acct_4").await.unwrap());
        assert_eq!(refused(&reads, "acct_1").await, Code::Conflict);
        drop((sent, held.pop()));
        drop(reads.begin("acct_1").await.unwrap());
        drop(held);
        assert_eq!(reads.accounts.names(), 0, "nothing is remembered");
    }

    #[tokio::test]
    async fn two_accounts_leave_a_read_to_the_next() {
        let reads = large_reads(Duration::from_millis(20));
        let mut held = Vec::new();
        for account in ["acct_1", "acct_1", "acct_2", "acct_2"] {
            held.extend(reads.begin(account).await);
        }
        assert!(reads.begin("acct_3").await.is_ok());
    }

    #[tokio::test]
    async fn a_read_waits_for_a_permit_in_a_bounded_queue() {
        let reads = large_reads(Duration::from_secs(60));
        let first = reads.begin("a").await.unwrap();
        let _second = reads.begin("a").await.unwrap();
        let mut waiting: Vec<_> = (AT_ONCE..WAITING_MAX)
            .map(|_| Box::pin(reads.begin("a")))
            .collect();
        for read in &mut waiting {
            assert!(futures::poll!(read).is_pending());
        }
        assert_eq!(refused(&reads, "a").await, Code::Conflict, "at once");
        drop(first);
        assert!(waiting.remove(0).await.is_ok());
    }
}
