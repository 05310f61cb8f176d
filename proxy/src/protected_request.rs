//! Requests with a known key until they are answered: their connections are not closed for other ones, and the number
//! of those over HTTP/2 is limited. Over HTTP/1 there are no more than connections, but one over HTTP/2 has a hundred.

use crate::account_usage::{AccountUsage, RequestPermit, add_within};
use crate::http2_requests::{Http2Requests, WithKnownKey};
use connections::limit::Keeper;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Divisor of one account's share of them, as of all calls.
const ACCOUNT_DIVISOR: usize = 2;

/// Limits of the requests over HTTP/2 in progress.
#[derive(Debug)]
pub struct RequestLimits {
    in_progress: Arc<AtomicUsize>,
    max: usize,
}

/// Counts a request until it is dropped.
#[derive(Debug)]
struct Permit {
    in_progress: Arc<AtomicUsize>,
    _of_account: RequestPermit,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.in_progress.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RequestLimits {
    /// Allows as many requests as connections, half of them for one account.
    pub fn new(connections_max: usize) -> Self {
        Self {
            in_progress: Arc::default(),
            max: connections_max,
        }
    }

    fn begin(&self, account: &Arc<AccountUsage>) -> Option<Permit> {
        let of_account = account.try_begin_request((self.max / ACCOUNT_DIVISOR).max(1))?;
        add_within(&self.in_progress, 1, self.max).then(|| Permit {
            in_progress: Arc::clone(&self.in_progress),
            _of_account: of_account,
        })
    }
}

/// A request whose connection, once its key is known, is not closed for another one.
#[derive(Debug, Default)]
pub struct ProtectedRequest {
    connection: Keeper,
    /// The requests of its connection, over HTTP/2.
    http2: Option<Arc<Http2Requests>>,
    permit: Option<(Permit, WithKnownKey)>,
}

impl ProtectedRequest {
    /// Creates the handle of a request of a connection.
    pub const fn new(connection: Keeper, http2: Option<Arc<Http2Requests>>) -> Self {
        Self {
            connection,
            http2,
            permit: None,
        }
    }

    /// Records that the key is known. Returns false if the request must not be processed: its connection was closed for
    /// another one, or a limit of `limits` is reached.
    pub fn protect(&mut self, limits: &RequestLimits, account: &Arc<AccountUsage>) -> bool {
        if let Some(requests) = &self.http2 {
            let Some(permit) = limits.begin(account) else {
                return false;
            };
            self.permit = Some((permit, requests.key_is_known()));
        }
        self.connection.keep()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_has_half_of_all_requests_until_they_are_answered() {
        let limits = RequestLimits::new(4);
        let accounts = <[Arc<AccountUsage>; 4]>::default();
        let kept = |account: usize| {
            let mut request = ProtectedRequest::new(Keeper::default(), Some(Arc::default()));
            request.protect(&limits, &accounts[account]).then_some(request)
        };
        let mut of_first: Vec<_> = (0..2).map(|_| kept(0).unwrap()).collect();
        assert!(kept(0).is_none());
        let _others = [kept(1).unwrap(), kept(1).unwrap()];
        assert!(kept(3).is_none(), "all are in progress");
        of_first.pop();
        assert!(kept(3).is_some(), "one was answered");
        assert!(kept(0).is_some(), "a refused request leaves no count");
        let over_http1 = [(); 9].map(|()| ProtectedRequest::default().protect(&limits, &accounts[0]));
        assert_eq!(over_http1, [true; 9]);
    }
}
