//! Limit on the number of expensive reads of an account at one time: lists whose records can be large (intents,
//! escrows), and answers that read thousands of records (sums of wallets, surveys of agents, filtered lists). A page of
//! 200 intents takes up to 6 MB of this server's memory, and its bytes pass on the one connection to the store that all
//! accounts share; a sum of 10,000 wallets takes 11 ms of the store's time.

use axum::http::header;
use endpoint::{Code, Problem};
use keyed_limit::{KeyedLimiter, Queued};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Pages and sums of one account that a server reads at the same time.
const AT_ONCE: usize = 2;
/// Requests of one account that wait for a permit or read a page.
const REQUESTS_MAX: usize = 32;
/// Longest wait for a permit: less than the timeout of common clients.
const WAIT: Duration = Duration::from_secs(10);
/// Value of `Retry-After`, in secondswithout a permit.
const RETRY_AFTER: &str = "1";

/// The limiters of accounts.
#[derive(Debug)]
pub struct LargeLists(KeyedLimiter);

impl Default for LargeLists {
    fn default() -> Self {
        Self(KeyedLimiter::new(AT_ONCE, REQUESTS_MAX))
    }
}

/// Permission to read a page, until it is dropped.
pub(crate) struct ListPermit {
    // Dropped first: the place in the queue outlasts the permit.
    _permit: OwnedSemaphorePermit,
    _place: Queued,
}

impl LargeLists {
    /// Waits for a permit of the account.
    ///
    /// # Errors
    /// 429 if [`REQUESTS_MAX`] requests of the account are under way, or this one had no permit within [`WAIT`].
    pub(crate) async fn acquire(&self, account: &str) -> Result<ListPermit, Problem> {
        let busy = || {
            let message = "The account reads more lists and sums at once than a server does for one. Try again shortly.";
            Problem::new(Code::ApiKeyRateLimited, message).header(header::RETRY_AFTER, RETRY_AFTER)
        };
        let place = self.0.enter(account).map_err(|_| busy())?;
        let permit = tokio::time::timeout(WAIT, place.acquire()).await;
        let permit = permit.ok().flatten().ok_or_else(busy)?;
        Ok(ListPermit {
            _permit: permit,
            _place: place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;

    #[tokio::test(start_paused = true)]
    async fn an_account_reads_two_pages_at_once_and_waits_for_no_more_than_its_share() {
        let lists = LargeLists::default();
        let held = [
            lists.acquire("a").await.unwrap(),
            lists.acquire("a").await.unwrap(),
        ];
        lists.acquire("b").await.unwrap();
        let waiting = join_all((AT_ONCE..REQUESTS_MAX + 1).map(|_| lists.acquire("a")));
        let refused = waiting.await;
        let errors = refused.iter().filter_map(|permit| permit.as_ref().err());
        assert!(
            errors
                .clone()
                .all(|problem| problem.code() == Code::ApiKeyRateLimited)
        );
        assert_eq!(errors.count(), refused.len());
        let [first, second] = held;
        drop(first);
        drop((lists.acquire("a").await.unwrap(), second));
        assert_eq!(lists.0.names(), 0, "nothing is remembered");
    }
}
