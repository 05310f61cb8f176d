//! Counting of requests that are not decided as calls: well-formed requests for something else, and malformed calls.
//! Every request with a known key counts against the key's rate (decision D30).

use super::authorize::{Authorizer, Decision};
use super::denials::{Denials, Subject};
use super::hold::hold_name;
use super::rejection::Rejection;
use crate::key_owners::known_key::KnownKey;
use std::sync::Arc;
use store::call::authorize::Outcome;

/// Counts requests against the rates of their keys.
pub struct RequestCounter {
    /// Executes the script.
    pub authorizer: Arc<Authorizer>,
    /// Builds the rejections.
    pub denials: Arc<Denials>,
}

impl RequestCounter {
    /// Counts a request.
    ///
    /// # Errors
    /// 401 for a revoked key, 429 beyond the rate, 503 without a decision.
    pub async fn count(&self, key: &KnownKey) -> Result<(), Rejection> {
        let name = hold_name(&key.owner, "")?;
        let subject = Subject {
            owner: &key.owner,
            name: &name,
            request: None,
        };
        let keys = name.keys_in(key.bucket);
        // On the heap: it is rare, and needs more space than what awaits it.
        match Box::pin(self.authorizer.authorize(key, &name, &keys, None)).await {
            Ok(Decision {
                outcome: Outcome::Counted,
                ..
            }) => Ok(()),
            Ok(decision) => Err(self.denials.rejection(subject, decision)),
            Err(_no_decision) => Err(self.denials.unavailable(subject)),
        }
    }

    /// Counts a call that is refused, and returns its rejection: a denial of the key comes before what is wrong with
    /// the request. A call that is denied already is not counted.
    pub async fn count_refused(&self, key: &KnownKey, rejection: Rejection) -> Rejection {
        match rejection {
            Rejection::Refused(_) => self.count(key).await.err().unwrap_or(rejection),
            Rejection::Denied(_) => rejection,
        }
    }

    /// Rejects a key that was rejected recently and still would be, before the call's body is read. Reads the state of
    /// the key without counting the request; only if that is a rejection, the request is counted and ends here.
    ///
    /// # Errors
    /// 401, 429; 503 if the store does not reply, or if the key became usable since it was read: then the request
    /// counts already.
    pub async fn reject_early(&self, key: &KnownKey) -> Result<(), Rejection> {
        match self.authorizer.would_reject(key).await {
            Ok(true) => Err(self.count(key).await.err().unwrap_or_else(Rejection::unavailable)),
            Ok(false) => {
                key.clear_rejection();
                Ok(())
            }
            Err(_no_decision) => Err(Rejection::unavailable()),
        }
    }
}

#[cfg(test)]
mod tests;
