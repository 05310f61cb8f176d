//! Counts requests that are not decided as calls: well-formed requests for other resources, and malformed calls. Every
//! request with a known key counts against the key's rate (decision D30).

use super::authorize::{Authorizer, Decision};
use super::denials::{DenialBuilder, DenialSubject};
use super::hold::hold_name;
use super::rejection::Rejection;
use crate::key_owners::known_key::KnownKey;
use std::sync::Arc;
use store::call::authorize::AuthorizeOutcome;

/// Counts requests against the rates of their keys.
pub struct RequestCounter {
    /// Executes the script.
    pub authorizer: Arc<Authorizer>,
    /// Builds the rejections.
    pub denials: Arc<DenialBuilder>,
}

impl RequestCounter {
    /// Counts a request.
    ///
    /// # Errors
    /// 401 for a revoked key, 429 beyond the rate, 503 without a decision.
    pub async fn count(&self, key: &KnownKey) -> Result<(), Rejection> {
        let name = hold_name(&key.owner, "")?;
        let subject = DenialSubject {
            owner: &key.owner,
            name: &name,
            request: None,
        };
        let keys = name.keys_in(key.bucket);
        // Boxed: the case is rare, and this future needs more space than the one that awaits it.
        match Box::pin(self.authorizer.authorize(key, &name, &keys, None)).await {
            Ok(Decision {
                outcome: AuthorizeOutcome::Counted,
                ..
            }) => Ok(()),
            Ok(decision) => Err(self.denials.rejection(subject, decision)),
            Err(_no_decision) => Err(self.denials.unavailable(subject)),
        }
    }

    /// Counts a call that is refused, and returns its rejection: a denial of the key takes precedence over a fault of
    /// the request. A call that is already denied is not counted.
    pub async fn count_refused(&self, key: &KnownKey, rejection: Rejection) -> Rejection {
        match rejection {
            Rejection::Refused(_) => self.count(key).await.err().unwrap_or(rejection),
            Rejection::Denied(_) => rejection,
        }
    }

    /// Rejects a key that was rejected recently and still would be, before the call's body is read. First reads the
    /// state of the key without counting the request. If the key would be rejected, counts the request and rejects it.
    ///
    /// # Errors
    /// 401 or 429. 503 if the store does not reply, or if the key became usable after its state was read, since the
    /// request is then already counted.
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
